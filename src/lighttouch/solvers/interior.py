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
    Measured,
    Path,
    PathLimits,
    QuadraticProgram,
    System,
    advance,
    first_interior,
    proven_gap,
    slope_left,
    worst_excess,
)
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Status
from lighttouch.running.prepared import prepared
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS, EPSILON
from lighttouch.solvers.scales import TINY
from lighttouch.validation import positive

LIMITS = PathLimits(COSTS.interior_steps, COSTS.interior_patience, COSTS.interior_gap)


@dataclass
class InteriorState(SolverState):
    """Where the path stands, with its best point."""

    start: Vector
    path: Path | None = None
    ended: bool = False

    @property
    def w(self) -> Vector:
        return self.start if self.path is None else self.path.at.x

    @property
    def best(self) -> Measured | None:
        return None if self.path is None else self.path.best

    @property
    def gap(self) -> float:
        return math.inf if self.best is None else self.best.gap


@dataclass(frozen=True)
class Optimum:
    """What is wanted of a path: points that are exactly feasible first, then a small gap."""

    problem: Problem
    program: QuadraticProgram

    def measure(self, at: Interior) -> Measured | None:
        excess = worst_excess(self.program, at.x)
        if excess > COSTS.nearly_feasible * _size(at):
            return None
        gap = proven_gap(self.program, at, _radius(self.problem, self.program, at))
        return Measured(at, excess, gap, abs(self.problem.objective.value(at.x)))

    def feasible(self, point: Measured) -> bool:
        return point.excess <= COSTS.exactly_feasible * _size(point.at)

    def settled(self, best: Measured) -> bool:
        return math.isfinite(best.gap)

    def better(self, point: Measured, best: Measured) -> bool:
        if self.feasible(point) != self.feasible(best):
            return self.feasible(point)
        return point.gap < COSTS.interior_better * best.gap


@dataclass(frozen=True)
class InteriorPoint(BaseSolver[InteriorState]):
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
        return InteriorState(new_counters(), start.copy())

    def advance(
        self, problem: Problem, state: InteriorState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` steps; it returns early after a slice of time, which changes nothing."""
        until = time.perf_counter() + COSTS.chunk_seconds
        system = _system(problem)
        judge = Optimum(problem, system.program)
        for _ in range(steps):
            if state.ended:
                return
            state.path = state.path or Path(first_interior(system))
            state.ended = advance(system, state.path, judge, LIMITS)
            state.counters[[ITERATION, CHECKS, SAMPLES]] += 1, problem.constraints.members, 1
            if time.perf_counter() > until:
                return

    def finished(self, state: InteriorState) -> Status | None:
        if not state.ended:
            return None
        best = state.best
        proven = best is not None and best.gap <= self.tolerance * max(best.scale, TINY)
        return Status.CONVERGED if proven else Status.STALLED

    def solution(self, state: InteriorState) -> Vector:
        return state.w if state.best is None else state.best.at.x

    def notes(self, state: InteriorState) -> Sequence[str]:
        proven = (
            f", objective proven within {state.gap:.3g} of the optimum"
            if math.isfinite(state.gap)
            else ""
        )
        return (f"interior point (Mehrotra): {state.iteration} steps{proven}",)


def _size(at: Interior) -> float:
    return max(1.0, float(np.abs(at.x).max(initial=0.0)))


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
    typical = COSTS.flat_reach * _size(at)
    return np.where(near, np.minimum(diameter, typical), diameter)


def _system(problem: Problem) -> System:
    """Newton's equations, laid out once per problem."""
    return prepared(problem, "interior point", lambda: _new_system(problem))


def _new_system(problem: Problem) -> System:
    assert isinstance(problem.objective, Quadratic)
    unit = feasible_set(problem.constraints, problem.domain).unit
    right = np.concatenate([unit.right, unit.upper, -unit.lower])
    return System(QuadraticProgram.of(problem.objective.P, problem.objective.q, unit, right))
