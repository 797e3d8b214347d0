"""The numbers that decide how many rows a method looks at: all, or those that are broken.

Times are of whole runs on one thread, which prepare the problem anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

import lighttouch as lt
from benchmarks.coupled.convex import concave_increasing
from benchmarks.speed.expensive import dense_rows
from benchmarks.thresholds import Comparison, alternated, experiment, sides, with_values
from benchmarks.thresholds.solvers import compared, path
from lighttouch.arrays import Matrix
from lighttouch.interfaces import AnySolver
from lighttouch.interior.costs import COSTS
from lighttouch.running import one_blas_thread
from lighttouch.solvers.costs import COSTS as SOLVING
from lighttouch.solvers.interior_rounds import model_of

NEVER = float("inf")
LIMIT = 3.0  # seconds of the turns of one case
ALL = {"rows_per_factor": NEVER, "all_rows_per_parameter": NEVER}
BROKEN = {"rows_per_factor": 0.0, "all_rows_per_parameter": 0.0, "quick": 0.0}
Build = Callable[[], lt.Problem]


def solved(build: Build, solver: AnySolver, **values: float) -> Callable[[], object]:
    def run() -> object:
        with with_values(COSTS, **values), one_blas_thread():
            return lt.solve(build(), solver, project=False, time_limit=20.0)

    return run


def all_or_broken(build: Build) -> tuple[float, float]:
    """The interior point with all rows, and with a working set."""
    solver = lt.InteriorPoint()
    return alternated(solved(build, solver, **ALL), solved(build, solver, **BROKEN), 2, limit=LIMIT)


def least_squares(dimension: int, A: Matrix, right: float) -> Build:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2 * dimension, dimension))
    y = X @ rng.normal(size=dimension) + rng.normal(size=2 * dimension)
    b = np.full(A.shape[0], right)
    return lambda: lt.Problem(lt.EmpiricalRisk(X, y, "squared"), lt.LinearConstraints(A, b))


def scattered(count: int, dimension: int, width: int) -> Matrix:
    rng = np.random.default_rng(2)
    places = rng.integers(0, dimension, count * width)
    ends = np.arange(0, places.size + 1, width)
    rows = sparse.csr_matrix((rng.standard_normal(places.size), places, ends), (count, dimension))
    rows.sum_duplicates()
    return rows


@experiment(
    "rows_per_factor", COSTS.rows_per_factor, "rows of 100 entries, d = 900", "all", "broken ones"
)
def rows_per_factor() -> Iterator[Comparison]:
    for count in (2_500, 7_000, 20_000):
        build = least_squares(900, scattered(count, 900, 100), 20.0)
        size = model_of(build()).rows.products / COSTS.gram_rate / (900**3 / 3 / COSTS.dense_rate)
        yield Comparison(size, *all_or_broken(build))


@experiment("quick", COSTS.quick, "seconds per step, by rows", "all", "broken ones")
def quick() -> Iterator[Comparison]:
    for dimension in (100, 500):
        for count in (10_000, 30_000, 100_000):
            build = least_squares(dimension, scattered(count, dimension, 3), 1.0)
            times = all_or_broken(build)
            yield Comparison(count / COSTS.row_rate, *times, f"rows of 3 entries, d = {dimension}")


@experiment(
    "all_rows_per_parameter", COSTS.all_rows_per_parameter, "pairs of convex regression",
    "all", "broken ones",
)  # fmt: skip
def all_rows_per_parameter() -> Iterator[Comparison]:
    for points in (40, 80, 160, 240):

        def build(points: int = points) -> lt.Problem:
            return concave_increasing(points, None, 10.0, False).problem

        found = build()
        rows = found.constraints.count / found.dimension
        yield Comparison(rows, *all_or_broken(build), f"{points} points")


@experiment(
    "planes_rows_at_once", SOLVING.planes_rows_at_once, "rows around a ball, distance to a point",
    "all", "broken ones",
)  # fmt: skip
def planes_rows_at_once() -> Iterator[Comparison]:
    for dimension in (20, 50):
        rng = np.random.default_rng(0)
        centre = 3.0 * rng.normal(size=dimension)
        for count in (300, 1_000, 3_000, 10_000):
            A = rng.normal(size=(count, dimension))
            A /= np.linalg.norm(A, axis=1)[:, None]

            def build(A: Matrix = A, c: np.ndarray = centre) -> lt.Problem:
                goal = lt.CustomObjective(
                    c.size, lambda i, x: np.abs(x - c).sum(), lambda i, x: np.sign(x - c)
                )
                return lt.Problem(goal, lt.LinearConstraints(A, np.ones(A.shape[0])))

            run = solved(build, lt.CuttingPlanes())
            times = sides(SOLVING, "planes_rows_at_once", 10**9, 0, run, limit=LIMIT)
            yield Comparison(count, *times, f"d = {dimension}")


@experiment("most_restored", COSTS.most_restored, "broken rows per parameter", "moved", "not moved")
def most_restored() -> Iterator[Comparison]:
    """Dense rows, a working set, with points moved to where they break no row however many they
    break, and never.
    """
    for dimension, count, broken in ((1_000, 50_000, 0.04), (500, 25_000, 0.06)):
        always, never = (
            solved(
                functools.partial(dense_rows, dimension, count),
                lt.InteriorPoint(1e-2),
                most_restored=most,
            )
            for most in (NEVER, 0.0)
        )
        name = f"{count:,} rows, d = {dimension}, to 1%"
        yield Comparison(broken, *alternated(always, never, 3, limit=LIMIT), name)
    for dimension, count in ((500, 8_000), (200, 8_000), (100, 50_000)):
        rng = np.random.default_rng(3)
        build = least_squares(
            dimension, rng.normal(size=(count, dimension)), 0.8 * float(np.sqrt(dimension))
        )
        always, never = (
            solved(build, lt.InteriorPoint(), most_restored=most, **BROKEN) for most in (NEVER, 0.0)
        )
        broken = max(
            COSTS.least_joining_rows / dimension, COSTS.joining_dense_rows_per_parameter
        )  # so many are looked at
        name = f"{count:,} rows, d = {dimension}"
        yield Comparison(broken, *alternated(always, never, 3, limit=LIMIT), name)


# -- quadratic steps -------------------------------------------------------------------------------


def labels(dimension: int, rows: int) -> Build:
    """Logistic loss with a ridge, under rows of 3 entries."""
    rng = np.random.default_rng(0)
    X = abs(scattered(4_000, dimension, 10))
    margin = np.asarray(X @ rng.normal(size=dimension)) + rng.logistic(size=4_000)
    y, ridge = np.where(margin > 0.0, 1.0, -1.0), 0.1 * sparse.identity(dimension, format="csr")
    A, b = scattered(rows, dimension, 3), np.full(rows, 0.5)

    def build() -> lt.Problem:
        risk = lt.EmpiricalRisk(X, y, "logistic", roughness=ridge)
        return lt.Problem(risk, lt.LinearConstraints(A, b))

    return build


def surface(size: int, kinds: int) -> Build:
    """Labels on a smoothed lattice that rises along one axis (1 kind of rows), both (2), and bends
    upwards along one (3) or both (4).
    """
    rng, sizes = np.random.default_rng(0), [size, size]
    inputs = rng.random((20_000, 2))
    X = lt.Lattice(sizes, interpolation="hypercube").features(inputs)
    height = 2.0 * (inputs[:, 0] - 0.5) * inputs[:, 1] - 0.5 * np.sin(6.0 * inputs[:, 0])
    y = np.where(height + rng.logistic(size=20_000) > 0.0, 1.0, -1.0)
    bends = [lt.lattice.convex(sizes, axis, interpolation="hypercube").A for axis in (0, 1)]
    families = [*(lt.lattice.increasing(sizes, [axis]).A for axis in (0, 1)), *bends][:kinds]
    A = sparse.vstack([sparse.csr_matrix(each) for each in families], format="csr")
    ridge = 0.01 * sparse.identity(size * size)
    rough = 0.01 * sparse.vstack([*map(sparse.csr_matrix, bends), ridge], format="csr")

    def build() -> lt.Problem:
        risk = lt.EmpiricalRisk(X, y, "logistic", roughness=rough)
        return lt.Problem(risk, lt.LinearConstraints(A, np.zeros(A.shape[0])))

    return build


def by_steps(record: Any, field: str, below: float, above: float, build: Build) -> Any:
    return sides(record, field, below, above, solved(build, lt.QuadraticSteps()), limit=LIMIT)


@experiment("pivot_blocks", COSTS.pivot_blocks, "rows per parameter", "blocks", "those asked for")
def pivot_blocks() -> Iterator[Comparison]:
    for kinds in (1, 2, 3, 4):
        times = by_steps(COSTS, "pivot_blocks", NEVER, 0.0, surface(25, kinds))
        yield Comparison(0.96 * kinds, *times, "a surface of 625 vertices")
    for share in (1, 2, 4, 8):
        times = by_steps(COSTS, "pivot_blocks", NEVER, 0.0, labels(300, 300 * share))
        yield Comparison(share, *times, "rows of 3 entries, d = 300")


@experiment("interior_rows", SOLVING.interior_rows, "rows of 3 entries", "interior point", "ADMM")
def interior_rows() -> Iterator[Comparison]:
    for dimension in (100, 400):
        for count in (3_000, 30_000, 100_000, 200_000):
            build = labels(dimension, count)
            times = by_steps(SOLVING, "interior_rows", 10**9, 0, build)
            yield Comparison(count, *times, f"d = {dimension}")


@experiment(
    "largest_factored", SOLVING.largest_factored, "parameters, logistic loss",
    "factored", "conjugate gradients",
)  # fmt: skip
def largest_factored() -> Iterator[Comparison]:
    """Seconds to within a fifth of a percent of the better end."""
    for size in (20, 30, 45):
        yield _factored(surface(size, 4), "a surface with rows of four kinds")
    for dimension in (500, 1_000, 2_000):
        yield _factored(labels(dimension, dimension), "rows of 3 entries, well conditioned")


def _factored(build: Build, name: str) -> Comparison:
    runs = []
    for limit in (10**9, 0):
        with with_values(SOLVING, largest_factored=limit), one_blas_thread():
            runs.append(path(build(), lt.QuadraticSteps()))
    return compared(build().dimension, runs[0], runs[1], name)
