"""Both sides of every threshold of `lighttouch.solvers.costs` that chooses between two methods.

Each function takes sizes around its threshold, solves the same problem both ways in one run, and
prints seconds and the objective reached. The threshold should lie where the faster side changes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse

import lighttouch as lt
from lighttouch.datasets import ranking_pairs
from lighttouch.solvers.costs import COSTS, SolverCosts

CROSSOVERS: dict[str, Callable[[], None]] = {}


def crossover(function: Callable[[], None]) -> Callable[[], None]:
    """Register the measurement of the field that the function is named after."""
    assert function.__name__ in {field.name for field in dataclasses.fields(SolverCosts)}
    CROSSOVERS[function.__name__] = function
    return function


@contextmanager
def costs(**values: Any) -> Iterator[None]:
    """The record with other values, inside the block."""
    before = {name: getattr(COSTS, name) for name in values}
    for name, value in values.items():
        object.__setattr__(COSTS, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(COSTS, name, value)


def seconds(problem: lt.Problem, solver: Any, limit: float = 30.0) -> tuple[float, float]:
    """Wall time and objective of one solve, the best of two: the first may compile."""
    best, objective = np.inf, np.inf
    for _ in range(2):
        began = time.perf_counter()
        result = lt.solve(problem, solver, time_limit=limit)
        best, objective = min(best, time.perf_counter() - began), result.objective
    return best, objective


def both(size: float, unit: str, problem: lt.Problem, one: Any, other: Any) -> None:
    (a, fa), (b, fb) = seconds(problem, one), seconds(problem, other)
    names = type(one).__name__, type(other).__name__
    print(
        f"  {size:10.3g} {unit}: {names[0]} {a:7.3f} s {fa:.6g}, {names[1]} {b:7.3f} s {fb:.6g}, "
        f"ratio {a / b:.2f}"
    )


def values_of(field: str, values: tuple[Any, ...], problem: lt.Problem, solver: Any = None) -> None:
    """The same solve under several values of one field."""
    for value in values:
        with costs(**{field: value}):
            took, objective = seconds(problem, solver or lt.Automatic())
        mark = " <- chosen" if value == getattr(COSTS, field) else ""
        print(f"  {field} = {value}: {took:.3f} s, objective {objective:.6g}{mark}")


def dense_logistic(examples: int) -> lt.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(examples, 100))
    y = np.where(X @ np.sort(rng.normal(size=100)) + rng.normal(size=examples) > 0, 1.0, -1.0)
    return lt.Problem(lt.EmpiricalRisk(X, y, "logistic"), lt.ordering(100), lt.Box(-3, 3))


def hinge_pairs(pairs: int, features: int) -> lt.Problem:
    better, worse = ranking_pairs(pairs, features, seed=0)
    lattice = lt.Lattice([2] * features)
    risk = lt.PairwiseRisk(lattice.features(better), lattice.features(worse))
    return lt.Problem(risk, lt.lattice.increasing([2] * features), lt.Box(-10, 10))


@crossover
def cheap_pass() -> None:
    for examples in (10_000, 40_000, 160_000):
        problem = dense_logistic(examples)
        both(examples * 100.0, "operations", problem, lt.Accelerated(), lt.SampledAdaGrad())


@crossover
def kinked_cheap_pass() -> None:
    for pairs in (1_000, 8_000, 64_000):
        problem = hinge_pairs(pairs, 8)
        size = pairs * problem.objective.cost
        both(size, "operations", problem, lt.Accelerated(), lt.SampledAdaGrad())


@crossover
def cheap_check() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(2_000, 500)), rng.normal(size=2_000)
    for rows in (2_000, 20_000, 200_000):
        A = scipy.sparse.random(rows, 500, 0.02, "csr", random_state=rng)
        problem = lt.Problem(
            lt.EmpiricalRisk(X, y, "huber"), lt.LinearConstraints(A, np.ones(rows))
        )
        both(float(A.nnz), "operations", problem, lt.Accelerated(), lt.SampledAdaGrad())


@crossover
def polish_pass() -> None:
    for examples in (40_000, 120_000, 400_000):
        problem = dense_logistic(examples)
        with costs(polish_pass=np.inf):
            polished = seconds(problem, lt.Automatic())
        with costs(polish_pass=0.0):
            sampled = seconds(problem, lt.Automatic())
        print(f"  {examples * 100.0:.3g} operations: polished {polished}, sampled only {sampled}")


@crossover
def kinked_polish_pass() -> None:
    for pairs in (40_000, 76_000, 300_000):
        problem = hinge_pairs(pairs, 12)
        size = pairs * problem.objective.cost
        with costs(kinked_polish_pass=np.inf):
            polished = seconds(problem, lt.Automatic())
        with costs(kinked_polish_pass=0.0):
            sampled = seconds(problem, lt.Automatic())
        print(f"  {size:.3g} operations: polished {polished}, sampled only {sampled}")


@crossover
def polish_share() -> None:
    values_of("polish_share", (0.25, 1.0, 4.0), hinge_pairs(76_000, 12))


def convex_regression(points: int) -> lt.Problem:
    """f_j <= f_i + g_i (x_j - x_i) for the 13 nearest neighbours, as in convex regression."""
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(0)
    X = rng.uniform(1, 10, size=(points, 2))
    y = X[:, 0] ** 0.4 * X[:, 1] ** 0.4 + rng.normal(scale=0.7, size=points)
    j = cKDTree(X).query(X, k=14)[1][:, 1:].ravel()
    i, r = np.repeat(np.arange(points), 13), np.arange(13 * points)
    entries = [(r, j, np.ones(r.size)), (r, i, -np.ones(r.size))]
    entries += [(r, points + 2 * i + a, X[i, a] - X[j, a]) for a in range(2)]
    R, C, V = (np.concatenate(part) for part in zip(*entries, strict=True))
    A = scipy.sparse.csr_matrix((V, (R, C)), shape=(r.size, 3 * points))
    P = scipy.sparse.diags(np.concatenate([np.ones(points), np.full(2 * points, 1e-10)]))
    q = np.concatenate([-y, np.zeros(2 * points)])
    lower = np.concatenate([np.full(points, -np.inf), np.zeros(2 * points)])
    constraints = lt.LinearConstraints(A, np.zeros(A.shape[0]))
    return lt.Problem(lt.Quadratic(P.tocsr(), q), constraints, lt.Box(lower, np.inf))


@crossover
def factor() -> None:
    from lighttouch.projections.sets import feasible_set

    for points in (30, 100, 300):
        problem = convex_regression(points)
        size = feasible_set(problem.constraints, problem.domain).factor_cost_with(
            problem.objective.P
        )
        both(size, "multiplications", problem, lt.InteriorPoint(), lt.Accelerated())


@crossover
def run_length() -> None:
    values_of("run_length", (1, 2, 4, 8, 16), hinge_pairs(300_000, 12), lt.SampledAdaGrad())


@crossover
def runs() -> None:
    values_of("runs", (1, 2, 4, 8), hinge_pairs(300_000, 12), lt.SampledAdaGrad())


@crossover
def constraint_share() -> None:
    problem = hinge_pairs(300_000, 12)
    values_of("constraint_share", (0.02, 0.1, 0.5), problem, lt.SampledAdaGrad())


def dense_rows() -> lt.Problem:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 300))
    y = X @ rng.normal(size=300) + rng.normal(size=20_000)
    A = rng.normal(size=(20_000, 300))
    return lt.Problem(
        lt.EmpiricalRisk(X, y, "huber"), lt.LinearConstraints(A, np.full(20_000, 8.0))
    )


@crossover
def largest_share() -> None:
    values_of("largest_share", (0.2, 2.0, 20.0), dense_rows(), lt.SampledAdaGrad())


@crossover
def largest_group() -> None:
    values_of("largest_group", (64, 1024, 8192), dense_rows(), lt.SampledAdaGrad())


@crossover
def near_coordinates() -> None:
    for features in (16, 18):
        problem = hinge_pairs(100_000, features)
        for name, limit in (("double", 2**62), ("single", 0)):
            with costs(near_coordinates=limit):
                took, objective = seconds(problem, lt.SampledAdaGrad())
            print(f"  {2**features} coordinates, {name}: {took:.3f} s, objective {objective:.6g}")


@crossover
def penalty_share() -> None:
    rng = np.random.default_rng(3)
    X = lt.Lattice([40, 40], interpolation="hypercube").features(rng.random((300_000, 2)))
    y = rng.normal(size=300_000)
    bends = lt.lattice.convex([40, 40], 0, interpolation="hypercube").A
    risk = lt.EmpiricalRisk(X, y, "huber", roughness=0.1 * bends)
    values_of("penalty_share", (0.05, 0.2, 1.0), lt.Problem(risk), lt.SampledAdaGrad())
