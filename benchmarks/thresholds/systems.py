"""The numbers of `lighttouch.interior.costs` that choose how Newton's equations are stated, stored
and factored.

Unless it says otherwise, an experiment chooses a system and then factors and solves it as often as
a typical path does, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import sparse

import lighttouch as lt
from benchmarks.thresholds import Comparison, experiment, sides
from benchmarks.thresholds.interior import chain, program, scattered
from lighttouch.arrays import Matrix
from lighttouch.interior import balance, tiles
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, entries
from lighttouch.interior.systems import DenseSystem, System, choose_system, dense_seconds
from lighttouch.running import one_blas_thread

NEVER = float("inf")
LIMIT = 3.0  # seconds of the turns of one case


def follow_path(system: System, solves: int = 1) -> None:
    rng, found = np.random.default_rng(0), system.program
    top, bottom = np.ones(found.dimension), np.ones(found.count)
    for _ in range(COSTS.typical_steps):
        factor = system.factor(rng.uniform(0.1, 1.0, found.count))
        for _ in range(solves):
            factor.solve(top, bottom)


def forced(
    field: str, below: float, above: float, call: Callable[[], object]
) -> tuple[float, float]:
    def on_one_thread() -> object:
        with one_blas_thread():
            return call()

    return sides(COSTS, field, below, above, on_one_thread, limit=LIMIT)


def chosen(field: str, below: float, above: float, found: Program) -> tuple[float, float]:
    return forced(field, below, above, lambda: follow_path(choose_system(found)[0]))


@experiment("short", COSTS.short, "seconds of a dense factor", "dense at once", "others looked at")
def short() -> Iterator[Comparison]:
    for dimension in (200, 300, 400, 500):
        found = chain(dimension)
        size = dense_seconds(found.P, found.blocks)
        yield Comparison(size, *chosen("short", NEVER, 0.0, found), "second differences")
    for dimension in (200, 400, 500, 600):
        found = scattered(dimension, 2 * dimension, 3)
        size = dense_seconds(found.P, found.blocks)
        yield Comparison(size, *chosen("short", NEVER, 0.0, found), "scattered rows")


def band(dimension: int, width: int) -> Program:
    """A row for every so many parameters one beside the other."""
    count = dimension - width + 1
    columns = (np.arange(count)[:, None] + np.arange(width)).ravel()
    values, ends = np.random.default_rng(0).standard_normal(columns.size), count * width + 1
    shape = (count, dimension)
    return program(sparse.csr_matrix((values, columns, np.arange(0, ends, width)), shape=shape))


@experiment("full_share", COSTS.full_share, "rows in bands", "others looked at", "dense at once")
def full_share() -> Iterator[Comparison]:
    for dimension in (800, 1600):
        for share in (0.015, 0.03, 0.04, 0.06):
            found = band(dimension, int(2 * share * dimension))
            stored = sum(map(entries, found.blocks)) + entries(found.P)
            size = stored / float(found.count + dimension) / dimension
            times = chosen("full_share", NEVER, 0.0, found)
            yield Comparison(size, *times, f"{dimension} parameters")


@experiment("dense_share", COSTS.dense_share, "a Gram matrix of rows", "sparse", "dense")
def dense_share() -> Iterator[Comparison]:
    rng = np.random.default_rng(0)
    for count, dimension in ((400, 200), (2_000, 500), (3_000, 1_000)):
        weights = rng.random(count)
        for share in (0.05, 0.1, 0.2, 0.4):
            rows = sparse.random(count, dimension, share, "csr", random_state=rng)
            times = forced("dense_share", NEVER, 0.0, partial(balance._gram, rows, weights))
            yield Comparison(share, *times, f"{count:,} rows of {dimension:,}")


@experiment("folded_rows", COSTS.folded_rows, "examples per parameter", "rows", "folded")
def folded_rows() -> Iterator[Comparison]:
    """Least squares in increasing order, to its end."""
    for dimension, width in ((1000, 16), (1000, 100), (600, 600)):
        for share in (0.1, 0.2, 0.4, 0.7):
            X, y = examples(int(share * dimension), dimension, width)
            times = forced("folded_rows", NEVER, 0.0, partial(least_squares, X, y))
            yield Comparison(share, *times, f"{width} of {dimension:,} entries")


def examples(count: int, dimension: int, width: int) -> tuple[Matrix, np.ndarray]:
    """Rows with so many entries anywhere, and targets that rise with the parameter."""
    rng = np.random.default_rng(0)
    X: Matrix = rng.standard_normal((count, dimension))
    if width < dimension:
        kept = rng.random((count, dimension)).argpartition(width, axis=1)[:, :width]
        places = np.sort(kept, axis=1).ravel()
        ends = np.arange(0, count * width + 1, width)
        values = rng.standard_normal(places.size)
        X = sparse.csr_matrix((values, places, ends), shape=(count, dimension))
    return X, np.asarray(X @ np.linspace(-1.0, 1.0, dimension)) + rng.normal(size=count)


def least_squares(X: Matrix, y: np.ndarray) -> lt.Result:
    d = X.shape[1]
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "squared"), lt.ordering(d), lt.Box(-3.0, 3.0))
    return lt.solve(problem, lt.InteriorPoint(), project=False)


@experiment(
    "shortest_dense_run", COSTS.shortest_dense_run, "entries per run", "entry by entry", "runs"
)
def shortest_dense_run() -> Iterator[Comparison]:
    """Factors and three solves each, of 100,000 entries in runs; finding the runs counts."""
    for width in (5, 20, 60):
        for size in (300, 1_000, 3_000, 10_000):
            found = in_runs(width, max(1, size // width))
            times = forced("shortest_dense_run", NEVER, 1e-9, lambda rows=found: _by_runs(rows))
            yield Comparison(size // width * width, *times, f"rows of {width} entries")


def in_runs(width: int, length: int) -> Matrix:
    """100,000 entries in rows that hold one of three sets of parameters, `length` rows each."""
    runs = 100_000 // (width * length)
    first = width * np.repeat(np.arange(runs) % 3, length)
    places = (first[:, None] + np.arange(width)).ravel()
    values = np.random.default_rng(0).standard_normal(places.size)
    ends = np.arange(0, places.size + 1, width)
    return sparse.csr_matrix((values, places, ends), shape=(runs * length, 3 * width))


def _by_runs(rows: Matrix) -> None:
    follow_path(DenseSystem(program(rows.copy())), 3)


# -- threads: elapsed time, on a machine that does nothing else ------------------------------------


def tiled(field: str, call: Callable[[], object]) -> tuple[float, float]:
    def on_one_thread() -> object:  # but for what tiles use
        with one_blas_thread():
            return call()

    return sides(COSTS, field, NEVER, 0.0, on_one_thread, clock=time.perf_counter, limit=LIMIT)


@experiment("tiled_products", COSTS.tiled_products, "multiplications", "one core", "all cores")
def tiled_products() -> Iterator[Comparison]:
    for dimension in (600, 1500):
        for products in (1e8, 5e8, 2e9, 1e10):
            count = int(products / dimension**2)
            rows = np.random.default_rng(0).standard_normal((count, dimension))
            H = np.zeros((dimension, dimension), order="F")
            times = tiled("tiled_products", partial(tiles.add_gram, H, rows))
            yield Comparison(products, *times, f"{dimension:,} parameters")


@experiment("tiled_entries", COSTS.tiled_entries, "entries", "one core", "all cores")
def tiled_entries() -> Iterator[Comparison]:
    for count in (2_000, 10_000, 40_000, 100_000):
        rows = np.random.default_rng(0).standard_normal((count, 500))
        times = tiled("tiled_entries", partial(tiles.times, rows, np.ones(500)))
        yield Comparison(count * 500, *times)


@experiment("tiled_scaled", COSTS.tiled_scaled, "entries", "one core", "all cores")
def tiled_scaled() -> Iterator[Comparison]:
    for count in (200, 2_000, 10_000, 40_000):
        rows = np.random.default_rng(0).standard_normal((count, 500))
        times = tiled("tiled_scaled", partial(tiles.scaled_rows, np.ones(count), rows))
        yield Comparison(count * 500, *times)
