"""The problem that clusters solve in these tests; `seconds` makes reading a shard slow."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

import engine_tasks as tasks
import lighttouch as lt

SOLVER = lt.Accelerated(1e-9, passes=30)
SHARDS = 6


def problem(seconds: float = 0.0) -> lt.Problem:
    shards = [
        functools.partial(tasks.slow_shard, seed, 40 + 7 * seed, "hinge", seconds)
        for seed in range(SHARDS)
    ]
    return lt.Problem(lt.ShardedRisk(shards), lt.ordering(5), lt.Box(-10.0, 10.0))


TOUCH = lt.LocalTouch(lt.LightTouch(2.0, lt.AdaGrad(0.3), 4, weight_step_size=0.5), 50)


def in_ranges() -> lt.Problem:
    """Many constraints, which are divided among the workers too."""
    shards = [functools.partial(tasks.lattice_shard, seed, 50 + 20 * seed) for seed in range(3)]
    rules = lt.lattice.increasing([2] * 12)
    return lt.Problem(lt.ShardedRisk(shards), rules, lt.Box(-10.0, 10.0))


def digest(result: lt.Result) -> str:
    numbers = [result.w, [result.objective, result.violation, result.lower_bound]]
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in numbers)).hexdigest()
