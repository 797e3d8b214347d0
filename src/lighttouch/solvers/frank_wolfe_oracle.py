"""Linear optimisation over the feasible set: the vertex that a direction dislikes least, by the
cheapest exact method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # scipy.optimize is slow to import: only where it is used

from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints, order
from lighttouch.domains import Ball, Simplex
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.running import prepared

INSTEAD = "use ProjectedSGD or LightTouch, which need no linear optimisation"
TOLERANCE = 1e-10  # of HiGHS, the tightest it takes


@dataclass(frozen=True)
class BoxOracle:
    lower: Vector
    upper: Vector

    def vertex(self, direction: Vector) -> Vector:
        return np.where(direction < 0.0, self.upper, self.lower)


@dataclass(frozen=True)
class BallOracle:
    center: Vector
    radius: float

    @property
    def lower(self) -> Vector:
        return self.center - self.radius

    @property
    def upper(self) -> Vector:
        return self.center + self.radius

    def vertex(self, direction: Vector) -> Vector:
        length = float(np.linalg.norm(direction))
        return (
            self.center - (self.radius / length) * direction if length > 0.0 else self.center.copy()
        )


@dataclass(frozen=True)
class SimplexOracle:
    """One coordinate has it all: the one that the direction dislikes least."""

    total: float
    dimension: int

    @property
    def lower(self) -> Vector:
        return np.zeros(self.dimension)

    @property
    def upper(self) -> Vector:
        return np.full(self.dimension, self.total)

    def vertex(self, direction: Vector) -> Vector:
        vertex = np.zeros(self.dimension)
        vertex[int(np.argmin(direction))] = self.total
        return vertex


@dataclass(frozen=True)
class OrderOracle:
    """Plain orders in a box: whatever the isotonic regression of minus the direction puts above
    zero goes to its upper bound.
    """

    orders: LinearConstraints
    lower: Vector
    upper: Vector

    def vertex(self, direction: Vector) -> Vector:
        return np.where(project(-direction, self.orders).w > 0.0, self.upper, self.lower)


@dataclass(frozen=True)
class RowsOracle:
    """Any linear rows in a box, by HiGHS' dual simplex method, which ends in a vertex."""

    matrix: Any
    right: Vector
    lower: Vector
    upper: Vector

    def vertex(self, direction: Vector) -> Vector:
        scale = float(np.abs(direction).max(initial=0.0)) or 1.0  # HiGHS' tolerances are absolute
        found = self.optimum(direction / scale)
        if found.status != 0:
            raise RuntimeError(
                f"HiGHS did not solve the linear program of a Frank-Wolfe step: {found.message}"
            )
        return np.asarray(np.clip(found.x, self.lower, self.upper))

    def optimum(self, direction: Vector) -> Any:
        options = {
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        box = np.column_stack([self.lower, self.upper])
        found = scipy.optimize.linprog(
            direction,
            A_ub=self.matrix,
            b_ub=self.right,
            bounds=box,
            method="highs-ds",
            options=options,
        )
        if found.status == 2:
            raise InfeasibleConstraintsError(
                "no point satisfies all constraints and the domain together (HiGHS)"
            )
        return found


LinearOracle = BoxOracle | BallOracle | SimplexOracle | OrderOracle | RowsOracle
"""A bounded set: its `vertex` has the least inner product with a direction, `lower` and `upper` are
a box around it.
"""


def oracle_for(problem: Problem) -> LinearOracle:
    """The oracle of a problem's feasible set, prepared once; a ValueError where there is none."""
    oracle = _oracle_or_objection(problem)
    if isinstance(oracle, str):
        raise ValueError(oracle)
    return oracle


def objection_to_oracle(problem: Problem) -> str | None:
    """Why the problem's feasible set has no linear oracle; None if it has one."""
    oracle = _oracle_or_objection(problem)
    return oracle if isinstance(oracle, str) else None


def diameter(oracle: LinearOracle) -> float:
    """Of the box around the set, so at least that of the set."""
    if isinstance(oracle, BallOracle):
        return 2.0 * oracle.radius
    if isinstance(oracle, SimplexOracle):
        return Simplex(oracle.total).diameter(oracle.dimension)
    return float(np.linalg.norm(oracle.upper - oracle.lower))


def _oracle_or_objection(problem: Problem) -> LinearOracle | str:
    key = ("linear oracle", problem.domain)
    return prepared(problem.constraints, key, lambda: _new_oracle(problem))


def _new_oracle(problem: Problem) -> LinearOracle | str:
    feasible, domain = feasible_set(problem.constraints, problem.domain), problem.domain
    if feasible.has_curved_families:
        return f"its steps are linear programs, and some constraints are not linear; {INSTEAD}"
    if isinstance(domain, Ball):
        if problem.constraints.count:
            return (
                "a ball together with constraints has no vertices to move to; give "
                f"domain=Box(lower, upper), or {INSTEAD}"
            )
        center = np.zeros(problem.dimension) if domain.center is None else domain.center
        return BallOracle(center, domain.radius)
    if isinstance(domain, Simplex) and not problem.constraints.count:
        return SimplexOracle(domain.total, problem.dimension)
    return _linear_oracle(feasible)


def _linear_oracle(feasible: FeasibleSet) -> LinearOracle | str:
    rows, matrix, right = feasible.rows, feasible.matrix, feasible.right
    assert right is not None  # they are linear
    lower, upper = feasible.domain.bounds(feasible.dimension)
    bounds, orders = rows.bounds, rows.orders
    bounds = replace(
        bounds, lower=np.maximum(bounds.lower, lower), upper=np.minimum(bounds.upper, upper)
    )
    if np.isinf(bounds.lower).any() or np.isinf(bounds.upper).any():
        return _bounded(RowsOracle(matrix, right, bounds.lower, bounds.upper))
    if not rows.source.size and not orders.source.size:
        return BoxOracle(bounds.lower, bounds.upper)
    if (
        not rows.source.size
        and not orders.margin.any()
        and _equal_along(orders, bounds.lower)
        and _equal_along(orders, bounds.upper)
    ):
        return OrderOracle(
            order(orders.lower, orders.upper, dimension=rows.dimension),
            bounds.lower,
            bounds.upper,
        )
    return RowsOracle(matrix, right, bounds.lower, bounds.upper)


def _equal_along(orders: Any, bound: Vector) -> bool:
    return bool(np.array_equal(bound[orders.lower], bound[orders.upper]))


def _bounded(oracle: RowsOracle) -> RowsOracle | str:
    """The oracle with every missing bound found by a linear program, or the coordinate that has
    none.
    """
    lower, upper = oracle.lower.copy(), oracle.upper.copy()
    for bound, sign, side in ((lower, 1.0, "below"), (upper, -1.0, "above")):
        for i in np.flatnonzero(np.isinf(bound)):
            direction = np.zeros(bound.size)
            direction[i] = sign
            found = oracle.optimum(direction)
            if found.status != 0:
                return (
                    f"the feasible set must be bounded, but w[{i}] is not bounded {side}; give "
                    f"domain=Box(lower, upper), or {INSTEAD}"
                )
            bound[i] = found.x[i]
    return replace(oracle, lower=lower, upper=upper)
