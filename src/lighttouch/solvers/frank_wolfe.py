"""Online Frank-Wolfe: a linear program per step instead of a projection."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import scipy  # scipy.optimize is slow to import: only where it is used

from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints, order
from lighttouch.domains import Ball, Simplex
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.loops.frank_wolfe import new_examples_gradient, seen_examples_gradient
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, new_gradient, put_iterate
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.running import prepared
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.validation import one_of, positive, positive_int


@dataclass
class FrankWolfeState(SgdState):
    """The iterate, how many linear programs were solved, and what is remembered of the past."""

    oracle_calls: int = 0
    first: Vector = field(default_factory=lambda: np.zeros(0))
    slopes: Vector = field(default_factory=lambda: np.zeros(0))  # the sum of all gradients
    squares: float = 0.0  # the sum of their squared norms
    pull: float = 0.0  # the sum of the weights that draw towards the first point
    seen: np.ndarray[tuple[int], np.dtype[np.int64]] = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )


SomeWolfe = TypeVar("SomeWolfe", bound=FrankWolfeState)


class FrankWolfeSolver(AveragingSolver[SomeWolfe]):
    """What both Frank-Wolfe methods share."""

    batch: int

    def objection_to(self, problem: Problem) -> str | None:
        return objection_to_oracle(problem)

    def notes(self, state: SomeWolfe) -> tuple[str, ...]:
        return (f"{state.oracle_calls:,} linear programs over the constraints, one per step",)

    def batch_sizes(self, state: SomeWolfe) -> tuple[int, int, int]:
        return (self.batch, 0, 0)


@dataclass(frozen=True)
class OnlineFrankWolfe(FrankWolfeSolver[FrankWolfeState]):
    """The online Frank-Wolfe method of Hazan and Kale (2012).

    For stochastic, possibly non-smooth objectives. With v_t = argmin <grad F_t(w_t), v> over the
    feasible set, w_{t+1} = (1 - t^-a) w_t + t^-a v_t.
    Two ways to remember the past:

    memory="examples", their stochastic setting (Theorem 4.3, the row of the paper's Table 2): F_t
    is the mean of the t losses seen so far, each smoothed over a ball of radius smoothing * D *
    t^(-1/3) by evaluating it at a point drawn from that ball, and a = 2/3, which makes what a new
    loss adds, t^(a-1), what curvature adds, t^(1/3-a), and what smoothing adds all fall as
    t^(-1/3). An iteration evaluates every example seen. smoothing=0, for losses that are smooth
    already, takes a = 1/2.

    memory="gradients", their general setting: F_t(w) is the mean over s <= t of <g_s, w> + sigma_s
    ||w - w_1||^2, with g_s the gradient at w_s, sigma_s = (G/D) s^(-1/4) and a = 1/2. An iteration
    evaluates one batch; errors fall as T^(-1/4), not T^(-1/3).

    D is the diameter of a box around the feasible set, G the root mean square of the gradients so
    far. The feasible set must be bounded and made of linear rows and a box, or be a ball alone.
    Linear programs are solved in closed form (box, ball), by isotonic regression (orders in a box)
    or by HiGHS. Each looks at all constraints and is counted as that many checks; the result's
    notes, and `result.state.solver_state.oracle_calls`, say how many there were. The solution is
    the last iterate with memory="examples", the average with memory="gradients".

    Parameters
    ----------
    memory : {"examples", "gradients"}, default="examples"
        What is remembered of the past, as above.
    smoothing : float, default=0.01
        The radius of the ball, relative to D t^(-1/3); zero for smooth losses. Only with
        memory="examples".
    batch : int, default=1
        New examples per step.

    Raises
    ------
    ValueError
        If `memory` is unknown, or a number is not positive.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2), lt.Box(-1, 1))
    >>> result = lt.solve(problem, lt.OnlineFrankWolfe(), iterations=50)
    >>> result.violation <= 1e-9
    True
    """

    memory: str = "examples"
    smoothing: float = 0.01
    batch: int = 1

    def __post_init__(self) -> None:
        one_of(self.memory, ("examples", "gradients"), "memory")
        positive(self.smoothing, "smoothing", zero=True)
        positive_int(self.batch, "batch")

    def init(self, problem: Problem, start: Vector) -> FrankWolfeState:
        begun = first_state(
            problem, np.ascontiguousarray(project(start, problem.constraints, problem.domain).w)
        )
        state = FrankWolfeState(
            begun.counters,
            begun.iterate,
            begun.visits,
            first=begun.w.copy(),
            slopes=np.zeros(problem.dimension),
        )
        if self.memory == "examples":
            state.seen = np.zeros(problem.objective.examples, np.int64)
        return state

    def advance(
        self, problem: Problem, state: FrankWolfeState, steps: int, rng: np.random.Generator
    ) -> None:
        oracle = oracle_for(problem)
        size = diameter(oracle)
        shrinking = 2 / 3 if self.memory == "examples" and self.smoothing > 0.0 else 1 / 2
        find_slope = self._seen_slope if self.memory == "examples" else self._linear_slope
        for t in range(state.iteration + 1, state.iteration + steps + 1):
            slope = find_slope(problem, state, size, rng)
            if blown_up(slope, state):
                return
            step_towards(problem, state, ask(problem, state, oracle, slope), t**-shrinking, oracle)

    def _seen_slope(
        self, problem: Problem, state: FrankWolfeState, size: float, rng: np.random.Generator
    ) -> Vector:
        objective, slope = problem.objective, np.empty(problem.dimension)
        radius = self.smoothing * size * (state.iteration + 1) ** (-1 / 3)
        runnable(seen_examples_gradient, problem)(
            objective.record, objective.l2, self.batch, state.w, radius, state.visits, state.seen,
            new_gradient(problem.dimension), state.counters, rng, slope,
        )  # fmt: skip
        return slope

    def _linear_slope(
        self, problem: Problem, state: FrankWolfeState, size: float, rng: np.random.Generator
    ) -> Vector:
        note_gradient(problem, state, self.batch, rng)
        if size > 0.0 and math.isfinite(state.squares):
            t = state.iteration + 1
            state.pull += math.sqrt(state.squares / t) / size * t ** (-1 / 4)
        return state.slopes + 2.0 * state.pull * (state.w - state.first)

    def solution(self, state: FrankWolfeState) -> Vector:
        return state.w.copy() if self.memory == "examples" else self.average(state)


def blown_up(slope: Vector, state: FrankWolfeState) -> bool:
    """Whether a slope is not finite; then the iterate is made so, for the driver to see."""
    if np.isfinite(slope).all():
        return False
    state.w[:] = np.nan
    return True


def note_gradient(
    problem: Problem, state: FrankWolfeState, batch: int, rng: np.random.Generator
) -> None:
    """Add the gradient of the next examples at the iterate to the sum."""
    objective, slope = problem.objective, np.empty(problem.dimension)
    runnable(new_examples_gradient, problem)(
        objective.record,
        objective.l2,
        batch,
        state.w,
        state.visits,
        new_gradient(problem.dimension),
        state.counters,
        rng,
        slope,
    )
    state.slopes += slope
    state.squares += float(slope @ slope)


def ask(problem: Problem, state: FrankWolfeState, oracle: LinearOracle, slope: Vector) -> Vector:
    """One linear program, counted."""
    state.oracle_calls += 1
    state.counters[CHECKS] += problem.constraints.members
    return oracle.vertex(slope)


def step_towards(
    problem: Problem, state: FrankWolfeState, vertex: Vector, share: float, oracle: LinearOracle
) -> None:
    """Iteration t ends: a share of the way to the vertex. Rounding keeps every order that both
    points keep.
    """
    t = state.iteration + 1
    put_iterate(
        state.iterate,
        np.clip((1.0 - share) * state.w + share * vertex, oracle.lower, oracle.upper),
        t,
    )
    state.counters[ITERATION] = t


# -------------------------------------------------------------------------------------------------
# Linear optimisation over the feasible set: the vertex that a direction dislikes least, by the
# cheapest exact method.


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
