"""Quadratic programs with sparse rows, ready for the interior point: opposite rows are
equalities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.projections.unit_rows import UnitRows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """Minimise x'P x / 2 + q.x subject to rows @ x <= right and ties @ x = level.

    `ids` numbers the unit rows they are; `tie_ids` and `opposite_ids` the two of every equality.
    """

    P: Any
    q: Floats
    rows: Any
    right: Floats
    ties: Any
    level: Floats
    ids: Indices
    tie_ids: Indices
    opposite_ids: Indices

    @classmethod
    def of(cls, P: Any, q: Floats, unit: UnitRows, right: Floats) -> QuadraticProgram:
        """All unit rows with finite right sides; opposite rows with opposite right sides become one
        equality.
        """
        finite = np.flatnonzero(np.isfinite(right))
        rows = sparse.csr_matrix(unit.take(finite))
        rows.sort_indices()
        first, second = opposite_rows(rows, right[finite])
        single = np.ones(finite.size, dtype=bool)
        single[first] = single[second] = False
        kept, bend = finite[single], sparse.csr_matrix(P)
        return cls(
            bend,
            q,
            rows[single],
            right[kept],
            rows[first],
            right[finite[first]],
            kept,
            finite[first],
            finite[second],
        )

    @property
    def dimension(self) -> int:
        return int(self.q.size)

    def value(self, x: Floats) -> float:
        return 0.5 * float(x @ (self.P @ x)) + float(self.q @ x)

    @cached_property
    def separate_bends(self) -> Floats:
        """The diagonal of P where it is all of P, else zeros."""
        diagonal = self.P.diagonal()
        return (
            diagonal
            if np.count_nonzero(self.P.data) == np.count_nonzero(diagonal)
            else np.zeros(self.dimension)
        )

    @cached_property
    def backward(self) -> Any:
        return self.rows.T.tocsr()

    @cached_property
    def tie_backward(self) -> Any:
        return self.ties.T.tocsr()


def opposite_rows(rows: Any, right: Floats) -> tuple[Indices, Indices]:
    """Pairs of rows a x <= b and -a x <= -b: they share a key but for its sign, and are compared
    entry by entry.
    """
    key = np.asarray(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))
    order = np.lexsort((np.sign(key), np.sign(key) * right, np.abs(key)))
    one, two = order[:-1], order[1:]
    alike = (key[one] == -key[two]) & (key[one] != 0.0) & (right[one] == -right[two])
    alike[1:] &= ~alike[:-1]  # a row has one partner
    one, two = one[alike], two[alike]
    different = abs(rows[one] + rows[two]).sum(axis=1) if one.size else np.zeros(0)
    same = np.asarray(different).ravel() == 0.0
    return one[same], two[same]
