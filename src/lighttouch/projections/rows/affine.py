"""The nearest point of {w: A w = b}: v + A^+ (b - A v).

Dense rows: a QR factorisation with column pivoting of A' (P. Businger and G. Golub, "Linear least
squares solutions by Householder transformations", Numerische Mathematik 7, 1965), which also finds
rows that follow from others. Sparse rows: a factor of [I A'; A -shift], whose shift is refined away
(the method of multipliers). Both are repeated on what rounding has left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import linalg, sparse

from lighttouch.arrays import Floats, Matrix, Vector
from lighttouch.projections.costs import COSTS
from lighttouch.projections.result import EXACT, Nearest
from lighttouch.projections.rows.kinds import row_scale, unit_rows


@dataclass(frozen=True)
class Affine:
    """Equalities alone; `otherwise` takes over where they contradict each other, and says which."""

    A: Matrix
    b: Floats
    otherwise: Callable[[Vector], Nearest]

    @cached_property
    def _unit(self) -> tuple[Matrix, Floats, Floats]:
        """Rows of length one, their right sides, and the lengths; without rows of zeros."""
        scale = row_scale(self.A)
        kept = np.flatnonzero(scale > 0.0)
        rows, length = unit_rows(self.A, kept, scale)
        matrix = rows if sparse.issparse(rows) else np.asarray(rows)
        return matrix, self.b[kept] / length, length

    @cached_property
    def _step(self) -> Callable[[Floats], tuple[Floats, Floats]]:
        """The shortest step that changes rows @ w by what is given, and its multipliers."""
        rows = self._unit[0]
        return _sparse_step(rows) if sparse.issparse(rows) else _dense_step(np.asarray(rows))

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        rows, right, length = self._unit
        zeros = row_scale(self.A) == 0.0
        w, weights = v.copy(), np.zeros(right.size)
        for _ in range(COSTS.affine_steps):
            step, multipliers = self._step(right - np.asarray(rows @ w))
            w, weights = w + step, weights - multipliers
        size = max(1.0, float(np.abs(v).max(initial=0.0)), float(np.abs(w).max(initial=0.0)))
        left = float(np.abs(np.asarray(rows @ w) - right).max(initial=0.0))
        if not left <= COSTS.tolerance * size or np.any(self.b[zeros] != 0.0):
            return self.otherwise(v)
        full = np.zeros(self.b.size)
        full[~zeros] = weights / length
        return Nearest(w, "closed form: equalities", EXACT, partial(_both_sides, full))


def _both_sides(multipliers: Floats) -> Floats:
    """Multipliers of A w = b as those of A w <= b and -A w <= -b."""
    return np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])


def _dense_step(rows: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    q, r, order = linalg.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diagonal(r))
    rank = int(np.count_nonzero(diagonal > COSTS.dependent_equality * diagonal.max(initial=0.0)))
    basis, corner, kept = q[:, :rank], r[:rank, :rank], order[:rank]

    def step(change: Floats) -> tuple[Floats, Floats]:
        part = linalg.solve_triangular(corner, change[kept], trans="T", check_finite=False)
        multipliers = np.zeros(change.size)
        multipliers[kept] = linalg.solve_triangular(corner, part, check_finite=False)
        return np.asarray(basis @ part), multipliers

    return step


def _sparse_step(rows: Matrix) -> Callable[[Floats], tuple[Floats, Floats]]:
    from scipy.sparse.linalg import splu

    count, dimension = rows.shape
    corner = -COSTS.affine_shift * sparse.identity(count)
    system = sparse.bmat([[sparse.identity(dimension), rows.T], [rows, corner]], format="csc")
    factor = splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def step(change: Floats) -> tuple[Floats, Floats]:
        found = factor.solve(np.concatenate([np.zeros(dimension), change]))
        multipliers = -found[dimension:]
        return np.asarray(rows.T @ multipliers), multipliers

    return step
