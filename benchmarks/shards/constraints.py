"""2^24 parameters under 201 million constraints, none of them stored, on one worker.

    python -m benchmarks.shards.constraints [--columns 24] [--examples 100000]

A lattice of two keypoints for each of 24 columns, increasing in every column: 24 * 2^23 constraints
that are written down when they are visited. Checked, projected onto, and a gradient of one shard.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import lighttouch as lt

BROKEN = 1000  # vertices


def nearly_increasing(columns: int, rng: np.random.Generator) -> np.ndarray:
    """As a solver's iterate is: the sum of the columns, and a few vertices that are off."""
    w = np.zeros(1)
    for slope in rng.random(columns):
        w = np.concatenate([w, w + slope])
    some = rng.integers(w.size, size=min(w.size, BROKEN))
    w[some] += rng.normal(size=some.size)
    return w


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=24)
    parser.add_argument("--examples", type=int, default=100_000)
    asked = parser.parse_args()
    sizes = [2] * asked.columns
    rng = np.random.default_rng(0)
    x = rng.random((asked.examples, asked.columns))
    y = np.where(x.sum(axis=1) + rng.normal(size=asked.examples) > asked.columns / 2, 1.0, -1.0)
    risk = lt.EmpiricalRisk(lt.Lattice(sizes).features(x), y, "hinge", copy=False)
    shards = lt.ShardedRisk([risk])
    rules = lt.lattice.increasing(sizes)
    print(f"{risk.dimension:,} parameters, {rules.count:,} constraints, {type(rules).__name__}")
    began = time.perf_counter()
    w = nearly_increasing(asked.columns, rng)
    worst = rules.violation(w)
    print(f"checking all constraints once: {time.perf_counter() - began:.1f} s, worst {worst:.3f}")
    began = time.perf_counter()
    shards.gradient(w)
    print(f"a gradient from {asked.examples:,} examples: {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    found = lt.project(w, rules)
    print(f"the exact projection: {time.perf_counter() - began:.1f} s by {found.method}, "
          f"violation {found.violation}")  # fmt: skip
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"the process needed at most {most:.2f} GB")


if __name__ == "__main__":
    main()
