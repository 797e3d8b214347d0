"""Quadratic steps: losses of a linear model under linear rules, one quadratic model after another.

Majorise-minimise (Hunter and Lange 2004), which for the logistic loss is proximal Newton (Lee, Sun
and Saunders 2014): every step replaces the loss of each example by a quadratic that touches it at
the present prediction,

    phi(z) ~ phi(z_i) + s_i (z - z_i) + k_i / 2 (z - z_i)^2      (the rows of `losses`),

minimises the sum, the penalty included, over the feasible set by ADMM (`projections.splitting`),
and goes to the minimum, or part of the way where the objective would not fall. Losses with kinks
are rounded over a width that narrows whenever the steps have stopped gaining.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Everywhere
from lighttouch.interior.quadratic import quadratic_minimum
from lighttouch.kernels.numerics.gram import grouped_gram, weighted_gram
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.blocks import BlockDiagonal, Blocks, row_blocks
from lighttouch.projections.sets import feasible_set
from lighttouch.projections.splitting import (
    Splitting,
    SplittingState,
    cholesky_solver,
    conjugate_gradients,
    whole_set_splitting,
)
from lighttouch.result import Status
from lighttouch.running import one_blas_thread, prepared, seconds_left
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.bounds import Normal, fenchel_bound
from lighttouch.solvers.costs import COSTS, EPSILON
from lighttouch.validation import positive

SQUARES = "X' diag(shares) X"  # what is prepared for squared errors: the same in every model


@dataclass
class QuadraticState(SolverState):
    """The point, the width of rounded kinks, the best point so far and where ADMM stands."""

    w: Vector
    width: float
    narrowest: float
    value: float  # of the rounded objective at w
    best: Vector
    best_objective: float
    splitting: SplittingState
    examples: int
    gap: float = math.inf  # proven: the best objective lies so far above the optimum at most
    ended: bool = False


@dataclass(frozen=True)
class QuadraticModel:
    """The quadratic w'Hw / 2 - c.w with H = X' diag(curvatures) X + penalty."""

    X: Any
    transposed: Any
    curvatures: Vector
    penalty: Any
    c: Vector
    dense: bool
    blocks: Blocks
    squares: Vector | None = None  # X' diag(curvatures) X, where it is known

    @cached_property
    def matrix(self) -> Vector | BlockDiagonal | None:
        if not self.dense:
            return None
        if len(self.blocks) == 1:
            squares = gram(self.X, self.curvatures) if self.squares is None else self.squares
            total = np.array(squares)
            entries = self.penalty.tocoo()
            np.add.at(total, (entries.row, entries.col), entries.data)
            return total
        parts = (
            (here, gram(self.X[rows, here], self.curvatures[rows])) for rows, here in self.blocks
        )
        return BlockDiagonal(tuple(parts)).plus(self.penalty)

    @cached_property
    def diagonal(self) -> Vector:
        if self.matrix is not None:
            return self.matrix.diagonal()
        squares = self.X.multiply(self.X) if sparse.issparse(self.X) else np.square(self.X)
        squared = np.asarray(squares.T @ self.curvatures).ravel()
        return np.asarray(squared + self.penalty.diagonal())

    def apply(self, w: Vector) -> Vector:
        return np.asarray(self.hessian_of_losses(w) + self.penalty @ w)

    def hessian_of_losses(self, w: Vector) -> Vector:
        return np.asarray(self.transposed @ (self.curvatures * np.asarray(self.X @ w)))


def quadratic_model(risk: EmpiricalRisk, w: Vector, z: Vector, width: float) -> QuadraticModel:
    """The model at w, where the predictions are z.

    Its gradient at w is that of the rounded objective, so that c = H w - gradient. With the penalty
    ||D w - t||^2 / 2 this is X'(k X w - s) + D't: the penalty's own curvature cancels.
    """
    slopes, curvatures = losses.quadratic(risk.loss_row, z, risk.y, width)
    transposed = prepared(risk, "transposed X", lambda: _transposed(risk.X))
    curved = risk.shares * curvatures
    moved = z if risk.offset is None else z - risk.offset
    c = np.asarray(transposed @ (curved * moved - risk.shares * slopes))
    if risk.roughness.shape[0]:
        c = c + risk.roughness.T @ risk.roughness_target
    blocks = blocks_of(risk)
    dense = largest_block(risk) <= COSTS.largest_factored
    squares = None
    if dense and len(blocks) == 1 and risk.loss_row.name == "squared":
        squares = prepared(risk, SQUARES, lambda: gram(risk.X, risk.shares))
    penalty = risk.penalty_matrix
    return QuadraticModel(risk.X, transposed, curved, penalty, c, dense, blocks, squares)


def blocks_of(risk: EmpiricalRisk) -> Blocks:
    """Models that share no parameter, such as one per quantile, have a Hessian of blocks."""
    return prepared(risk, "blocks", lambda: row_blocks(risk.X, risk.penalty_matrix))


def largest_block(risk: EmpiricalRisk) -> int:
    return max(int(here.stop - here.start) for _, here in blocks_of(risk))


def gram(X: Any, weights: Vector) -> Vector:
    """X' diag(weights) X, symmetric and dense."""
    if not sparse.issparse(X):
        return np.asarray(X.T @ (weights[:, None] * X))
    out = np.zeros((X.shape[1], X.shape[1]))
    groups = _column_groups(X)
    if groups is None:
        weighted_gram(X.data, X.indices, X.indptr, weights, out)
        return np.asarray(out + np.tril(out, -1).T)
    rows, width = X.shape[0], int(groups[-1])
    places, values = X.indices.reshape(rows, width), X.data.reshape(rows, width)
    parts = [slice(low, high) for low, high in itertools.pairwise(groups.tolist())]
    grouped_gram(
        np.concatenate([places[:, part].ravel() for part in parts]),
        np.concatenate([values[:, part].ravel() for part in parts]),
        np.diff(groups),
        np.ascontiguousarray(weights),
        out,
    )
    return out


def _column_groups(X: Any) -> Any:
    """Where the entries of a row are cut, such that every row has the same number of entries in
    each of several ranges of columns; None where rows differ, or there is one range only.

    Features of curves and lattices are of this kind: a term has a range of columns of its own.
    """
    rows = X.shape[0]
    width = X.nnz // rows if rows else 0
    if width < 2 or X.nnz != width * rows or (np.diff(X.indptr) != width).any():
        return None
    places = X.indices.reshape(rows, width)
    first, last = places.min(axis=0), places.max(axis=0)
    cuts = np.flatnonzero(first[1:] > np.maximum.accumulate(last)[:-1]) + 1
    return None if cuts.size == 0 else np.array([0, *cuts, width], dtype=np.int64)


def _transposed(X: Any) -> Any:
    return X.T.tocsr() if sparse.issparse(X) else X.T


@dataclass(frozen=True)
class QuadraticSteps(BaseSolver[QuadraticState]):
    """One quadratic model of the objective after another, each minimised under the rules by ADMM.

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

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        if not isinstance(problem.objective, EmpiricalRisk):
            return "it needs the mean loss of a linear model (EmpiricalRisk); use Automatic"
        if problem.objective.l1 > 0.0:
            return "it needs an objective without l1; use Automatic"
        row = problem.objective.loss_row
        if row.users is not None and row.kinked:
            return "it needs the curvature of a CustomLoss; give it, or use Automatic"
        if not feasible_set(problem.constraints, problem.domain).is_linear:
            return "it needs linear constraints in a box or everywhere; use Automatic"
        return None

    def init(self, problem: Problem, start: Vector) -> QuadraticState:
        risk = _risk(problem)
        w = start.copy() if problem.violation(start) == 0.0 else feasible(problem, start)
        z = risk.predictions(w)
        row = risk.loss_row
        first = (
            COSTS.model_first_width * losses.typical_residual(row, z, risk.y) if row.kinked else 0.0
        )
        width = max(COSTS.least_width, first) if row.kinked else 0.0
        splitting = splitting_of(problem)
        return QuadraticState(
            new_counters(),
            w,
            width,
            COSTS.model_narrowest * width,
            value_at(risk, z, w, width),
            w.copy(),
            value_at(risk, z, w, 0.0),
            splitting.begin(np.zeros(w.size)),
            risk.examples,
        )

    def advance(
        self, problem: Problem, state: QuadraticState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` models. It returns early after a slice of time, which changes nothing."""
        until = time.perf_counter() + COSTS.chunk_seconds
        with one_blas_thread():
            for _ in range(steps):
                if state.ended:
                    return
                self._step(problem, state)
                if time.perf_counter() > until:
                    return

    def _step(self, problem: Problem, state: QuadraticState) -> None:
        risk = _risk(problem)
        z = risk.predictions(state.w)
        model = quadratic_model(risk, state.w, z, state.width)
        proposed = minimum_under_rules(problem, model, state, self.inner_tolerance)
        value = backtracked(risk, state, z, proposed)
        gain, state.value = state.value - value, value
        objective = value_at(risk, risk.predictions(state.w), state.w, 0.0)
        if objective < state.best_objective:
            state.best, state.best_objective = state.w.copy(), objective
        state.counters[ITERATION] += 1
        state.counters[SAMPLES] += 2 * risk.examples
        exact = risk.loss_row.name == "squared" and state.splitting.settled
        if exact or gain <= self.tolerance * max(abs(value), COSTS.least_objective):
            self._narrow_or_end(problem, state, model, z)

    def _narrow_or_end(
        self, problem: Problem, state: QuadraticState, model: QuadraticModel, z: Vector
    ) -> None:
        risk = _risk(problem)
        if state.width <= state.narrowest:
            state.gap = state.best_objective - lower_bound(problem, state, model, z)
            state.ended = True
            return
        state.width = max(state.narrowest, state.width * COSTS.model_narrowing)
        z = risk.predictions(state.w)
        state.value = value_at(risk, z, state.w, state.width)

    @property
    def inner_tolerance(self) -> float:
        """Residuals of ADMM, relative: an error there changes the objective by its square."""
        return float(min(COSTS.model_residual, COSTS.model_residual_share * self.tolerance**0.5))

    def finished(self, state: QuadraticState) -> Status | None:
        if not state.ended:
            return None
        return Status.CONVERGED if abs(state.gap) <= self.accuracy(state) else Status.STALLED

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


def lower_bound(problem: Problem, state: QuadraticState, model: QuadraticModel, z: Vector) -> float:
    """No feasible point has a smaller objective: Fenchel's bound from ADMM's multipliers v.

    They are normal to the feasible set at its copies. The slopes are those of the model at its
    minimum under the force v, the penalty's tangent is taken where it balances both. The bound is
    -inf where the penalty's Hessian cannot be factored.
    """
    risk = _risk(problem)
    if model.matrix is None:
        return -math.inf
    v, copies = state.splitting.multipliers, state.splitting.z
    try:
        w = cholesky_solver(model.matrix.copy())(model.c - v, v)
        penalty = cholesky_solver(_dense(model.penalty, model.blocks))
    except scipy.linalg.LinAlgError:
        return -math.inf
    slopes, curvatures = losses.quadratic(risk.loss_row, z, risk.y, state.width)
    slopes += curvatures * (risk.predictions(w) - z)
    allowed, _ = losses.conjugate_values(risk.loss_row, slopes, risk.y)
    force = np.asarray(model.transposed @ (risk.shares * allowed)) + v
    force -= risk.roughness.T @ risk.roughness_target
    lower, upper = problem.domain.bounds(problem.dimension)
    rounding = COSTS.outward * EPSILON * float(np.linalg.norm(v))
    away = np.maximum(upper - copies, copies - lower)
    normal = Normal(v, copies, away, rounding, rounding * float(np.linalg.norm(copies)))
    return fenchel_bound(risk, allowed, normal, -penalty(force, force))


def _dense(penalty: Any, blocks: Blocks) -> Vector | BlockDiagonal:
    if len(blocks) == 1:
        return np.asarray(penalty.todense())
    rows = sparse.csr_matrix(penalty)
    return BlockDiagonal(
        tuple((here, np.asarray(rows[here, here].todense())) for _, here in blocks)
    )


def value_at(risk: EmpiricalRisk, z: Vector, w: Vector, width: float) -> float:
    """The objective with its kinks rounded, at w, where the predictions are z."""
    mean = float(risk.shares @ losses.values(risk.loss_row, z, risk.y, width))
    return mean + risk.penalty_value(w)


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
    if model.matrix is not None:
        free = free_minimum(model.matrix, model.c)
        if is_feasible(problem, free):
            state.counters[CHECKS] += problem.constraints.members
            state.splitting.z, state.splitting.settled = free, True
            state.splitting.multipliers = np.zeros(free.size)
            return free
        found = _by_interior(problem, model, state, free, tolerance)
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


def _by_interior(
    problem: Problem, model: QuadraticModel, state: QuadraticState, free: Vector, tolerance: float
) -> Vector | None:
    """The minimum by an interior point; None where there are too many rows, or it fails."""
    rows, matrix = problem.constraints, model.matrix
    if not isinstance(rows, LinearConstraints) or not isinstance(problem.domain, Everywhere):
        return None
    if not isinstance(matrix, np.ndarray) or rows.count > COSTS.interior_rows:
        return None
    if not np.isfinite(free).all():
        return None
    A = sparse.csr_matrix(rows.A)
    found = quadratic_minimum(matrix, model.c, A, rows.b, free, tolerance**2)
    if found is None:
        return None
    at = state.splitting
    normal = np.asarray(A.T @ found.multipliers)
    length = float(normal @ normal)
    at.multipliers, at.settled = normal, True
    at.z = found.w + (found.gap / length if length > 0.0 else 0.0) * normal
    state.counters[CHECKS] += rows.count
    return found.w


def _alternated(
    problem: Problem, model: QuadraticModel, state: QuadraticState, tolerance: float
) -> Vector:
    splitting, at = splitting_of(problem), state.splitting
    only = _risk(problem).loss_row.name == "squared"
    most = COSTS.model_inner_steps if only else COSTS.model_inner_steps_of_many
    before = at.steps
    splitting.minimise(model, at, tolerance, most, lambda: seconds_left() <= 0.0)
    at.warm = (None,) * len(at.warm)  # a state is arrays and numbers; one cold start per model
    state.counters[CHECKS] += problem.constraints.members * (at.steps - before)
    return splitting.ordered(at)


def free_minimum(H: Vector | BlockDiagonal, c: Vector) -> Vector:
    """Of w'Hw / 2 - c.w."""
    if isinstance(H, BlockDiagonal):
        return np.concatenate([free_minimum(block, c[here]) for here, block in H.blocks])
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
    """The nearest feasible point; where that is expensive, 0 if it is feasible: a start that breaks
    the rules is rarely better.
    """
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

    def nearest(w: Vector, warm: Any) -> tuple[Vector, Any]:
        found = project(w, constraints, domain, warm=warm)
        return found.w, found.warm

    return nearest


def _risk(problem: Problem) -> EmpiricalRisk:
    assert isinstance(problem.objective, EmpiricalRisk)  # `objection_to` has seen to that
    return problem.objective
