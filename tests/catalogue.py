"""Solvers and problems under test: one line here buys every conformance test.

Every problem comes twice: as the package states it, and as the dense NumPy functions of `reference.Piece`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse

import lighttouch as lt
import reference


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
    return scipy.sparse.random(rows, columns, 0.5, "csr", random_state=rng, data_rvs=rng.standard_normal)


@cache
def dense_rows_in_a_box() -> Case:
    X, y = _regression(1, 30, 6)
    rng = np.random.default_rng(2)
    A, b, upper = rng.normal(size=(9, 6)), rng.uniform(-0.2, 0.5, size=9), rng.uniform(0.3, 1.0, size=6)
    problem = lt.Problem(lt.EmpiricalRisk(X, y), lt.LinearConstraints(A, b), lt.Box(-0.8, upper))
    lower = np.full(6, -0.8)
    return Case(
        problem,
        reference.Piece(**reference.risk(X, y, reference.LOSSES["squared"]), **reference.linear(A, b), project=reference.box(lower, upper)),
    )


@cache
def sparse_rows_in_a_ball() -> Case:
    rng = np.random.default_rng(3)
    X, A = _sparse(rng, 30, 8), _sparse(rng, 11, 8)
    y, b, weights = np.where(rng.random(30) < 0.5, -1.0, 1.0), rng.uniform(-0.3, 0.3, size=11), rng.uniform(0.1, 3.0, size=30)
    center = rng.normal(size=8) * 0.2
    objective = lt.EmpiricalRisk(X, y, "logistic", l2=0.1, sample_weight=weights)
    problem = lt.Problem(objective, lt.LinearConstraints(A, b), lt.Ball(0.7, center))
    risk = reference.risk(X.toarray(), y, reference.LOSSES["logistic"], weights)
    return Case(problem, reference.Piece(**risk, **reference.linear(A.toarray(), b), project=reference.ball(0.7, center), l2=0.1))


@cache
def an_order_in_groups() -> Case:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 10))
    y = np.where(X @ np.linspace(1.0, -1.0, 10) > 0, 1.0, -1.0)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "hinge"), lt.ordering(10).aggregated(4))
    A = np.eye(10)[:-1] - np.eye(10)[1:]
    risk = reference.risk(X, y, reference.LOSSES["hinge"])
    return Case(problem, reference.Piece(**risk, **reference.linear(A, np.zeros(9)), project=reference.everywhere(), group=4))


@cache
def cones_everywhere() -> Case:
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4))
    P, q = root @ root.T / 4 + np.eye(4), rng.normal(size=4) * 2
    A, b, c, d = rng.normal(size=(7, 3, 4)), rng.normal(size=(7, 3)) * 0.3, rng.normal(size=(7, 4)) * 0.2, rng.uniform(0.3, 1.0, size=7)
    problem = lt.Problem(lt.Quadratic(P, q), lt.NormConstraints(A, b, c, d))
    return Case(problem, reference.Piece(**reference.quadratic(P, q), **reference.cones(A, b, c, d), project=reference.everywhere()))


@cache
def families_joined() -> Case:
    X, y = _regression(6, 25, 5)
    rng = np.random.default_rng(7)
    A, b = _sparse(rng, 6, 5), rng.uniform(-0.2, 0.4, size=6)
    roots = rng.normal(size=(4, 5, 5))
    P, q, r = np.einsum("jik,jlk->jil", roots, roots) / 5, rng.normal(size=(4, 5)), rng.uniform(-1.0, 0.1, size=4)
    constraints = lt.stack(lt.LinearConstraints(A, b), lt.QuadraticConstraints(P, q, r))
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "huber"), constraints, lt.Box(-1.0, 1.0))
    families = reference.joined((6, reference.linear(A.toarray(), b)), (4, reference.quadratics(P, q, r)))
    risk = reference.risk(X, y, reference.LOSSES["huber"])
    return Case(problem, reference.Piece(**risk, **families, project=reference.box(-1.0, 1.0)))


@cache
def one_constraint() -> Case:
    X, y = _regression(8, 20, 3)
    A, b = np.array([[1.0, -2.0, 0.5]]), np.array([-0.3])
    problem = lt.Problem(lt.EmpiricalRisk(X, y, "absolute"), lt.LinearConstraints(A, b))
    risk = reference.risk(X, y, reference.LOSSES["absolute"])
    return Case(problem, reference.Piece(**risk, **reference.linear(A, b), project=reference.everywhere()))


@cache
def no_constraints() -> Case:
    X, y = _regression(9, 20, 4)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, lt.Quantile(0.3)))
    return Case(
        problem, reference.Piece(**reference.risk(X, y, reference.quantile(0.3)), **reference.nothing(), project=reference.everywhere())
    )


PROBLEMS: dict[str, Callable[[], Case]] = {
    "dense rows in a box": dense_rows_in_a_box,
    "sparse rows in a ball": sparse_rows_in_a_ball,
    "an order in groups": an_order_in_groups,
    "cones everywhere": cones_everywhere,
    "families joined": families_joined,
    "one constraint": one_constraint,
    "no constraints": no_constraints,
}

PROJECTABLE = [name for name in PROBLEMS if name not in ("cones everywhere", "families joined")]


@dataclass(frozen=True)
class Entry:
    """A solver for a problem, and how many constraints T iterations check, where that is fixed beforehand."""

    build: Callable[[lt.Problem], Any]
    checks: Callable[[int, int], int] | None = None  # of m single constraints and T iterations


def _some(problem: lt.Problem) -> int:
    return max(1, min(3, problem.constraints.count))


FIRST_PHASE = 24

SOLVERS: dict[str, Entry] = {
    "full touch": Entry(lambda p: lt.FullTouch(1.5, 0.05), lambda m, T: m * T),
    "full touch, adagrad": Entry(lambda p: lt.FullTouch(1.5, lt.AdaGrad(0.3), batch=2), lambda m, T: m * T),
    "light touch": Entry(lambda p: lt.LightTouch(1.5, 0.05, _some(p)), lambda m, T: (min(m, 3) + (m > 0)) * T),
    "light touch, inverse sqrt": Entry(
        lambda p: lt.LightTouch(1.5, lt.InverseSqrt(0.4), _some(p), weight_step_size=0.7, batch=2), lambda m, T: (min(m, 3) + (m > 0)) * T
    ),
    "mid touch": Entry(
        lambda p: lt.MidTouch(1.5, 2.0, FIRST_PHASE, 0.4), lambda m, T: m * min(T, FIRST_PHASE) + 2 * (m > 0) * max(0, T - FIRST_PHASE)
    ),
    "practical light touch": Entry(lambda p: lt.PracticalLightTouch(1.5, lt.InverseSqrt(0.4))),
    "practical light touch, adagrad": Entry(lambda p: lt.PracticalLightTouch(1.5, lt.AdaGrad(0.3), weight_step_size=0.5)),
}


class Interpreted(lt.Problem):
    """A problem whose loops run as ordinary Python."""

    def __init__(self, problem: lt.Problem) -> None:
        super().__init__(problem.objective, problem.constraints, problem.domain)

    @property
    def interpreted(self) -> bool:
        return True
