"""What engines and shards cost against plain `solve`: the paper's problem, FISTA for a few steps.

    python -m benchmarks.shards.engines [--pairs 612587] [--shards 8] [--steps 10] [--ray]

Wall-clock seconds of the same steps in the same run, workers started and data shared beforehand.
On a machine that does other things, compare within one run only.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from typing import Any

import lighttouch as lt
from benchmarks.shards.cases import PAIRS, in_shards
from benchmarks.speed.paper_problem import paper_problem


def seconds(problem: lt.Problem, steps: int, engine: Any = None, repeats: int = 3) -> float:
    """The best of a few: what else runs on the machine only adds."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        lt.solve(problem, lt.Accelerated(1e-6, near=True), iterations=steps, engine=engine)
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--ray", action="store_true")
    asked = parser.parse_args()
    whole = paper_problem(asked.pairs)
    parts = in_shards(whole, asked.shards)
    rows = [("solve, all examples in memory", seconds(whole, asked.steps))]
    rows.append((f"{asked.shards} shards, this process", seconds(parts, asked.steps)))
    engines: list[Any] = [lt.Processes(1), lt.Processes(2)]
    engines += [lt.Ray(workers=2)] if asked.ray else []
    for engine in engines:
        with ExitStack() as stack:
            stack.enter_context(engine)
            seconds(parts, 2, engine, repeats=1)  # compiles, shares, warms up
            rows.append(
                (f"{asked.shards} shards, {engine.describe()}", seconds(parts, asked.steps, engine))
            )
    for name, took in rows:
        print(f"{name:50s} {took:8.2f} s {took / rows[0][1]:6.2f} x plain solve")
    print(f"two processes against one: {rows[2][1] / rows[3][1]:.2f}x faster")


if __name__ == "__main__":
    main()
