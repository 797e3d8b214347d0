"""The problem that clusters solve in these tests; `seconds` makes reading a shard slow."""

from __future__ import annotations

import functools
import hashlib

import numpy as np

import engine_tasks as tasks
import lighttouch as lt

SOLVER = lt.Accelerated(1e-9, passes=50)
SHARDS = 6


def problem(seconds: float = 0.0) -> lt.Problem:
    shards = [
        functools.partial(tasks.slow_shard, seed, 40 + 7 * seed, "hinge", seconds)
        for seed in range(SHARDS)
    ]
    return lt.Problem(lt.ShardedRisk(shards), lt.ordering(5), lt.Box(-10.0, 10.0))


def digest(result: lt.Result) -> str:
    numbers = [result.w, [result.objective, result.violation, result.lower_bound]]
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in numbers)).hexdigest()
