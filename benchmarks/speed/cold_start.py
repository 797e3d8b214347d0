"""Target 7: import and first solve in a new process, with a warm compile cache."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.speed.paper_problem import Row

IMPORT = "import lighttouch"
SOLVE = (
    "import numpy as np, lighttouch as lt; lt.solve(lt.Problem(lt.EmpiricalRisk(np.eye(9), "
    "np.arange(9.0)), lt.ordering(9)))"
)


def seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - began


def run(quick: bool = False) -> list[Row]:
    seconds(SOLVE)
    bare = min(seconds("pass") for _ in range(3))
    imported = min(seconds(IMPORT) for _ in range(3)) - bare
    solved = min(seconds(SOLVE) for _ in range(3)) - bare
    return [
        Row("import lighttouch", f"{imported:.2f} s", "< 1.5 s", imported < 1.5),
        Row("import and first solve, warm cache", f"{solved:.2f} s", "< 2 s", solved < 2.0),
    ]
