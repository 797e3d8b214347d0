"""The problems of these benchmarks, in shards; functions of a module, so that workers find them."""

from __future__ import annotations

import functools
import itertools

import numpy as np

import lighttouch as lt
from benchmarks.speed.paper_problem import SIZES, paper_problem

PAIRS = 612_587


def in_shards(problem: lt.Problem, count: int) -> lt.Problem:
    """The same problem, its examples cut into `count` parts that lie in memory."""
    X = problem.objective.X
    cuts = np.linspace(0, problem.objective.examples, count + 1).astype(int)
    parts = [
        lt.EmpiricalRisk(X[a:b], np.ones(b - a), "hinge", copy=False)
        for a, b in itertools.pairwise(cuts)
    ]
    return lt.Problem(lt.ShardedRisk(parts), problem.constraints, problem.domain)


def paper_in_shards(count: int, pairs: int = PAIRS) -> lt.Problem:
    return in_shards(paper_problem(pairs), count)


def generated(seed: int, count: int) -> lt.EmpiricalRisk:
    """Examples of 12 columns on the lattice of 4,096 parameters, made when asked, never stored."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, len(SIZES)))
    y = np.where(x @ np.linspace(0.5, 1.5, len(SIZES)) + rng.normal(size=count) > 6.0, 1.0, -1.0)
    return lt.EmpiricalRisk(lt.Lattice(SIZES).features(x), y, "hinge", copy=False)


def generated_problem(shards: int, count: int) -> lt.Problem:
    parts = [functools.partial(generated, seed, count) for seed in range(shards)]
    return lt.Problem(lt.ShardedRisk(parts), lt.lattice.increasing(SIZES), lt.Box(-10.0, 10.0))
