"""Quadratic steps: losses of a linear model under linear rules, one quadratic model after another.

Majorise-minimise (Hunter and Lange 2004), which for the logistic loss is proximal Newton (Lee, Sun
and Saunders 2014): every step replaces the loss of each example by a quadratic that touches it at
the present prediction,

    phi(z) ~ phi(z_i) + s_i (z - z_i) + k_i / 2 (z - z_i)^2      (the rows of `losses`),

minimises the sum, the penalty included, over the feasible set (by pivots, else by an interior
point, both in `interior.pivoting`; else by ADMM, `projections.splitting`), and goes to the minimum,
or part of the way where the objective would not fall. Losses with kinks are rounded over a width
that narrows whenever the steps have stopped gaining.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import Vector
from lighttouch.cholesky import Cholesky
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Everywhere
from lighttouch.interior.pivoting import KnownRows, pivoted_minimum, quadratic_minimum
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import EmpiricalRisk, FactoredSquares, ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.rows.kinds import row_scale
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.projections.splitting import (
    BlockDiagonal,
    Splitting,
    cholesky_solver,
    conjugate_gradients,
    whole_set_splitting,
)
from lighttouch.running import check_deadline, one_blas_thread, out_of_time, prepared
from lighttouch.solvers.base import EndingSolver
from lighttouch.solvers.bounds import fenchel_bound
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.quadratic_model import (
    NEAR,
    SQUARES,
    QuadraticModel,
    QuadraticState,
    admm_normal,
    begin_where_it_ended,
    blocks_of,
    first_reference,
    forced_minimum,
    keeps_matrix,
    largest_block,
    quadratic_model,
    tangent_point,
    value_at,
)
from lighttouch.solvers.quadratic_shards import (
    shard_bound,
    shard_model,
    shard_move,
    shard_residual,
    shard_values,
    shards_keep_matrix,
)
from lighttouch.validation import positive

__all__ = [
    "NEAR",
    "SQUARES",
    "QuadraticSteps",
    "begin_where_it_ended",
    "largest_block",
]


@dataclass(frozen=True)
class QuadraticSteps(EndingSolver[QuadraticState]):
    """One quadratic model of the objective after another, each minimised under the rules.

    For mean losses of a linear model under linear constraints; the fastest method of this library
    where a pass over all examples is affordable. It is deterministic. It ends when a step gains
    less than `tolerance` relative to the objective: as CONVERGED where a dual bound proves that no
    feasible point is better by more than that, otherwise as STALLED. No bound is known for more
    than 3,000 parameters.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative gain of a step below which the kinks' rounding is narrowed, or the run ends.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> import lighttouch as lt
    >>> risk = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0])
    >>> result = lt.solve(lt.Problem(risk, lt.ordering(2)), lt.QuadraticSteps())
    >>> result.w.round(6)
    array([2., 2.])
    """

    tolerance: float = 1e-6
    stops_itself: ClassVar[bool] = True
    takes_shards: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        risk = problem.objective
        if isinstance(risk, ShardedRisk):
            if objection := _objection_to_shards(risk):
                return objection
            risk = risk.template
        if not isinstance(risk, EmpiricalRisk):
            return "it needs the mean loss of a linear model (EmpiricalRisk); use Automatic"
        if risk.l1 > 0.0:
            return "it needs an objective without l1; use Automatic"
        row = risk.loss_row
        if row.users is not None and row.kinked:
            return "it needs the curvature of a CustomLoss; give it, or use Automatic"
        if not FeasibleSet(problem.constraints, problem.domain).is_linear:
            return "it needs linear constraints in a box or everywhere; use Automatic"
        return None

    def init(self, problem: Problem, start: Vector) -> QuadraticState:
        risk = _risk(problem)
        inside = problem.violation(start) == 0.0
        w = start.copy() if inside else feasible(problem, start)
        width = max(COSTS.least_width, self._first_width(problem, w)) if risk.loss_row.kinked else 0
        reference = first_reference(_whole(problem), w).copy()
        value, objective = _values(problem, w, reference, width)
        splitting = splitting_of(problem)
        return QuadraticState(
            new_counters(),
            w,
            float(width),
            COSTS.model_narrowest * width,
            value,
            w.copy(),
            objective,
            splitting.begin(np.zeros(w.size)),
            problem.objective.examples,
            reference,
            outside=np.zeros(0) if inside or not _keeps_matrix(problem) else start.copy(),
        )

    def _first_width(self, problem: Problem, w: Vector) -> float:
        whole, risk = problem.objective, _risk(problem)
        if isinstance(whole, ShardedRisk):
            return COSTS.model_first_width * shard_residual(whole, w)
        return COSTS.model_first_width * losses.typical_residual(
            risk.loss_row, risk.predictions(w), risk.y
        )

    def advance(
        self, problem: Problem, state: QuadraticState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` models. It returns early after a slice of time, which changes nothing."""
        with one_blas_thread():
            for _ in state.slice(steps):
                self._step(problem, state)

    def _step(self, problem: Problem, state: QuadraticState) -> None:
        check_deadline()
        whole, first = problem.objective, state.outside.size > 0
        before = state.outside if first else state.w
        if isinstance(whole, ShardedRisk):
            model = shard_model(whole, before, state)
            proposed = minimum_under_rules(problem, model, state, self.inner_tolerance)
            value, objective = shard_move(whole, state, proposed)
        else:
            risk = _risk(problem)
            z = risk.predictions(before)
            model = quadratic_model(risk, before, z, state)
            proposed = minimum_under_rules(problem, model, state, self.inner_tolerance)
            value = backtracked(risk, state, risk.predictions(state.w) if first else z, proposed)
            objective = value_at(risk, risk.predictions(state.w), state.w, 0.0)
        gain, state.value = state.value - value, value
        if objective < state.best_objective:
            state.best, state.best_objective = state.w.copy(), objective
        state.counters[ITERATION] += 1
        state.counters[SAMPLES] += 2 * whole.examples
        if first:  # what it gains says nothing about the next one
            state.outside = np.zeros(0)
            return
        exact = _risk(problem).loss_row.name == "squared" and state.splitting.settled
        if exact or gain <= self.tolerance * max(abs(value), COSTS.least_objective):
            self._narrow_or_end(problem, state, model, before)

    def _narrow_or_end(
        self, problem: Problem, state: QuadraticState, model: QuadraticModel, before: Vector
    ) -> None:
        if state.width <= state.narrowest:
            bound = shard_bound if isinstance(problem.objective, ShardedRisk) else lower_bound
            state.gap = state.best_objective - bound(problem, state, model, before)
            near = abs(state.gap) <= COSTS.model_old_gap * self.accuracy(state)
            if not near and _matrix_is_old(problem, state, before):
                state.reference = state.w.copy()  # a matrix formed there gains and proves more
                return
            state.ended = True
            return
        state.width = max(state.narrowest, state.width * COSTS.model_narrowing)
        state.value = _values(problem, state.w, state.reference, state.width)[0]

    @property
    def inner_tolerance(self) -> float:
        """Residuals of ADMM, relative: an error there changes the objective by its square."""
        return float(min(COSTS.model_residual, COSTS.model_residual_share * self.tolerance**0.5))

    def is_proven(self, state: QuadraticState) -> bool:
        return abs(state.gap) <= self.accuracy(state)

    def solution(self, state: QuadraticState) -> Vector:
        return state.best.copy()

    def batch_sizes(self, state: QuadraticState) -> tuple[int, int, int]:
        return (state.examples, 0, 0)

    def lower_bound(self, state: QuadraticState) -> float:
        return state.best_objective - state.gap

    def accuracy(self, state: QuadraticState) -> float:
        return self.tolerance * max(abs(state.best_objective), COSTS.least_objective)

    def notes(self, state: QuadraticState) -> list[str]:
        return [f"quadratic steps (majorise, minimise by ADMM): {state.iteration}"]


def _keeps_matrix(problem: Problem) -> bool:
    """Whether a matrix of second derivatives serves for several models."""
    risk = _whole(problem)
    if isinstance(risk, ShardedRisk):
        return shards_keep_matrix(risk)
    return keeps_matrix(risk.loss_row, blocks_of(risk))


def _matrix_is_old(problem: Problem, state: QuadraticState, before: Vector) -> bool:
    """Whether the last model had the curvatures of another point than its own."""
    return _keeps_matrix(problem) and not np.array_equal(state.reference, before)


def lower_bound(
    problem: Problem, state: QuadraticState, model: QuadraticModel, before: Vector
) -> float:
    """No feasible point has a smaller objective: Fenchel's bound from ADMM's multipliers v.

    They are normal to the feasible set at its copies. The slopes are those of the model, which is
    that at `before`, at its minimum under the force v; the penalty's tangent is taken where it
    balances both. The bound is -inf where the penalty's Hessian cannot be factored. Squares that
    are the penalty too balance the force alone, and their own curvature is known.
    """
    risk = _risk(problem)
    w = forced_minimum(state, model)
    if w is None:
        return -math.inf
    z = risk.predictions(before)
    slopes = losses.quadratic(risk.loss_row, z, risk.y, state.width)[0]
    curvatures = np.divide(
        model.curvatures, risk.shares, out=np.zeros(z.size), where=risk.shares > 0.0
    )
    slopes += curvatures * (risk.predictions(w) - z)
    allowed, _ = losses.conjugate_values(risk.loss_row, slopes, risk.y)
    normal = admm_normal(problem, state)
    force = np.asarray(model.transposed @ (risk.shares * allowed)) + normal.vector
    if isinstance(risk, FactoredSquares):
        return fenchel_bound(risk, allowed, normal, w, bend=risk.least_curvature)
    force -= risk.roughness.T @ risk.roughness_target
    u = tangent_point(model, force)
    return -math.inf if u is None else fenchel_bound(risk, allowed, normal, u)


def _objection_to_shards(risk: ShardedRisk) -> str | None:
    if risk.dimension > COSTS.largest_factored:
        return (
            f"with examples in shards it needs at most {COSTS.largest_factored} parameters; use "
            "Automatic"
        )
    alike = risk.survey.alike
    return None if alike else "it needs shards of the same loss and penalties; use Automatic"


def _values(problem: Problem, w: Vector, reference: Vector, width: float) -> tuple[float, float]:
    """The rounded objective at w, and the objective."""
    if isinstance(problem.objective, ShardedRisk):
        return shard_values(problem.objective, w, reference, width)
    risk = _risk(problem)
    z = risk.predictions(w)
    return value_at(risk, z, w, width), value_at(risk, z, w, 0.0)


def backtracked(risk: EmpiricalRisk, state: QuadraticState, z: Vector, proposed: Vector) -> float:
    """Move to the proposed point, or halfway and so on until the objective does not rise; its
    value there.
    """
    change = proposed - state.w
    predicted = np.asarray(risk.X @ change)
    share = 1.0
    while share > COSTS.model_least_share:
        w = proposed if share == 1.0 else state.w + share * change
        value = value_at(risk, z + share * predicted, w, state.width)
        if value <= state.value:
            state.w = w
            return value
        share *= 0.5
    return state.value


def minimum_under_rules(
    problem: Problem, model: QuadraticModel, state: QuadraticState, tolerance: float
) -> Vector:
    """The model's minimum over the feasible set."""
    check_deadline()  # making the model was a pass over all examples
    if model.dense:
        free = free_minimum(model, model.c)
        if is_feasible(problem, free):
            state.counters[CHECKS] += problem.constraints.members
            state.splitting.z, state.splitting.settled = free, True
            state.splitting.multipliers = np.zeros(free.size)
            return free
        found = _at_once(problem, model, state, free, tolerance)
        if found is not None:
            return found
    elif unconstrained(problem):
        state.splitting.settled = True
        return conjugate_gradients(
            model.apply,
            model.c,
            state.w,
            model.diagonal,
            COSTS.model_free_residual,
            COSTS.model_free_steps,
        )
    else:
        tolerance *= COSTS.model_large_tolerance
    return _alternated(problem, model, state, tolerance)


def _at_once(
    problem: Problem, model: QuadraticModel, state: QuadraticState, free: Vector, tolerance: float
) -> Vector | None:
    """The minimum by pivots, or else by an interior point; None where there are too many rows, or
    both fail.
    """
    rows = problem.constraints
    if not isinstance(rows, LinearConstraints) or not isinstance(problem.domain, Everywhere):
        return None
    if rows.count > COSTS.interior_rows or not np.isfinite(free).all():
        return None
    whole = None if _falls_apart(problem, model) else model.together
    if whole is None:
        return None
    A, b = prepared(rows, "rows with largest entry 1", lambda: _scaled_rows(rows))
    found, gap = None, tolerance**2
    if whole.factor is not None:
        known = _known_rows(problem, whole.factor, A)
        near = state.w if state.iteration else None
        found = pivoted_minimum(known, model.c, b, free, gap, check_deadline, near)
    if found is None:
        found = quadratic_minimum(whole.matrix, model.c, A, b, free, gap)
    if found is None:
        return None
    at = state.splitting
    normal = np.asarray(A.T @ found.multipliers)
    length = float(normal @ normal)
    at.multipliers, at.settled = normal, True
    at.z = found.w + (found.gap / length if length > 0.0 else 0.0) * normal
    state.counters[CHECKS] += rows.count
    return found.w


def _scaled_rows(rows: LinearConstraints) -> tuple[sparse.csr_matrix, Vector]:
    """The same rules, so that an excess means the same in each of them."""
    A = sparse.csr_matrix(rows.A)
    largest = row_scale(A)
    factors = 1.0 / np.where(largest > 0.0, largest, 1.0)
    data = A.data * np.repeat(factors, np.diff(A.indptr))
    return sparse.csr_matrix((data, A.indices, A.indptr), shape=A.shape), factors * rows.b


def _falls_apart(problem: Problem, model: QuadraticModel) -> bool:
    """Whether ADMM is faster, block by block: under orders, onto which it projects at once, or
    where the blocks together are too large to factor.
    """
    if not model.dense or len(model.blocks) == 1:
        return False
    large = problem.dimension > COSTS.largest_factored
    return large or feasible_set(problem.constraints, problem.domain).is_order


def _known_rows(problem: Problem, factor: Cholesky, A: sparse.csr_matrix) -> KnownRows:
    """What minima with the same factor have learnt of the rules; squared errors have only one, and
    where the matrix serves for one model only, so do others.
    """
    if not _keeps_matrix(problem):
        return KnownRows(factor, A, once=True)
    kept: list[KnownRows] = prepared(problem, "rules under the last factor", list)
    if not kept or kept[0].factor is not factor or not kept[0].whole_blocks:
        kept[:] = [KnownRows(factor, A)]
    return kept[0]


def _alternated(
    problem: Problem, model: QuadraticModel, state: QuadraticState, tolerance: float
) -> Vector:
    splitting, at = splitting_of(problem), state.splitting
    only = _risk(problem).loss_row.name == "squared"
    most = COSTS.model_inner_steps if only else COSTS.model_inner_steps_of_many
    before = at.steps
    splitting.minimise(model, at, tolerance, most, out_of_time)
    at.warm = (None,) * len(at.warm)  # a state is arrays and numbers; one cold start per model
    state.counters[CHECKS] += problem.constraints.members * (at.steps - before)
    return splitting.ordered(at)


def free_minimum(model: QuadraticModel, c: Vector) -> Vector:
    """Of w'Hw / 2 - c.w, where H is the model's matrix."""
    if model.factor is not None:
        return model.factor.solved(c)
    return _minimum(model.matrix, c)


def _minimum(H: Vector | BlockDiagonal | None, c: Vector) -> Vector:
    if isinstance(H, BlockDiagonal):
        return np.concatenate([_minimum(block, c[here]) for here, block in H.blocks])
    assert H is not None
    try:
        return cholesky_solver(H.copy())(c, c)
    except scipy.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(H, c, rcond=None)[0])


def is_feasible(problem: Problem, w: Vector) -> bool:
    inside = np.array_equal(problem.domain.project(w), w)
    return inside and problem.violation(w) <= 0.0


def unconstrained(problem: Problem) -> bool:
    return problem.constraints.count == 0 and isinstance(problem.domain, Everywhere)


def feasible(problem: Problem, start: Vector) -> Vector:
    """A feasible point near the start, or the nearest one; where that is expensive, 0 if it is
    feasible: a start that breaks the rules is rarely better.
    """
    near = feasible_set(problem.constraints, problem.domain).near(start)
    if near is not None and is_feasible(problem, near):
        return near
    nothing = np.zeros(start.size)
    if start.size > COSTS.largest_factored and is_feasible(problem, nothing):
        return nothing
    return np.asarray(project(start, problem.constraints, problem.domain).w)


def splitting_of(problem: Problem) -> Splitting:
    """Prepared once: one piece for the whole feasible set where a matrix of all parameters is
    factored, one piece per kind of rule beyond.
    """
    return prepared(problem, "splitting", lambda: _new_splitting(problem))


def _new_splitting(problem: Problem) -> Splitting:
    if largest_block(_risk(problem)) <= COSTS.largest_factored:
        return whole_set_splitting(problem.dimension, _projection(problem))
    return feasible_set(problem.constraints, problem.domain).by_kind


def _projection(problem: Problem) -> Callable[[Vector, Any], tuple[Vector, Any]]:
    constraints, domain = problem.constraints, problem.domain

    def nearest(w: Vector, warm: object) -> tuple[Vector, Any]:
        found = project(w, constraints, domain, warm=warm)
        return found.w, found.warm

    return nearest


def _whole(problem: Problem) -> EmpiricalRisk | ShardedRisk:
    objective: object = problem.objective
    assert isinstance(objective, EmpiricalRisk | ShardedRisk)  # `objection_to` has seen to that
    return objective


def _risk(problem: Problem) -> EmpiricalRisk:
    """The objective; of one in shards its loss and penalties."""
    objective = _whole(problem)
    risk = objective.template if isinstance(objective, ShardedRisk) else objective
    assert isinstance(risk, EmpiricalRisk)
    return risk
