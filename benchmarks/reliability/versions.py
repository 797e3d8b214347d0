"""The lowest declared versions of every dependency, and each Python from 3.11 to 3.13 with the
newest: installed from the registry into environments of their own, which then solve, fit, save,
load, train and predict. Needs uv; a Python that is not on this machine is left out, and said so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.reliability.card import Outcome, row

HERE = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
SMOKE = """
import numpy as np, pandas as pd, lighttouch as lt
from lighttouch.cli import main
r = np.random.default_rng(0)
X = pd.DataFrame({"a": r.random(200), "b": r.random(200), "kind": r.choice(["u", "v"], 200)})
y = X.a + X.a * X.b + (X.kind == "u")
problem = lt.Problem(lt.EmpiricalRisk(X[["a", "b"]].to_numpy(), y.to_numpy()), lt.ordering(2))
assert lt.solve(problem).status is lt.Status.CONVERGED
assert lt.solve(problem, lt.LightTouch(1.0, 0.01, 1), iterations=500).violation == 0.0
model = lt.LatticeRegressor(monotonic_cst={"a": 1}).fit(X, y)
model.save("model.lt")
assert (lt.load("model.lt").predict(X) == model.predict(X)).all()
X.assign(y=y).to_csv("data.csv", index=False)
words = "train data.csv --target y --increasing a -o cli.lt --quiet --overwrite"
assert main(words.split()) in (0, 4)
assert main("check cli.lt --quiet".split()) == 0
assert main("predict cli.lt data.csv -o out.csv --quiet --overwrite".split()) == 0
print("smoke passed")
"""


@row("versions")
def versions(quick: bool) -> Outcome:
    """Every environment that can be made here installs and passes."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        return 1, 0, "uv is not here: pip install uv"
    tried = ok = 0
    said = []
    for python, resolution in [("3.11", "lowest-direct"), *((each, "highest") for each in PYTHONS)]:
        if quick and resolution == "highest":
            continue
        interpreter = _interpreter(uv, python)
        if interpreter is None:
            said.append(f"Python {python} is not here")
            continue
        failure = _tried(uv, interpreter, resolution)
        tried, ok = tried + 1, ok + (not failure)
        if failure:
            said.append(f"{python}, {resolution}: {failure}")
    return tried, ok, "; ".join(said)


def _interpreter(uv: str, python: str) -> str | None:
    """By uv, or of pyenv, whose own names for them work only where they are switched on."""
    asked = [uv, "python", "find", "--no-python-downloads", python]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if not found.returncode:
        return found.stdout.strip()
    of_pyenv = Path.home().glob(f".pyenv/versions/{python}.*/bin/python")
    return next((str(each) for each in of_pyenv), None)


def _tried(uv: str, python: str, resolution: str) -> str:
    """What went wrong, in the last words of what failed."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "venv"
        own = str(here / "bin" / "python")
        wanted = [f"{HERE}[frames,conic]"]
        steps = [
            [uv, "venv", "-q", "--python", python, str(here)],
            [uv, "pip", "install", "-q", "--python", own, "--resolution", resolution, *wanted],
            [own, "-c", SMOKE],
        ]
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        kept["LIGHTTOUCH_CACHE_DIR"] = str(Path(folder) / "cache")
        for words in steps:
            done = subprocess.run(
                words, cwd=folder, env=kept, capture_output=True, text=True, check=False
            )
            if done.returncode:
                return re.sub(r"\s+", " ", done.stderr)[-300:]
    return ""
