"""An interior point for losses and rules that couple many parameters, with a proven gap.

The problem becomes an extended linear-quadratic program (`interior/`), with all rows or with those
that were found broken so far (a working set). Mehrotra's predictor-corrector takes a few dozen
steps, each with one factorisation. Rows that are left out can only raise the optimum, so every
dual value is a bound for the whole problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from lighttouch.arrays import Indices, Vector
from lighttouch.domains import Simplex
from lighttouch.interior.basis import in_basis, orthonormal_basis
from lighttouch.interior.choice import choose_system
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import (
    Point,
    dual_bounds,
    falling_lift,
    first_point,
    point_near,
    repaired,
    step,
    worst_excess,
)
from lighttouch.interior.program import (
    Program,
    Units,
    bound_rows,
    scaled,
    with_rows,
)
from lighttouch.interior.statement import least_bends, objection_to, program_of
from lighttouch.interior.systems import System
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.problem import Problem
from lighttouch.projections.curved.cutting_planes import Part
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Status
from lighttouch.running import check_deadline, one_blas_thread, prepared
from lighttouch.solvers.base import BaseSolver, SolverState, claim_unit
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY
from lighttouch.solvers.working_set import Cuts, Rows, Taken, cuts_at, with_opposites_merged
from lighttouch.validation import positive


@dataclass
class InteriorState(SolverState):
    """The rows in use, where the path stands, and the best point and bound so far."""

    start: Vector
    rows: Indices  # of the working set
    cuts: Cuts
    point: Point | None = None  # in units of the round
    x: Vector | None = None  # the same point's parameters
    near: Vector | None = None  # where a round begins, with its objective
    near_scale: float = 0.0
    afresh: bool = False  # so many rows are new that it begins elsewhere
    repaired_at: float = math.inf  # the complementarity at which a bound was last repaired
    last_rounds: int = 0  # that began with rows still broken, at the last goal
    attempt: int = 0
    steps: int = 0  # of this round
    waited: int = 0
    goal: float = INTERIOR.first_goal
    last_goal: float = 0.0
    least_merit: float = math.inf  # of this round
    least_gap: float = math.inf  # of a point that is feasible in it
    bound: float = -math.inf  # likely: it says when to stop
    proven: float = -math.inf
    best: Vector | None = None
    best_objective: float = math.inf
    slopes: Vector = field(default_factory=lambda: np.zeros(0))  # of the rows, at the best point
    slope_rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ended: bool = False

    @property
    def w(self) -> Vector:
        if self.best is not None:
            return self.best
        return self.start if self.x is None else self.x

    @property
    def searching(self) -> bool:
        """Whether rounds are still about finding rows."""
        return self.goal > self.last_goal

    @property
    def gap(self) -> float:
        return self.best_objective - self.bound

    @property
    def scale(self) -> float:
        """What the gap is relative to: the objective, or what was gained where it is nearly 0."""
        return claim_unit(self.best_objective, self.first_objective)


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
    near : bool, default=False
        Whether the start is near the optimum, so that the path begins there.

    Examples
    --------
    >>> rows = lt.LinearConstraints([[1.0, 1.0, 1.0], [1.0, -1.0, 2.0]], [1.0, 0.0])
    >>> problem = lt.Problem(lt.Quadratic(np.eye(3), [-1.0, -2.0, -3.0]), rows)
    >>> lt.solve(problem, lt.InteriorPoint()).status.name
    'CONVERGED'
    """

    tolerance: float = COSTS.interior_claim
    near: bool = False
    stops_itself = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        return objection_to(problem.objective)

    def init(self, problem: Problem, start: Vector) -> InteriorState:
        model, everything = _model(problem), not _uses_working_set(problem)
        first = model.rows.all if everything else model.rows.sample()
        cuts = cuts_at(model.curved, start, INTERIOR.cuts_per_round)
        state = InteriorState(new_counters(), start.copy(), first, cuts)
        alone = everything and not model.curved
        state.last_goal = (INTERIOR.enough_at_once if alone else INTERIOR.enough) * self.tolerance
        if alone:
            state.goal = state.last_goal
        state.first_objective = problem.objective.value(start)
        if self.near:
            state.near, state.near_scale = start.copy(), abs(state.first_objective)
        none = np.zeros(model.program.count)
        model.renew_bound(model.program, state, np.zeros(start.size), none)
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
        model, current = _model(problem), _round(problem, state)
        state.point = current.next(state)
        state.steps += 1
        if state.point is None:
            return self._give_up(state)
        at = state.point.times(current.units)
        state.x = at.x
        self._look(problem, model, current, state, at)

    def _look(
        self, problem: Problem, model: _Model, current: _Round, state: InteriorState, at: Point
    ) -> None:
        """What the point is worth: a candidate, a reason for more rows, or the end."""
        program = current.program
        assert state.point is not None
        excess = worst_excess(program, program.forward(at.x) - program.centre)
        size = max(1.0, float(np.abs(at.x).max(initial=0.0)))
        feasible = excess <= COSTS.nearly_feasible * size
        value = problem.objective.value(at.x)
        left = current.left(state.point)
        scale = max(abs(value), state.scale if state.best is not None else TINY)
        before = state.bound
        model.renew_bound(program, state, at.x, at.s)
        risen = state.bound > before + INTERIOR.little_rise * abs(before)
        if feasible and self._worth_repairing(state, at, value, scale):
            for better in current.repaired(state.point):
                model.renew_bound(program, state, better.x, better.s)
                if value - state.proven <= state.goal * scale:
                    break
        gap = value - state.bound
        merit = left + at.products + scale * excess / size
        everything = state.rows.size == model.rows.count and not model.curved
        if feasible and everything and value < state.best_objective:
            self._keep(model, current, state, at, value)
        nearly = min(gap, at.products + left) if state.searching else gap
        if feasible and not everything and nearly <= state.goal * scale:
            return self._grow(problem, model, current, state, at, value)
        if state.best is not None and state.gap <= state.last_goal * state.scale:
            state.ended = True
            return
        is_better = merit < INTERIOR.better * state.least_merit or (not feasible and risen)
        if is_better:  # many small gains are one
            state.least_merit = min(merit, state.least_merit)
        if feasible and gap < INTERIOR.better * state.least_gap:
            is_better, state.least_gap = True, gap
        done = at.products == 0.0 and bool(np.any(program.below | program.above))
        state.waited = 0 if is_better else state.waited + 1
        if state.waited > INTERIOR.patience or state.steps >= INTERIOR.steps or done:
            self._give_up(state)

    def _worth_repairing(self, state: InteriorState, at: Point, value: float, scale: float) -> bool:
        """Where complementarity says that the gap is closed, but the bound does not show it."""
        goal = max(state.goal, state.last_goal) * scale
        due = at.products <= INTERIOR.repair_again * state.repaired_at
        if not (due and at.products <= goal and value - state.bound > goal):
            return False
        state.repaired_at = at.products
        return True

    def _keep(
        self, model: _Model, current: _Round, state: InteriorState, at: Point, value: float
    ) -> None:
        state.best, state.best_objective = at.x, value
        taken, first = current.taken, model.program.count
        slopes = at.s[first : first + taken.ids.size]
        state.slopes, state.slope_rows = taken.multipliers(slopes)

    def _grow(
        self,
        problem: Problem,
        model: _Model,
        current: _Round,
        state: InteriorState,
        at: Point,
        value: float,
    ) -> None:
        """Rows that the point breaks join the working set; without any it is a candidate."""
        enough, searching = state.last_goal, state.searching
        state.steps, state.waited = 0, 0
        state.least_merit = state.least_gap = math.inf
        broken = np.setdiff1d(model.rows.broken(at.x), state.rows)
        cuts = cuts_at(model.curved, at.x, INTERIOR.cuts_per_round)
        if broken.size + cuts.count == 0:
            if value < state.best_objective:
                self._keep(model, current, state, at, value)
            state.ended = state.goal <= enough or state.gap <= enough * state.scale
        elif state.last_rounds >= INTERIOR.last_rounds and self._nearest_will_do(
            problem, model, current, state, at
        ):
            state.ended = True
            return
        else:
            state.last_rounds += 0 if searching else 1
            many = broken.size > INTERIOR.many_new * state.rows.size
            state.near, state.near_scale, state.afresh = at.x, abs(value), many
            if model.rows.any_dense and searching:
                assert state.point is not None
                held = current.active(model, state.point)
                state.rows = np.union1d(held, model.rows.equalities())
            state.rows = np.concatenate([state.rows, broken])
            state.cuts = state.cuts.with_more(cuts)
            state.point, state.repaired_at = None, math.inf
        if broken.size + cuts.count <= INTERIOR.few_new * state.rows.size or not broken.size:
            state.goal = max(state.goal * INTERIOR.goal_shrink, enough)

    def _nearest_will_do(
        self, problem: Problem, model: _Model, current: _Round, state: InteriorState, at: Point
    ) -> bool:
        """Whether the nearest feasible point is good enough: where rows are broken along directions
        in which the objective is flat, no further round is needed.
        """
        nearest = feasible_set(problem.constraints, problem.domain).nearest(at.x).w
        value = problem.objective.value(nearest)
        if value - state.bound <= self.tolerance * max(abs(value), TINY):
            self._keep(model, current, state, at, value)
            state.best = nearest
            return True
        return False

    def _give_up(self, state: InteriorState) -> None:
        """Once more, in another basis and from farther inside; then the end."""
        content = state.best is not None and state.gap <= self.tolerance * state.scale
        if content or state.attempt + 1 >= len(INTERIOR.first_slacks):
            state.ended = True
            return
        small = state.start.size <= INTERIOR.small_dimension  # where another basis can be tried
        state.attempt += 1 if small else 2
        state.point, state.near = None, None
        state.repaired_at = math.inf
        state.steps, state.waited = 0, 0
        state.least_merit = state.least_gap = math.inf

    def finished(self, state: InteriorState) -> Status | None:
        if not state.ended:
            return None
        gap = state.best_objective - state.proven
        proven = state.best is not None and gap <= self.tolerance * state.scale
        return Status.CONVERGED if proven else Status.STALLED

    def solution(self, state: InteriorState) -> Vector:
        return state.w

    def lower_bound(self, state: InteriorState) -> float:
        return state.proven

    def multipliers(self, problem: Problem, state: InteriorState) -> Vector | None:
        if state.best is None or problem.constraints.members > INTERIOR.most_multipliers:
            return None
        found = np.zeros(problem.constraints.members)
        np.add.at(found, state.slope_rows, state.slopes)
        return found

    def accuracy(self, state: InteriorState) -> float:
        return self.tolerance * state.scale

    def notes(self, state: InteriorState) -> Sequence[str]:
        used = f", {state.rows.size:,} rows" if state.rows.size else ""
        return (f"interior point (Mehrotra): {state.iteration} steps{used}",)


@dataclass(frozen=True, eq=False)
class _Model:
    """What does not change from round to round."""

    program: Program  # the objective and the domain's bounds
    rows: Rows
    curved: Sequence[Part]
    lower: Vector
    upper: Vector
    bend: Vector

    def renew_bound(self, program: Program, state: InteriorState, x: Vector, s: Vector) -> None:
        proven, likely = dual_bounds(program, x, s, self.lower, self.upper, self.bend)
        state.proven, state.bound = max(state.proven, proven), max(state.bound, likely)


def _model(problem: Problem) -> _Model:
    return prepared(problem, "interior point", lambda: _new_model(problem))


def _new_model(problem: Problem) -> _Model:
    lower, upper = problem.domain.bounds(problem.dimension)
    lower = np.where(lower < -INTERIOR.no_bound, -np.inf, lower)
    upper = np.where(upper > INTERIOR.no_bound, np.inf, upper)
    fixed = lower == upper
    matrix, right = bound_rows(np.where(fixed, -np.inf, lower), upper)
    program = with_rows(program_of(problem.objective), (matrix,), right, fixed[matrix.indices])
    if isinstance(problem.domain, Simplex):
        total, ones = np.array([problem.domain.total]), np.ones((1, problem.dimension))
        program = with_rows(program, (ones,), total, np.ones(1, dtype=bool))
    rows = Rows(problem.constraints.parts, problem.dimension)
    curved = feasible_set(problem.constraints, problem.domain).curved
    return _Model(program, rows, curved, lower, upper, least_bends(problem.objective))


def _uses_working_set(problem: Problem) -> bool:
    """Whether all rows would cost much more than the factorisation itself."""
    rows, d = _model(problem).rows, problem.dimension
    factor = d**3 / 3.0 / INTERIOR.dense_rate
    if rows.products / INTERIOR.gram_rate > INTERIOR.rows_per_factor * max(factor, INTERIOR.quick):
        return True
    return rows.count > INTERIOR.rows_per_parameter * d and (
        rows.count / INTERIOR.row_rate > INTERIOR.quick
    )


@dataclass
class _Round:
    """The program of one working set, in units of its own, and its equations."""

    program: Program
    taken: Taken
    inner: Program
    units: Units
    system: System
    lift: float  # of the diagonal of the inner program

    @classmethod
    def of(cls, model: _Model, state: InteriorState) -> _Round:
        taken = model.rows.take(state.rows)
        if state.rows.size == model.rows.count:
            taken = with_opposites_merged(taken)
        program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
        cuts = state.cuts
        program = with_rows(program, (cuts.slopes,), cuts.right, np.zeros(cuts.count, dtype=bool))
        basis = orthonormal_basis(program) if state.attempt else None  # another way, once more
        turned = program if basis is None else in_basis(program, basis)
        inner, units = scaled(turned, INTERIOR.scaling_sweeps)
        units = replace(units, basis=basis)
        lift = 0.0
        if state.rows.size < model.rows.count or model.curved:
            lift = INTERIOR.searching_lift if state.searching else INTERIOR.last_lift
            inner = replace(inner, P=inner.P + lift * sparse.identity(program.dimension))
        return cls(program, taken, inner, units, choose_system(inner)[0], lift)

    def next(self, state: InteriorState) -> Point | None:
        """The point after the present one; None where the path cannot go on."""
        try:
            at = state.point or self._first(state)
            found = step(self.system, at, falling_lift(at))
        except RuntimeError:  # the factor is singular: as far as doubles go
            return None
        return found if found.finite else None

    def _first(self, state: InteriorState) -> Point:
        if state.near is None or state.afresh:
            far, again = INTERIOR.first_slacks[state.attempt], self.units.basis is not None
            return first_point(self.system, far, near=again)
        pairs = int(np.count_nonzero(self.inner.below) + np.count_nonzero(self.inner.above))
        gap = INTERIOR.again_gap if state.searching else INTERIOR.last_again_gap
        product = gap * state.near_scale * self.units.objective / max(1, pairs)
        return point_near(self.system, self.units.inner(state.near), float(product))

    def left(self, at: Point) -> float:
        """What stationarity lacks, as a change of the objective."""
        inner, x = self.inner, at.x
        rest = np.abs(inner.P @ x + inner.q + inner.backward(at.s))
        return float(rest.max() * max(1.0, np.abs(x).max())) / self.units.objective

    def active(self, model: _Model, at: Point) -> Indices:
        """The rows of the working set that hold the point: slope larger than slack."""
        first = model.program.count
        mine = slice(first, first + self.taken.ids.size)
        return self.taken.ids[at.low[mine] > INTERIOR.idle * at.n[mine]]

    def repaired(self, at: Point) -> Iterator[Point]:
        """The point with slopes that leave nothing over, in two ways, in units of the problem."""
        for settle in (False, True):
            try:
                yield repaired(self.system, at, self.lift, settle).times(self.units)
            except RuntimeError:  # singular
                continue


def _round(problem: Problem, state: InteriorState) -> _Round:
    """The round that the state is in. Only the latest is kept, with the problem: a state is arrays
    and numbers, and whoever resumes it makes the round again.
    """
    kept: dict[int, _Round] = prepared(problem, "latest round", dict)
    parts = (
        state.rows,
        state.cuts.slopes,
        state.cuts.right,
        np.array([state.searching, state.attempt]),
    )
    key = hash(tuple(part.tobytes() for part in parts))
    if key not in kept:
        kept.clear()
        kept[key] = _Round.of(_model(problem), state)
    return kept[key]


def interior_seconds(problem: Problem) -> float:
    """About how long a run takes, by its factorisations."""
    model = _model(problem)

    def ask() -> float:
        few = _uses_working_set(problem)
        taken = model.rows.take(model.rows.sample() if few else model.rows.all)
        program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
        steps = INTERIOR.searching_steps if few else INTERIOR.typical_steps
        return steps * choose_system(program)[1]

    return prepared(problem, "seconds of an interior point", ask)
