"""Accelerated projected gradient steps on a rounded objective, with a proven bound on what is left
to gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Box, Everywhere
from lighttouch.kernels.verbs.objectives import smooth_value_and_gradient
from lighttouch.objectives import EmpiricalRisk, Quadratic
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError, project
from lighttouch.solvers.base import copied, runnable

CHECK_EVERY = 10
NARROWING = 4.0
# how much narrower kinks are rounded from a start that sampling has brought near the optimum
NEAR = 64.0
PATIENCE, KINKED_PATIENCE = (
    20,
    6,
)  # checks without progress; with kinks the bounds seldom meet, so waiting for them is idle
LOOKAHEAD = (1.0, 10.0, 100.0, 1000.0)


@dataclass
class Acceleration:
    """The state of the method: feasible point x, search point y, curvature estimate, kink width and
    the best bounds so far.
    """

    x: Vector  # x, y and start are in units of `scale`: w = scale * x
    y: Vector
    start: Vector
    scale: Vector
    reach: Vector
    curvature: float
    width: float
    momentum: float = 1.0
    steps: int = 0
    passes: int = 0
    projections: int = 0
    best: Vector = field(default_factory=lambda: np.zeros(0))
    best_objective: float = math.inf
    lower_bound: float = -math.inf
    checkpoint: float = math.inf
    stalled: int = 0
    travelled: float = (
        0.0  # at the last check: while the way grows, so may the distance to an optimum
    )
    warm: Any = None

    def copy(self) -> Acceleration:
        return replace(
            self,
            x=self.x.copy(),
            y=self.y.copy(),
            start=self.start.copy(),
            best=self.best.copy(),
            warm=copied(self.warm),
        )

    @property
    def gap(self) -> float:
        """How much can still be gained, at most."""
        return self.best_objective - self.lower_bound


def begin(problem: Problem, start: Vector, near: bool = False) -> Acceleration:
    projected = project(start, problem.constraints, problem.domain)
    scale = coordinate_scales(problem) if separable(problem) else np.ones(start.size)
    x = projected.w / scale
    state = Acceleration(
        x,
        x.copy(),
        x.copy(),
        scale,
        natural_reach(problem, projected.w),
        1.0,
        0.0,
        warm=projected.warm,
    )
    state.best, state.best_objective = projected.w.copy(), problem.objective.value(projected.w)
    state.width = first_width(problem, projected.w) / (NEAR if near else 1.0)
    state.curvature = first_curvature(problem, state)
    return state


def separable(problem: Problem) -> bool:
    """Whether the feasible set is a box, so that every coordinate may have its own unit."""
    if not isinstance(problem.domain, Everywhere | Box):
        return False
    constraints = problem.constraints
    if constraints.count == 0:
        return True
    return isinstance(constraints, LinearConstraints) and constraints.is_bounds


def column_sizes(problem: Problem) -> Vector:
    """The root mean square of every column of the data (the root of the diagonal, for a quadratic
    form); 0 where it is unknown.
    """
    objective: Any = problem.objective
    if isinstance(objective, Quadratic):
        diagonal = (
            objective.P.diagonal() if scipy.sparse.issparse(objective.P) else np.diag(objective.P)
        )
        return np.asarray(np.sqrt(np.maximum(0.0, diagonal)))
    if not isinstance(objective, EmpiricalRisk):
        return np.zeros(problem.dimension)
    squares = (
        objective.X.multiply(objective.X)
        if scipy.sparse.issparse(objective.X)
        else np.square(objective.X)
    )
    return np.sqrt(np.asarray(squares.mean(axis=0)).ravel() + objective.l2)


def coordinate_scales(problem: Problem) -> Vector:
    sizes = column_sizes(problem)
    known = sizes > 1e-6 * max(1e-300, float(sizes.max(initial=0.0)))
    return np.where(known, float(sizes.max(initial=1.0)) / np.where(known, sizes, 1.0), 1.0)


def natural_reach(problem: Problem, w: Vector) -> Vector:
    """How far each coordinate may plausibly be from an optimum: what changes predictions by three
    typical targets.
    """
    sizes = column_sizes(problem)
    objective: Any = problem.objective
    typical = 1.0
    if isinstance(objective, EmpiricalRisk):
        typical = max(
            float(np.sqrt(np.mean(np.square(objective.y)))),
            float(np.sqrt(np.mean(np.square(objective.X @ w)))),
        )
    elif isinstance(objective, Quadratic):
        known = sizes > 0.0
        typical = float(np.max(np.abs(objective.q[known]) / sizes[known], initial=0.0))
    known = sizes > 1e-9 * max(1e-300, float(sizes.max(initial=0.0)))
    reach = np.where(known, 3.0 * typical / np.where(known, sizes, 1.0), 0.0)
    far = 100.0 * max(float(reach.max(initial=0.0)), float(np.abs(w).max(initial=0.0)), 1.0)
    return np.where(
        known, reach, far
    )  # where the objective does not curve, nothing says how far an optimum may be


def first_width(problem: Problem, x: Vector) -> float:
    """Kinks are rounded over a width comparable to the loss itself at first; 0 for losses without
    kinks.
    """
    return max(1e-12, 0.5 * problem.objective.value(x)) if has_kinks(problem) else 0.0


def has_kinks(problem: Problem) -> bool:
    return (
        getattr(problem.objective, "loss", None) not in ("squared", "logistic", "huber")
        and problem.objective.examples > 1
    )


def first_curvature(problem: Problem, state: Acceleration) -> float:
    """A few power iterations on gradient differences."""
    rng = np.random.default_rng(0)
    _, base = evaluate(problem, state.x, state)
    direction = rng.standard_normal(state.x.size)
    curvature = 1e-12
    for _ in range(6):
        direction /= max(1e-300, float(np.linalg.norm(direction)))
        length = 1e-3 * (
            1e-3 * float(np.linalg.norm(state.reach / state.scale)) + float(np.linalg.norm(state.x))
            or 1.0
        )
        _, moved = evaluate(problem, state.x + length * direction, state)
        change = (moved - base) / length
        size = float(np.linalg.norm(change))
        if size == 0.0:
            break
        curvature, direction = max(curvature, size), change
    return curvature


def evaluate(problem: Problem, x: Vector, state: Acceleration) -> tuple[float, Vector]:
    """The rounded objective and its gradient."""
    out = np.empty(x.size)
    objective = problem.objective
    run = runnable(smooth_value_and_gradient, problem)
    state.passes += 1
    value = float(
        run(objective.record, objective.examples, objective.l2, state.width, state.scale * x, out)
    )
    return value, out * state.scale


def nearest(problem: Problem, x: Vector, state: Acceleration) -> Vector:
    """The projection, in units of `scale` (which differ only where the feasible set is a box)."""
    state.projections += 1
    if problem.constraints.count == 0:
        return np.asarray(problem.domain.project(state.scale * x)) / state.scale
    projected = project(state.scale * x, problem.constraints, problem.domain, warm=state.warm)
    state.warm = projected.warm
    return projected.w / state.scale


def step(problem: Problem, state: Acceleration, tolerance: float) -> bool:
    """One accelerated step, or none of it where the time for projections is over. Returns whether
    nothing is left to do.
    """
    before = replace(state)  # a step makes new arrays
    try:
        return full_step(problem, state, tolerance)
    except OutOfTimeError:
        vars(state).update(vars(before))
        raise


def full_step(problem: Problem, state: Acceleration, tolerance: float) -> bool:
    """Every few steps the bounds are renewed."""
    value, gradient = evaluate(problem, state.y, state)
    state.curvature *= 0.8
    while True:
        x = nearest(problem, state.y - gradient / state.curvature, state)
        move = x - state.y
        new_value, _ = evaluate(problem, x, state)
        model = value + float(gradient @ move) + 0.5 * state.curvature * float(move @ move)
        if new_value <= model + 1e-13 * abs(value) or state.curvature > 1e300:
            break
        state.curvature *= 2.0
    if float((state.y - x) @ (x - state.x)) > 0.0:  # the momentum points uphill: forget it
        state.momentum = 1.0
    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.momentum**2))
    state.y = x + (state.momentum - 1.0) / following * (x - state.x)
    state.x, state.momentum = x, following
    state.steps += 1
    return state.steps % CHECK_EVERY == 0 and renew_bounds(problem, state, tolerance)


def renew_bounds(problem: Problem, state: Acceleration, tolerance: float) -> bool:
    """Recompute the best objective and the lower bound; narrow the kinks when rounding dominates
    the gap.
    """
    w = state.scale * state.x
    objective = problem.objective.value(w)
    if objective < state.best_objective:
        state.best, state.best_objective = w, objective
    rounded, gradient = evaluate(problem, state.x, state)
    bound = max(lower_bound(problem, state, rounded, gradient, reach) for reach in LOOKAHEAD)
    state.lower_bound = bound  # an earlier one held only within a smaller reach
    travelled = float(np.linalg.norm(state.x - state.start))
    settled = travelled <= 1.05 * state.travelled
    state.travelled = travelled
    if settled and abs(state.gap) <= tolerance * scale_of(problem, state):
        return True
    progress = state.checkpoint - rounded
    state.checkpoint = rounded
    small = progress <= 0.02 * tolerance * scale_of(problem, state)
    rounding = objective - rounded
    if (
        state.width > 0.0
        and (small or rounded - bound < 0.5 * rounding)
        and rounding > 0.05 * tolerance * scale_of(problem, state)
    ):
        state.width /= NARROWING
        state.curvature *= NARROWING
        state.momentum, state.y, state.checkpoint, state.stalled = 1.0, state.x.copy(), math.inf, 0
        return False
    state.stalled = state.stalled + 1 if small else 0
    return state.stalled >= (PATIENCE if state.width == 0.0 else KINKED_PATIENCE)


def scale_of(problem: Problem, state: Acceleration) -> float:
    """What accuracy is relative to: the objective, or a little of what was gained where the
    objective is nearly 0.
    """
    return max(
        abs(state.best_objective),
        1e-4 * abs(problem.objective.value(state.scale * state.start) - state.best_objective),
        1e-300,
    )


def lower_bound(
    problem: Problem, state: Acceleration, value: float, gradient: Vector, reach: float
) -> float:
    """No feasible point within reach has a smaller objective.

    Convexity gives f(v) >= value + <gradient, v - x>; with p the projection of x - length *
    gradient, every feasible v has <gradient, v - p> >= <x - p, v - p> / length >= -sum_j |x_j -
    p_j| |v_j - p_j| / length.
    """
    length = reach / state.curvature
    p = nearest(problem, state.x - length * gradient, state)
    residual = np.abs(state.x - p) / length
    return value + float(gradient @ (p - state.x)) - float(residual @ radius(problem, state))


def radius(problem: Problem, state: Acceleration) -> Vector:
    """How far an optimum may be in each coordinate: ten times the way so far or its natural reach,
    within the domain.
    """
    travelled = 10.0 * np.abs(state.x - state.start) + state.reach / state.scale
    domain = problem.domain
    if isinstance(domain, Box):
        return np.asarray(
            np.minimum(travelled, np.subtract(domain.upper, domain.lower) / state.scale)
        )
    return np.asarray(np.minimum(travelled, domain.diameter(problem.dimension)))
