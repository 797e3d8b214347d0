"""The level bundle method: cutting planes of the objective, with a proven gap.

Kelley's cutting planes ("The cutting-plane method for solving convex programs", Journal of the SIAM
8, 1960), made stable by Lemaréchal, Nemirovskii and Nesterov ("New variants of bundle methods",
Mathematical Programming 69, 1995). A convex function lies above its tangents. Their maximum is a
model of the objective, and the least value of the model is a bound on the optimum. The objective is
evaluated there, and at the point nearest to the best one where the model is at most halfway between
bound and best: two tangents more per round.

Parts of a sum that the interior point can state (every loss, quadratics) enter the model as they
are; tangents are only made of the others. Needs nothing but values and subgradients, so that it
takes every convex function; the work grows with the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import EPSILON, Indices, Matrix, Vector
from lighttouch.domains import Simplex
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.path import (
    Judged,
    Point,
    dual_bounds,
    first_point,
    follow,
    repaired,
    worst_excess,
)
from lighttouch.interior.program import (
    Program,
    Units,
    bound_rows,
    in_units,
    power_of_two,
    row_maxima,
    with_rows,
)
from lighttouch.interior.statement import objection_to, program_of
from lighttouch.interior.systems import System, choose_system
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import Quadratic, WeightedSum
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.cutting_planes import Part
from lighttouch.projections.sets import feasible_set
from lighttouch.running import check_deadline, one_blas_thread, prepared
from lighttouch.solvers.base import EndingSolver, EndingState, claim_unit
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY, least_bends
from lighttouch.solvers.working_set import Cuts, ProblemRows, cuts_at
from lighttouch.validation import positive


@dataclass
class CuttingPlanesState(EndingState):
    """The tangents, the rows in use, and the best point and bound so far."""

    best: Vector
    tangents: Cuts  # of the parts without a statement: slopes @ w - right lies below them
    whole: Cuts  # of the whole objective
    rows: Indices  # of the constraints
    cuts: Cuts  # of curved constraints
    reach: float = 0.0  # half the width of the box around the best point in which is searched
    best_objective: float = math.inf
    bound: float = -math.inf
    likely_bound: float = -math.inf  # the least value of the model within the box
    rounding: float = 0.0  # of the objective, at the best point
    waited: int = 0

    @property
    def w(self) -> Vector:
        return self.best

    @property
    def gap(self) -> float:
        return self.best_objective - self.bound

    @property
    def unit(self) -> float:
        """What accuracy is relative to."""
        return claim_unit(self.best_objective, self.first_objective)


@dataclass(frozen=True)
class CuttingPlanes(EndingSolver[CuttingPlanesState]):
    """Cutting planes of the objective (Kelley), made stable by levels: a bundle method.

    For convex functions without structure, above all with kinks, of up to about a hundred
    parameters. It needs values and subgradients only and proves how far the point is from the
    optimum.

    Parameters
    ----------
    tolerance : float, default=1e-3
        Relative gap to the optimum at which the run ends.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> norm = lt.CustomObjective(2, lambda i, w: abs(w - 1.0).max(),
    ...                           lambda i, w: np.sign(w - 1.0) * (abs(w - 1.0).argmax() == [0, 1]))
    >>> result = lt.solve(lt.Problem(norm, lt.LinearConstraints([[1.0, 1.0]], [0.0])),
    ...                   lt.CuttingPlanes(1e-6))
    >>> result.status.name, round(result.objective, 6)
    ('CONVERGED', 1.0)
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def init(self, problem: Problem, start: Vector) -> CuttingPlanesState:
        model, none = _model(problem), Cuts(np.zeros((0, start.size)), np.zeros(0))
        everything = model.rows.count <= COSTS.planes_rows_at_once
        rows = model.rows.all if everything else model.rows.sample()
        return CuttingPlanesState(new_counters(), start.copy(), none, none, rows, none)

    def advance(
        self, problem: Problem, state: CuttingPlanesState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` rounds; it returns early after a slice of time, which changes nothing."""
        with one_blas_thread(), np.errstate(all="ignore"):
            for _ in state.slice(steps):
                check_deadline()
                self._round(problem, state)

    def _round(self, problem: Problem, state: CuttingPlanesState) -> None:
        model = _model(problem)
        if not math.isfinite(state.best_objective):
            _begin(problem, model, state)
        before = state.best_objective, state.bound, state.likely_bound
        lowest = _lowest(model, state, self.tolerance)
        if lowest is not None:
            _visit(problem, model, state, lowest)
        if not self.is_proven(state):
            nearest = _nearest_at_level(model, state)
            if nearest is not None:
                _visit(problem, model, state, nearest)
        state.counters[ITERATION] += 1
        self._judge(state, before)

    def _judge(self, state: CuttingPlanesState, before: tuple[float, float, float]) -> None:
        """The end: proven, or no better point and no better bound for a while."""
        little = max(COSTS.little_progress * self.tolerance * state.unit, state.rounding)
        now = state.best_objective, state.bound, state.likely_bound
        gained = before[0] - now[0] > little or now[1] - before[1] > little
        gained = gained or abs(now[2] - before[2]) > little
        if now[0] - now[2] <= self.tolerance * state.unit:  # only the proof is missing
            gained = now[1] - before[1] > COSTS.cutting_rise * (now[0] - now[1])
        state.waited = 0 if gained else state.waited + 1
        out = state.waited >= COSTS.cutting_patience or state.iteration >= COSTS.cutting_rounds
        state.ended = self.is_proven(state) or out

    def is_proven(self, state: CuttingPlanesState) -> bool:
        """A bound clearly above the objective contradicts itself: it proves nothing."""
        return abs(state.gap) <= self.tolerance * state.unit

    def solution(self, state: CuttingPlanesState) -> Vector:
        return state.best

    def lower_bound(self, state: CuttingPlanesState) -> float:
        return state.bound

    def accuracy(self, state: CuttingPlanesState) -> float:
        return self.tolerance * state.unit

    def notes(self, state: CuttingPlanesState) -> Sequence[str]:
        return (f"cutting planes: {state.iteration} rounds, {state.tangents.count} tangents",)


@dataclass(frozen=True, eq=False)
class _Model:
    """What does not change from round to round."""

    program: Program  # the parts with a statement
    others: tuple[tuple[float, Any], ...]  # weights and parts without one
    rows: ProblemRows
    curved: Sequence[Part]
    lower: Vector
    upper: Vector
    bend: Vector
    total: float | None  # of a simplex

    def tangent(self, w: Vector) -> Cuts:
        """Of the parts without a statement."""
        value, slope = 0.0, np.zeros(w.size)
        for weight, part in self.others:
            value += weight * part.value(w)
            slope += weight * part.gradient(w)
        return _tangent(w, value, slope)

    def size(self, w: Vector) -> float:
        """The sum of the sizes of the terms of the parts with a statement."""
        sizes, far = self.program.sizes, np.abs(w)
        return float(far @ (sizes.P @ far)) + float(sizes.q @ far)

    def ruled(self, program: Program, state: CuttingPlanesState) -> Program:
        """The program with the constraints and their cuts."""
        taken = self.rows.take(state.rows)
        program = with_rows(program, taken.blocks, taken.right, taken.equal)
        program = _with_cuts(program, state.cuts)
        if self.total is None:
            return program
        ones, total = np.ones((1, program.dimension)), np.array([self.total])
        return with_rows(program, (ones,), total, np.ones(1, dtype=bool))

    def within(self, program: Program, lower: Vector, upper: Vector) -> Program:
        """The program with bounds."""
        fixed = lower == upper
        matrix, right = bound_rows(np.where(fixed, -np.inf, lower), upper)
        return with_rows(program, (matrix,), right, fixed[matrix.indices])


def _model(problem: Problem) -> _Model:
    return prepared(problem, "cutting planes", lambda: _new_model(problem))


def _new_model(problem: Problem) -> _Model:
    objective, domain, d = problem.objective, problem.domain, problem.dimension
    lower, upper = domain.bounds(d)
    known, others = _taken_apart(objective)
    return _Model(
        program_of(known),
        others,
        ProblemRows(problem.constraints.parts, d),
        feasible_set(problem.constraints, domain).curved,
        np.where(lower < -INTERIOR.no_bound, -np.inf, lower),
        np.where(upper > INTERIOR.no_bound, np.inf, upper),
        least_bends(known),
        domain.total if isinstance(domain, Simplex) else None,
    )


def _taken_apart(objective: Any) -> tuple[Any, tuple[tuple[float, Any], ...]]:
    """What the interior point can state, and the rest."""
    d = objective.dimension
    nothing = Quadratic(sparse.csr_matrix((d, d)), np.zeros(d))
    if objection_to(objective) is None:
        return objective, ()
    if not isinstance(objective, WeightedSum):
        return nothing, ((1.0, objective),)
    pairs = list(zip(objective.weights.tolist(), objective.objectives, strict=True))
    known = [pair for pair in pairs if objection_to(pair[1]) is None]
    others = tuple(pair for pair in pairs if objection_to(pair[1]) is not None)
    if not known:
        return nothing, others
    return WeightedSum([part for _, part in known], [weight for weight, _ in known]), others


def _tangent(w: Vector, value: float, slope: Vector) -> Cuts:
    """Lowered by what computing value and slope may have rounded."""
    right = float(slope @ w) - value + _rounding(w, value, slope)
    return Cuts(np.asarray(slope)[None], np.array([right]))


def _rounding(w: Vector, value: float, slope: Vector) -> float:
    """A function of w is known as well as its argument: each entry of w to half a unit in the last
    place, and sums of such terms to a few.
    """
    return COSTS.outward * EPSILON * (abs(value) + float(np.abs(slope) @ np.abs(w)))


def _with_cuts(program: Program, cuts: Cuts) -> Program:
    return with_rows(program, (cuts.slopes,), cuts.right, np.zeros(cuts.count, dtype=bool))


def _begin(problem: Problem, model: _Model, state: CuttingPlanesState) -> None:
    """The first tangent, and how far a step would go that takes the objective to 0 (Polyak)."""
    _visit(problem, model, state, state.best)
    if math.isinf(state.first_objective):
        state.first_objective = state.best_objective
    slope = float(np.linalg.norm(state.whole.slopes[0]))
    far = abs(state.best_objective) / max(slope, TINY)
    size = max(1.0, float(np.abs(state.best).max(initial=0.0)))
    state.reach = COSTS.cutting_reach * (far if 0.0 < far < math.inf else size)


def _visit(problem: Problem, model: _Model, state: CuttingPlanesState, w: Vector) -> None:
    """Tangents at the nearest feasible point, which may be the best; rows and cuts at w itself."""
    check_deadline()
    inside = project(w, problem.constraints, problem.domain).w
    objective = problem.objective.value(inside)
    if not math.isfinite(objective):
        return
    slope = problem.objective.gradient(inside)
    rounding = _rounding(inside, objective, slope) + EPSILON * model.size(inside)
    state.whole = state.whole.with_more(_tangent(inside, objective, slope))
    state.tangents = state.tangents.with_more(model.tangent(inside))
    if (
        objective + rounding < state.best_objective + state.rounding
    ):  # far out it is mostly rounding
        state.best, state.best_objective, state.rounding = inside, objective, rounding
    state.cuts = state.cuts.with_more(cuts_at(model.curved, w, INTERIOR.joining_cuts))
    broken = np.setdiff1d(model.rows.broken(w), state.rows)
    state.rows = np.concatenate([state.rows, broken])
    state.counters[CHECKS] += problem.constraints.members
    state.counters[SAMPLES] += problem.objective.examples


def _lowest(model: _Model, state: CuttingPlanesState, tolerance: float) -> Vector | None:
    """Where the model is least within the box; its dual variables are a bound on the optimum."""
    ruled = model.ruled(model.program, state)
    lower = np.maximum(model.lower, state.best - state.reach)
    upper = np.minimum(model.upper, state.best + state.reach)
    program = _lifted(model.within(ruled, lower, upper), state.tangents)
    height = float((state.tangents.slopes @ state.best - state.tangents.right).max())
    steepest = float(np.abs(state.whole.slopes).max())
    lengths = np.append(np.full(state.best.size, state.reach), max(steepest * state.reach, TINY))
    enough = COSTS.cutting_accuracy * tolerance * state.unit
    found = _minimised(program, np.append(state.best, height), lengths, enough)
    if found is None:
        return None
    d, rows, first = model.lower.size, ruled.count, program.count - state.tangents.count
    dual, ends = _lifted(ruled, state.tangents), np.array([np.inf])
    lower, upper = np.concatenate([model.lower, -ends]), np.concatenate([model.upper, ends])
    for x, s in found.points():
        multipliers = np.maximum(s[first:], 0.0)
        shares = multipliers / max(float(multipliers.sum()), TINY)  # of 1, as t wants it
        slopes = np.concatenate([s[:rows], shares])
        bound, _ = dual_bounds(dual, x, slopes, lower, upper, np.append(model.bend, 0.0))
        state.bound = max(state.bound, bound)
    x = found.x[:d]
    heights = state.tangents.slopes @ x - state.tangents.right
    least = float(heights.max()) + model.program.value(x)
    possible = least <= state.best_objective  # the best point is in the box: else the path failed
    state.likely_bound = least if possible else state.bound
    _renew_reach(model, state, x)
    return x


def _renew_reach(model: _Model, state: CuttingPlanesState, x: Vector) -> None:
    """Search farther where the box was in the way."""
    moved = np.abs(x - state.best)
    free = (x > model.lower) & (x < model.upper)
    if np.any(free & (moved > COSTS.touching * state.reach)):
        state.reach *= COSTS.cutting_growth
    else:
        far = COSTS.cutting_growth * float(moved.max())
        state.reach = min(state.reach, max(far, state.reach / COSTS.cutting_growth))


def _nearest_at_level(model: _Model, state: CuttingPlanesState) -> Vector | None:
    """The point nearest to the best one where the model is halfway down to its least value."""
    least = max(state.bound, state.likely_bound)
    if not -math.inf < least < state.best_objective:
        return None
    level = state.best_objective - COSTS.level * (state.best_objective - least)
    d = state.best.size
    none = np.zeros(0)
    distance = Program(sparse.identity(d, format="csr"), np.zeros(d), (), none, none, none, none)
    below = replace(state.whole, right=state.whole.right + level)
    ruled = _with_cuts(model.ruled(distance, state), below)
    program = model.within(ruled, model.lower, model.upper)
    program = replace(program, q=-state.best)
    found = _minimised(program, state.best, np.full(d, state.reach), 0.0)
    return None if found is None else found.x


def _lifted(program: Program, tangents: Cuts) -> Program:
    """The program in (x, t) with t added to the objective and above all tangents."""
    last = sparse.csr_matrix((1, 1))
    blocks = tuple(_with_column(block, 0.0) for block in program.blocks)
    program = replace(
        program,
        P=sparse.block_diag([program.P, last], format="csr"),
        q=np.append(program.q, 1.0),
        blocks=blocks,
    )
    return with_rows(
        program,
        (_with_column(tangents.slopes, -1.0),),
        tangents.right,
        np.zeros(tangents.count, dtype=bool),
    )


def _with_column(block: Matrix, entry: float) -> Matrix:
    column = np.full((block.shape[0], 1), entry)
    if sparse.issparse(block):
        return sparse.hstack([block, sparse.csr_matrix(column)], format="csr")
    return np.hstack([block, column])


@dataclass(frozen=True, eq=False)
class _Found:
    """The end of a path, in units of the program."""

    inner: Point
    system: System
    units: Units
    centre: Vector

    @property
    def x(self) -> Vector:
        return np.asarray(self.centre + self.units.parameters(self.inner.x))

    def points(self) -> Iterator[tuple[Vector, Vector]]:
        """x and slopes: the end, and with slopes that leave nothing over."""
        yield self._read(self.inner)
        for point in repaired(self.system, self.inner, 0.0):
            yield self._read(point)

    def _read(self, point: Point) -> tuple[Vector, Vector]:
        at = point.times(self.units)
        return np.asarray(self.centre + at.x), at.s


def _minimised(program: Program, centre: Vector, lengths: Vector, enough: float) -> _Found | None:
    """The interior point's path around a centre, in units of the lengths of moves from there, until
    complementarity is `enough` or nothing is gained.
    """
    inner, units = _around(program, centre, lengths)
    system = choose_system(inner)[0]

    def judge(at: Point) -> Judged:
        lack = _lack(inner, at)
        return Judged(lack, enough=lack <= max(enough * units.objective, COSTS.level_accuracy))

    found = follow(system, first_point(system, INTERIOR.first_slacks[0]), judge)
    return None if found is None else _Found(found[0], system, units, centre)


def _around(program: Program, centre: Vector, lengths: Vector) -> tuple[Program, Units]:
    """In moves from the centre, in units of lengths; rows have entries of about 1 there."""
    moved = replace(
        program,
        q=program.q + program.P @ centre,
        centre=program.centre - program.forward(centre),
        constant=0.0,
    )
    columns = power_of_two(lengths)
    ones = [np.ones(block.shape[0]) for block in program.blocks]
    pairs = zip(program.blocks, ones, strict=True)
    sizes = np.concatenate([np.zeros(0), *(row_maxima(abs(b), one, columns) for b, one in pairs)])
    sizes = np.where(program.is_smooth | (sizes == 0.0), 1.0, sizes)
    return in_units(moved, Units(columns, power_of_two(1.0 / sizes), 1.0))


def _lack(inner: Program, at: Point) -> float:
    """What complementarity, stationarity and rows lack, in scaled units."""
    excess = worst_excess(inner, inner.forward(at.x) - inner.centre)
    rest = float(np.abs(inner.P @ at.x + inner.q + inner.backward(at.s)).max())
    size = max(1.0, float(np.abs(at.x).max(initial=0.0)))
    return at.products + rest * size + excess
