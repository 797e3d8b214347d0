"""A hundred million generated examples in shards of a million, by two workers below 2 GB each.

    python -m benchmarks.shards.examples [--shards 100] [--examples 1000000] [--workers 2]

12 columns, a lattice of 4,096 parameters under 24,576 rules. Examples are generated whenever a
worker needs a shard, and never stored, so a pass includes making them; its seconds and the largest
memory of a worker are printed. The whole takes hours: with fewer shards the seconds per shard are
the same.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.shards.cases import generated_problem
from lighttouch.mapping import working_with


def peak(part: Any, w: np.ndarray) -> float:
    """The most memory, in GB, that this worker has had."""
    part.gradient(w)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="of FISTA, after the passes")
    asked = parser.parse_args()
    problem = generated_problem(asked.shards, asked.examples)
    risk, w = problem.objective, np.zeros(problem.dimension)
    with lt.Processes(asked.workers) as engine, working_with(engine):
        began = time.perf_counter()
        print(risk.memory())
        print(f"the survey, the first pass: {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        peaks = list(risk.each(peak, w))
        took = time.perf_counter() - began
        print(f"a pass with gradients: {took:.1f} s, {took / asked.shards:.2f} s per shard")
        print(f"a worker needed at most {max(peaks):.2f} GB")
        if asked.steps:
            found = lt.solve(problem, iterations=asked.steps, engine=engine)
            print(found.status.name, found.objective, found.violation, f"{found.seconds:.0f} s")


if __name__ == "__main__":
    main()
