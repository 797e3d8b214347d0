"""Quadratic programs by a primal-dual interior point, with a proven gap at the end.

Mehrotra's predictor-corrector (1992), in `projections/rows/interior_point.py`, on the problem
itself: objective, rows and bounds in one system. One factorisation per step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.state.counters import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import Quadratic
from lighttouch.problem import Problem
from lighttouch.projections.rows.interior_point import (
    Interior,
    QuadraticProgram,
    System,
    finite,
    first_interior,
    proven_gap,
    slope_left,
    step,
    worst_excess,
)
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Status
from lighttouch.running.prepared import prepared
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS, EPSILON
from lighttouch.validation import positive


@dataclass
class InteriorState(SolverState):
    """Where the path stands, and the best feasible point on it."""

    start: Vector
    best: Vector
    at: Interior | None = None
    best_objective: float = math.inf
    gap: float = math.inf
    exact: bool = False
    waited: int = 0
    ended: bool = False

    @property
    def w(self) -> Vector:
        return self.start if self.at is None else self.at.x


@dataclass(frozen=True)
class InteriorPoint(BaseSolver):
    """Mehrotra's interior point for quadratic objectives under linear rows and bounds.

    It takes a few dozen steps, each with one sparse factorisation, and proves how far the point is
    from the optimum.

    Parameters
    ----------
    tolerance : float, default=1e-6
        Relative gap at which a point may be called optimal; steps go on to 1e-9 where they can.

    Examples
    --------
    >>> rows = lt.LinearConstraints([[1.0, 1.0, 1.0], [1.0, -1.0, 2.0]], [1.0, 0.0])
    >>> problem = lt.Problem(lt.Quadratic(np.eye(3), [-1.0, -2.0, -3.0]), rows)
    >>> lt.solve(problem, lt.InteriorPoint()).status.name
    'CONVERGED'
    """

    tolerance: float = COSTS.interior_claim
    stops_itself = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        if not isinstance(problem.objective, Quadratic):
            return "its objective must be a Quadratic; use Automatic for others"
        if not feasible_set(problem.constraints, problem.domain).is_linear:
            return (
                "its constraints must be linear and its domain a box or everything; use Automatic "
                "for others"
            )
        return None

    def init(self, problem: Problem, start: Vector) -> InteriorState:
        return InteriorState(new_counters(), start.copy(), start.copy())

    def advance(
        self, problem: Problem, state: InteriorState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` steps; it returns early after a slice of time, which changes nothing."""
        until = time.perf_counter() + COSTS.chunk_seconds
        for _ in range(steps):
            if state.ended:
                return
            self._step(problem, state)
            if time.perf_counter() > until:
                return

    def _step(self, problem: Problem, state: InteriorState) -> None:
        system = _system(problem)
        at = first_interior(system) if state.at is None else state.at
        state.counters[[ITERATION, CHECKS, SAMPLES]] += 1, problem.constraints.members, 1
        try:
            at = step(system, at)
        except RuntimeError:  # the factor is singular: as far as doubles go
            state.ended = True
            return
        if not finite(at):
            state.ended = True
            return
        state.at = at
        self._keep_if_better(problem, state, system)
        enough = state.exact and state.gap <= COSTS.interior_gap * abs(state.best_objective)
        tired = math.isfinite(state.gap) and state.waited > COSTS.interior_patience
        state.ended = enough or tired or state.iteration >= COSTS.interior_steps

    def _keep_if_better(self, problem: Problem, state: InteriorState, system: System) -> None:
        """Exact feasibility comes first, then the gap."""
        assert state.at is not None
        state.waited += 1
        size = max(1.0, float(np.abs(state.at.x).max()))
        excess = worst_excess(system.program, state.at.x)
        if excess > COSTS.nearly_feasible * size:
            return
        exact = excess <= COSTS.exactly_feasible * size
        gap = proven_gap(system.program, state.at, _radius(problem, system.program, state.at))
        better = exact == state.exact and gap < COSTS.interior_better * state.gap
        if better or (exact and not state.exact):
            state.best = state.at.x.copy()
            state.best_objective = problem.objective.value(state.best)
            state.gap, state.exact, state.waited = gap, exact, 0

    def finished(self, state: InteriorState) -> Status | None:
        if not state.ended:
            return None
        proven = state.gap <= self.tolerance * max(abs(state.best_objective), 1e-300)
        return Status.CONVERGED if proven else Status.STALLED

    def solution(self, state: InteriorState) -> Vector:
        return state.best if math.isfinite(state.best_objective) else state.w

    def notes(self, state: InteriorState) -> Sequence[str]:
        proven = (
            f", objective proven within {state.gap:.3g} of the optimum"
            if math.isfinite(state.gap)
            else ""
        )
        return (f"interior point (Mehrotra): {state.iteration} steps{proven}",)


def _radius(problem: Problem, program: QuadraticProgram, at: Interior) -> Vector:
    """How far a feasible point may be in each coordinate, for the terms that stationarity lacks.

    That is what the bounds say. Where they say nothing, a term that is 0 but for rounding counts as
    rounding; any other makes the gap infinite, because nothing is proven then.
    """
    size = abs(program.P) @ np.abs(at.x) + np.abs(program.q) + abs(program.backward) @ at.weights
    size = np.asarray(size + abs(program.tie_backward) @ np.abs(at.tie_weights))
    rounding = COSTS.linear_rounding * EPSILON * (size + float(size.max(initial=0.0)))
    diameter = feasible_set(problem.constraints, problem.domain).diameter()
    near = np.abs(slope_left(program, at)) <= rounding
    typical = COSTS.flat_reach * max(1.0, float(np.abs(at.x).max(initial=0.0)))
    return np.where(near, np.minimum(diameter, typical), diameter)


def _system(problem: Problem) -> System:
    """Newton's equations, laid out once per problem."""
    return prepared(problem, "interior point", lambda: _new_system(problem))


def _new_system(problem: Problem) -> System:
    assert isinstance(problem.objective, Quadratic)
    unit = feasible_set(problem.constraints, problem.domain).unit
    right = np.concatenate([unit.right, unit.upper, -unit.lower])
    return System(QuadraticProgram.of(problem.objective.P, problem.objective.q, unit, right))
