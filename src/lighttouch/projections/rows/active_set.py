"""The few rows a lazy projection works with: their Gram matrix, and the dual active-set method on
it.

The method is Goldfarb and Idnani's (D. Goldfarb and A. Idnani, "A numerically stable dual method
for solving strictly convex quadratic programs", Mathematical Programming 27, 1983), written in the
Gram matrix of the rows (`kernels/numerics/dual_active_set.py`). It is written by hand because it
hands over the weights of rows that contradict each other; quadprog and daqp do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix, dense
from lighttouch.kernels.numerics.dual_active_set import (
    CONTRADICTION,
    STEP_LIMIT,
    dual_active_set,
)
from lighttouch.projections.costs import COSTS
from lighttouch.running import deadline


@dataclass
class WorkingSet:
    """Rows by number (`ids`), their entries, right sides, Gram matrix and multipliers; `active`
    holds positions in `ids`.
    """

    rows: Matrix
    ids: Indices
    right: Floats
    gram: Floats
    active: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weights: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def empty(cls, like: Matrix) -> WorkingSet:
        return cls(like[:0], np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0)))

    def add(self, rows: Matrix, ids: Indices, right: Floats) -> None:
        """Append rows; only the new part of the Gram matrix is computed."""
        cross = dense(self.rows @ rows.T)
        corner = dense(rows @ rows.T)
        self.gram = np.block([[self.gram, cross], [cross.T, corner]])
        self.rows = (
            sparse.vstack([self.rows, rows], format="csr")
            if sparse.issparse(rows)
            else np.vstack([self.rows, rows])
        )
        self.ids = np.concatenate([self.ids, ids])
        self.right = np.concatenate([self.right, right])

    def keep(self, kept: Indices) -> None:
        """Forget all but the given positions, which must include the active ones."""
        place = np.full(self.ids.size, -1, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        self.rows, self.ids, self.right, self.gram = (
            self.rows[kept],
            self.ids[kept],
            self.right[kept],
            self.gram[np.ix_(kept, kept)],
        )
        self.active = place[self.active]

    def start_from(self, positions: Indices) -> None:
        """Make an independent part of the given rows active, dropping rows until every multiplier
        is positive.
        """
        while positions.size:
            positions = independent(self.gram, positions)
            gram = self.gram[np.ix_(positions, positions)]
            weights = np.asarray(np.linalg.solve(gram, -self.right[positions]), dtype=np.float64)
            if np.all(weights >= 0.0):
                self.active, self.weights = positions, weights
                return
            positions = positions[weights > 0.0]
        self.active, self.weights = np.empty(0, dtype=np.int64), np.empty(0)

    def solve(self, tolerance: float, steps: int) -> tuple[int, Floats]:
        """Run the active-set method; returns its outcome and, on a contradiction, the weights of
        the rows that prove it.
        """
        capacity = min(self.ids.size, self.rows.shape[1]) + 1
        factor = np.zeros((capacity, capacity))
        active = np.zeros(capacity, dtype=np.int64)
        weights = np.zeros(capacity)
        size = self.active.size
        active[:size], weights[:size] = self.active, self.weights
        if size:
            factor[:size, :size] = np.linalg.cholesky(self.gram[np.ix_(self.active, self.active)])
        excess = np.empty(self.ids.size)
        at_once = max(
            COSTS.active_set_least_steps,
            int(COSTS.active_set_operations / (capacity * self.ids.size + 1.0)),
        )
        outcome = STEP_LIMIT
        while outcome == STEP_LIMIT and steps > 0:
            deadline.check()
            outcome, size, row, direction = dual_active_set(
                self.gram,
                self.right,
                factor,
                active,
                weights,
                size,
                excess,
                tolerance,
                COSTS.dependent_row,
                min(steps, at_once),
            )
            steps -= at_once
        self.active, self.weights = active[:size], weights[:size]
        proof = np.zeros(self.ids.size)
        if outcome == CONTRADICTION:
            proof[self.active] = np.maximum(0.0, -direction[:size])
            proof[row] = 1.0
        return outcome, proof

    def point(self) -> Floats:
        """The point -rows.T @ multipliers."""
        return -np.asarray(self.rows[self.active].T @ self.weights)


def independent(gram: Floats, positions: Indices) -> Indices:
    """A part of the given rows that is linearly independent: pivoted Cholesky, best conditioned
    first.
    """
    from scipy.linalg.lapack import dpstrf

    _, pivots, rank, _ = dpstrf(
        gram[np.ix_(positions, positions)], tol=COSTS.dependent_start, lower=1
    )
    return np.sort(positions[pivots[:rank] - 1])
