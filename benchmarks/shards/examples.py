"""A hundred million generated examples in shards of a million, by two workers below 2 GB each.

    python -m benchmarks.shards.examples [--shards 100] [--steps 10] [--minutes 25]

12 columns, a lattice of 4,096 parameters under 24,576 rules. Examples are generated whenever a
worker needs a shard, and never stored, so a pass includes making them, which is most of it (0.7 s
of CPU for a shard; the gradient takes 0.05 s). What `solve` does by itself: a survey of the shards,
every shard alone, the mean, and `--steps` steps of FISTA with full gradients. Of every tenth step
the bound is computed. A line for each pass, and one at the end.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.shards.cases import generated_problem
from lighttouch.running import working_with


def peak(pause: float) -> float:
    """The most memory, in GB, that this worker has had; the pause lets every worker answer."""
    time.sleep(pause)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Counted(lt.ShardedRisk):
    """Counts passes over the shards, and tells the seconds of each."""

    def __init__(self, shards: Any) -> None:
        super().__init__(shards)
        self.seconds: list[float] = []

    @property
    def passes(self) -> int:
        return len(self.seconds)

    def each(self, function: Any, *arguments: Any, own: Any = None) -> Iterator[Any]:
        began = time.perf_counter()
        yield from super().each(function, *arguments, own=own)
        self.seconds.append(time.perf_counter() - began)
        name = function.__name__.strip("_")
        print(f"pass {self.passes}, {name}: {self.seconds[-1]:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--examples", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10, help="of FISTA with full gradients")
    parser.add_argument("--minutes", type=float, default=25.0, help="of training, at most")
    asked = parser.parse_args()
    made = generated_problem(asked.shards, asked.examples)
    risk = Counted(made.objective.shards)
    problem = lt.Problem(risk, made.constraints, made.domain)
    began = time.perf_counter()
    with lt.Processes(asked.workers) as engine, working_with(engine):
        print(risk.memory(), flush=True)
        found = lt.solve(
            problem,
            iterations=asked.steps + 1,  # the mean of the shards' solutions is the first
            time_limit=60.0 * asked.minutes,
            record_every=asked.steps + 1,
        )
        largest = max(engine.map(peak, [(0.2,)] * 4 * asked.workers))
    print(
        f"{asked.shards} shards of {asked.examples:,} examples, {asked.workers} workers: "
        f"{risk.passes} passes, {np.median(risk.seconds):.1f} s (median), "
        f"{time.perf_counter() - began:.0f} s in all; a worker needed at most {largest:.2f} GB; "
        f"{found.status.name}, objective {found.objective:.6f}, proven gap {found.gap:.2g}, "
        f"violation {found.violation:g}"
    )


if __name__ == "__main__":
    main()
