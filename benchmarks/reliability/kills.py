"""kill -9 at random moments: the same call again ends with the same bits, no file is broken and
none left over.

Each try is a process of its own, forked from this one: it has compiled everything already, so that
kills fall into the work and not into imports.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lighttouch as lt
import lighttouch.checkpoints
from benchmarks.reliability.card import Outcome, note, row
from lighttouch.cli import main
from lighttouch.persistence import CHECKPOINT, read_state
from lighttouch.report import Data, write_report

KILLS = 200  # of the whole card
OFTEN = 0.02  # seconds between two checkpoints
TIMES = 60  # files of one run that writes the same again and again


def _problem() -> lt.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    y = X @ np.arange(8.0) + rng.normal(size=2000)
    return lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), lt.ordering(8))


def _table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({f"x{k}": rng.normal(size=1500) for k in range(6)})
    X["kind"] = rng.choice(["a", "b", "c"], 1500)
    signal_part = X.x0 + np.maximum(X.x1, 0) * X.x2 + (X.kind == "b")
    return X, signal_part.to_numpy() + rng.normal(size=1500)


def _solve() -> bytes:
    solver, steps = lt.LightTouch(1.0, 0.001, 3), 1_000_000
    return lt.solve(
        _problem(), solver, iterations=steps, checkpoint="run.ltc", checkpoint_every=OFTEN
    ).w.tobytes()


def _sampled() -> bytes:
    return lt.solve(
        _problem(),
        lt.SampledAdaGrad(1e-7),
        iterations=40_000,
        checkpoint="run.ltc",
        checkpoint_every=OFTEN,
    ).w.tobytes()


def _checkpoint() -> bytes:
    """A checkpoint after every chunk: most kills fall into writing one."""
    solver = lt.PracticalLightTouch()
    return lt.solve(
        _problem(), solver, iterations=100_000, checkpoint="run.ltc", checkpoint_every=0.0
    ).w.tobytes()


def _fit() -> bytes:
    model = lt.LatticeRegressor(
        loss="absolute", monotonic_cst={"x0": 1, "x1": 1}, tol=1e-7, checkpoint="run.ltc"
    )
    X, y = _table()
    return model.fit(X, y).predict(X).tobytes()


_SMALL: dict[str, Any] = {}


def _small_model() -> lt.LatticeRegressor:
    if "model" not in _SMALL:
        X, y = _table()
        _SMALL["model"] = lt.LatticeRegressor(lattices=0, keypoints=5).fit(X, y)
    return _SMALL["model"]


def _save() -> bytes:
    for _ in range(TIMES):
        _small_model().save("model.lt")
    return Path("model.lt").read_bytes()


def _report() -> bytes:
    X, y = _table()
    for _ in range(TIMES // 10):
        write_report(_small_model(), "model.html", Data("rows", X, y))
    return Path("model.html").read_bytes()


def _train() -> bytes:
    words = "train data.csv --target y --increasing x0 --increasing x1 --checkpoint run.ltc"
    words += " --loss absolute -o model.lt --report model.html --overwrite --quiet"
    code = main(words.split())
    assert code in (0, 4), code
    return Path("model.lt").read_bytes()


WORK: dict[str, Callable[[], bytes]] = {
    "solve": _solve,
    "sampled solve": _sampled,
    "checkpoint": _checkpoint,
    "fit": _fit,
    "save": _save,
    "report": _report,
    "train": _train,
}


@row("kill9")
def kill9(quick: bool) -> Outcome:
    """Kills of every kind of work; a try is one kill, and counts when everything held after it."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # the date is part of a model file
    rng, tried, ok, worst = np.random.default_rng(0), 0, 0, ""
    lighttouch.checkpoints.EVERY = OFTEN
    names = ["solve", "save"] if quick else list(WORK)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            expected, whole = _uninterrupted(name, Path(folder))
        kills = 2 if quick else -(-KILLS // len(names))
        done = 0
        while done < kills:
            with tempfile.TemporaryDirectory() as folder:
                killed, said = _killed_again_and_again(name, Path(folder), kills - done, whole, rng)
                found = _output(Path(folder))
                done, tried = done + killed, tried + killed
                if not said and found != expected:
                    said = "other bits in the end"
                said = said or _left_over(Path(folder))
                ok += 0 if said else killed
                worst = f"{name}: {said}" if said else worst
                note("kill9", tried, ok, worst)
    return tried, ok, worst


def _prepare(folder: Path) -> None:
    X, y = _table()
    X.assign(y=y).to_csv(folder / "data.csv", index=False)


def _uninterrupted(name: str, folder: Path) -> tuple[bytes, float]:
    """What it gives, and how long that takes once everything is compiled."""
    _small_model()
    for _ in range(2):
        _prepare(folder)
        before = os.getcwd()
        os.chdir(folder)
        try:
            began = time.perf_counter()
            found = WORK[name]()
            took = time.perf_counter() - began
        finally:
            os.chdir(before)
        for each in folder.iterdir():
            each.unlink()
    return found, took


def _killed_again_and_again(
    name: str, folder: Path, most: int, whole: float, rng: np.random.Generator
) -> tuple[int, str]:
    """Run until it ends by itself; how many kills that took, and what was wrong."""
    _prepare(folder)
    killed = 0
    while killed < most:
        process = _begun(name, folder)
        if _ended_within(process, rng.uniform(0.0, 1.0) * whole):
            return killed, "" if (folder / "found").exists() else "it failed"
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        killed += 1
        if said := _broken(folder):
            return killed, said
    process = _begun(name, folder)
    os.waitpid(process, 0)
    return killed, "" if (folder / "found").exists() else "it failed"


def _begun(name: str, folder: Path) -> int:
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        os.chdir(folder)
        warnings.simplefilter("ignore")
        found = WORK[name]()
        Path("found").write_bytes(found)
        code = 0
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _ended_within(process: int, seconds: float) -> bool:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return False


def _broken(folder: Path) -> str:
    """What a user finds after a kill: every file is whole."""
    for path in folder.iterdir():
        try:
            if path.suffix == ".lt":
                lt.load(path)
            elif path.suffix == ".ltc":
                read_state(path, CHECKPOINT)
            elif path.suffix == ".html" and not path.read_text().rstrip().endswith("</html>"):
                return f"{path.name} is not whole"
        except lt.ModelFileError as error:
            return str(error)
    return ""


def _output(folder: Path) -> bytes:
    path = folder / "found"
    return path.read_bytes() if path.exists() else b""


def _left_over(folder: Path) -> str:
    left = [each.name for each in folder.iterdir() if each.name.startswith(".")]
    return f"left over: {left}" if left else ""
