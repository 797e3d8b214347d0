"""Rows about processes: killed, interrupted, sharing a cache, out of time."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.reliability.card import Outcome, note, row
from benchmarks.reliability.forking import Program, Server, environment

SIGNALS = 200  # of the whole card
COMMON = """
import sys, warnings, numpy as np, lighttouch as lt
warnings.simplefilter("ignore")
r = np.random.default_rng(0)
X = r.normal(size=(2000, 8)); y = X @ np.arange(8.0) + r.normal(size=2000)
P = lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), lt.ordering(8))
"""
DIGEST = "import hashlib; print(hashlib.sha256(np.asarray(w).tobytes()).hexdigest(), flush=True)\n"


def _start(program: str, folder: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


SIGNALLED = {
    "default": """
while True:
    q = lt.solve(P, lt.Automatic(1e-12))
    print(q.status.name, flush=True)
    if number == 2 and q.status is lt.Status.INTERRUPTED:
        break  # a first Ctrl-C is for the run, a SIGTERM for the program
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
    "train": """
from lighttouch.cli import main
words = "train data.csv --target y --loss absolute -o m.lt --overwrite --quiet".split()
while not (code := main(words)):
    print("again", flush=True)
print("INTERRUPTED", flush=True)
sys.exit(code)
""",
}
WARM_UP = (
    COMMON
    + """
import os, tempfile
from lighttouch.cli import main
lt.solve(P, lt.Automatic(1e-12), time_limit=1.0)
lt.solve(P, lt.FullTouch(1.0, 1e-4), iterations=10)
lt.LatticeRegressor(loss="absolute", monotonic_cst=[1] * 8).fit(X, y)
lt.LatticeRegressor(
    loss="absolute", tol=1e-300, max_iter=10**6, monotonic_cst=[1] * 8, time_limit=2.0
).fit(X, y)
folder = tempfile.mkdtemp(); name = os.path.join(folder, "d.csv")
np.savetxt(name, np.c_[X, y], delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="")
main(["train", name, "--target", "y", "--loss", "absolute", "-o", folder + "/m.lt", "--quiet"])
import shutil; shutil.rmtree(folder)
"""
)
DATA = """
np.savetxt("data.csv", np.c_[X, y], delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="")
"""
PROMPT = 1.0  # seconds of processor time from a signal to the end
COMPILING = 5  # every fifth try is a fresh process with an empty compile cache
UNTIL_BEGUN, UNTIL_ENDED = 600.0, 120.0  # seconds by the clock, on a busy machine


@row("interrupt")
def interrupt(quick: bool) -> Outcome:
    """SIGINT and SIGTERM at random moments, also while compiling (an empty cache): a usable result
    or a clean end, within a second of processor time, which other work on the machine does not
    count in.
    """
    rng, tried, ok = np.random.default_rng(1), 0, 0
    worst, reasons = 0.0, ""
    with Server(WARM_UP) as server:
        for trial in range(10 if quick else SIGNALS):
            name = list(SIGNALLED)[trial % len(SIGNALLED)]
            number = (signal.SIGINT, signal.SIGTERM)[trial // len(SIGNALLED) % 2]
            begun = f"number = {int(number)}; print('begun', flush=True)\n"
            program = COMMON + DATA + begun + SIGNALLED[name]
            with tempfile.TemporaryDirectory() as folder:
                if trial % COMPILING == COMPILING - 1:
                    program = FRESH.format(cache=folder) + program
                    run = server.start(EXECUTE.format(program=program), folder)
                else:
                    run = server.start(program, folder)
                late, said = _interrupted(run, number, rng, Path(folder))
            tried, ok, worst = tried + 1, ok + (not said), max(worst, late)
            if said:
                reasons = f"{name} {signal.Signals(number).name}: {said}"
                print(f"try {trial}: {reasons}", file=sys.stderr, flush=True)
            note("interrupt", tried, ok, reasons or f"{worst:.2f} s")
    return tried, ok, reasons or f"{worst:.2f} s"


FRESH = "import os; os.environ['LIGHTTOUCH_CACHE_DIR'] = {cache!r}\n"
EXECUTE = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', {program!r}])\n"


def _interrupted(
    run: Program, number: int, rng: np.random.Generator, folder: Path
) -> tuple[float, str]:
    """Seconds of processor time from the signal to the end, and what was wrong."""
    if not run.said("begun", UNTIL_BEGUN):
        run.wait(0.0)
        return 0.0, "it did not begin"
    time.sleep(rng.uniform(0.0, 3.0))
    before = run.seconds
    run.signal(number)
    ended = run.wait(UNTIL_ENDED)
    if ended is None:
        return 0.0, "did not end"
    late = ended.seconds - before
    clean = ended.code in (0, 130, 143, -signal.SIGINT, -signal.SIGTERM) or (
        ended.code == 1 and ended.errors.rstrip().endswith("KeyboardInterrupt")
    )
    known = (
        "INTERRUPTED" in ended.output
        or "KeyboardInterrupt" in ended.errors
        or not ended.errors.strip()
    )
    left = [each.name for each in folder.iterdir() if each.name.endswith(".part")]
    if not (clean and known) or left:
        return late, f"exit code {ended.code}, left {left}, said {ended.errors[-300:]}"
    return late, "" if late <= PROMPT else f"{late:.2f} s late"


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
