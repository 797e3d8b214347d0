"""`python -m benchmarks.reliability.long_fit [--rows N] [--kills 9]`: a long fit, killed nine times
with kill -9, ends with the bits of one that was left alone.

Each kill comes once the process has written a checkpoint of its own and a random while after, so
that every process brings the fit on a little.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.reliability.forking import environment

PROGRAM = """
import hashlib, sys, warnings
import numpy as np, lighttouch as lt, lighttouch.checkpoints
warnings.simplefilter("ignore")
lighttouch.checkpoints.EVERY = 2.0
r = np.random.default_rng(0)
X = r.normal(size=({rows}, 8))
y = X[:, 0] * np.maximum(X[:, 1], 0.0) + np.abs(X[:, 2]) + X[:, 3] + r.normal(size={rows})
model = lt.LatticeRegressor(loss="absolute", monotonic_cst=[1, 1, 0, 1, 0, 0, 0, 0], tol=1e-9,
                            max_iter={steps}, checkpoint="fit.ltc")
model.fit(X, y).save("fit.lt")
said = model.parameters_.tobytes() + model.predict(X).tobytes()
print(hashlib.sha256(said).hexdigest(), flush=True)
"""


def _started(program: str, folder: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, cwd=folder, env=environment(), stdout=pipe, text=True)


def _wrote(folder: Path, since: float, process: subprocess.Popen[str]) -> bool:
    """Wait until this process has written a checkpoint; False where it has ended before."""
    path = folder / "fit.ltc"
    while process.poll() is None:
        if path.exists() and path.stat().st_mtime > since:
            return True
        time.sleep(0.05)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=900_000)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=9)
    given = parser.parse_args()
    program = PROGRAM.format(rows=given.rows, steps=given.steps)
    rng, killed = np.random.default_rng(0), 0
    with tempfile.TemporaryDirectory() as left_alone, tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        expected, _ = _started(program, Path(left_alone)).communicate()
        whole = time.perf_counter() - began
        print(f"left alone: {whole:.0f} s, {expected.strip()[:16]}", file=sys.stderr, flush=True)
        found = ""
        while not found:
            process = _started(program, Path(folder))
            since = time.time()
            if killed < given.kills and _wrote(Path(folder), since, process):
                time.sleep(rng.uniform(0.0, 0.5) * whole / given.kills)
                process.kill()
                killed += 1
                print(f"killed {killed} times", file=sys.stderr, flush=True)
            found, _ = process.communicate()
        left = sorted(each.name for each in Path(folder).iterdir())
    same = found == expected and bool(expected) and left == ["fit.lt"]
    row = {"row": "long-fit", "killed": killed, "seconds": round(whole), "same": same, "left": left}
    print(json.dumps(row))
    return 0 if same and killed == given.kills else 1


if __name__ == "__main__":
    sys.exit(main())
