"""Accelerated projected gradient steps on a rounded objective, with a proven bound on what is left to gain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lighttouch.interfaces import Vector
from lighttouch.kernels.objectives import smooth_value_and_gradient
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.solvers.state import runnable

CHECK_EVERY = 10
NARROWING = 4.0
LOOKAHEAD = (1.0, 10.0, 100.0, 1000.0)


@dataclass
class Acceleration:
    """The state of the method: feasible point x, search point y, curvature estimate, kink width and the best bounds so far."""

    x: Vector
    y: Vector
    start: Vector
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
    warm: Any = None

    def copy(self) -> Acceleration:
        return replace(self, x=self.x.copy(), y=self.y.copy(), start=self.start.copy(), best=self.best.copy())

    @property
    def gap(self) -> float:
        """How much can still be gained, at most."""
        return self.best_objective - self.lower_bound


def begin(problem: Problem, start: Vector) -> Acceleration:
    projected = project(start, problem.constraints, problem.domain)
    state = Acceleration(projected.w.copy(), projected.w.copy(), projected.w.copy(), 1.0, 0.0, warm=projected.warm)
    state.best, state.best_objective = state.x.copy(), problem.objective.value(state.x)
    state.width = first_width(problem, state.x)
    state.curvature = first_curvature(problem, state)
    return state


def first_width(problem: Problem, x: Vector) -> float:
    """Kinks are rounded over a width comparable to the loss itself at first; 0 for losses without kinks."""
    if getattr(problem.objective, "loss", None) in ("squared", "logistic", "huber") or problem.objective.examples == 1:
        return 0.0
    return max(1e-12, 0.5 * problem.objective.value(x))


def first_curvature(problem: Problem, state: Acceleration) -> float:
    """A few power iterations on gradient differences."""
    rng = np.random.default_rng(0)
    _, base = evaluate(problem, state.x, state)
    direction = rng.standard_normal(state.x.size)
    curvature = 1e-12
    for _ in range(6):
        direction /= max(1e-300, float(np.linalg.norm(direction)))
        length = 1e-3 * (1.0 + float(np.linalg.norm(state.x)))
        _, moved = evaluate(problem, state.x + length * direction, state)
        change = (moved - base) / length
        size = float(np.linalg.norm(change))
        if size == 0.0:
            break
        curvature, direction = max(curvature, size), change
    return curvature


def evaluate(problem: Problem, w: Vector, state: Acceleration) -> tuple[float, Vector]:
    """The rounded objective and its gradient."""
    out = np.empty(w.size)
    objective = problem.objective
    run = runnable(smooth_value_and_gradient, problem)
    state.passes += 1
    return float(run(objective.record, objective.examples, objective.l2, state.width, np.ascontiguousarray(w), out)), out


def nearest(problem: Problem, w: Vector, state: Acceleration) -> Vector:
    state.projections += 1
    if problem.constraints.count == 0:
        return np.asarray(problem.domain.project(w))
    projected = project(w, problem.constraints, problem.domain, warm=state.warm)
    state.warm = projected.warm
    return projected.w


def step(problem: Problem, state: Acceleration, tolerance: float) -> bool:
    """One accelerated step; every few steps the bounds are renewed. Returns whether nothing is left to do."""
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
    """Recompute the best objective and the lower bound; narrow the kinks when rounding dominates the gap."""
    objective = problem.objective.value(state.x)
    if objective < state.best_objective:
        state.best, state.best_objective = state.x.copy(), objective
    rounded, gradient = evaluate(problem, state.x, state)
    bound = max(lower_bound(problem, state, rounded, gradient, reach) for reach in LOOKAHEAD)
    state.lower_bound = max(state.lower_bound, bound)
    if state.gap <= tolerance * scale_of(problem, state):
        return True
    progress = state.checkpoint - rounded
    state.checkpoint = rounded
    small = progress <= 0.02 * tolerance * scale_of(problem, state)
    rounding = objective - rounded
    if state.width > 0.0 and (small or rounded - bound < 0.5 * rounding) and rounding > 0.05 * tolerance * scale_of(problem, state):
        state.width /= NARROWING
        state.curvature *= NARROWING
        state.momentum, state.y, state.checkpoint, state.stalled = 1.0, state.x.copy(), math.inf, 0
        return False
    state.stalled = state.stalled + 1 if small else 0
    return state.stalled >= 20


def scale_of(problem: Problem, state: Acceleration) -> float:
    """What accuracy is relative to: the objective, or a little of what was gained where the objective is nearly 0."""
    return max(abs(state.best_objective), 1e-4 * abs(problem.objective.value(state.start) - state.best_objective), 1e-300)


def lower_bound(problem: Problem, state: Acceleration, value: float, gradient: Vector, reach: float) -> float:
    """No feasible point within the search radius has a smaller objective.

    Convexity gives f(v) >= value + <gradient, v - x>; with p the projection of x - gradient * length, every feasible v has
    <gradient, v - p> >= -||x - p|| ||v - p|| / length.
    """
    length = reach / state.curvature
    p = nearest(problem, state.x - length * gradient, state)
    residual = float(np.linalg.norm(state.x - p)) / length
    return value + float(gradient @ (p - state.x)) - residual * radius(problem, state)


def radius(problem: Problem, state: Acceleration) -> float:
    """How far an optimum may be: ten times the way so far, and no more than the domain is wide."""
    travelled = float(np.linalg.norm(state.x - state.start))
    return min(problem.domain.diameter(problem.dimension), 10.0 * travelled + 1e-6 * (1.0 + float(np.linalg.norm(state.x))))
