"""SGD whose steps slide along the boundary of order constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Matrix, Vector
from lighttouch.domains import Box, Everywhere
from lighttouch.kernels.loops.approx_sgd.groups import OrderLinks
from lighttouch.kernels.loops.approx_sgd.heaps import new_move
from lighttouch.kernels.loops.approx_sgd.loop import approx_sgd, carry_bounds, remove_rounding
from lighttouch.kernels.state.iterate import new_gradient
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.rows.kinds import LinearSet
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.running import prepared
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.steps import StepSize, rule_and_eta, step_numbers
from lighttouch.validation import positive_int


@dataclass(frozen=True)
class ApproxSGD(AveragingSolver[SgdState]):
    """SGD whose steps slide along the boundary of order constraints (Section 6.1 of the paper).

    A step moves until an order constraint becomes tight, ties its parameters together, and goes on.
    Tied parameters move by the average of their directions, until the step is used up (Section 6.1,
    after Gupta et al. 2016). Every iterate is feasible to the last bit; the result of a step is
    near the projection, not equal to it. For orders of two parameters and bounds on one. Of things
    that happen at once, the fastest closing constraint is tied first.

    A check is counted for each constraint of each parameter that starts to move in a step.

    Parameters
    ----------
    step_size : float or InverseSqrt or InverseTime or AdaGrad
        A float is a constant step.
    batch : int, default=1
        Examples per step.

    Raises
    ------
    ValueError
        If a number is not positive where it must be, or `step_size` is neither a positive
        number nor one of `InverseSqrt`, `InverseTime` and `AdaGrad`.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2))
    >>> result = lt.solve(problem, lt.ApproxSGD(lt.InverseSqrt(0.5)), iterations=200)
    >>> result.violation
    0.0
    """

    step_size: StepSize
    batch: int = 1

    def __post_init__(self) -> None:
        rule_and_eta(self.step_size)
        positive_int(self.batch, "batch")

    def objection_to(self, problem: Problem) -> str | None:
        instead = "use ProjectedSGD, which projects onto any constraints, or LightTouch"
        if not isinstance(problem.domain, Box | Everywhere):
            kind = type(problem.domain).__name__.lower()
            return (
                f"it cannot stay in a {kind}, only in a box (domain=Box(lower, upper)); {instead}"
            )
        feasible = feasible_set(problem.constraints, problem.domain)
        if not feasible.is_linear:
            return (
                "the constraints must be linear, orders between two parameters or bounds on "
                f"one; {instead}"
            )
        if feasible.has_equalities:
            return (
                f"it moves along orders and bounds, and some constraints are equalities; {instead}"
            )
        others = feasible.rows.source
        if others.size:
            example = problem.constraints.describe(int(others[0]) // problem.constraints.group_size)
            return (
                f"{others.size} constraints are neither orders of two parameters nor bounds on "
                f"one, first {example}; {instead}"
            )
        return None

    def init(self, problem: Problem, start: Vector) -> SgdState:
        """A state at the projection of the start, as the method needs a feasible point."""
        nearest = np.array(project(start, problem.constraints, problem.domain).w)
        remove_rounding(
            order_links(problem), nearest, np.arange(problem.dimension), problem.dimension
        )
        return first_state(problem, nearest)

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        objective, links = problem.objective, order_links(problem)
        runnable(approx_sgd, problem)(
            objective.record,
            links,
            step_numbers(self.step_size, self.batch, objective.l2),
            state.iterate,
            state.visits,
            new_gradient(problem.dimension),
            new_move(problem.dimension, links.smaller.size),
            state.counters,
            steps,
            rng,
        )

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        return (self.batch, 0, 0)


def order_links(problem: Problem) -> OrderLinks:
    """The orders and bounds as the kernel wants them, prepared once per constraints and box."""
    feasible = feasible_set(problem.constraints, problem.domain)
    return prepared(problem.constraints, ("order links", problem.domain), lambda: _links(feasible))


def _links(feasible: FeasibleSet) -> OrderLinks:
    assert feasible.matrix is not None and feasible.right is not None  # they are linear
    orders = feasible.rows.orders
    smaller, larger = orders.lower.astype(np.int64), orders.upper.astype(np.int64)
    b = feasible.right[orders.source]
    scale = (
        np.asarray(feasible.matrix[orders.source, smaller], dtype=np.float64).ravel()
        if b.size
        else b
    )
    room = b / scale + 0.0
    lower, upper = _inner_bounds(feasible.rows, feasible.matrix, feasible.right)
    least, most = lower.copy(), upper.copy()
    carry_bounds(smaller, larger, room, least, most)
    start, arcs = _arcs(feasible.dimension, smaller, larger)
    return OrderLinks(
        smaller, larger, scale, b, room, start, arcs, lower, upper, least, most, int(not np.any(b))
    )


def _inner_bounds(rows: LinearSet, matrix: Matrix, right: Vector) -> tuple[Vector, Vector]:
    """Bounds that satisfy the rows they come from to the last bit: b / a need not."""
    bounds = rows.bounds
    lower, upper = bounds.lower.copy(), bounds.upper.copy()
    for bound, source, inward in (
        (lower, bounds.lower_source, np.inf),
        (upper, bounds.upper_source, -np.inf),
    ):
        for i in np.flatnonzero(source >= 0):
            coefficient, limit = matrix[source[i], i], right[source[i]]
            while coefficient * bound[i] - limit > 0.0:
                bound[i] = np.nextafter(bound[i], inward)
    return lower, upper


def _arcs(dimension: int, smaller: Any, larger: Any) -> tuple[Any, Any]:
    """The arcs of every parameter, in the order of the rows."""
    node = np.column_stack([smaller, larger]).ravel()
    start = np.zeros(dimension + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=dimension), out=start[1:])
    return start, np.argsort(node, kind="stable").astype(np.int64)
