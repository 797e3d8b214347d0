"""Rows about processes: killed, interrupted, sharing a cache, out of time."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.reliability.card import Outcome, row

HERE = Path(__file__).resolve().parents[2]
KILLS, SIGNALS = 200, 200  # of the whole card
COMMON = """
import sys, warnings, numpy as np, lighttouch as lt
warnings.simplefilter("ignore")
r = np.random.default_rng(0)
X = r.normal(size=(2000, 8)); y = X @ np.arange(8.0) + r.normal(size=2000)
P = lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), lt.ordering(8))
"""
LONG = {
    "solve": """
w = lt.solve(P, lt.LightTouch(1.0, 0.001, 3), iterations=1_500_000, checkpoint="run.ltc",
             checkpoint_every=0.05).w
""",
    "default solve": """
w = lt.solve(P, lt.SampledAdaGrad(1e-7), iterations=60_000, checkpoint="run.ltc",
             checkpoint_every=0.02).w
""",
    "fit": """
import lighttouch.checkpoints as c
c.EVERY = 0.02
m = lt.LatticeRegressor(loss="absolute", monotonic_cst=[1] * 8, tol=1e-7, checkpoint="run.ltc")
w = m.fit(X, y).predict(X)
m.save("model.lt")
""",
}
DIGEST = "import hashlib; print(hashlib.sha256(np.asarray(w).tobytes()).hexdigest(), flush=True)\n"


def _start(program: str, folder: str, **more: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(HERE / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@row("kill9")
def kill9(quick: bool) -> Outcome:
    """kill -9 at random moments; the same command again and again ends with the same bits, no file
    is broken and none left over.
    """
    rng = np.random.default_rng(0)
    tried = ok = 0
    worst = ""
    for name, text in LONG.items():
        program = COMMON + text + DIGEST
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            expected, told = _start(program, folder).communicate()
            assert expected, told
            whole = time.perf_counter() - began
        kills = (2 if name == "solve" else 0) if quick else -(-KILLS // len(LONG))
        done = 0
        while done < kills:
            with tempfile.TemporaryDirectory() as folder:
                while True:
                    process = _start(program, folder)
                    try:
                        output, told = process.communicate(
                            timeout=rng.uniform(0.3, 1.0) * whole if done < kills else None
                        )
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()
                        done, tried, ok = done + 1, tried + 1, ok + 1
                        continue
                    break
                left = [each.name for each in Path(folder).iterdir()]
                good = output == expected and not any(each.endswith(".part") for each in left)
                if not good:
                    ok, worst = ok - 1, f"{name}: {told[-200:] or left}"
    return tried, ok, worst


SIGNALLED = {
    "default": """
while True:
    q = lt.solve(P, lt.Automatic(1e-12))
    print(q.status.name, flush=True)
""",
    "full touch": """
q = lt.solve(P, lt.FullTouch(1.0, 1e-4), iterations=10**10)
print(q.status.name, flush=True)
""",
    "fit": """
m = lt.LatticeRegressor(loss="absolute", tol=1e-300, max_iter=10**6, monotonic_cst=[1] * 8)
m.fit(X, y)
print("INTERRUPTED", flush=True)
""",
}


@row("interrupt")
def interrupt(quick: bool) -> Outcome:
    """SIGINT and SIGTERM at random moments, also while compiling (an empty cache): a usable result
    or a clean end, within a second of processor time.
    """
    rng = np.random.default_rng(1)
    tried = ok = 0
    worst = 0.0
    reasons = ""
    for trial in range(3 if quick else SIGNALS):
        name = list(SIGNALLED)[trial % 3]
        number = (signal.SIGINT, signal.SIGTERM)[trial % 2]
        with tempfile.TemporaryDirectory() as folder:
            fresh = {"LIGHTTOUCH_CACHE_DIR": folder} if trial % 5 == 4 else {}
            program = COMMON + "print('begun', flush=True)\n" + SIGNALLED[name]
            process = _start(program, folder, **fresh)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0.0, 3.0))
            others, before = _children(), _processor_seconds(process.pid)
            process.send_signal(number)
            try:
                output, told = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                output, told = process.communicate()
                told = "did not end"
            late = _children() - others - before
            clean = process.returncode in (0, 130, 143, -signal.SIGINT, -signal.SIGTERM, 1)
            known = "INTERRUPTED" in output or "KeyboardInterrupt" in told or not told.strip()
            good = clean and known and "did not end" not in told and late <= 1.0
            tried, worst = tried + 1, max(worst, late)
            ok += good
            if not good:
                reasons = (
                    f"{name} {signal.Signals(number).name}: {process.returncode} {told[-150:]}"
                )
    return tried, ok, reasons or f"{worst:.2f} s"


def _processor_seconds(process: int) -> float:
    """What a child has used so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@row("cache")
def cache(quick: bool) -> Outcome:
    """Two processes at once on an empty, a corrupt and a read-only compile cache."""
    program = COMMON + "w = lt.solve(P, lt.FullTouch(1.0, 0.001), iterations=2000).w\n" + DIGEST
    tried = ok = 0
    worst = ""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "cache"
        place.mkdir()
        for state in ("empty",) if quick else ("empty", "corrupt", "read-only"):
            if state == "corrupt":
                for file in place.rglob("*.nb*"):
                    file.write_bytes(b"garbage" + file.read_bytes()[:50])
            if state == "read-only":
                place.chmod(stat.S_IRUSR | stat.S_IXUSR)
            both = [_start(program, folder, LIGHTTOUCH_CACHE_DIR=str(place)) for _ in range(2)]
            ended = [process.communicate() for process in both]
            outputs = {output for output, _ in ended}
            tried += 1
            good = all(p.returncode == 0 for p in both) and len(outputs) == 1
            ok += good
            worst = worst if good else f"{state}: {ended[0][1][-200:]}"
        place.chmod(stat.S_IRWXU)
    return tried, ok, worst


@row("time-limit")
def time_limit(quick: bool) -> Outcome:
    """How late a run ends, in seconds of its processor, beyond 0.2 s and a tenth of the limit."""
    rng = np.random.default_rng(0)
    d = 2**12
    grid = lt.Lattice([2] * 12)
    problems = {
        "lattice": lt.Problem(
            lt.EmpiricalRisk(grid.features(rng.random((2000, 12))), rng.normal(size=2000)),
            lt.lattice.increasing([2] * 12),
        ),
        "orders": lt.Problem(
            lt.EmpiricalRisk(sp.identity(d, format="csr"), rng.normal(size=d)),
            lt.order(*_random_order(rng, d, 3 * d), dimension=d),
        ),
        "dense": lt.Problem(
            lt.EmpiricalRisk(rng.normal(size=(50_000, 30)), rng.normal(size=50_000), "absolute"),
            lt.LinearConstraints(rng.normal(size=(200, 30)), np.ones(200)),
        ),
    }
    tried = ok = 0
    worst = ("", 0.0)
    for name, problem in problems.items():
        lt.solve(problem, time_limit=0.05)
        for limit in (0.2,) if quick else (0.1, 0.2, 0.5, 1.0):
            began = time.process_time()
            lt.solve(problem, lt.Automatic(1e-12), time_limit=limit)
            late = time.process_time() - began - limit
            tried += 1
            ok += late <= 0.2 + 0.1 * limit
            worst = max(worst, (name, round(late, 3)), key=lambda pair: pair[1])
    return tried, ok, f"{worst[0]} {worst[1]} s"


def _random_order(
    rng: np.random.Generator, dimension: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    lower = rng.integers(0, dimension - 1, count)
    upper = lower + 1 + (rng.random(count) * (dimension - 1 - lower)).astype(np.int64)
    return lower, upper
