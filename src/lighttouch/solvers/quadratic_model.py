"""A quadratic model of a mean loss, from examples in memory or from sums over shards.

The loss of each example is replaced by a quadratic that touches it at the present prediction; the
sum is w'Hw / 2 - c.w with H = X' diag(curvatures) X + penalty.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import Vector
from lighttouch.kernels.numerics.gram import grouped_gram, weighted_gram
from lighttouch.objectives import EmpiricalRisk
from lighttouch.projections.blocks import BlockDiagonal, Blocks, row_blocks
from lighttouch.projections.splitting import SplittingState
from lighttouch.running import prepared
from lighttouch.solvers.base import SolverState
from lighttouch.solvers.costs import COSTS

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


def value_at(risk: EmpiricalRisk, z: Vector, w: Vector, width: float) -> float:
    """The objective with its kinks rounded, at w, where the predictions are z."""
    mean = float(risk.shares @ losses.values(risk.loss_row, z, risk.y, width))
    return mean + risk.penalty_value(w)


def dense_penalty(penalty: Any, blocks: Blocks) -> Vector | BlockDiagonal:
    if len(blocks) == 1:
        return np.asarray(penalty.todense())
    rows = sparse.csr_matrix(penalty)
    return BlockDiagonal(
        tuple((here, np.asarray(rows[here, here].todense())) for _, here in blocks)
    )
