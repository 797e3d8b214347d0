"""An interior point for losses and rules that couple many parameters, with a proven gap.

The problem becomes an extended linear-quadratic program (`interior/`), with all rows or with those
that were found broken so far (a working set, `interior_rounds.py`). Mehrotra's predictor-corrector
(Mehrotra 1992) takes a few dozen steps, each with one factorisation. More rows can only raise the
optimum. So every dual value, also of a few rows, is a lower bound for the whole problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats, Indices, Vector, dense
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import Pace, Point, worst_excess
from lighttouch.interior.statement import objection_to
from lighttouch.interior.systems import DenseFactor
from lighttouch.kernels.numerics.dual_active_set import SOLVED
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.problem import Problem
from lighttouch.projections.costs import COSTS as PROJECTIONS
from lighttouch.projections.rows.active_set import WorkingSet
from lighttouch.projections.sets import feasible_set
from lighttouch.running import check_deadline, one_blas_thread, seconds_left
from lighttouch.solvers.base import EndingSolver
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.interior_rounds import (
    InteriorState,
    Round,
    RoundModel,
    model_of,
    round_of,
    uses_working_set,
)
from lighttouch.solvers.scales import TINY
from lighttouch.solvers.working_set import cuts_at
from lighttouch.validation import positive


@dataclass(frozen=True)
class InteriorPoint(EndingSolver[InteriorState]):
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

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> rows = lt.LinearConstraints([[1.0, 1.0, 1.0], [1.0, -1.0, 2.0]], [1.0, 0.0])
    >>> problem = lt.Problem(lt.Quadratic(np.eye(3), [-1.0, -2.0, -3.0]), rows)
    >>> lt.solve(problem, lt.InteriorPoint()).status.name
    'CONVERGED'
    """

    tolerance: float = COSTS.interior_claim
    near: bool = False

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        return objection_to(problem.objective)

    def init(self, problem: Problem, start: Vector) -> InteriorState:
        model, everything = self.model(problem), not self.uses_working_set(problem)
        first = model.rows.all if everything else model.rows.sample()
        cuts = cuts_at(model.curved, start, INTERIOR.joining_cuts)
        state = InteriorState(new_counters(), start.copy(), first, cuts)
        alone = everything and not model.curved
        state.last_goal = (
            INTERIOR.enough_at_once if alone else INTERIOR.enough_of_tolerance
        ) * self.tolerance
        if alone:
            state.goal = state.last_goal
        state.is_coupled = feasible_set(problem.constraints, problem.domain).is_coupled
        state.first_objective = problem.objective.value(start)
        if self.near:
            state.near, state.near_scale = start.copy(), abs(state.first_objective)
        elif not everything and model.rows.any_dense and model.is_quadratic:
            self._begin_free(problem, model, state)
        none = np.zeros(model.program.count)
        model.renew_bound(model.program, state, np.zeros(start.size), none)
        return state

    def model(self, problem: Problem) -> RoundModel:
        """What the rounds have in common; on a device another one (`lighttouch.torch`)."""
        return model_of(problem)

    def uses_working_set(self, problem: Problem) -> bool:
        return uses_working_set(problem)

    def _begin_free(self, problem: Problem, model: RoundModel, state: InteriorState) -> None:
        """Dense rows are too expensive to begin with any: those count that the best point without
        rows breaks, and the path begins there.
        """
        with one_blas_thread():
            state.near = model.without_rows()
        value = problem.objective.value(state.near)
        state.near_scale = abs(value) + abs(state.first_objective - value)
        state.rows = np.union1d(state.rows, model.rows.broken(state.near))

    def advance(
        self, problem: Problem, state: InteriorState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` steps; it returns early after a slice of time, which changes nothing."""
        with one_blas_thread(), np.errstate(all="ignore"):  # `finite` looks
            for _ in state.slice(steps):
                check_deadline()
                self._step(problem, state)
                state.counters[[ITERATION, CHECKS, SAMPLES]] += 1, problem.constraints.members, 1

    def _step(self, problem: Problem, state: InteriorState) -> None:
        model = self.model(problem)
        current = round_of(problem, model, state)
        state.point = current.next(state)
        state.pace.steps += 1
        if state.point is None:
            return self._give_up(state)
        at = state.point.times(current.units)
        state.x = at.x
        self._look(problem, model, current, state, at)
        enough = state.best_objective - self.tolerance * state.scale
        if state.ended and state.best is not None and state.proven < enough <= state.bound:
            self._repair(model, current, state, enough)  # near the optimum, but not proven

    def _look(
        self, problem: Problem, model: RoundModel, current: Round, state: InteriorState, at: Point
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
        model.renew_bound(program, state, at.x, at.s, self._worth_proving(state, value, scale))
        risen = state.bound > before + INTERIOR.little_rise * abs(before)
        if feasible and self._worth_repairing(state, at, value, scale):
            self._repair(model, current, state, value - state.goal * scale)
        gap = value - state.bound
        if state.pace.steps == 1 or at.products > max(state.goal, INTERIOR.again_gap) * scale:
            state.earlier = current.earlier(at)
        lack = left + at.products + scale * excess / size
        everything = state.rows.size == model.rows.count and not model.curved
        if feasible and everything and value < state.best_objective:
            self._keep(model, current, state, at, value)
        nearly = min(gap, at.products + left) if state.searching else gap
        reached = feasible and nearly <= state.goal * scale
        if not everything and (reached or self._early(model, state)):
            return self._grow(problem, model, current, state, at, value, feasible)
        if state.best is not None and state.gap <= state.last_goal * state.scale:
            state.ended = True
            return
        state.pace.is_better(lack, gap if feasible else math.inf, not feasible and risen)
        is_zero = at.products <= INTERIOR.negligible_products * abs(value)
        done = feasible and is_zero and bool(np.any(program.below | program.above))
        if done or state.pace.is_over:
            self._give_up(state)

    def _early(self, model: RoundModel, state: InteriorState) -> bool:
        """Whether to look for more dense rows before the round has reached its goal."""
        enough = state.pace.steps >= model.arithmetic.dense_steps
        is_near = state.near is not None and model.is_quadratic
        return state.searching and enough and is_near and model.rows.any_dense

    def _worth_proving(self, state: InteriorState, value: float, scale: float) -> float:
        """The likely bound from which a proof is tried: a much smaller gap, or the first one within
        the tolerance.
        """
        gap, enough = value - state.proven, self.tolerance * scale
        return value - max(INTERIOR.proof_again * gap, enough if gap > enough else 0.0)

    def _worth_repairing(self, state: InteriorState, at: Point, value: float, scale: float) -> bool:
        """Where complementarity says that the gap is closed, but the bound does not show it."""
        goal = min(max(state.goal, state.last_goal), self.tolerance) * scale
        due = at.products <= INTERIOR.repair_again * state.repaired_at
        if not (due and at.products <= goal and value - state.bound > goal):
            return False
        state.repaired_at = at.products
        return True

    def _repair(
        self, model: RoundModel, current: Round, state: InteriorState, enough: float
    ) -> None:
        """A better bound from slopes that balance; each takes about as long as a step."""
        assert state.point is not None
        repaired = current.repaired(state.point)
        while state.proven < enough and seconds_left() > current.took:
            better = next(repaired, None)
            if better is None:
                return
            model.renew_bound(current.program, state, better.x, better.s)

    def _keep(
        self, model: RoundModel, current: Round, state: InteriorState, at: Point, value: float
    ) -> None:
        state.best, state.best_objective = at.x, value
        taken, first = current.taken, model.program.count
        slopes = at.s[first : first + taken.ids.size]
        state.slopes, state.slope_rows = taken.multipliers(slopes)

    def _grow(
        self,
        problem: Problem,
        model: RoundModel,
        current: Round,
        state: InteriorState,
        at: Point,
        value: float,
        feasible: bool,
    ) -> None:
        """Rows that the point breaks join the working set; without any it is a candidate, if it
        keeps the rows of the working set.
        """
        enough, searching = state.last_goal, state.searching
        state.pace = Pace()
        beyond = model.rows.broken(at.x)
        broken = np.setdiff1d(beyond, state.rows)
        cuts = cuts_at(model.curved, at.x, INTERIOR.joining_cuts)
        known = broken.size + cuts.count == 0
        if known and feasible:
            if value < state.best_objective:
                self._keep(model, current, state, at, value)
            state.ended = state.goal <= enough or state.gap <= enough * state.scale
        elif self._feasible_will_do(problem, model, current, state, at, value, beyond, feasible):
            state.ended = True
            return
        elif not known:
            state.last_rounds += 0 if searching else 1
            if model.rows.any_dense and searching:
                assert state.point is not None
                state.rows = current.held(model, state.point)
                broken = np.union1d(broken, model.rows.next_dense(at.x, state.rows))
            state.rows = np.union1d(state.rows, broken)
            state.cuts = state.cuts.with_more(cuts)
            state.point, state.repaired_at = None, math.inf
        if broken.size + cuts.count <= INTERIOR.few_new * state.rows.size or not broken.size:
            state.goal = max(state.goal * INTERIOR.goal_shrink, enough)

    def _feasible_will_do(
        self,
        problem: Problem,
        model: RoundModel,
        current: Round,
        state: InteriorState,
        at: Point,
        value: float,
        broken: Indices,
        feasible: bool,
    ) -> bool:
        """Whether a feasible point near this one, which breaks these rows, is good enough, so that
        no further round is needed; `feasible`, if none of them is in the working set.
        """
        if value - state.bound > self.tolerance * max(abs(value), TINY):
            return False
        near = restored(model, current, at.x, broken)
        others = self._feasible_near(problem, model, state, at.x, broken) if feasible else ()
        for found in chain([] if near is None else [near], others):
            value = problem.objective.value(found)
            if value - state.bound <= self.tolerance * max(abs(value), TINY):
                if value < state.best_objective:
                    self._keep(model, current, state, at, value)
                    state.best = found
                return True
        return False

    def _feasible_near(
        self, problem: Problem, model: RoundModel, state: InteriorState, x: Vector, broken: Indices
    ) -> Iterator[Vector]:
        """Between the point and the start, where few rows are broken; and the nearest one after
        many rounds (rows are broken along directions in which the objective is flat).
        """
        few = broken.size <= INTERIOR.nearly_none * state.rows.size
        if few and model.rows.strictly_inside(state.start, broken):
            inside = self._towards_start(problem, state, x)
            if inside is not None:
                yield inside
        if state.last_rounds >= INTERIOR.last_rounds:
            yield feasible_set(problem.constraints, problem.domain).nearest(x).w

    def _towards_start(self, problem: Problem, state: InteriorState, x: Vector) -> Vector | None:
        """The point moved towards the start until it breaks no row, where the start breaks none:
        constraints are convex. None where that would be far.
        """
        if problem.constraints.members > INTERIOR.most_multipliers:
            return None
        here, there = problem.constraints.values(x), problem.constraints.values(state.start)
        broken = np.flatnonzero(here > 0.0)
        if there.max(initial=0.0) > 0.0 or np.any(there[broken] == 0.0):
            return None
        share = float((here[broken] / (here[broken] - there[broken])).max(initial=0.0))
        if share > INTERIOR.most_towards_start:
            return None
        share = min(1.0, share * (1.0 + COSTS.nearly_feasible))
        found = x + share * (state.start - x)
        inside = problem.domain.project(found)
        size = max(1.0, float(np.abs(found).max(initial=0.0)))
        apart = float(np.abs(inside - found).max(initial=0.0))
        return np.asarray(inside) if apart <= COSTS.nearly_feasible * size else None

    def _give_up(self, state: InteriorState) -> None:
        """Once more, in another basis and from farther inside; then the end."""
        content = state.best is not None and state.gap <= self.tolerance * state.scale
        if content or state.attempt + 1 >= len(INTERIOR.first_slacks):
            state.ended = True
            return
        small = (
            state.start.size <= INTERIOR.free_dense_dimension
        )  # where another basis can be tried
        state.attempt += 1 if small else 2
        state.point, state.near, state.earlier = None, None, None
        state.repaired_at = math.inf
        state.pace = Pace()

    def is_proven(self, state: InteriorState) -> bool:
        gap = state.best_objective - state.proven
        return state.best is not None and gap <= self.tolerance * state.scale

    def is_content(self, state: InteriorState) -> bool:
        """Whether no other solver need go on: the point is near the optimum, proven or not, and
        projections are dear.
        """
        near = state.best is not None and state.gap <= self.tolerance * state.scale
        return near and (state.is_coupled or super().is_content(state))

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


# -------------------------------------------------------------------------------------------------
# A point that breaks a few rows, moved to where it breaks none.
#
# The move is the shortest in the metric of Newton's equations at the point, in which rows that hold
# it are far away (Dikin's ellipsoid): it breaks few others, and they join until none is left.


def restored(model: RoundModel, current: Round, x: Vector, broken: Indices) -> Vector | None:
    """A point near x, which breaks these rows, that breaks none; None where no metric is at hand,
    rows are many, or the moves do not get there.
    """
    factor, most = current.factor, INTERIOR.most_restored * x.size
    if not isinstance(factor, DenseFactor) or not _is_metric(model, current, factor):
        return None
    move = _ShortestMove(current.units.columns, factor.lower)
    for _ in range(INTERIOR.restorations):
        if move.count + broken.size > most:
            return None
        check_deadline()
        taken = model.rows.take(broken)
        if taken.equal.any():
            return None
        rows = np.vstack([np.zeros((0, x.size)), *(dense(block) for block in taken.blocks)])
        change = move.with_rows(rows, rows @ x - taken.right, taken.ids)
        if change is None:
            return None
        found = np.clip(x + change, model.lower, model.upper)
        left = model.rows.broken(found)
        if not left.size:
            return np.asarray(found)
        broken = np.setdiff1d(left, move.ids)
    return None


def _is_metric(model: RoundModel, current: Round, factor: DenseFactor) -> bool:
    """Whether the factor, in this computer's memory, knows all that holds x but rows."""
    plain = current.units.basis is None and not model.curved and not factor.system.equal.size
    return plain and isinstance(factor.lower, np.ndarray)


class _ShortestMove:
    """The change of x, shortest in a metric H = L L' of x / columns, that makes up for excesses of
    rows, and a little more.
    """

    def __init__(self, columns: Vector, lower: Floats) -> None:
        self.columns, self.lower = columns, lower
        self.nearest = WorkingSet.empty(np.zeros((0, columns.size)))
        self.room = self.scale = 0.0

    @property
    def ids(self) -> Indices:
        return self.nearest.ids

    @property
    def count(self) -> int:
        return int(self.nearest.ids.size)

    def with_rows(self, rows: Floats, excess: Vector, ids: Indices) -> Vector | None:
        """The move once these rows have joined; None where there is none."""
        sizes = np.linalg.norm(rows, axis=1)
        turned = scipy.linalg.blas.dtrsm(1.0, self.lower, (rows * self.columns).T, lower=1).T
        lengths = np.linalg.norm(turned, axis=1)
        if not (ids.size and lengths.min() > 0.0):
            return None
        if not self.count:
            self.room = INTERIOR.restoring_room * float((excess / sizes).max())
        wanted = (excess + self.room * sizes) / lengths
        self.scale = self.scale or float(wanted.max())
        self.nearest.add(turned / lengths[:, None], ids, -wanted / self.scale)
        budget = PROJECTIONS.active_set_budget(self.count)
        if self.nearest.solve(PROJECTIONS.row_tolerance, budget)[0] != SOLVED:
            return None
        change = scipy.linalg.blas.dtrsv(self.lower, self.nearest.point(), lower=1, trans=1)
        return np.asarray(self.scale * self.columns * change)
