"""The thresholds of `lighttouch.projections.costs` that choose between two methods."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

import lighttouch as lt
from benchmarks.coupled.convex import concave_increasing
from benchmarks.thresholds import Comparison, experiment, seconds, sides, with_values
from lighttouch.arrays import Floats, Vector
from lighttouch.kernels.orders.project import no_runs, vector_runs
from lighttouch.projections.costs import COSTS
from lighttouch.projections.orders import on_graph, prepare_order
from lighttouch.projections.rows import portfolio
from lighttouch.projections.rows.kinds import Centred
from lighttouch.projections.rows.nested import split_rows, without_nested
from lighttouch.projections.rows.portfolio import WarmRows
from lighttouch.projections.sets import feasible_set

EVERYWHERE = lt.Everywhere()
NOTHING = WarmRows.none().ids


def centred(constraints: lt.LinearConstraints, v: Vector) -> Centred:
    return Centred(feasible_set(constraints, EVERYWHERE).unit, v)


def dense_rows(dimension: int, violated: int) -> tuple[lt.LinearConstraints, Vector]:
    """Four rows per parameter, of which so many are violated at the point."""
    rng = np.random.default_rng(dimension + violated)
    A = rng.standard_normal((4 * dimension, dimension)) / np.sqrt(dimension)
    v = rng.standard_normal(dimension)
    right = A @ v + rng.uniform(0.05, 1.0, 4 * dimension)
    right[:violated] = A[:violated] @ v - rng.uniform(0.01, 0.2, violated)
    return lt.LinearConstraints(A, right), v


def sparse_rows(dimension: int, rows: int, entries: int = 4) -> tuple[lt.LinearConstraints, Vector]:
    rng = np.random.default_rng(dimension + rows)
    place = np.repeat(np.arange(rows), entries), rng.integers(0, dimension, rows * entries)
    values = rng.standard_normal(rows * entries)
    A = sparse.csr_matrix((values, place), shape=(rows, dimension))
    return lt.LinearConstraints(A, rng.uniform(0.1, 1.0, rows)), rng.standard_normal(dimension)


def bends(dimension: int, violated: int) -> tuple[lt.LinearConstraints, Vector]:
    """A convex sequence with so many spikes, each a thousand times its curvature: few rows are
    violated at first, and each makes many others active.
    """
    v = np.square(np.arange(float(dimension)))
    v[np.linspace(1, dimension - 2, violated).astype(int)] += 2000.0
    return lt.lattice.convex([dimension], 0), v


def convex_surface(size: int) -> tuple[lt.LinearConstraints, Vector]:
    """Second differences along both axes of noise on a size x size lattice: ill conditioned, and
    the factor costs about size^4.
    """
    v = np.random.default_rng(size).standard_normal(size * size)
    rows = [lt.lattice.convex([size, size], axis) for axis in (0, 1)]
    return lt.stack(*rows), v


def band(dimension: int, width: int) -> tuple[lt.LinearConstraints, Vector]:
    """Rows on neighbouring parameters: the factor costs about dimension * width^2."""
    rng = np.random.default_rng(width)
    first = rng.integers(0, dimension - width, 2 * dimension)
    columns = first[:, None] + rng.integers(0, width, (2 * dimension, 4))
    place = np.repeat(np.arange(2 * dimension), 4), columns.ravel()
    A = sparse.csr_matrix(
        (rng.standard_normal(8 * dimension), place), shape=(2 * dimension, dimension)
    )
    right = rng.uniform(0.05, 0.5, 2 * dimension)
    return lt.LinearConstraints(A, right), rng.standard_normal(dimension)


@experiment(
    "few_violated", COSTS.few_violated, "violated rows, d = 500 dense",
    "active set", "Newton, then active set",
)  # fmt: skip
def few_violated() -> Iterator[Comparison]:
    for violated in (60, 120, 240, 480):
        problem = centred(*dense_rows(500, violated))
        yield Comparison(
            violated,
            seconds(lambda p=problem: portfolio.by_active_set(p, NOTHING)),
            seconds(lambda p=problem: portfolio.by_lagrangian_and_active_set(p)),
        )


@experiment(
    "very_few_violated", COSTS.very_few_violated, "spikes in a convex sequence of 2,000",
    "active set", "interior point",
)  # fmt: skip
def very_few_violated() -> Iterator[Comparison]:
    for violated in (8, 15, 30, 60):
        problem = centred(*bends(2000, violated))
        yield Comparison(
            np.count_nonzero(problem.right < 0.0),
            seconds(lambda p=problem: portfolio.by_active_set(p, NOTHING)),
            seconds(lambda p=problem: portfolio.by_interior(p)),
        )


@experiment(
    "tiny_dimension", COSTS.tiny_dimension, "parameters, a tenth of d spikes in a convex sequence",
    "active set", "interior point",
)  # fmt: skip
def tiny_dimension() -> Iterator[Comparison]:
    for dimension in (75, 150, 300, 600):
        problem = centred(*bends(dimension, dimension // 10))
        yield Comparison(
            dimension,
            seconds(lambda p=problem: portfolio.by_active_set(p, NOTHING)),
            seconds(lambda p=problem: portfolio.by_interior(p)),
        )


@experiment(
    "lagrangian_dimension", COSTS.lagrangian_dimension, "parameters, two rows each in a band of 30",
    "Newton, then active set", "interior point",
)  # fmt: skip
def lagrangian_dimension() -> Iterator[Comparison]:
    for dimension in (250, 500, 1000, 2000):
        problem = centred(*band(dimension, 30))
        yield Comparison(
            dimension,
            seconds(lambda p=problem: portfolio.by_lagrangian_and_active_set(p)),
            seconds(lambda p=problem: portfolio.by_interior(p)),
        )


@experiment(
    "trifling_factor", COSTS.trifling_factor, "multiplications, convex surfaces of noise",
    "interior point", "Newton, then active set",
)  # fmt: skip
def trifling_factor() -> Iterator[Comparison]:
    for size in (8, 12, 16, 24, 31):
        problem = centred(*convex_surface(size))
        yield Comparison(
            problem.unit.factor_cost,
            seconds(lambda p=problem: portfolio.by_interior(p)),
            seconds(lambda p=problem: portfolio.by_lagrangian_and_active_set(p)),
        )


@experiment(
    "cheap_factor", COSTS.cheap_factor, "multiplications, convex surfaces of noise",
    "interior point", "augmented Lagrangian",
)  # fmt: skip
def cheap_factor() -> Iterator[Comparison]:
    for size in (24, 32, 48, 64):
        problem = centred(*convex_surface(size))
        start = WarmRows.none()
        yield Comparison(
            problem.unit.factor_cost,
            seconds(lambda p=problem: portfolio.by_interior(p)),
            seconds(lambda p=problem, s=start: portfolio.by_lagrangian(p, s)),
        )


@experiment(
    "warm_rows", COSTS.warm_rows, "active rows of an answer close by, d = 2,000 sparse",
    "active set", "augmented Lagrangian",
)  # fmt: skip
def warm_rows() -> Iterator[Comparison]:
    for rows in (250, 500, 1000, 2000):
        constraints, v = sparse_rows(2000, rows)
        known = feasible_set(constraints, EVERYWHERE).nearest(v).warm
        moved = v + 0.01 * np.random.default_rng(1).standard_normal(v.size)
        problem = centred(constraints, moved)
        start = WarmRows(known.ids, known.weights / problem.scale)
        yield Comparison(
            start.ids.size,
            seconds(lambda p=problem, s=start: portfolio.by_active_set(p, s.ids)),
            seconds(lambda p=problem, s=start: portfolio.by_lagrangian(p, s)),
        )


@experiment(
    "fewest_nested_rows", COSTS.fewest_nested_rows, "rows of simplex-exact dominance on 2^k",
    "rows one by one", "split",
)  # fmt: skip
def fewest_nested_rows() -> Iterator[Comparison]:
    for features in (7, 8, 9, 10):
        rules = lt.lattice.dominance([2] * features, 0, 1)
        v = np.random.default_rng(features).standard_normal(rules.dimension)
        parts = without_nested([rules], fewest=0)
        assert parts is not None
        split = split_rows(rules.A, rules.b, *parts, -np.inf, np.inf)
        plain = split.plain()
        yield Comparison(
            rules.count,
            seconds(lambda plain=plain, v=v: plain.nearest(v)),
            seconds(lambda split=split, v=v: split.nearest(v)),
        )


@experiment(
    "conjugate_price", COSTS.conjugate_price, "n^3 / 3 per entry, n x 2n rows of 4 entries",
    "factored", "conjugate gradients",
)  # fmt: skip
def conjugate_price() -> Iterator[Comparison]:
    for count in (60, 120, 240, 480):
        constraints, _ = sparse_rows(2 * count, count)
        counted = feasible_set(constraints, EVERYWHERE).unit.matrix
        gradient = np.random.default_rng(0).standard_normal(2 * count)
        goal = COSTS.newton_forcing * float(np.linalg.norm(gradient))

        def by_conjugate(
            matrix: Floats = counted, g: Vector = gradient, to: float = goal
        ) -> object:
            return portfolio.conjugate_gradients(matrix, -g, 100.0, to)

        yield Comparison(
            count**3 / 3.0 / counted.nnz,
            seconds(lambda m=counted, g=gradient: portfolio.factored_step(m, g, 100.0)),
            seconds(by_conjugate),
        )


@experiment(
    "shortest_edge_run", COSTS.shortest_edge_run, "mean edges per run, lattices of 2^14 vertices",
    "edge by edge", "by runs",
)  # fmt: skip
def shortest_edge_run() -> Iterator[Comparison]:
    for last in (2, 4, 8, 16, 32):
        sizes = [2**14 // (4 * last), 4, last]
        rows = lt.lattice.increasing(sizes, [0, 1])
        smaller, larger = rows.pairs()
        order = prepare_order(rows.dimension, smaller, larger)
        assert order is not None
        lower, upper = order.graph.lower.astype(np.int64), order.graph.upper.astype(np.int64)
        runs = vector_runs(lower, upper, shortest=0)  # of all edges
        v = np.random.default_rng(last).standard_normal(rows.dimension)
        yield Comparison(
            order.graph.lower.size / runs.first.size,
            seconds(lambda o=order, v=v: on_graph(o.graph, no_runs(), v, None)),
            seconds(lambda o=order, r=runs, v=v: on_graph(o.graph, r, v, None)),
        )


def crossed(length: int) -> lt.LinearConstraints:
    """Second differences of 400, and five rows of so many entries anywhere."""
    rng = np.random.default_rng(0)
    short = sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(398, 400))
    places = np.concatenate([rng.choice(400, length, replace=False) for _ in range(5)])
    ends = np.arange(0, 5 * length + 1, length)
    long = sparse.csr_matrix((rng.standard_normal(5 * length), places, ends), shape=(5, 400))
    return lt.LinearConstraints(sparse.vstack([short, long], format="csr"), np.zeros(403))


def projected(field: str, above: float, rows: lt.LinearConstraints, v: Vector) -> tuple[float, ...]:
    """With lines in the band, and with those set aside that are longer than `above`."""

    def run() -> object:
        return lt.project(v, lt.LinearConstraints(rows.A, rows.b))

    return sides(COSTS, field, float("inf"), above, run, rounds=2)


@experiment(
    "dense_line", COSTS.dense_line, "five long rows across second differences of 400",
    "in the band", "set aside",
)  # fmt: skip
def dense_line() -> Iterator[Comparison]:
    v = np.random.default_rng(1).standard_normal(400)
    for length in (5, 14, 28, 56, 113):
        size = length / np.sqrt(803)
        times = projected("dense_line", (length - 1) / np.sqrt(803), crossed(length), v)
        yield Comparison(size, times[0], times[1], f"{length} entries")


@experiment(
    "interior_for_found_rows", COSTS.interior_for_found_rows, "convex regression, rows are found",
    "interior point first", "Newton, then active set",
)  # fmt: skip
def interior_for_found_rows() -> Iterator[Comparison]:
    for points in (60, 90, 120, 180):

        def run(points: int = points) -> object:
            problem = concave_increasing(points, None, 10.0, False).problem
            v = np.random.default_rng(0).standard_normal(problem.dimension)
            return lt.project(v, problem.constraints, problem.domain)

        with with_values(COSTS, largest_generated=0.0):
            times = sides(COSTS, "interior_for_found_rows", float("inf"), 0.0, run, limit=4.0)
        yield Comparison((3.0 * points) ** 3 / 3.0, *times, f"{points} points")
