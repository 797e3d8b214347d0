"""Quadratic objectives under linear rows: an interior point, where its factorisations are cheap.
Deterministic, and proven at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.domains import Box, Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.objectives import Quadratic
from lighttouch.problem import Problem
from lighttouch.projections.rows.interior_point import (
    Interior,
    QuadraticProgram,
    System,
    finite,
    first_interior,
    proven_gap,
    step,
    worst_excess,
)
from lighttouch.projections.sets import feasible_set

CHEAP = 1e9  # multiplications of a factorisation
STEPS = 150
PATIENCE = 6  # steps without a better point, once there is a good one
ENOUGH = 1e-9  # relative gap at which no further step is taken
CLAIMED = 1e-6  # ... and at which the point may be called optimal
EXACT = 64.0 * float(
    np.finfo(np.float64).eps
)  # excess over a row of length one, relative to the point, that projecting would not change
FEASIBLE = 1e-11  # ... and that is kept for want of a better point
# how far an optimum may be, in sizes of the point, where neither the domain nor the objective says
# so
FAR = 100.0

_systems: WeakKeyDictionary[Problem, System] = WeakKeyDictionary()


@dataclass
class InteriorRun:
    """Where the path stands, and the best feasible point on it."""

    at: Interior
    steps: int = 0
    best: Vector = field(default_factory=lambda: np.zeros(0))
    best_objective: float = math.inf
    gap: float = math.inf
    exact: bool = False
    waited: int = 0

    def copy(self) -> InteriorRun:
        return replace(self, at=self.at.copy(), best=self.best.copy())


def fits(problem: Problem) -> bool:
    """Whether the problem is a quadratic program with general rows (orders and boxes have better
    methods) and cheap to factor.
    """
    if (
        not isinstance(problem.objective, Quadratic)
        or not isinstance(problem.domain, Box | Everywhere)
        or problem.interpreted
    ):
        return False
    try:
        feasible = feasible_set(problem.constraints, problem.domain)
    except InfeasibleConstraintsError:
        return False  # the first projection will say so in words
    return feasible.is_general and feasible.factor_cost_with(problem.objective.P) <= CHEAP


def system_of(problem: Problem) -> System:
    """Prepared once and kept as long as the problem lives."""
    if problem not in _systems:
        assert isinstance(problem.objective, Quadratic)
        unit = feasible_set(problem.constraints, problem.domain).unit
        right = np.concatenate([unit.right, unit.upper, -unit.lower])
        _systems[problem] = System(
            QuadraticProgram.of(problem.objective.P, problem.objective.q, unit, right)
        )
    return _systems[problem]


def begin(problem: Problem) -> InteriorRun:
    return InteriorRun(first_interior(system_of(problem)))


def advance(problem: Problem, run: InteriorRun) -> bool:
    """One step; returns whether the path has ended: far enough, or no further progress."""
    system = system_of(problem)
    try:
        at = step(system, run.at)
    except RuntimeError:  # the factor is singular: as far as doubles go
        return True
    run.steps += 1
    if not finite(at):
        return True
    run.at = at
    run.waited += 1
    size = max(1.0, float(np.abs(at.x).max()))
    excess = worst_excess(system.program, at.x)
    if excess <= FEASIBLE * size:
        keep_if_better(
            problem,
            run,
            proven_gap(system.program, at, radius(problem, size)),
            excess <= EXACT * size,
        )
    enough = run.exact and run.gap <= ENOUGH * scale_of(run)
    return enough or run.steps >= STEPS or (math.isfinite(run.gap) and run.waited > PATIENCE)


def keep_if_better(problem: Problem, run: InteriorRun, gap: float, exact: bool) -> None:
    """Exact feasibility comes first, then the gap."""
    if (exact and not run.exact) or (exact == run.exact and gap < 0.9 * run.gap):
        run.best, run.best_objective = run.at.x.copy(), problem.objective.value(run.at.x)
        run.gap, run.exact, run.waited = gap, exact, 0


def proven(run: InteriorRun) -> bool:
    return run.gap <= CLAIMED * scale_of(run)


def scale_of(run: InteriorRun) -> float:
    return max(abs(run.best_objective), 1e-300) if math.isfinite(run.best_objective) else 0.0


def radius(problem: Problem, size: float) -> Vector:
    """How far an optimum may be from the point in each coordinate."""
    far = np.full(problem.dimension, FAR * size)
    if isinstance(problem.domain, Box):
        far = np.minimum(far, np.subtract(problem.domain.upper, problem.domain.lower))
    return far
