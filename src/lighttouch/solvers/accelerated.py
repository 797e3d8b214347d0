"""FISTA with backtracking and restart, on an objective whose kinks are rounded.

Accelerated projected gradient (Beck and Teboulle 2009) with the restart of O'Donoghue and Candes
(2015) and Nesterov's smoothing (2005) of losses with kinks: the rounded loss lies below the loss,
by at most half the width, and the width shrinks when it dominates what is left to gain. Every few
steps the objective is compared with a lower bound (`bounds.py`); only that proves anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.numerics.momentum import next_momentum
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.kernels.verbs.objectives import smooth_value, smooth_value_and_gradient
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError, Projected, project
from lighttouch.projections.sets import feasible_set
from lighttouch.running import check_deadline
from lighttouch.solvers.base import EndingSolver, EndingState, claim_unit
from lighttouch.solvers.bounds import (
    Tangent,
    bound_by_slopes,
    bound_within,
    bound_without_slopes,
    lower_bound,
    whole_minorant,
)
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import (
    TINY,
    column_sizes,
    coordinate_scales,
    has_kinks,
    natural_reach,
)
from lighttouch.validation import positive, positive_int


@dataclass
class AcceleratedState(EndingState):
    """Feasible point x, search point y, curvature, width of the kinks, and the best so far."""

    x: Vector  # x, y and start are in units of `scale`: w = scale * x
    y: Vector
    start: Vector
    scale: Vector
    reach: Vector  # how far an optimum may plausibly be, in units of the parameters
    best: Vector
    curvature: float = 0.0  # 0 before the first step
    width: float = 0.0
    momentum: float = 1.0
    best_objective: float = math.inf
    bound: float = -math.inf  # proven for every feasible point
    likely_bound: float = -math.inf  # for those within reach, which is a guess
    likely_steps: float = 1.0  # the lookahead it comes from
    travelled: float = 0.0  # from the start, at the last look: while it grows, so may the reach
    checkpoint: float = math.inf  # the rounded objective at the last look
    stalled: int = 0
    warm: object = None

    @property
    def w(self) -> Vector:
        return np.asarray(self.scale * self.x)

    @property
    def gap(self) -> float:
        """How much can still be gained, at most; infinite where nothing is proven."""
        return self.best_objective - self.bound

    @property
    def unit(self) -> float:
        """What accuracy is relative to: the objective, or a little of what was gained."""
        return claim_unit(self.best_objective, self.first_objective)


@dataclass(frozen=True)
class Accelerated(EndingSolver[AcceleratedState]):
    """Accelerated projected gradient steps (FISTA) on all examples.

    For problems whose full gradients and projections are cheap. Losses with kinks are rounded, ever
    less. The run ends CONVERGED where a lower bound that holds for every feasible point proves that
    the objective is within `tolerance` of the optimum; STALLED where nothing is gained any more.

    Parameters
    ----------
    tolerance : float, default=1e-3
        Relative gap to the optimum at which the run ends.
    near : bool, default=False
        Whether the start is near the optimum already, so that kinks are rounded little.
    passes : int, default=None
        The most full gradients; None sets no limit.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> problem = lt.Problem(lt.EmpiricalRisk(np.eye(3), [3.0, 1.0, 2.0], l2=0.1), lt.ordering(3))
    >>> lt.solve(problem, lt.Accelerated(1e-6)).status.name
    'CONVERGED'
    """

    tolerance: float = 1e-3
    near: bool = False
    passes: int | None = None
    takes_shards = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")
        if self.passes is not None:
            positive_int(self.passes, "passes")

    def init(self, problem: Problem, start: Vector) -> AcceleratedState:
        return AcceleratedState(
            counters=new_counters(),
            x=start.copy(),
            y=start.copy(),
            start=start.copy(),
            scale=np.ones(start.size),
            reach=np.zeros(start.size),
            best=start.copy(),
        )

    def advance(
        self, problem: Problem, state: AcceleratedState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` steps; it returns early after a slice of time, which changes nothing."""
        for _ in state.slice(steps):
            before = replace(state, counters=state.counters.copy())  # a step makes new arrays
            try:
                self._step(problem, state)
            except OutOfTimeError:
                vars(state).update(vars(before))
                raise

    def _step(self, problem: Problem, state: AcceleratedState) -> None:
        if state.curvature == 0.0:
            self._begin(problem, state)
        value, gradient = _evaluate(problem, state.y, state)
        x = _backtrack(problem, state, value, gradient)
        if float((state.y - x) @ (x - state.x)) > 0.0:  # the momentum points uphill: restart
            state.momentum = 1.0
        state.momentum, speed = next_momentum(state.momentum)
        state.x, state.y = x, x + speed * (x - state.x)
        state.counters[ITERATION] += 1
        if state.iteration % COSTS.check_every == 0:
            self._look(problem, state)
        if self.passes is not None and not state.ended:
            state.ended = state.used_up = _passes(problem, state) >= self.passes

    def _begin(self, problem: Problem, state: AcceleratedState) -> None:
        """Project the start, and find units, widths and curvature there."""
        projected = project(state.start, problem.constraints, problem.domain)
        state.counters[CHECKS] += problem.constraints.members
        sizes = column_sizes(problem)
        if feasible_set(problem.constraints, problem.domain).is_box:
            state.scale = coordinate_scales(sizes)
        state.reach = natural_reach(problem, projected.w, sizes)
        state.x = projected.w / state.scale
        state.y, state.start = state.x.copy(), state.x.copy()
        state.warm = projected.warm
        state.best = projected.w.copy()
        state.best_objective = problem.objective.value(projected.w)
        if math.isinf(state.first_objective):
            state.first_objective = state.best_objective
        if has_kinks(problem):
            width = max(
                COSTS.least_objective_curvature, COSTS.first_width * abs(state.best_objective)
            )
            state.width = width / (COSTS.near_narrowing if self.near else 1.0)
        state.curvature = _first_curvature(problem, state)

    def _look(self, problem: Problem, state: AcceleratedState) -> None:
        """Renew best point and bound; end, or narrow the kinks when rounding dominates."""
        w, before = state.w, state.bound
        objective = problem.objective.value(w)
        if objective < state.best_objective:
            state.best, state.best_objective = w, objective
        rounded, gradient = _evaluate(problem, state.x, state)
        value, gradient = _minorant(problem, state, rounded, gradient)
        _renew_bounds(problem, state, value, gradient)
        enough = self.tolerance * state.unit
        if state.best_objective == 0.0:  # kinks would be narrowed for ever
            state.bound = max(state.bound, bound_without_slopes(problem))
        if self.is_proven(state):
            state.ended = True
            return
        if self._likely(state):
            self._end(problem, state, value, gradient)
            return
        risen = state.bound - before if math.isfinite(before) else 0.0
        little = state.checkpoint - rounded + risen <= COSTS.little_progress * enough
        state.checkpoint = rounded
        rounding = objective - value
        dominates = value - max(state.bound, state.likely_bound) < 0.5 * rounding
        if (little or dominates) and rounding > COSTS.little_rounding * enough and state.width > 0:
            state.width /= COSTS.kink_narrowing
            state.curvature *= COSTS.kink_narrowing
            state.momentum, state.y = 1.0, state.x.copy()
            state.checkpoint, state.stalled = math.inf, 0
            return
        state.stalled = state.stalled + 1 if little else 0
        patience = COSTS.kinked_patience if state.width > 0.0 else COSTS.smooth_patience
        if state.stalled >= patience:
            self._end(problem, state, value, gradient)

    def _end(
        self, problem: Problem, state: AcceleratedState, value: float, gradient: Vector
    ) -> None:
        """The end, with the bound that is too expensive to be computed at every look."""
        tangent = _tangent(problem, state, value, gradient, state.likely_steps)
        state.bound = max(state.bound, bound_by_slopes(problem, tangent, state.width))
        state.ended = True

    def is_proven(self, state: AcceleratedState) -> bool:
        """A bound clearly above the objective contradicts itself: it proves nothing."""
        return abs(state.gap) <= self.tolerance * state.unit

    def _likely(self, state: AcceleratedState) -> bool:
        """Whether nothing is left to gain within reach, once the way has stopped growing."""
        before = state.travelled
        state.travelled = float(np.linalg.norm(state.x - state.start))
        settled = state.travelled <= COSTS.settled_growth * before
        left = state.best_objective - state.likely_bound
        return settled and abs(left) <= self.tolerance * state.unit

    def solution(self, state: AcceleratedState) -> Vector:
        return self.candidates(state)[0]

    def candidates(self, state: AcceleratedState) -> Sequence[Vector]:
        return [state.best, state.w] if math.isfinite(state.best_objective) else [state.w]

    def lower_bound(self, state: AcceleratedState) -> float:
        return state.bound

    def accuracy(self, state: AcceleratedState) -> float:
        return self.tolerance * state.unit

    def notes(self, state: AcceleratedState) -> Sequence[str]:
        return (f"accelerated projected gradient (FISTA): {state.iteration} steps",)


def _passes(problem: Problem, state: AcceleratedState) -> int:
    return state.gradient_samples // problem.objective.examples


def _evaluate(problem: Problem, x: Vector, state: AcceleratedState) -> tuple[float, Vector]:
    """The rounded objective and its gradient, in units of `scale`."""
    check_deadline()  # a pass over all examples
    state.counters[SAMPLES] += problem.objective.examples
    value, gradient = rounded(problem, state.scale * x, state.width)
    return value, gradient * state.scale


def _value(problem: Problem, x: Vector, state: AcceleratedState) -> float:
    """The rounded objective alone."""
    check_deadline()
    state.counters[SAMPLES] += problem.objective.examples
    return rounded_value(problem, state.scale * x, state.width)


def _minorant(
    problem: Problem, state: AcceleratedState, rounded: float, gradient: Vector
) -> tuple[float, Vector]:
    """The best line below the objective that touches near x, in units of `scale`: the tangent of
    the rounded objective, or one that rounding does not lower.
    """
    found = whole_minorant(problem.objective, state.w, state.width) if state.width > 0.0 else None
    return (rounded, gradient) if found is None else (found[0], found[1] * state.scale)


def _projected(problem: Problem, x: Vector, state: AcceleratedState) -> Projected:
    """The projection of x, which is in units of `scale` (1 but where the set is a box)."""
    state.counters[CHECKS] += problem.constraints.members
    found = project(state.scale * x, problem.constraints, problem.domain, warm=state.warm)
    state.warm = found.warm
    return found


def _nearest(problem: Problem, x: Vector, state: AcceleratedState) -> Vector:
    return np.asarray(_projected(problem, x, state).w / state.scale)


def _backtrack(problem: Problem, state: AcceleratedState, value: float, gradient: Vector) -> Vector:
    """The step whose curvature is large enough for the quadratic model to lie above."""
    reach = float(np.linalg.norm(state.reach / state.scale))
    far = COSTS.longest_step * (reach + float(np.linalg.norm(state.y)))
    floor = float(np.linalg.norm(gradient)) / max(far, TINY)
    state.curvature = max(COSTS.shrinking * state.curvature, floor)
    while True:
        x = _nearest(problem, state.y - gradient / state.curvature, state)
        move = x - state.y
        new_value = _value(problem, x, state)
        model = value + float(gradient @ move) + 0.5 * state.curvature * float(move @ move)
        if new_value <= model + COSTS.value_rounding * abs(value) or state.curvature > 1.0 / TINY:
            return x
        state.curvature *= 2.0


def _first_curvature(problem: Problem, state: AcceleratedState) -> float:
    """A few power iterations on gradient differences."""
    rng = np.random.default_rng(0)
    _, base = _evaluate(problem, state.x, state)
    direction = rng.standard_normal(state.x.size)
    curvature = COSTS.least_objective_curvature
    reach = float(np.linalg.norm(state.reach / state.scale))
    size = COSTS.first_difference * reach + float(np.linalg.norm(state.x))
    length = COSTS.first_difference * (size if size > 0.0 else 1.0)
    for _ in range(COSTS.power_steps):
        direction /= max(TINY, float(np.linalg.norm(direction)))
        _, moved = _evaluate(problem, state.x + length * direction, state)
        change = (moved - base) / length
        size = float(np.linalg.norm(change))
        if size == 0.0:
            break
        curvature, direction = max(curvature, size), change
    return curvature


def _renew_bounds(
    problem: Problem, state: AcceleratedState, value: float, gradient: Vector
) -> None:
    """From projections at several distances: which gives the best bound depends on the way left."""
    travelled = COSTS.reach_travelled * state.scale * np.abs(state.x - state.start)
    diameter = feasible_set(problem.constraints, problem.domain).diameter()
    radius = np.minimum(travelled + state.reach, diameter)
    state.likely_bound = -math.inf  # an earlier one held only within a smaller reach
    for steps in COSTS.lookahead:
        tangent = _tangent(problem, state, value, gradient, steps)
        state.bound = max(state.bound, lower_bound(problem, tangent))
        likely = bound_within(radius, tangent)
        if likely > state.likely_bound:
            state.likely_bound, state.likely_steps = likely, steps


def _tangent(
    problem: Problem, state: AcceleratedState, value: float, gradient: Vector, steps: float
) -> Tangent:
    length, scale = steps / state.curvature, state.scale
    found = _projected(problem, state.x - length * gradient, state)
    return Tangent(state.w, value, gradient / scale, found.w, length, scale, found.certificate)


# -------------------------------------------------------------------------------------------------
# Full passes over the examples, in memory or in shards: the rounded objective and its gradient.


def rounded(problem: Problem, w: Vector, width: float) -> tuple[float, Vector]:
    """The objective with its kinks rounded over `width`, and its gradient."""
    objective = problem.objective
    if isinstance(objective, ShardedRisk):
        value, gradient = objective.mean(_rounded, w, width)
        return float(value), gradient
    return _rounded(objective, w, width, problem.interpreted)


def rounded_value(problem: Problem, w: Vector, width: float) -> float:
    """The rounded objective alone."""
    objective = problem.objective
    if isinstance(objective, ShardedRisk):
        return float(objective.mean(_rounded_value, w, width))
    return _rounded_value(objective, w, width, problem.interpreted)


def _rounded(
    objective: Any, w: Vector, width: float, python: bool | None = None
) -> tuple[float, Vector]:
    out = np.empty(w.size)
    run = _runnable(smooth_value_and_gradient, objective, python)
    value = run(objective.record, objective.examples, objective.l2, width, w, out)
    return float(value), out


def _rounded_value(objective: Any, w: Vector, width: float, python: bool | None = None) -> float:
    run, spare = _runnable(smooth_value, objective, python), np.zeros(w.size)
    return float(run(objective.record, objective.examples, objective.l2, width, w, spare))


def _runnable(kernel: Any, objective: Any, python: bool | None) -> Any:
    return interpreted(kernel) if (objective.interpreted if python is None else python) else kernel
