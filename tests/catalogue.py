"""Solvers and problems under test: one line here buys every conformance test.

Every problem comes twice: as the package states it, and as the dense NumPy functions of
`reference.Piece`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import lighttouch as lt
import reference
from lighttouch import losses


@dataclass(frozen=True)
class Case:
    """A problem of the package and the same problem in NumPy."""

    problem: lt.Problem
    piece: reference.Piece

    @property
    def dimension(self) -> int:
        return self.problem.dimension


def _regression(seed: int, examples: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(examples, dimension))
    return X, X @ rng.normal(size=dimension) + 0.3 * rng.normal(size=examples)


def _sparse(rng: np.random.Generator, rows: int, columns: int) -> scipy.sparse.csr_matrix:
    return scipy.sparse.random(
        rows, columns, 0.5, "csr", random_state=rng, data_rvs=rng.standard_normal
    )


@cache
def dense_rows_in_a_box() -> Case:
    X, y = _regression(1, 30, 6)
    rng = np.random.default_rng(2)
    A, b, upper = (
        rng.normal(size=(9, 6)),
        rng.uniform(-0.2, 0.5, size=9),
        rng.uniform(0.3, 1.0, size=6),
    )
    problem = lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearConstraints(A, b), lt.Box(-0.8, upper))
    lower = np.full(6, -0.8)
    return Case(
        problem,
        reference.Piece(
            **reference.risk(X, y, reference.LOSSES["squared"]),
            **reference.linear(A, b),
            project=reference.box(lower, upper),
        ),
    )


@cache
def sparse_rows_in_a_ball() -> Case:
    rng = np.random.default_rng(3)
    X, A = _sparse(rng, 30, 8), _sparse(rng, 11, 8)
    y, b, weights = (
        np.where(rng.random(30) < 0.5, -1.0, 1.0),
        rng.uniform(-0.3, 0.3, size=11),
        rng.uniform(0.1, 3.0, size=30),
    )
    center = rng.normal(size=8) * 0.2
    objective = lt.EmpiricalRisk(X, y, "logistic", l2=0.1, sample_weight=weights)
    problem = lt.Problem(objective, lt.LinearConstraints(A, b), lt.Ball(0.7, center))
    risk = reference.risk(X.toarray(), y, reference.LOSSES["logistic"], weights)
    return Case(
        problem,
        reference.Piece(
            **risk, **reference.linear(A.toarray(), b), project=reference.ball(0.7, center), l2=0.1
        ),
    )


@cache
def an_order_in_groups() -> Case:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 10))
    y = np.where(X @ np.linspace(1.0, -1.0, 10) > 0, 1.0, -1.0)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "hinge"), lt.ordering(10).aggregated(4))
    A = np.eye(10)[:-1] - np.eye(10)[1:]
    risk = reference.risk(X, y, reference.LOSSES["hinge"])
    return Case(
        problem,
        reference.Piece(
            **risk, **reference.linear(A, np.zeros(9)), project=reference.everywhere(), group=4
        ),
    )


@cache
def an_order_in_a_box() -> Case:
    """What every solver takes."""
    rng = np.random.default_rng(10)
    X = _sparse(rng, 30, 8)
    y = X @ np.linspace(-0.5, 2.0, 8)[rng.permutation(8)] + 0.3 * rng.normal(size=30)
    problem = lt.Problem(
        lt.EmpiricalRisk(X, y, "absolute", l2=0.05),
        lt.lattice.increasing([2, 2, 2]),
        lt.Box(-0.6, 0.8),
    )
    A = problem.constraints.A.toarray()
    risk = reference.risk(X.toarray(), y, reference.LOSSES["absolute"])
    return Case(
        problem,
        reference.Piece(
            **risk, **reference.linear(A, np.zeros(12)), project=reference.box(-0.6, 0.8), l2=0.05
        ),
    )


@cache
def cones_everywhere() -> Case:
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4))
    P, q = root @ root.T / 4 + np.eye(4), rng.normal(size=4) * 2
    A, b, c = (
        rng.normal(size=(7, 3, 4)),
        rng.normal(size=(7, 3)) * 0.3,
        rng.normal(size=(7, 4)) * 0.2,
    )
    d = np.linalg.norm(b, axis=1) + rng.uniform(0.1, 0.5, size=7)  # 0 satisfies them all
    problem = lt.Problem(lt.Quadratic(P, q), lt.NormConstraints(A, b, c, d))
    return Case(
        problem,
        reference.Piece(
            **reference.quadratic(P, q),
            **reference.cones(A, b, c, d),
            project=reference.everywhere(),
        ),
    )


@cache
def families_joined() -> Case:
    X, y = _regression(6, 25, 5)
    rng = np.random.default_rng(7)
    A, b = _sparse(rng, 6, 5), rng.uniform(-0.2, 0.4, size=6)
    roots = rng.normal(size=(4, 5, 5))
    P, q, r = (
        np.einsum("jik,jlk->jil", roots, roots) / 5,
        rng.normal(size=(4, 5)),
        rng.uniform(-1.0, 0.1, size=4),
    )
    constraints = lt.stack(lt.LinearConstraints(A, b), lt.QuadraticConstraints(P, q, r))
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "huber"), constraints, lt.Box(-1.0, 1.0))
    families = reference.joined(
        (6, reference.linear(A.toarray(), b)), (4, reference.quadratics(P, q, r))
    )
    risk = reference.risk(X, y, reference.LOSSES["huber"])
    return Case(problem, reference.Piece(**risk, **families, project=reference.box(-1.0, 1.0)))


@cache
def one_constraint() -> Case:
    X, y = _regression(8, 20, 3)
    A, b = np.array([[1.0, -2.0, 0.5]]), np.array([-0.3])
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), lt.LinearConstraints(A, b))
    risk = reference.risk(X, y, reference.LOSSES["absolute"])
    return Case(
        problem, reference.Piece(**risk, **reference.linear(A, b), project=reference.everywhere())
    )


@cache
def equalities_and_an_order() -> Case:
    rng = np.random.default_rng(13)
    X, y = _regression(14, 30, 6)
    A, b = _sparse(rng, 3, 6), rng.uniform(-0.3, 0.3, size=3)
    constraints = lt.stack(lt.LinearEqualities(A, b), lt.ordering(6))
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), constraints, lt.Box(-2.0, 2.0))
    families = reference.joined(
        (3, reference.equalities(A.toarray(), b)),
        (5, reference.linear(np.eye(6)[:-1] - np.eye(6)[1:], np.zeros(5))),
    )
    risk = reference.risk(X, y, reference.LOSSES["absolute"])
    return Case(problem, reference.Piece(**risk, **families, project=reference.box(-2.0, 2.0)))


@cache
def generated_rows_in_a_box() -> Case:
    """Rows that a Python function writes, so that all loops run interpreted."""
    X, y = _regression(15, 20, 5)
    points = np.random.default_rng(16).normal(size=(4, 5))
    A, b = pair_rows(points)
    problem = lt.Problem(
        lt.EmpiricalRisk(X, y, "absolute"), python_pairs(points), lt.Box(-1.0, 1.0)
    )
    risk = reference.risk(X, y, reference.LOSSES["absolute"])
    return Case(
        problem,
        reference.Piece(**risk, **reference.linear(A, b), project=reference.box(-1.0, 1.0)),
    )


@cache
def rows_on_a_simplex() -> Case:
    X, y = _regression(17, 30, 6)
    rng = np.random.default_rng(18)
    A = rng.normal(size=(7, 6))
    b = A @ np.full(6, 0.25) + rng.uniform(0.0, 0.2, size=7)  # equal shares satisfy them
    problem = lt.Problem(
        lt.EmpiricalRisk(X, y, "absolute"), lt.LinearConstraints(A, b), lt.Simplex(1.5)
    )
    risk = reference.risk(X, y, reference.LOSSES["absolute"])
    return Case(
        problem,
        reference.Piece(**risk, **reference.linear(A, b), project=reference.simplex(1.5)),
    )


@cache
def no_constraints() -> Case:
    X, y = _regression(9, 20, 4)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, lt.Quantile(0.3)))
    return Case(
        problem,
        reference.Piece(
            **reference.risk(X, y, reference.quantile(0.3)),
            **reference.nothing(),
            project=reference.everywhere(),
        ),
    )


@cache
def counts_under_an_order() -> Case:
    """A log link, offsets and an l1 penalty."""
    rng = np.random.default_rng(13)
    X, offset = _sparse(rng, 30, 8), rng.normal(size=30)
    y = rng.poisson(np.exp(X @ np.linspace(1.0, -1.0, 8) + offset)).astype(float)
    objective = lt.EmpiricalRisk(X, y, "poisson", offset=offset, l1=0.05)
    problem = lt.Problem(objective, lt.lattice.increasing([2, 2, 2]), lt.Box(-0.7, 0.9))
    A = problem.constraints.A.toarray()
    risk = reference.risk(X.toarray(), y, reference.LOSSES["poisson"], offset=offset)
    return Case(
        problem,
        reference.Piece(
            **risk, **reference.linear(A, np.zeros(12)), project=reference.box(-0.7, 0.9), l1=0.05
        ),
    )


PROBLEMS: dict[str, Callable[[], Case]] = {
    "dense rows in a box": dense_rows_in_a_box,
    "sparse rows in a ball": sparse_rows_in_a_ball,
    "an order in groups": an_order_in_groups,
    "an order in a box": an_order_in_a_box,
    "cones everywhere": cones_everywhere,
    "families joined": families_joined,
    "equalities and an order": equalities_and_an_order,
    "generated rows in a box": generated_rows_in_a_box,
    "rows on a simplex": rows_on_a_simplex,
    "one constraint": one_constraint,
    "no constraints": no_constraints,
    "counts under an order": counts_under_an_order,
}


@cache
def a_quadratic_program() -> Case:
    rng = np.random.default_rng(11)
    root = rng.normal(size=(6, 6))
    P, q = root @ root.T / 6 + 0.1 * np.eye(6), rng.normal(size=6)
    A, b = rng.normal(size=(8, 6)), rng.uniform(-0.1, 0.5, size=8)
    problem = lt.Problem(lt.Quadratic(P, q), lt.LinearConstraints(A, b), lt.Box(-2.0, 2.0))
    return Case(
        problem,
        reference.Piece(
            **reference.quadratic(P, q),
            **reference.linear(A, b),
            project=reference.box(-2.0, 2.0),
        ),
    )


@cache
def nested_rows() -> Case:
    """Thousands of rows that a few auxiliary numbers say too: what ADMM is for."""
    rng = np.random.default_rng(12)
    X = lt.Lattice([2] * 9).features(rng.random((60, 9))).toarray()
    y = rng.normal(size=60)
    rules = lt.lattice.dominance([2] * 9, 0, 1)
    A, b = rules.A.toarray(), rules.b
    problem = lt.Problem(lt.EmpiricalRisk(X, y, l2=0.1), rules)
    risk = reference.risk(X, y, reference.LOSSES["squared"])
    return Case(
        problem,
        reference.Piece(**risk, **reference.linear(A, b), project=reference.everywhere(), l2=0.1),
    )


# problems that only some solvers are for
ALL_PROBLEMS: dict[str, Callable[[], Case]] = {
    **PROBLEMS,
    "a quadratic program": a_quadratic_program,
    "nested rows": nested_rows,
}
EVERY = (*PROBLEMS, "a quadratic program")
IN_A_BOX = (
    "dense rows in a box",
    "an order in a box",
    "counts under an order",
    "a quadratic program",
)
POLYTOPES = (
    *IN_A_BOX,
    "equalities and an order",
    "generated rows in a box",
    "rows on a simplex",
)


@dataclass(frozen=True)
class Entry:
    """A solver, the problems it takes, and what it owes besides.

    build
        The solver for a problem, such as `lambda p: lt.FullTouch(1.5, 0.05)`.
    checks
        `checks(m, T)`: how many single constraints T iterations check, of m; None where that is
        not fixed beforehand.
    takes
        The problems it is tested on. Of `EVERY` it must refuse all others (`objection_to`).
    samples
        Examples per iteration; None where that is not fixed beforehand.
    feasible_start
        It begins at a feasible point of its own, and not at the start that it is given.
    ends
        It stops by itself (`stops_itself`): its average and its batch sizes may be anything.
    averages
        Its solution is the mean of its iterates. False for one whose solution is another point;
        `average` must still be the mean. Nothing is asked of one that `ends`.
    random
        The seed matters: other seeds give other iterates.
    plain_sgd
        Without constraints it is plain SGD: the same bits as `FullTouch` with the same
        `step_size` and `batch`.
    own_groups
        It groups the constraints as it likes: its probabilities are not one per constraint.
    """

    build: Callable[[lt.Problem], Any]
    checks: Callable[[int, int], int] | None = None
    takes: tuple[str, ...] = EVERY
    samples: int | None = None
    feasible_start: bool = False
    ends: bool = False
    averages: bool = True
    random: bool = True
    plain_sgd: bool = False
    own_groups: bool = False


def _some(problem: lt.Problem) -> int:
    return max(1, min(3, problem.constraints.count))


FIRST_PHASE = 24

SOLVERS: dict[str, Entry] = {
    "full touch": Entry(
        lambda p: lt.FullTouch(1.5, 0.05), lambda m, T: m * T, samples=1, plain_sgd=True
    ),
    "full touch, adagrad": Entry(
        lambda p: lt.FullTouch(1.5, lt.AdaGrad(0.3), batch=2),
        lambda m, T: m * T,
        samples=2,
        plain_sgd=True,
    ),
    "full touch, incremental": Entry(
        lambda p: lt.FullTouch(1.5, 0.05, incremental=True),
        takes=(*IN_A_BOX, "one constraint", "no constraints"),
        samples=1,
        plain_sgd=True,
    ),
    "light touch": Entry(
        lambda p: lt.LightTouch(1.5, 0.05, _some(p)),
        lambda m, T: (min(m, 3) + (m > 0)) * T,
        samples=1,
        plain_sgd=True,
    ),
    "light touch, inverse sqrt": Entry(
        lambda p: lt.LightTouch(1.5, lt.InverseSqrt(0.4), _some(p), weight_step_size=0.7, batch=2),
        lambda m, T: (min(m, 3) + (m > 0)) * T,
        samples=2,
        plain_sgd=True,
    ),
    "mid touch": Entry(
        lambda p: lt.MidTouch(1.5, 2.0, FIRST_PHASE, 0.4),
        lambda m, T: m * min(T, FIRST_PHASE) + 2 * (m > 0) * max(0, T - FIRST_PHASE),
        samples=1,
        plain_sgd=True,
    ),
    "practical light touch": Entry(
        lambda p: lt.PracticalLightTouch(1.5, lt.InverseSqrt(0.4)), samples=2, plain_sgd=True
    ),
    "practical light touch, adagrad": Entry(
        lambda p: lt.PracticalLightTouch(1.5, lt.AdaGrad(0.3), weight_step_size=0.5),
        samples=2,
        plain_sgd=True,
    ),
    "projected sgd": Entry(
        lambda p: lt.ProjectedSGD(lt.InverseSqrt(0.4)),
        lambda m, T: m * T,
        samples=1,
        feasible_start=True,
        plain_sgd=True,
    ),
    "approx sgd": Entry(
        lambda p: lt.ApproxSGD(lt.InverseSqrt(0.4), batch=2),
        takes=(
            "an order in groups",
            "an order in a box",
            "no constraints",
            "counts under an order",
        ),
        samples=2,
        feasible_start=True,
        plain_sgd=True,
    ),
    "online frank-wolfe, gradients": Entry(
        lambda p: lt.OnlineFrankWolfe(memory="gradients"),
        lambda m, T: m * T,
        takes=POLYTOPES,
        samples=1,
        feasible_start=True,
    ),
    "online frank-wolfe, examples": Entry(
        lambda p: lt.OnlineFrankWolfe(memory="examples"),
        takes=POLYTOPES,
        feasible_start=True,
        averages=False,
    ),
    "local frank-wolfe": Entry(
        lambda p: lt.LocalFrankWolfe(batch=2),
        lambda m, T: m * T,
        takes=POLYTOPES,
        samples=2,
        feasible_start=True,
    ),
    "sampled adagrad": Entry(lambda p: lt.SampledAdaGrad(), ends=True, own_groups=True),
    "accelerated": Entry(lambda p: lt.Accelerated(1e-5), ends=True, random=False),
    "interior point": Entry(
        lambda p: lt.InteriorPoint(), takes=(*EVERY, "nested rows"), ends=True, random=False
    ),
    "cutting planes": Entry(lambda p: lt.CuttingPlanes(1e-5), ends=True, random=False),
    "alternating directions": Entry(
        lambda p: lt.AlternatingDirections(1e-5), takes=("nested rows",), ends=True, random=False
    ),
    "quadratic steps": Entry(
        lambda p: lt.QuadraticSteps(1e-6),
        takes=(
            "dense rows in a box",
            "an order in groups",
            "an order in a box",
            "equalities and an order",
            "generated rows in a box",
            "rows on a simplex",
            "one constraint",
            "no constraints",
        ),
        feasible_start=True,
        ends=True,
        random=False,
    ),
    "automatic": Entry(
        lambda p: lt.Automatic(), takes=(*EVERY, "nested rows"), ends=True, random=False
    ),
}


class Interpreted(lt.Problem):
    """A problem whose loops run as ordinary Python."""

    def __init__(self, problem: lt.Problem) -> None:
        super().__init__(problem.objective, problem.constraints, problem.domain)

    @property
    def interpreted(self) -> bool:
        return True


# -------------------------------------------------------------------------------------------
# pieces, each for a random generator


class UsersRows(NamedTuple):
    """What a user might write: rows of A w <= b, as records for plain loops."""

    A: np.ndarray
    b: np.ndarray


def users_value(record: UsersRows, j: int, w: np.ndarray) -> float:
    total = -record.b[j]
    for k in range(w.size):
        total += record.A[j, k] * w[k]
    return total


def users_subgradient(record: UsersRows, j: int, w: np.ndarray, out: np.ndarray) -> None:
    for k in range(w.size):
        out[k] = record.A[j, k]


class UsersExamples(NamedTuple):
    """Squared losses of a linear model, as a user might write them."""

    X: np.ndarray
    y: np.ndarray


def users_loss(record: UsersExamples, i: int, w: np.ndarray) -> float:
    error = -record.y[i]
    for k in range(w.size):
        error += record.X[i, k] * w[k]
    return 0.5 * error * error


def users_gradient(record: UsersExamples, i: int, w: np.ndarray, out: np.ndarray) -> None:
    error = -record.y[i]
    for k in range(w.size):
        error += record.X[i, k] * w[k]
    for k in range(w.size):
        out[k] = error * record.X[i, k]


def fourth_power(z: float, y: float) -> float:
    return (z - y) ** 4


def fourth_power_slope(z: float, y: float) -> float:
    return 4.0 * (z - y) ** 3


@cache
def fourth() -> lt.CustomLoss:
    """Compiled when first asked for: it is in no cache on disk."""
    return lt.CustomLoss(fourth_power, fourth_power_slope)


SLOW_FOURTH = lt.CustomLoss(fourth_power, fourth_power_slope, compiled=False)


def compiled_rows(A: np.ndarray, b: np.ndarray) -> lt.ConvexConstraints:
    return lt.ConvexConstraints(
        A.shape[1], A.shape[0], users_value, users_subgradient, record=UsersRows(A, b)
    )


def python_rows(A: np.ndarray, b: np.ndarray) -> lt.ConvexConstraints:
    return lt.ConvexConstraints(
        A.shape[1], A.shape[0], lambda j, w: A[j] @ w - b[j], lambda j, w: A[j]
    )


class UsersPoints(NamedTuple):
    """Points whose differences are rows."""

    X: np.ndarray


def users_pair(
    record: UsersPoints, j: int, columns: np.ndarray, values: np.ndarray
) -> tuple[int, float]:
    """w.(x_i - x_k) <= |x_i - x_k| / 2 for the ordered pair (i, k) of number j; zeros left out."""
    n, d = record.X.shape
    i = j // (n - 1)
    k = j % (n - 1)
    if k >= i:
        k += 1
    many = 0
    square = 0.0
    for c in range(d):
        difference = record.X[i, c] - record.X[k, c]
        square += difference * difference
        if difference != 0.0:
            columns[many] = c
            values[many] = difference
            many += 1
    return many, 0.5 * np.sqrt(square)


def pair_rows(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rows, stored."""
    n = len(points)
    pairs = [(i, k) for i in range(n) for k in range(n) if k != i]
    A = np.array([points[i] - points[k] for i, k in pairs])
    return A, 0.5 * np.linalg.norm(A, axis=1)


def compiled_pairs(points: np.ndarray) -> lt.GeneratedRows:
    n, d = points.shape
    return lt.GeneratedRows(d, n * (n - 1), UsersPoints(points), users_pair, d)


class PlainPoints:
    """No NamedTuple: functions that read it run interpreted."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X


def python_pairs(points: np.ndarray) -> lt.GeneratedRows:
    n, d = points.shape
    return lt.GeneratedRows(d, n * (n - 1), PlainPoints(points), users_pair, d)


def compiled_examples(X: np.ndarray, y: np.ndarray) -> lt.CustomObjective:
    return lt.CustomObjective(
        X.shape[1], users_loss, users_gradient, examples=len(y), record=UsersExamples(X, y)
    )


def python_examples(X: np.ndarray, y: np.ndarray) -> lt.CustomObjective:
    def value(i: int, w: np.ndarray) -> float:
        return 0.5 * float(X[i] @ w - y[i]) ** 2

    return lt.CustomObjective(
        X.shape[1], value, lambda i, w: (X[i] @ w - y[i]) * X[i], examples=len(y)
    )


def _symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    root = rng.normal(size=shape)
    return root @ np.swapaxes(root, -1, -2)


def _cones_around_zero(
    rng: np.random.Generator, shape: tuple[int, ...], c: np.ndarray | None
) -> lt.NormConstraints:
    """Four cones that hold 0, so that together they hold something."""
    b = rng.normal(size=(4, shape[-2]))
    d = np.linalg.norm(b, axis=1) + rng.uniform(0.1, 0.5, size=4)
    return lt.NormConstraints(rng.normal(size=shape), b, c, d)


DIMENSION = 5

FAMILIES: dict[str, Callable[[np.random.Generator], Any]] = {
    "dense rows": lambda rng: lt.LinearConstraints(rng.normal(size=(6, 5)), rng.normal(size=6)),
    "sparse rows": lambda rng: lt.LinearConstraints(_sparse(rng, 6, 5), rng.normal(size=6)),
    "dense equalities": lambda rng: lt.LinearEqualities(
        rng.normal(size=(3, 5)), 0.3 * rng.normal(size=3)
    ),
    "sparse equalities": lambda rng: lt.LinearEqualities(
        _sparse(rng, 2, 5), 0.3 * rng.normal(size=2)
    ),
    "equalities and rows": lambda rng: lt.stack(
        FAMILIES["sparse equalities"](rng), FAMILIES["sparse rows"](rng)
    ),
    "generated rows": lambda rng: compiled_pairs(rng.normal(size=(3, 5))),
    "generated rows, python": lambda rng: python_pairs(rng.normal(size=(3, 5))),
    "generated rows joined": lambda rng: lt.stack(
        lt.ordering(5), FAMILIES["generated rows"](rng), FAMILIES["sparse equalities"](rng)
    ),
    "an ordering": lambda rng: lt.ordering(5),
    "an order with scales": lambda rng: lt.LinearConstraints(
        scipy.sparse.csr_matrix(
            rng.uniform(0.5, 3.0, size=(4, 1)) * (np.eye(5)[:-1] - np.eye(5)[1:])
        ),
        rng.normal(size=4),
    ),
    "bounds": lambda rng: lt.bounds(5, -0.3, rng.uniform(0, 1, size=5)),
    "canonical examples": lambda rng: lt.canonical_examples(
        rng.normal(size=(4, 5)), np.array([1.0, -1.0, -1.0, 1.0]), 0.2
    ),
    "balls": lambda rng: lt.NormConstraints(
        None, rng.normal(size=(3, 5)), None, rng.uniform(2.0, 3.5, size=3)
    ),
    "cones": lambda rng: _cones_around_zero(rng, (4, 2, 5), rng.normal(size=(4, 5))),
    "cones of one matrix": lambda rng: _cones_around_zero(rng, (3, 5), None),
    "quadratics": lambda rng: lt.QuadraticConstraints(
        _symmetric(rng, 3, 5, 5), rng.normal(size=(3, 5)), rng.normal(size=3) - 0.5
    ),
    "quadratics of one matrix": lambda rng: lt.QuadraticConstraints(
        _symmetric(rng, 5, 5), rng.normal(size=(3, 5)), rng.normal(size=3) - 0.5
    ),
    "compiled": lambda rng: compiled_rows(rng.normal(size=(4, 5)), rng.normal(size=4)),
    "python": lambda rng: python_rows(rng.normal(size=(4, 5)), rng.normal(size=4)),
    "joined": lambda rng: lt.stack(
        FAMILIES["sparse rows"](rng), FAMILIES["quadratics"](rng), FAMILIES["balls"](rng)
    ),
    "joined with a user's": lambda rng: lt.stack(
        FAMILIES["python"](rng), FAMILIES["dense rows"](rng)
    ),
}


def _labels(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.where(rng.random(count) < 0.5, -1.0, 1.0)


LOSSES: tuple[Any, ...] = (
    "hinge",
    "logistic",
    "squared",
    "absolute",
    "huber",
    lt.Quantile(0.2),
    lt.Quantile([0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 0.95]),
    lt.Huber(0.3),
    lt.EpsilonInsensitive(0.4),
    "poisson",
    "gamma",
    lt.Tweedie(1.4),
)
TARGETS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "any": lambda rng, count: rng.normal(size=count),
    "labels": _labels,
    "nonnegative": lambda rng, count: rng.poisson(1.0, size=count).astype(float),
    "positive": lambda rng, count: rng.exponential(size=count),
}


def _risks() -> dict[str, Callable[[np.random.Generator], Any]]:
    made: dict[str, Callable[[np.random.Generator], Any]] = {}
    for loss in LOSSES:
        targets = TARGETS[losses.loss_of(loss).targets]
        made[f"{loss}"] = lambda rng, loss=loss, targets=targets: lt.EmpiricalRisk(
            rng.normal(size=(7, 5)), targets(rng, 7), loss
        )
        made[f"{loss}, sparse, weighted, l2"] = lambda rng, loss=loss, targets=targets: (
            lt.EmpiricalRisk(
                _sparse(rng, 7, 5),
                targets(rng, 7),
                loss,
                l2=0.3,
                sample_weight=rng.uniform(0, 2, size=7),
            )
        )
    return made


OBJECTIVES: dict[str, Callable[[np.random.Generator], Any]] = {
    **_risks(),
    "offset, l1": lambda rng: lt.EmpiricalRisk(
        rng.normal(size=(7, 5)), rng.normal(size=7), offset=rng.normal(size=7), l1=0.4
    ),
    "sparse, offset, l1": lambda rng: lt.EmpiricalRisk(
        _sparse(rng, 7, 5),
        rng.poisson(1.0, size=7),
        "poisson",
        0.1,
        rng.uniform(0, 2, size=7),
        roughness=(rng.normal(size=(2, 5)), [0.0, 1.0]),
        offset=rng.normal(size=7),
        l1=0.4,
    ),
    "pairs": lambda rng: lt.PairwiseRisk(rng.normal(size=(6, 5)), rng.normal(size=(6, 5))),
    "quadratic": lambda rng: lt.Quadratic(_symmetric(rng, 5, 5), rng.normal(size=5)),
    "sparse quadratic": lambda rng: lt.Quadratic(
        scipy.sparse.csr_matrix(_symmetric(rng, 5, 5)), rng.normal(size=5)
    ),
    "compiled": lambda rng: compiled_examples(rng.normal(size=(6, 5)), rng.normal(size=6)),
    "python": lambda rng: python_examples(rng.normal(size=(6, 5)), rng.normal(size=6)),
    "a user's loss": lambda rng: lt.EmpiricalRisk(
        _sparse(rng, 7, 5), rng.normal(size=7), fourth(), offset=rng.normal(size=7), l1=0.1
    ),
    "a user's loss in python": lambda rng: lt.EmpiricalRisk(
        rng.normal(size=(7, 5)), rng.normal(size=7), SLOW_FOURTH, sample_weight=rng.random(7)
    ),
    "sum": lambda rng: lt.WeightedSum(
        [
            OBJECTIVES["sparse, offset, l1"](rng),
            OBJECTIVES["hinge"](rng),
            OBJECTIVES["quadratic"](rng),
            OBJECTIVES["compiled"](rng),
        ],
        rng.uniform(0.1, 2.0, size=4),
    ),
    "shards": lambda rng: lt.ShardedRisk(
        [
            OBJECTIVES["sparse, offset, l1"](rng),
            OBJECTIVES["hinge"](rng),
            lambda: None,
            functools.partial(lt.Quadratic, np.eye(5), rng.normal(size=5)),
        ]
    ),
    "sum with a user's": lambda rng: lt.WeightedSum(
        [OBJECTIVES["python"](rng), OBJECTIVES["sparse quadratic"](rng), OBJECTIVES["pairs"](rng)]
    ),
}

DOMAINS: dict[str, Callable[[np.random.Generator], Any]] = {
    "everywhere": lambda rng: lt.Everywhere(),
    "box": lambda rng: lt.Box(-0.5, 0.7),
    "box of sides": lambda rng: lt.Box(
        rng.uniform(-1, 0, size=5), np.where(rng.random(5) < 0.3, np.inf, rng.uniform(0, 1, size=5))
    ),
    "ball": lambda rng: lt.Ball(0.8),
    "simplex": lambda rng: lt.Simplex(0.9),
    "ball elsewhere": lambda rng: lt.Ball(0.8, rng.normal(size=5)),
}
