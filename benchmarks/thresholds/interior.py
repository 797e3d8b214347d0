"""The numbers of `lighttouch.interior.costs`: rates beside what this machine does, and every other
number against values around it.

The second kind is measured on a handful of small coupled problems, one after the other: processor
time of `lt.InteriorPoint()` on one thread until it has proven its gap, infinite where it does not,
and its steps, which do not depend on the machine. A ratio above one says that the other value would
be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy import sparse

import lighttouch as lt
from benchmarks.coupled.convex import concave_increasing, stored
from benchmarks.thresholds import Comparison, experiment, seconds, with_values
from lighttouch.arrays import Matrix
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, with_rows
from lighttouch.interior.statement import program_of
from lighttouch.interior.systems import DenseSystem, SparseSystem, System, dense_seconds
from lighttouch.running import one_blas_thread

LIMIT = 20.0  # seconds of a run

# -- rates --------------------------------------------------------------------------------------


def program(rows: Matrix) -> Program:
    """The nearest point to something, under rows."""
    d = rows.shape[1]
    objective = lt.Quadratic(sparse.identity(d, format="csr"), np.ones(d))
    none = np.zeros(rows.shape[0], dtype=bool)
    return with_rows(program_of(objective), (rows,), np.zeros(rows.shape[0]), none)


def scattered(dimension: int, rows: int, entries: int) -> Program:
    """Rows with entries anywhere: a sparse factor fills up."""
    rng = np.random.default_rng(dimension)
    place = np.repeat(np.arange(rows), entries), rng.integers(0, dimension, rows * entries)
    values = rng.standard_normal(rows * entries)
    return program(sparse.csr_matrix((values, place), shape=(rows, dimension)))


def chain(dimension: int) -> Program:
    """Second differences: a sparse factor stays thin."""
    shape = (dimension - 2, dimension)
    return program(sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=shape, format="csr"))


def factor_seconds(system: System) -> float:
    delta = np.random.default_rng(0).uniform(0.1, 1.0, system.program.count)
    return seconds(partial(system.factor, delta))


def by_dense(size: int, found: Program) -> Comparison:
    return Comparison(
        size, dense_seconds(found.P, found.blocks), factor_seconds(DenseSystem(found))
    )


def by_sparse(size: int, found: Program) -> Comparison:
    system = SparseSystem(found)
    return Comparison(size, system.seconds, factor_seconds(system))


Run = Callable[[], Iterator[Comparison]]


def rate(field: str, case: str) -> Callable[[Run], Run]:
    return experiment(field, getattr(COSTS, field), case, "expected", "measured", True)


@rate("dense_rate", "dense factors, by parameters")
def dense_rate() -> Iterator[Comparison]:
    for dimension in (500, 1000, 2000):
        yield by_dense(dimension, program(sparse.csr_matrix((0, dimension))))


@rate("product_rate", "500 parameters, by dense rows")
def product_rate() -> Iterator[Comparison]:
    for rows in (2_000, 10_000, 40_000):
        yield by_dense(rows, program(np.random.default_rng(0).standard_normal((rows, 500))))


@rate("gram_rate", "300 parameters, by sparse rows of 16 entries")
def gram_rate() -> Iterator[Comparison]:
    for rows in (20_000, 100_000, 400_000):
        yield by_dense(rows, scattered(300, rows, 16))


@rate("sparse_rate", "rows of 3 entries anywhere, by parameters")
def sparse_rate() -> Iterator[Comparison]:
    for dimension in (500, 1000, 2000):
        yield by_sparse(dimension, scattered(dimension, 2 * dimension, 3))


@rate("entry_rate", "second differences, by parameters")
def entry_rate() -> Iterator[Comparison]:
    for dimension in (2_000, 20_000, 200_000):
        yield by_sparse(dimension, chain(dimension))


@rate("order_rate", "second differences, by parameters")
def order_rate() -> Iterator[Comparison]:
    for dimension in (2_000, 20_000, 200_000):
        found = chain(dimension)
        size = (found.count + dimension) / COSTS.order_rate
        yield Comparison(dimension, size, seconds(partial(SparseSystem, found)))


# -- everything else: on problems ---------------------------------------------------------------


def convex() -> lt.Problem:
    """60 points, all 3,540 pairs stored."""
    return stored(60)[0].problem


def generated() -> lt.Problem:
    """80 points, 6,320 generated pairs: a working set, and blocks."""
    return concave_increasing(80, None, 10.0, False).problem


def quantiles() -> lt.Problem:
    """Three quantiles of 400 points that do not cross: kinks and 800 rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.normal(size=(400, 5))])
    y = X @ rng.normal(size=6) + rng.standard_t(4, size=400)
    blocks = sparse.csr_matrix(sparse.block_diag([sparse.csr_matrix(X)] * 3))
    risk = lt.EmpiricalRisk(blocks, np.tile(y, 3), lt.Quantile(np.repeat([0.1, 0.5, 0.9], 400)))
    rows = lt.LinearConstraints(blocks[:800] - blocks[400:], np.zeros(800))
    return lt.Problem(risk, rows)


def dense_rows() -> lt.Problem:
    """Least squares under 8,000 dense rows, 200 parameters: a working set of dense rows."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 200))
    y = X @ rng.normal(size=200) + rng.normal(size=500)
    A = rng.normal(size=(8_000, 200))
    return lt.Problem(
        lt.EmpiricalRisk(X, y, "squared"), lt.LinearConstraints(A, np.full(8_000, 12.0))
    )


def portfolio() -> lt.Problem:
    """A linear programme: the least worst loss in 400 scenarios on the simplex of 60 assets."""
    rng = np.random.default_rng(2)
    gains = rng.standard_t(5, size=(400, 60)) + rng.uniform(0.0, 0.3, 60)
    A = np.column_stack([-gains, -np.ones(400)])
    lower, upper = np.zeros(61), np.ones(61)
    lower[-1], upper[-1] = -50.0, 50.0
    total = lt.LinearEqualities(np.append(np.ones(60), 0.0)[None], [1.0])
    rules = lt.stack(lt.LinearConstraints(A, np.zeros(400)), total)
    goal = lt.Quadratic(sparse.csr_matrix((61, 61)), np.append(np.zeros(60), 1.0))
    return lt.Problem(goal, rules, lt.Box(lower, upper))


def logistic() -> lt.Problem:
    """A smooth loss in a ball under 300 sparse rows: cuts."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 40))
    y = np.where(X @ rng.normal(size=40) + rng.normal(size=800) > 0, 1.0, -1.0)
    A = sparse.random(300, 40, 0.1, "csr", random_state=rng)
    rows = lt.LinearConstraints(A, np.full(300, 0.05))
    ball = lt.NormConstraints(None, np.zeros((1, 40)), None, [1.0])
    return lt.Problem(lt.EmpiricalRisk(X, y, "logistic"), lt.stack(rows, ball))


PROBLEMS: Sequence[Callable[[], lt.Problem]] = (
    convex, generated, quantiles, dense_rows, portfolio, logistic,
)  # fmt: skip


def run_seconds(build: Callable[[], lt.Problem], **values: object) -> tuple[float, int]:
    """Seconds and steps. Preparation counts: a problem of its own for each run, because numbers
    decide there too.
    """
    steps = 0

    def run() -> object:
        nonlocal steps
        with with_values(COSTS, **values), one_blas_thread():
            result = lt.solve(build(), lt.InteriorPoint(), project=False)
        steps = result.iterations
        return result if result.status is lt.Status.CONVERGED else None

    return seconds(run, LIMIT), steps


TRIED: dict[str, tuple[object, ...]] = {
    "share_of_step": (0.9, 0.9995),
    "scaling_sweeps": (0, 2, 20),
    "correctors": (0, 1, 8),
    "long_step": (0.8, 0.99),
    "farther": (0.1, 0.5),
    "largest_product": (3.0, 100.0),
    "lift": (0.0, 1e-10, 1e-6),
    "first_lift": (1e-6, 1.0),
    "first_slacks": ((5.0, 5.0, 1e4), (500.0, 500.0, 1e4)),
    "least_slack": (1e-6, 1.0),
    "longest_change": (1.0, 16.0),
    "worth": (0.01, 0.5),
    "repair_again": (0.03, 1.0),
    "better": (0.5, 0.99),
    "goal_shrink": (0.3, 0.01),
    "few_new": (0.005, 0.5),
    "again_gap": (1e-5, 1e-3),
    "last_rounds": (1, 16),
    "first_rows": (1.0, 20.0),
    "least_joining_rows": (20, 2000),
    "joining_rows_per_parameter": (0.5, 40.0),
    "joining_dense_rows_per_parameter": (0.1, 4.0),
    "searching_lift": (1e-8, 1e-3),
    "last_lift": (0.0, 1e-7),
    "joining_cuts": (1, 1024),
    "largest_block": (2, 128),
}


def _register(field: str, tried: Sequence[object]) -> None:
    def run() -> Iterator[Comparison]:
        for build in PROBLEMS:
            run_seconds(build)  # compiles
            for value in tried:
                (chosen, steps), (other, others) = (
                    run_seconds(build),
                    run_seconds(build, **{field: value}),
                )
                name = f"{build.__name__}, {steps} and {others} steps"
                yield Comparison(value, chosen, other, name)

    experiment(field, getattr(COSTS, field), "small coupled problems", "as chosen", "other", True)(
        run
    )


for _field, _tried in TRIED.items():
    _register(_field, _tried)
