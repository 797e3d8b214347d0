"""The rounds of the interior point: the program of one working set of rows after another.

A round makes the program of its rows, brings it into units of its own, chooses how to factor
Newton's equations, and begins where the round before it has left off. Adding the rows that the last
point breaks is a cutting-plane method (Kelley 1960); each round is a path of Mehrotra's (1992).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.cholesky import Cholesky
from lighttouch.domains import Simplex
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import (
    Pace,
    Point,
    dual_bounds,
    falling_lift,
    first_point,
    point_again,
    point_near,
    repaired,
    step,
)
from lighttouch.interior.program import (
    Program,
    Units,
    bound_rows,
    in_basis,
    orthonormal_basis,
    scaled,
    square_in_units,
    with_rows,
    with_rows_scaled,
)
from lighttouch.interior.statement import program_of
from lighttouch.interior.systems import Factor, System, choose_system, expected_seconds
from lighttouch.problem import Problem
from lighttouch.projections.cutting_planes import Part
from lighttouch.projections.sets import feasible_set
from lighttouch.running import OutOfTimeError, prepared, seconds_left
from lighttouch.solvers.base import EndingState, claim_unit
from lighttouch.solvers.scales import least_bends
from lighttouch.solvers.working_set import Cuts, ProblemRows, Taken, with_opposites_merged


@dataclass
class Earlier:
    """A point on the path of a round, in units of the problem, and the rows and cuts it knows."""

    point: Point
    rows: Indices
    cuts: int


@dataclass
class InteriorState(EndingState):
    """The rows in use, where the path stands, and the best point and bound so far."""

    start: Vector
    rows: Indices  # of the working set, ascending
    cuts: Cuts
    point: Point | None = None  # in units of the round
    x: Vector | None = None  # the same point's parameters
    near: Vector | None = None  # where a round begins, with its objective
    near_scale: float = 0.0
    earlier: Earlier | None = None  # a point of this round or the one before to go on from
    repaired_at: float = math.inf  # the complementarity at which a bound was last repaired
    last_rounds: int = 0  # that began with rows still broken, at the last goal
    attempt: int = 0
    pace: Pace = field(default_factory=Pace)  # of this round
    goal: float = 1.0  # relative gap of this round, before more rows are looked for
    last_goal: float = 0.0
    bound: float = -math.inf  # likely: it says when to stop
    proven: float = -math.inf
    best: Vector | None = None
    best_objective: float = math.inf
    slopes: Vector = field(default_factory=lambda: np.zeros(0))  # of the rows, at the best point
    slope_rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    is_coupled: bool = False  # what the rows do to the parameters

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
    def lift(self) -> float:
        """Added to the diagonal of P where rows are left out; it falls with the goal."""
        if not self.searching:
            return COSTS.last_lift
        return max(COSTS.last_lift, COSTS.searching_lift * math.sqrt(self.goal))

    @property
    def gap(self) -> float:
        return self.best_objective - self.bound

    @property
    def scale(self) -> float:
        """What the gap is relative to: the objective, or what was gained where it is nearly 0."""
        return claim_unit(self.best_objective, self.first_objective)


class Arithmetic:
    """Where the heavy parts of a round are computed: here, by NumPy and SciPy."""

    margin: float = 0.0  # by which inequalities are tightened, in scaled units
    dense_steps: int = COSTS.dense_steps  # of a round of dense rows, while they are looked for

    def merged(self, taken: Taken) -> Taken:
        return with_opposites_merged(taken)

    def scaled(self, program: Program) -> tuple[Program, Units]:
        return scaled(program, COSTS.scaling_sweeps)

    def with_rows_scaled(
        self, program: Program, columns: Vector, P: Matrix
    ) -> tuple[Program, Units]:
        return with_rows_scaled(program, columns, P)

    def basis(self, program: Program) -> Floats | None:
        return orthonormal_basis(program)

    def lifted(self, P: Matrix, lift: float) -> Matrix:
        if sparse.issparse(P):
            return P + lift * sparse.identity(P.shape[0], format="csr")
        lifted = np.array(P)
        lifted.flat[:: P.shape[0] + 1] += lift
        return lifted

    def system(self, program: Program) -> tuple[System, float]:
        """Newton's equations, and about how many seconds a factor of them takes."""
        return choose_system(program)


HERE = Arithmetic()


@dataclass(frozen=True, eq=False)
class RoundModel:
    """What does not change from round to round."""

    program: Program  # the objective and the domain's bounds
    rows: ProblemRows
    curved: Sequence[Part]
    lower: Vector
    upper: Vector
    bend: Vector
    arithmetic: Arithmetic = HERE

    @cached_property
    def columns(self) -> Vector:
        """Units of the parameters for every working set, from the rows that the first begins
        with.
        """
        taken = self.rows.take(self.rows.sample())
        program = with_rows(self.program, taken.blocks, taken.right, taken.equal)
        return self.arithmetic.scaled(program)[1].columns

    @cached_property
    def P(self) -> Matrix:
        """Of the program, in these units."""
        return square_in_units(self.program.P, self.columns)

    @property
    def is_quadratic(self) -> bool:
        """Whether the objective is all in P and q."""
        program = self.program
        penalised = program.is_smooth | (program.roundness > 0.0) | (program.below & program.above)
        return not penalised.any()

    def without_rows(self) -> Vector:
        """The best point of a quadratic objective, moved into the bounds."""
        inner, units = self.arithmetic.with_rows_scaled(self.program, self.columns, self.P)
        none = np.full(inner.count, COSTS.immovable)
        factor = self.arithmetic.system(inner)[0].factor(none, COSTS.lift)
        x, _ = factor.solve(-inner.q, inner.centre)
        return np.clip(units.parameters(x), self.lower, self.upper)

    def renew_bound(
        self,
        program: Program,
        state: InteriorState,
        x: Vector,
        s: Vector,
        worth: float = -math.inf,
    ) -> None:
        x = self._balanced(program, x, s)
        proven, likely = dual_bounds(program, x, s, self.lower, self.upper, self.bend, worth)
        state.proven, state.bound = max(state.proven, proven), max(state.bound, likely)

    def _balanced(self, program: Program, x: Vector, s: Vector) -> Vector:
        """The x of the best bound for these slopes, P x + q + B's = 0, where P is dense and
        regular; elsewhere the one that is given.
        """
        if self._factor is None:
            return x
        rest = self.program.P @ x + program.q + program.backward(s)
        return np.asarray(x - self._factor.solved(rest))

    @cached_property
    def _factor(self) -> Cholesky | None:
        """Of a quadratic objective's P."""
        P = self.program.P
        if sparse.issparse(P) or not self.is_quadratic:
            return None
        factor = Cholesky.of(np.array(P))
        if factor is None:
            return None
        squares = np.square(factor.lower.diagonal())
        return None if squares.min() <= COSTS.dependent * squares.max() else factor


def model_of(problem: Problem) -> RoundModel:
    return prepared(problem, "interior point", lambda: _new_model(problem))


def _new_model(problem: Problem) -> RoundModel:
    lower, upper = problem.domain.bounds(problem.dimension)
    lower = np.where(lower < -COSTS.no_bound, -np.inf, lower)
    upper = np.where(upper > COSTS.no_bound, np.inf, upper)
    fixed = lower == upper
    matrix, right = bound_rows(np.where(fixed, -np.inf, lower), upper)
    program = with_rows(program_of(problem.objective), (matrix,), right, fixed[matrix.indices])
    if isinstance(problem.domain, Simplex):
        total, ones = np.array([problem.domain.total]), np.ones((1, problem.dimension))
        program = with_rows(program, (ones,), total, np.ones(1, dtype=bool))
    rows = ProblemRows(problem.constraints.parts, problem.dimension)
    curved = feasible_set(problem.constraints, problem.domain).curved
    return RoundModel(program, rows, curved, lower, upper, least_bends(problem.objective))


def uses_working_set(problem: Problem) -> bool:
    """Whether all rows would cost much more than the factorisation itself."""
    rows, d = model_of(problem).rows, problem.dimension
    factor = d**3 / 3.0 / COSTS.dense_rate
    if rows.products / COSTS.gram_rate > max(COSTS.rows_per_factor * factor, COSTS.quick):
        return True
    return rows.count > COSTS.all_rows_per_parameter * d and (
        rows.count / COSTS.row_rate > COSTS.quick
    )


@dataclass
class Round:
    """The program of one working set, in units of its own, and its equations."""

    program: Program
    taken: Taken
    inner: Program
    units: Units
    system: System
    seconds: float  # of one factor, about
    lift: float  # of the diagonal of the inner program
    cuts: int  # the last rows
    factor: Factor | None = None  # of the last step
    took: float = 0.0  # seconds of the last step

    @classmethod
    def of(cls, model: RoundModel, state: InteriorState) -> Round:
        taken, by = model.rows.take(state.rows), model.arithmetic
        if state.rows.size == model.rows.count:
            taken = by.merged(taken)
        program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
        cuts = state.cuts
        program = with_rows(program, (cuts.slopes,), cuts.right, np.zeros(cuts.count, dtype=bool))
        basis = by.basis(program) if state.attempt else None  # another way, once more
        turned = program if basis is None else in_basis(program, basis)
        some = bool(state.rows.size < model.rows.count or model.curved)
        if some and basis is None:
            inner, units = by.with_rows_scaled(program, model.columns, model.P)
        else:
            inner, units = by.scaled(turned)
        units, lift = replace(units, basis=basis), 0.0
        if by.margin:
            inner = tightened(inner, by.margin)
        if some:
            lift = state.lift
            inner = replace(inner, P=by.lifted(inner.P, lift))
        return cls(program, taken, inner, units, *by.system(inner), lift, cuts.count)

    def next(self, state: InteriorState) -> Point | None:
        """The point after the present one; None where the path cannot go on. A factor is not begun
        that would end after the time limit.
        """
        if seconds_left() < self.seconds:
            raise OutOfTimeError("a step of the interior point needs more time; allow more")
        began = time.perf_counter()
        try:
            at = state.point or self._first(state)
        except RuntimeError:  # singular
            return None
        found = step(self.system, at, falling_lift(at))
        self.took = time.perf_counter() - began
        if found is None:
            return None
        point, self.factor = found
        return point

    def _first(self, state: InteriorState) -> Point:
        if state.earlier is not None and state.earlier.point.products > 0.0:  # else it had no rows
            return self._again(state.earlier)
        if state.near is None:
            far, again = COSTS.first_slacks[state.attempt], self.units.basis is not None
            return first_point(self.system, far, near=again)
        pairs = int(np.count_nonzero(self.inner.below) + np.count_nonzero(self.inner.above))
        product = COSTS.near_gap * state.near_scale * self.units.objective / max(1, pairs)
        return point_near(self.system, self.units.inner(state.near), float(product))

    def earlier(self, at: Point) -> Earlier:
        """The point, in units of the problem, for the next round to begin with."""
        return Earlier(at, self.taken.ids, self.cuts)

    def _again(self, earlier: Earlier) -> Point:
        first, ids = self.program.count - self.taken.ids.size - self.cuts, self.taken.ids
        rows = np.searchsorted(earlier.rows, ids)
        same = np.append(earlier.rows, -1)[rows] == ids
        cuts = np.arange(self.cuts)
        place = np.concatenate([np.arange(first), first + rows, first + earlier.rows.size + cuts])
        known = np.concatenate([np.ones(first, dtype=bool), same, cuts < earlier.cuts])
        moved = earlier.point.at(np.where(known, place, 0)).into(self.units)
        return point_again(self.inner, moved, known)

    def left(self, at: Point) -> float:
        """What stationarity lacks, as a change of the objective."""
        inner, x = self.inner, at.x
        rest = np.abs(inner.P @ x + inner.q + inner.backward(at.s))
        return float(rest.max() * max(1.0, np.abs(x).max())) / self.units.objective

    def held(self, model: RoundModel, at: Point) -> Indices:
        """The rows of the working set without dense ones that hold the point least: by slope per
        slack.
        """
        ids, first = self.taken.ids, model.program.count
        mine = slice(first, first + ids.size)
        most = int(COSTS.dense_kept * model.program.dimension)
        dense = np.flatnonzero(model.rows.is_dense(ids) & ~self.taken.equal)
        if dense.size <= most:
            return ids
        weight = (at.low[mine] / at.n[mine])[dense]
        idle = dense[np.argpartition(weight, dense.size - most)[: dense.size - most]]
        return np.delete(ids, idle)

    def repaired(self, at: Point) -> Iterator[Point]:
        """The point with slopes that leave nothing over, in units of the problem."""
        for point in repaired(self.system, at, self.lift):
            yield point.times(self.units)


def tightened(program: Program, margin: float) -> Program:
    """With inequalities that hold with room to spare, so that rounding leaves them satisfied."""
    rules = (program.least == 0.0) & np.isinf(program.most) & (program.roundness == 0.0)
    room = margin * (1.0 + np.abs(program.centre))
    return replace(program, centre=program.centre - np.where(rules, room, 0.0))


def round_of(problem: Problem, model: RoundModel, state: InteriorState) -> Round:
    """The round that the state is in. Only the latest is kept, with the problem: a state is arrays
    and numbers, and whoever resumes it makes the round again.
    """
    kept: dict[int, Round] = prepared(problem, ("latest round", id(model)), dict)
    way = [state.lift, state.attempt]
    parts = (state.rows, state.cuts.slopes, state.cuts.right, np.array(way))
    key = hash(tuple(part.tobytes() for part in parts))
    if key not in kept:
        kept.clear()
        kept[key] = Round.of(model, state)
    return kept[key]


def interior_seconds(problem: Problem) -> float:
    """About how long a run takes, by its factorisations and passes over its rows."""
    model = model_of(problem)

    def ask() -> float:
        few = uses_working_set(problem)
        taken = model.rows.take(model.rows.sample() if few else model.rows.all)
        program = with_rows(model.program, taken.blocks, taken.right, taken.equal)
        steps = COSTS.searching_steps if few else COSTS.typical_steps
        return steps * (expected_seconds(program) + program.count / COSTS.row_rate)

    return prepared(problem, "seconds of an interior point", ask)
