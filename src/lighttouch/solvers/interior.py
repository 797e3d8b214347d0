"""An interior point for losses and rules that couple many parameters, with a proven gap.

The problem becomes an extended linear-quadratic program (`interior/`), with all rows or with those
that were found broken so far (a working set). Mehrotra's predictor-corrector takes a few dozen
steps, each with one factorisation. Rows that are left out can only raise the optimum, so every
dual value is a bound for the whole problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Indices, Vector
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import Point, dual_value, first_point, repaired, step, worst_excess
from lighttouch.interior.program import (
    Program,
    Units,
    bound_rows,
    scaled,
    with_rows,
)
from lighttouch.interior.statement import least_bends, objection_to, program_of
from lighttouch.interior.systems import SparseSystem, System, choose_system, dense_seconds
from lighttouch.interior.working_set import Rows, rows_of
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.problem import Problem
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Status
from lighttouch.running import check_deadline, one_blas_thread, prepared
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY
from lighttouch.validation import positive


@dataclass
class InteriorState(SolverState):
    """The rows in use, where the path stands, and the best point and bound so far."""

    start: Vector
    rows: Indices  # of the working set
    point: Point | None = None  # in units of the problem
    attempt: int = 0
    steps: int = 0  # of this round
    waited: int = 0
    goal: float = INTERIOR.first_goal
    least_merit: float = math.inf  # of this round
    bound: float = -math.inf
    best: Vector | None = None
    best_objective: float = math.inf
    first_objective: float = math.inf
    slopes: Vector = field(default_factory=lambda: np.zeros(0))  # of the rows, at the best point
    slope_rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ended: bool = False
    round: Any = field(default=None, init=False, repr=False)  # derived: `_Round`

    @property
    def w(self) -> Vector:
        if self.best is not None:
            return self.best
        return self.start if self.point is None else self.point.x

    @property
    def gap(self) -> float:
        return self.best_objective - self.bound

    @property
    def scale(self) -> float:
        """What the gap is relative to: the objective, or what was gained where it is nearly 0."""
        gained = abs(self.first_objective - self.best_objective)
        little = INTERIOR.little_objective * gained if math.isfinite(gained) else 0.0
        return max(abs(self.best_objective), little, TINY)


@dataclass(frozen=True)
class InteriorPoint(BaseSolver[InteriorState]):
    """Mehrotra's interior point for every loss of `EmpiricalRisk` and quadratics, under linear
    rows and bounds.

    It takes a few dozen steps, each with one factorisation, and proves how far the point is from
    the optimum. Of many rows only those are used that some point on the way has broken.

    Parameters
    ----------
    tolerance : float, default=1e-6
        Relative gap at which a point may be called optimal.

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
        objection = objection_to(problem.objective)
        if objection is None and not feasible_set(problem.constraints, problem.domain).is_linear:
            objection = (
                "its constraints must be linear and its domain a box or everything; use Automatic "
                "for others"
            )
        return objection

    def init(self, problem: Problem, start: Vector) -> InteriorState:
        rows = _model(problem).rows
        first = np.flatnonzero(rows.equal) if _uses_working_set(problem) else np.arange(rows.count)
        state = InteriorState(new_counters(), start.copy(), first)
        if not _uses_working_set(problem):
            state.goal = INTERIOR.enough * self.tolerance
        state.first_objective = problem.objective.value(start)
        none = np.zeros(_model(problem).program.count)
        state.bound = _model(problem).bound(_model(problem).program, np.zeros(start.size), none)
        return state

    def advance(
        self, problem: Problem, state: InteriorState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` steps; it returns early after a slice of time, which changes nothing."""
        until = time.perf_counter() + COSTS.chunk_seconds
        with one_blas_thread(), np.errstate(all="ignore"):  # `finite` looks
            for _ in range(steps):
                if state.ended:
                    return
                check_deadline()
                self._step(problem, state)
                state.counters[[ITERATION, CHECKS, SAMPLES]] += 1, problem.constraints.members, 1
                if time.perf_counter() > until:
                    return

    def _step(self, problem: Problem, state: InteriorState) -> None:
        model = _model(problem)
        if state.round is None:
            state.round = _Round.of(model, state)
        found = state.round.step(state.point, state.attempt)
        state.steps += 1
        if found is None:
            return self._give_up(state)
        state.point = found
        self._look(problem, model, state, found)

    def _look(self, problem: Problem, model: _Model, state: InteriorState, at: Point) -> None:
        """What the point is worth: a candidate, a reason for more rows, or the end."""
        program = state.round.program
        excess = worst_excess(program, program.forward(at.x) - program.centre)
        size = max(1.0, float(np.abs(at.x).max(initial=0.0)))
        feasible = excess <= COSTS.nearly_feasible * size
        value = problem.objective.value(at.x)
        scale = max(abs(value), state.scale if state.best is not None else TINY)
        before = state.bound
        state.bound = max(state.bound, model.bound(program, at.x, at.s))
        risen = state.bound > before + INTERIOR.little_rise * abs(before)
        if feasible and self._worth_repairing(state, at, value, scale):
            better = state.round.repaired()
            state.bound = max(state.bound, model.bound(program, better.x, better.s))
        gap = value - state.bound
        left = float(np.abs(program.P @ at.x + program.q + program.backward(at.s)).max())
        merit = left * size + at.products + scale * excess / size
        everything = state.rows.size == model.rows.count
        if feasible and everything and value < state.best_objective:
            self._keep(state, model, at, value)
        if feasible and not everything and gap <= state.goal * scale:
            return self._grow(problem, model, state, at, value)
        if state.best is not None and state.gap <= INTERIOR.enough * self.tolerance * state.scale:
            state.ended = True
            return
        is_better = merit < INTERIOR.better * state.least_merit or not feasible and risen
        state.least_merit = min(merit, state.least_merit)
        products = at.products
        state.waited = 0 if is_better else state.waited + 1
        if state.waited > INTERIOR.patience or state.steps >= INTERIOR.steps or products == 0.0:
            self._give_up(state)

    def _worth_repairing(
        self, state: InteriorState, at: Point, value: float, scale: float
    ) -> bool:
        """Where complementarity says that the gap is closed, but the bound does not show it."""
        enough = INTERIOR.enough * self.tolerance * scale
        goal = max(state.goal * scale, enough)
        return at.products <= goal and value - state.bound > goal

    def _keep(self, state: InteriorState, model: _Model, at: Point, value: float) -> None:
        state.best, state.best_objective = at.x, value
        state.slopes, state.slope_rows = at.s[at.s.size - state.rows.size :], state.rows

    def _grow(
        self, problem: Problem, model: _Model, state: InteriorState, at: Point, value: float
    ) -> None:
        """Rows that the point breaks join the working set; without any it is a candidate."""
        most = max(INTERIOR.least_batch, int(INTERIOR.batch_share * problem.dimension))
        broken = model.rows.broken(at.x, state.rows, most)
        if broken.size == 0:
            if value < state.best_objective:
                self._keep(state, model, at, value)
            if state.gap <= INTERIOR.enough * self.tolerance * state.scale:
                state.ended = True
            state.goal *= INTERIOR.goal_shrink
            state.steps, state.waited = 0, 0
            return
        state.point = _joined(at, broken.size, model.rows, broken)
        state.rows = np.concatenate([state.rows, broken])
        state.round, state.steps, state.waited, state.least_merit = None, 0, 0, math.inf
        state.goal = max(state.goal * INTERIOR.goal_shrink, INTERIOR.enough * self.tolerance)

    def _give_up(self, state: InteriorState) -> None:
        """Once more from farther inside; then the end."""
        content = state.best is not None and state.gap <= self.tolerance * state.scale
        if content or state.attempt + 1 >= len(INTERIOR.first_slacks):
            state.ended = True
            return
        state.attempt += 1
        state.point, state.round = None, None
        state.steps, state.waited, state.least_merit = 0, 0, math.inf

    def finished(self, state: InteriorState) -> Status | None:
        if not state.ended:
            return None
        proven = state.best is not None and state.gap <= self.tolerance * state.scale
        return Status.CONVERGED if proven else Status.STALLED

    def solution(self, state: InteriorState) -> Vector:
        return state.w

    def lower_bound(self, state: InteriorState) -> float:
        return state.bound

    def notes(self, state: InteriorState) -> Sequence[str]:
        used = f", {state.rows.size:,} rows" if state.rows.size else ""
        proven = (
            f", objective proven within {max(0.0, state.gap):.3g} of the optimum"
            if math.isfinite(state.gap)
            else ""
        )
        return (f"interior point (Mehrotra): {state.iteration} steps{used}{proven}",)


@dataclass(frozen=True, eq=False)
class _Model:
    """What does not change from round to round."""

    program: Program  # the objective and the bounds
    rows: Rows
    lower: Vector
    upper: Vector
    bend: Vector

    def bound(self, program: Program, x: Vector, s: Vector) -> float:
        return dual_value(program, x, s, self.lower, self.upper, self.bend)


def _model(problem: Problem) -> _Model:
    return prepared(problem, "interior point", lambda: _new_model(problem))


def _new_model(problem: Problem) -> _Model:
    lower, upper = problem.domain.bounds(problem.dimension)
    lower = np.where(lower < -INTERIOR.no_bound, -np.inf, lower)
    upper = np.where(upper > INTERIOR.no_bound, np.inf, upper)
    program = program_of(problem.objective)
    fixed = lower == upper
    matrix, right = bound_rows(np.where(fixed, -np.inf, lower), upper)
    if right.size:
        equal = fixed[matrix.indices]
        program = with_rows(program, matrix, right, equal)
    return _Model(program, rows_of(problem), lower, upper, least_bends(problem.objective))


def _uses_working_set(problem: Problem) -> bool:
    """Whether all rows would cost more than the factorisation itself."""
    model = _model(problem)
    count, d = model.rows.count, problem.dimension
    if count <= INTERIOR.fewest_rows:
        return False
    matrix = model.rows.matrix
    squares = (
        float(np.square(np.diff(matrix.indptr), dtype=np.float64).sum())
        if sparse.issparse(matrix)
        else float(matrix.size) * d
    )
    return squares > INTERIOR.rows_per_factor * d**3 / 3.0


@dataclass
class _Round:
    """The program of one working set, in units of its own, and its equations."""

    program: Program
    inner: Program
    units: Units
    system: System
    point: Point | None = None  # in these units

    @classmethod
    def of(cls, model: _Model, state: InteriorState) -> _Round:
        program = model.program
        if state.rows.size:
            program = with_rows(program, *model.rows.take(state.rows))
        inner, units = scaled(program, INTERIOR.scaling_sweeps)
        return cls(program, inner, units, choose_system(inner))

    def step(self, at: Point | None, attempt: int) -> Point | None:
        """The next point, in units of the problem; None where the path cannot go on."""
        if self.point is None:
            self.point = (
                first_point(self.system, INTERIOR.first_slacks[attempt])
                if at is None
                else at.divided_by(self.units)
            )
        try:
            found = step(self.system, self.point)
        except RuntimeError:  # the factor is singular: as far as doubles go
            return None
        if not found.finite:
            return None
        self.point = found
        return found.times(self.units)

    def repaired(self) -> Point:
        """The last point with slopes that leave nothing over."""
        assert self.point is not None
        try:
            return repaired(self.system, self.point).times(self.units)
        except RuntimeError:
            return self.point.times(self.units)


def _joined(at: Point, count: int, rows: Rows, new: Indices) -> Point | None:
    """The point with new rows, or None to begin afresh."""
    return None


def seconds_per_step(problem: Problem) -> float:
    """About how long a factorisation takes, with the rows that the first round uses."""
    model = _model(problem)

    def ask() -> float:
        program = model.program
        if not _uses_working_set(problem) and model.rows.count:
            everything = np.arange(model.rows.count)
            program = with_rows(program, *model.rows.take(everything))
        system = choose_system(program)
        if isinstance(system, SparseSystem):
            return system.seconds
        return dense_seconds(program.P, program.blocks)

    return prepared(problem, "seconds of an interior point's step", ask)
