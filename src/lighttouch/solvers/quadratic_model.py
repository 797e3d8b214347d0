"""A quadratic model of a mean loss, from examples in memory or from sums over shards.

The loss of each example is replaced by a quadratic that touches it at the present prediction; the
sum is w'Hw / 2 - c.w with H = X' diag(curvatures) X + penalty.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import EPSILON, Floats, Vector
from lighttouch.cholesky import Cholesky
from lighttouch.kernels.numerics.matrices import grouped_gram, mirror, nonzero_gram
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.objectives import EmpiricalRisk, FactoredSquares, ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections.splitting import (
    BlockDiagonal,
    Blocks,
    SplittingState,
    cholesky_solver,
    row_blocks,
    solver_by_parts,
)
from lighttouch.running import check_deadline, prepared
from lighttouch.solvers.base import EndingState
from lighttouch.solvers.bounds import Normal
from lighttouch.solvers.costs import COSTS

SQUARES = "X' diag(shares) X"  # what is prepared for squared errors: the same in every model
LAST = "the last matrix, and the point whose curvatures it has"
REFERENCE = "the point whose curvatures the last matrix has"
NEAR = "a point and X' diag(shares * curvatures there) X"  # what may be prepared for other losses


@dataclass
class QuadraticState(EndingState):
    """The point, the width of rounded kinks, the best point so far and where ADMM stands."""

    w: Vector
    width: float
    narrowest: float
    value: float  # of the rounded objective at w
    best: Vector
    best_objective: float
    splitting: SplittingState
    examples: int
    reference: Vector  # the point whose curvatures the last model had
    outside: Vector = field(default_factory=lambda: np.zeros(0))
    """The start where it was not feasible, until the first model, which is that at this point: its
    minimum under the rules is nearer to the optimum than the nearest feasible point."""
    gap: float = math.inf  # proven: the best objective lies so far above the optimum at most


@dataclass(frozen=True, eq=False)
class Curved(ABC):
    """X' diag(curvatures) X, and the factor of the same with the penalty: once, however many models
    it serves.
    """

    penalty: Any

    @property
    @abstractmethod
    def wide(self) -> Vector:
        """X' diag(curvatures) X of all parameters, as an array of its own."""

    @property
    def matrix(self) -> Vector:
        """With the penalty; made anew, because few ask for it once there is a factor."""
        total = self.wide
        entries = self.penalty.tocoo()
        np.add.at(total, (entries.row, entries.col), entries.data)
        return total

    @cached_property
    def factor(self) -> Cholesky | None:
        """None where there is none."""
        return Cholesky.of(self.matrix)


@dataclass(frozen=True, eq=False)
class Curvature(Curved):
    """By a matrix that is kept."""

    squares: Vector
    """It may leave out the last parameters, if no prediction depends on them."""

    @property
    def wide(self) -> Vector:
        total, known = np.zeros(self.penalty.shape), self.squares.shape[0]
        total[:known, :known] = self.squares
        return total

    def hessian_of_losses(self, w: Vector) -> Vector:
        """X' diag(curvatures) X w."""
        known = self.squares.shape[0]
        return np.pad(np.asarray(self.squares @ w[:known]), (0, w.size - known))


@dataclass(frozen=True, eq=False)
class CurvatureOfFactor(Curved):
    """Of squares that are known by the factor of their matrix; the matrix is made anew whenever it
    is asked for.
    """

    squares: FactoredSquares

    @property
    def wide(self) -> Vector:
        return np.asarray(self.squares.X.T @ self.squares.X) / self.squares.examples

    @cached_property
    def factor(self) -> Cholesky | None:
        return self.squares.factor


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
    known: Curved | None = None  # of an earlier model, where it serves for this one

    @cached_property
    def _whole(self) -> Curved:
        """Of one block."""
        return self.known or Curvature(self.penalty, gram(self.X, self.curvatures))

    @property
    def matrix(self) -> Vector | BlockDiagonal | None:
        """None where only products are known."""
        if not self.dense:
            return None
        return self._whole.matrix if len(self.blocks) == 1 else self.by_blocks

    @cached_property
    def by_blocks(self) -> BlockDiagonal:
        """The matrix, of several blocks."""
        parts = (
            (here, gram(self.X[rows, here], self.curvatures[rows])) for rows, here in self.blocks
        )
        return BlockDiagonal(tuple(parts)).plus(self.penalty)

    @property
    def factor(self) -> Cholesky | None:
        """None where the matrix has several blocks or no factor."""
        return self._whole.factor if self.dense and len(self.blocks) == 1 else None

    @cached_property
    def together(self) -> Curved | None:
        """The matrix of all parameters at once, also where it has blocks; None where only products
        are known.
        """
        if not self.dense:
            return None
        if len(self.blocks) == 1:
            return self._whole
        return Curvature(sparse.csr_matrix(self.penalty.shape), self.by_blocks.toarray())

    @cached_property
    def diagonal(self) -> Vector:
        if (matrix := self.matrix) is not None:
            return matrix.diagonal()
        squares = self.X.multiply(self.X) if sparse.issparse(self.X) else np.square(self.X)
        squared = np.asarray(squares.T @ self.curvatures).ravel()
        return np.asarray(squared + self.penalty.diagonal())

    def apply(self, w: Vector) -> Vector:
        return np.asarray(self.hessian_of_losses(w) + self.penalty @ w)

    def hessian_of_losses(self, w: Vector) -> Vector:
        return np.asarray(self.transposed @ (self.curvatures * np.asarray(self.X @ w)))


def quadratic_model(
    risk: EmpiricalRisk, w: Vector, z: Vector, state: QuadraticState
) -> QuadraticModel:
    """The model at w, where the predictions are z.

    Its gradient at w is that of the rounded objective, so that c = H w - gradient. With the penalty
    ||D w - t||^2 / 2 this is X'(k X w - s) + D't: the penalty's own curvature cancels.
    """
    slopes, curvatures = losses.quadratic(risk.loss_row, z, risk.y, state.width)
    blocks = blocks_of(risk)
    dense = largest_block(risk) <= COSTS.largest_factored
    curved, known = risk.shares * curvatures, None
    if dense and len(blocks) == 1 and risk.loss_row.name == "squared":
        known = _of_squares(risk)
    elif dense and keeps_matrix(risk.loss_row, blocks):
        curved, known = _near(risk, w, curved, state)
    transposed = risk.X.T if dense else prepared(risk, "transposed X", lambda: _transposed(risk.X))
    moved = z if risk.offset is None else z - risk.offset
    c = np.asarray(transposed @ (curved * moved - risk.shares * slopes))
    if risk.roughness.shape[0]:
        c = c + risk.roughness.T @ risk.roughness_target
    penalty = risk.penalty_matrix
    return QuadraticModel(risk.X, transposed, curved, penalty, c, dense, blocks, known)


def _of_squares(risk: EmpiricalRisk) -> Curved:
    """Of squared errors, the same in every model."""
    if isinstance(risk, FactoredSquares):
        return CurvatureOfFactor(risk.penalty_matrix, risk)
    squares = prepared(risk, SQUARES, lambda: gram(risk.X, risk.shares))
    return Curvature(risk.penalty_matrix, squares)


def keeps_matrix(row: LossRow, blocks: Blocks) -> bool:
    """Whether a matrix of second derivatives serves for several models: where the loss has no
    kinks. The gradient is always exact, so that steps still go downhill (a chord method; Ortega and
    Rheinboldt 1970).
    """
    return not row.kinked and row.name != "squared" and len(blocks) == 1


def _near(
    risk: EmpiricalRisk, w: Vector, curved: Vector, state: QuadraticState
) -> tuple[Vector, Curvature]:
    """Weighted curvatures and their Gram matrix: those of the last model while they are near."""
    given = given_matrix(risk)
    last: dict[str, Any] = prepared(risk, LAST, dict)
    if "point" not in last or not np.array_equal(last["point"], state.reference):
        last.clear()
        z = risk.predictions(state.reference)
        curvatures = losses.quadratic(risk.loss_row, z, risk.y, state.width)[1]
        last.update(point=state.reference, curved=risk.shares * curvatures)
    if np.abs(curved - last["curved"]).sum() > COSTS.model_stale * last["curved"].sum():
        state.reference = w.copy()
        last.clear()
        last.update(point=state.reference, curved=curved)
    if "matrix" not in last:
        if given is not None and np.array_equal(given[0], state.reference):
            last["matrix"] = given[1]
        else:
            last["matrix"] = gram(risk.X, last["curved"])
        last["known"] = Curvature(risk.penalty_matrix, last["matrix"])
    return last["curved"], last["known"]


def first_reference(risk: EmpiricalRisk | ShardedRisk, w: Vector) -> Vector:
    """The point whose curvatures the first model has: that of the last run's last one, one for
    which the matrix is known, or w.
    """
    last: dict[str, Vector] = prepared(risk, REFERENCE, dict)
    given = given_matrix(risk)
    return last.get("point", w if given is None else given[0])


def begin_where_it_ended(risk: EmpiricalRisk | ShardedRisk, ended: object) -> None:
    """The next run on these examples begins with the matrix of the last one, which `ended` in this
    state: it is still known, unless that run was resumed at its end; then it is formed again.
    """
    if isinstance(ended, QuadraticState):
        last: dict[str, Vector] = prepared(risk, REFERENCE, dict)
        last["point"] = ended.reference


def given_matrix(risk: EmpiricalRisk | ShardedRisk) -> tuple[Vector, Vector] | None:
    """A point, and the matrix with the curvatures there, that a fit before has left."""
    found: tuple[Vector, Vector] | None = vars(risk).get("_prepared", {}).get(NEAR)
    return found


def blocks_of(risk: EmpiricalRisk) -> Blocks:
    """Models that share no parameter, such as one per quantile, have a Hessian of blocks."""
    return prepared(risk, "blocks", lambda: row_blocks(risk.X, risk.penalty_matrix))


def largest_block(risk: EmpiricalRisk) -> int:
    return max(int(here.stop - here.start) for _, here in blocks_of(risk))


def _transposed(X: Any) -> Any:
    return X.T.tocsr() if sparse.issparse(X) else X.T


def value_at(risk: EmpiricalRisk, z: Vector, w: Vector, width: float) -> float:
    """The objective with its kinks rounded, at w, where the predictions are z."""
    mean = float(risk.shares @ losses.values(risk.loss_row, z, risk.y, width))
    return mean + risk.penalty_value(w)


def forced_minimum(state: QuadraticState, model: QuadraticModel) -> Vector | None:
    """The model's minimum under the force of ADMM's multipliers; None where it is not known."""
    if not model.dense:
        return None
    force = model.c - state.splitting.multipliers
    if model.factor is not None:
        return model.factor.solved(force)
    assert model.matrix is not None
    try:
        return cholesky_solver(model.matrix.copy())(force, force)
    except scipy.linalg.LinAlgError:
        return None


def tangent_point(model: QuadraticModel, force: Vector) -> Vector | None:
    """Where the penalty's slope balances a force; None where its Hessian cannot be factored."""
    try:
        return -solver_by_parts(model.penalty)(force)
    except scipy.linalg.LinAlgError:
        return None


def admm_normal(problem: Problem, state: QuadraticState) -> Normal:
    """ADMM's multipliers as a normal of the feasible set at its copies."""
    v, copies = state.splitting.multipliers, state.splitting.z
    lower, upper = problem.domain.bounds(problem.dimension)
    rounding = COSTS.outward * EPSILON * float(np.linalg.norm(v))
    away = np.maximum(upper - copies, copies - lower)
    return Normal(v, copies, away, rounding, rounding * float(np.linalg.norm(copies)))


# -------------------------------------------------------------------------------------------------
# Weighted Gram matrices X' diag(weights) X of all kinds of rows.


def gram(X: Any, weights: Vector) -> Vector:
    """X' diag(weights) X, symmetric and dense; ends with an OutOfTimeError once the time is over,
    because it takes longer than anything else in a step.
    """
    if not sparse.issparse(X):
        return np.asarray(X.T @ (weights[:, None] * X))
    out = np.zeros((X.shape[1], X.shape[1]))
    add_gram(X, weights, out)
    mirror(out)
    return out


def add_gram(X: sparse.csr_matrix, weights: Vector, out: Vector) -> None:
    """Add X' diag(weights) X to the lower triangle of a matrix that lies row by row; weights are
    not negative. What is above the diagonal means nothing until `mirror` is called in the end.
    """
    X = X if X.has_sorted_indices else X.sorted_indices()
    entries = int(np.count_nonzero(X.data))
    groups = _column_groups(X) if entries > COSTS.gram_nonzero * X.nnz else None
    weights = np.ascontiguousarray(weights)
    stride = X.shape[0] * COSTS.gram_entries // max(1, X.nnz)  # rows that stay in the cache
    if is_dense(entries, X.shape):
        add_gram_of_dense(lambda here: X[here].toarray(), weights, out)
    elif groups is None:
        _add_gram_of_nonzeros(X, weights, max(1, stride), out)
    else:
        _add_grouped_gram(X, groups, weights, max(1, stride), out)


def _add_gram_of_nonzeros(X: sparse.csr_matrix, weights: Vector, stride: int, out: Vector) -> None:
    longest = int(np.diff(X.indptr).max(initial=0))
    scratch = np.empty(longest, dtype=X.indices.dtype), np.empty(longest)
    for first in range(0, X.shape[0], stride):
        check_deadline()
        ends = X.indptr[first : first + stride + 1]
        nonzero_gram(X.data, X.indices, ends, weights[first : first + stride], *scratch, out)


def _add_grouped_gram(
    X: sparse.csr_matrix, groups: Any, weights: Vector, stride: int, out: Vector
) -> None:
    rows, width = X.shape[0], int(groups[-1])
    places, values = X.indices.reshape(rows, width), X.data.reshape(rows, width)
    for first in range(0, rows, stride):
        check_deadline()
        here = slice(first, first + stride)
        there, shares = _by_group(places[here], groups), _by_group(values[here], groups)
        grouped_gram(there, shares, np.diff(groups), weights[here], out)


def _by_group(entries: Any, groups: Any) -> Any:
    """The entries of all rows in the first group, then those in the second one, and so on."""
    rows, out = entries.shape[0], np.empty(entries.size, dtype=entries.dtype)
    for low, high in itertools.pairwise(groups.tolist()):
        out[low * rows : high * rows].reshape(rows, -1)[:] = entries[:, low:high]
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
    if cuts.size == 0:
        return None
    found = [0]
    for cut in cuts.tolist():
        if cut - found[-1] >= COSTS.gram_width:
            found.append(cut)
    return np.array([*found, width], dtype=np.int64)


def is_dense(entries: int, shape: tuple[int, ...]) -> bool:
    """Whether so many entries that dense products are faster."""
    return entries > COSTS.gram_dense * shape[0] * shape[1]


def add_gram_of_dense(rows_of: Callable[[slice], Floats], weights: Vector, out: Vector) -> None:
    """The same from dense rows, which are made when they are needed, and overwritten."""
    roots = np.sqrt(weights)
    stride = max(1, COSTS.gram_dense_entries // out.shape[0])
    for first in range(0, weights.size, stride):
        check_deadline()
        here = slice(first, first + stride)
        rows = rows_of(here)
        rows *= roots[here, None]
        # in the order of LAPACK, where the lower triangle is the upper one of the transpose
        scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=out.T, lower=0, overwrite_c=1)


def gram_of_dense(rows_of: Callable[[slice], Floats], dimension: int, weights: Vector) -> Floats:
    """X' diag(weights) X of such rows."""
    out = np.zeros((dimension, dimension))
    add_gram_of_dense(rows_of, weights, out)
    mirror(out)
    return out
