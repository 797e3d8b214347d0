"""The rows of a problem as the interior point takes them: all at once, or those found broken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.problem import Problem
from lighttouch.projections.rows.interior_point import opposite_rows


@dataclass(frozen=True, eq=False)
class Rows:
    """Stored rows matrix w <= right, or = where `equal`; `constraint` says which one each is, and
    `sign` is -1 where an equality is given by the opposite row.
    """

    matrix: Matrix
    right: Vector
    equal: Booleans
    constraint: Indices

    @property
    def count(self) -> int:
        return int(self.right.size)

    def take(self, ids: Indices) -> tuple[Matrix, Vector, Booleans]:
        return self.matrix[ids], self.right[ids], self.equal[ids]

    def broken(self, w: Vector, known: Indices, most: int) -> Indices:
        """The worst rows beyond their right sides that are not known yet, at most so many."""
        excess = np.asarray(self.matrix @ w - self.right) / self.lengths
        excess[known] = 0.0
        found = np.flatnonzero(excess > 0.0)
        if found.size > most:
            found = found[np.argpartition(-excess[found], most)[:most]]
        return np.sort(found)

    @property
    def lengths(self) -> Floats:
        if sparse.issparse(self.matrix):
            squares = np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", self.matrix, self.matrix)
        return np.where(squares > 0.0, np.sqrt(squares), 1.0)


def rows_of(problem: Problem) -> Rows:
    """All rows; opposite ones are merged into an equality."""
    found = problem.constraints.linear_rows()
    assert found is not None
    matrix, right = found
    count = right.size
    equal = np.zeros(count, dtype=bool)
    kept = np.ones(count, dtype=bool)
    if sparse.issparse(matrix) or matrix.size <= COSTS.largest_compared:
        first, second = opposite_rows(sparse.csr_matrix(matrix), right)
        equal[first], kept[second] = True, False
    ids = np.flatnonzero(kept)
    if ids.size == count:
        return Rows(matrix, right, equal, ids)
    return Rows(matrix[ids], right[ids], equal[ids], ids)
