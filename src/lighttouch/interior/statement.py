"""Objectives as extended linear-quadratic programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.interfaces import Objective
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, Smooth, stacked, times
from lighttouch.interior.tiles import gram
from lighttouch.losses import slope_ranges
from lighttouch.objectives import EmpiricalRisk, Quadratic, WeightedSum
from lighttouch.running import check_deadline


def objection_to(objective: Objective) -> str | None:
    """Why an objective has no such form; None where it has one."""
    if isinstance(objective, WeightedSum):
        return next(filter(None, map(objection_to, objective.objectives)), None)
    if isinstance(objective, EmpiricalRisk | Quadratic):
        return None
    return (
        "its objective must be an EmpiricalRisk, a Quadratic or a sum of them; use Automatic for "
        "others"
    )


def program_of(objective: Objective, fold: bool = True) -> Program:
    """The objective alone, without constraints; with `fold`, squared losses become part of P where
    that is cheaper than their rows.
    """
    if isinstance(objective, WeightedSum):
        pairs = zip(objective.weights, objective.objectives, strict=True)
        parts = [
            times(float(weight), program_of(part, fold)) for weight, part in pairs if weight > 0
        ]
        return stacked(
            [quadratic_program(_zero(objective.dimension), np.zeros(objective.dimension)), *parts]
        )
    if isinstance(objective, Quadratic):
        return stacked([quadratic_program(objective.P, objective.q)])
    assert isinstance(objective, EmpiricalRisk)
    return stacked([_penalty(objective), *_losses(objective, fold)])


def _zero(d: int) -> Matrix:
    return sparse.csr_matrix((d, d))


def quadratic_program(P: Matrix, q: Vector, constant: float = 0.0) -> Program:
    """x'Px/2 + q.x + constant, without rows."""
    none = np.zeros(0)
    return Program(P, np.asarray(q, dtype=np.float64), (), none, none, none, none, (), constant)


def _penalty(risk: EmpiricalRisk) -> Program:
    """(l2/2) |w|^2 + |D w - t|^2 / 2 + l1 |w|_1."""
    t = risk.roughness_target
    q = -np.asarray(risk.roughness.T @ t)
    penalty = quadratic_program(sparse.csr_matrix(risk.penalty_matrix), q, 0.5 * float(t @ t))
    if not risk.l1:
        return penalty
    most = np.full(risk.dimension, risk.l1)
    identity = sparse.identity(risk.dimension, format="csr")
    return stacked([penalty, _rows(identity, np.zeros(risk.dimension), -most, most, 0.0)])


def _losses(risk: EmpiricalRisk, fold: bool) -> Sequence[Program]:
    counted = np.flatnonzero(risk.shares > 0.0)
    whole = counted.size == risk.examples
    X = risk.X if whole else risk.X[counted]
    y, share, row = risk.y[counted], risk.shares[counted], risk.loss_row
    if not whole and np.ndim(row.level):
        row = replace(row, level=np.asarray(row.level)[counted])
    offset = np.zeros(y.size) if risk.offset is None else risk.offset[counted]
    if row.roundness is None:
        smooth = Smooth(0, y.size, share, y, row)
        return [_rows(X, -offset, *_free(y.size), 0.0, (smooth,))]
    least, most = slope_ranges(row, y)
    centre = y - offset
    if row.dead_zone > 0.0:  # (u - e)_+ + (-u - e)_+
        none = np.zeros(y.size)
        return [
            _rows(X, centre + row.dead_zone, none, share * most, 0.0),
            _rows(X, centre - row.dead_zone, share * least, none, 0.0),
        ]
    unbounded = bool(np.isinf(least).all() and np.isinf(most).all())
    if fold and unbounded and row.roundness > 0.0 and _fold(X):
        return [_folded(X, centre, share / row.roundness)]
    return [_rows(X, centre, share * least, share * most, row.roundness / share)]


def _free(count: int) -> tuple[Vector, Vector]:
    return np.full(count, -np.inf), np.full(count, np.inf)


def _rows(
    X: Matrix,
    centre: Vector,
    least: Vector,
    most: Vector,
    roundness: Vector | float,
    smooth: tuple[Smooth, ...] = (),
) -> Program:
    count, d = X.shape
    rounded = np.broadcast_to(roundness, count).astype(np.float64)
    return Program(_zero(d), np.zeros(d), (X,), centre, least, most, rounded, smooth)


def _fold(X: Matrix) -> bool:
    """Whether X'X is worth forming, once, instead of rows in every step; not where that takes too
    much memory or time. Always where it is diagonal: `least_bends` relies on it.
    """
    n, d = X.shape
    if sparse.issparse(X):
        if np.diff(X.indptr).max(initial=0) <= 1:
            return True
        products = _products(X)
        needed = 16.0 * min(products, float(d) * d)  # bytes: a value, a column and room
        if needed > COSTS.largest_matrix or products > COSTS.folded_products:
            return False
    return bool(n >= COSTS.folded_rows * d)


def _squares(X: Matrix, share: Vector) -> Matrix:
    """X' diag(share) X, some rows at a time where that takes long, with looks at the clock."""
    weighted = sparse.csr_matrix(sparse.diags(share) @ X)
    stride = max(1, int(X.shape[0] * COSTS.folded_at_once / max(1.0, _products(X))))
    total = X[:stride].T @ weighted[:stride]
    for first in range(stride, X.shape[0], stride):
        check_deadline()
        here = slice(first, first + stride)
        total = total + X[here].T @ weighted[here]
    return total


def _products(X: Matrix) -> float:
    """Of two entries of the same row."""
    return float(np.square(np.diff(X.indptr), dtype=np.float64).sum())


def _folded(X: Matrix, y: Vector, share: Vector) -> Program:
    """sum share (x.w - y)^2 / 2 as a quadratic form."""
    if sparse.issparse(X):
        P = _squares(X, share)
    elif share.size and share.min() == share.max():  # without a copy of X
        P = share[0] * gram(X)
    else:
        P = gram(np.sqrt(share)[:, None] * X)
    return quadratic_program(P, -np.asarray(X.T @ (share * y)), 0.5 * float(share @ np.square(y)))
