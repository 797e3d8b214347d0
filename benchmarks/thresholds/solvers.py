"""The thresholds of `lighttouch.solvers.costs` that choose between two methods.

Where a field is a share or a size rather than a choice, the value that is chosen is compared with
values around it: a ratio above one says that the other value would be faster. Times are until the
objective is within a fifth of a percent of the best that either side reaches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse

import lighttouch as lt
from benchmarks.thresholds import Comparison, experiment, with_values
from lighttouch.datasets import ranking_pairs
from lighttouch.interfaces import AnySolver
from lighttouch.solvers.costs import COSTS

NEAR = 1.002  # of the better objective
LIMIT = 20.0  # seconds of a solve


def path(problem: lt.Problem, solver: AnySolver) -> list[tuple[float, float]]:
    """Seconds in the solver and the objective of a feasible point, as the run goes on."""
    seen = []

    def look(progress: lt.Progress) -> None:
        if progress.violation <= 1e-6 or not seen:
            seen.append((progress.seconds, progress.objective))

    lt.solve(problem, solver, iterations=1, project=False)  # compiles
    result = lt.solve(problem, solver, time_limit=LIMIT, callback=look)
    return [*seen, (result.seconds, result.objective)]


def compared(
    size: float,
    one: list[tuple[float, float]],
    other: list[tuple[float, float]],
    name: str = "",
) -> Comparison:
    """The seconds that each takes to come near the better of both."""
    goal = min(objective for _, objective in one + other)
    goal += (NEAR - 1.0) * abs(goal)
    first, second = (
        min((seconds for seconds, objective in run if objective <= goal), default=np.inf)
        for run in (one, other)
    )
    return Comparison(size, first, second, name)


def values(field: str, tried: tuple[float, ...], problem: lt.Problem) -> Iterator[Comparison]:
    """The chosen value of a field against others."""
    chosen = path(problem, lt.SampledAdaGrad())
    for value in tried:
        with with_values(COSTS, **{field: value}):
            yield compared(value, chosen, path(problem, lt.SampledAdaGrad()))


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


def by_default(field: str, size: float, problem: lt.Problem, name: str = "") -> Comparison:
    """The whole default with FISTA first, and with sampling first."""
    runs = []
    for limit in (np.inf, 0.0):
        with with_values(COSTS, **{field: limit}):
            runs.append(path(problem, lt.Automatic()))
    return compared(size, runs[0], runs[1], name)


@experiment(
    "cheap_pass", COSTS.cheap_pass, "dense logistic, d = 100, the whole default",
    "FISTA first", "sampling first",
)  # fmt: skip
def cheap_pass() -> Iterator[Comparison]:
    for examples in (10_000, 40_000, 160_000, 400_000):
        yield by_default("cheap_pass", examples * 100.0, dense_logistic(examples))


@experiment(
    "kinked_cheap_pass",
    COSTS.kinked_cheap_pass,
    "hinge on a 2^12 lattice, the whole default",
    "FISTA first",
    "sampling first",
)
def kinked_cheap_pass() -> Iterator[Comparison]:
    """Where the interior point would take too long: it takes smaller lattices before either."""
    for pairs in (2_000, 4_000, 8_000, 40_000):
        problem, runs = hinge_pairs(pairs, 12), []
        for limit in (np.inf, 0.0):
            with with_values(COSTS, kinked_cheap_pass=limit):
                runs.append(path(problem, lt.Automatic()))
        ends = " and ".join(f"{run[-1][1]:.5f} in {run[-1][0]:.1f} s" for run in runs)
        yield compared(pairs * problem.objective.cost, *runs, ends)


@experiment(
    "cheap_check", COSTS.cheap_check, "logistic, sparse rows, d = 500, the whole default",
    "FISTA first", "sampling first",
)  # fmt: skip
def cheap_check() -> Iterator[Comparison]:
    """Without the interior point, which is asked first and would take these problems."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2_000, 500))
    y = np.where(X @ rng.normal(size=500) + rng.normal(size=2_000) > 0.0, 1.0, -1.0)
    for rows in (2_000, 20_000, 200_000):
        A = scipy.sparse.random(rows, 500, 0.02, "csr", random_state=rng)
        rules = lt.LinearConstraints(A, np.full(rows, 0.05))
        problem = lt.Problem(lt.EmpiricalRisk(X, y, "logistic"), rules)
        with with_values(COSTS, short_interior=-1.0, proof_seconds=-1.0, interior_seconds=-1.0):
            yield by_default("cheap_check", float(A.nnz), problem)


def polished(field: str, size: float, problem: lt.Problem) -> Comparison:
    """The whole default with and without a finish by FISTA, to its own end."""
    ends = []
    for limit in (np.inf, 0.0):
        with with_values(COSTS, **{field: limit}):
            ends.append(path(problem, lt.Automatic())[-1])
    return Comparison(size, ends[0][0], ends[1][0])


@experiment("polish_pass", COSTS.polish_pass, "dense logistic, d = 100", "polished", "sampled only")
def polish_pass() -> Iterator[Comparison]:
    for examples in (60_000, 120_000, 400_000):
        yield polished("polish_pass", examples * 100.0, dense_logistic(examples))


@experiment(
    "kinked_polish_pass", COSTS.kinked_polish_pass, "hinge, 2^12", "polished", "sampled only"
)
def kinked_polish_pass() -> Iterator[Comparison]:
    for pairs in (40_000, 76_000, 300_000):
        problem = hinge_pairs(pairs, 12)
        yield polished("kinked_polish_pass", pairs * problem.objective.cost, problem)


PAIRS = "hinge on a 2^12 lattice, 300,000 pairs"
ROWS = "huber, 20,000 dense rows, d = 300"


@experiment("run_length", COSTS.run_length, PAIRS, "as chosen", "other", True)
def run_length() -> Iterator[Comparison]:
    yield from values("run_length", (1, 2, 8, 16), hinge_pairs(300_000, 12))


@experiment("runs", COSTS.runs, PAIRS, "as chosen", "other", True)
def runs() -> Iterator[Comparison]:
    yield from values("runs", (1, 2, 8), hinge_pairs(300_000, 12))


@experiment("constraint_share", COSTS.constraint_share, PAIRS, "as chosen", "other", True)
def constraint_share() -> Iterator[Comparison]:
    yield from values("constraint_share", (0.02, 0.5), hinge_pairs(300_000, 12))


def dense_rows() -> lt.Problem:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 300))
    y = X @ rng.normal(size=300) + rng.normal(size=20_000)
    A = rng.normal(size=(20_000, 300))
    return lt.Problem(
        lt.EmpiricalRisk(X, y, "huber"), lt.LinearConstraints(A, np.full(20_000, 8.0))
    )


@experiment("example_operations", COSTS.example_operations, ROWS, "as chosen", "other", True)
def example_operations() -> Iterator[Comparison]:
    yield from values("example_operations", (3.0, 48.0), dense_rows())


@experiment("sparse_operations", COSTS.sparse_operations, PAIRS, "as chosen", "other", True)
def sparse_operations() -> Iterator[Comparison]:
    yield from values("sparse_operations", (1.0, 16.0), hinge_pairs(300_000, 12))


@experiment("largest_share", COSTS.largest_share, ROWS, "as chosen", "other", True)
def largest_share() -> Iterator[Comparison]:
    yield from values("largest_share", (0.2, 20.0), dense_rows())


@experiment("largest_group", COSTS.largest_group, ROWS, "as chosen", "other", True)
def largest_group() -> Iterator[Comparison]:
    yield from values("largest_group", (64, 8192), dense_rows())


@experiment(
    "near_coordinates", COSTS.near_coordinates, "hinge, 2^16 and 2^18", "double", "single precision"
)
def near_coordinates() -> Iterator[Comparison]:
    for features in (16, 18):
        problem, runs = hinge_pairs(100_000, features), []
        for limit in (2**62, 0):
            with with_values(COSTS, near_coordinates=limit):
                runs.append(path(problem, lt.SampledAdaGrad()))
        yield compared(2.0**features, *runs)


@experiment(
    "penalty_share", COSTS.penalty_share, "smoothed 40 x 40 lattice", "as chosen", "other", True
)
def penalty_share() -> Iterator[Comparison]:
    rng = np.random.default_rng(3)
    inputs = rng.random((300_000, 2))
    X = lt.Lattice([40, 40], interpolation="hypercube").features(inputs)
    y = np.sin(6.0 * inputs[:, 0]) * inputs[:, 1] + rng.normal(size=300_000)
    bends = lt.lattice.convex([40, 40], 0, interpolation="hypercube").A
    risk = lt.EmpiricalRisk(X, y, "huber", roughness=0.1 * bends)
    yield from values("penalty_share", (0.05, 1.0), lt.Problem(risk))
