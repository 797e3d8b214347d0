"""Families of rows that compare every member of one set with every larger or smaller member of
another, said with few rows.

Rows below[s](w) - above[t](w) <= right for every s and t that a path of an order joins are as many
as the order has pairs. Numbers M, one per node of the order, say the same with as many rows as the
order has nodes and edges: below - right <= M <= above, M rising along the edges. (M = the largest
`below` so far is such a choice wherever the rows hold.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix


@dataclass(frozen=True)
class NestedForms:
    """below[s](w) - right <= M[below_at[s]], M[above_at[t]] <= above[t](w), and M[lower] <=
    M[upper] for every edge.
    """

    below: Matrix  # CSR, one form per row
    above: Matrix
    below_at: Indices
    above_at: Indices
    nodes: int
    lower: Indices
    upper: Indices

    @property
    def scale(self) -> float:
        """The length of a typical form."""
        squares = [
            part.multiply(part).sum() / max(1, part.shape[0]) for part in (self.below, self.above)
        ]
        return float(np.sqrt(max(np.mean(squares), np.finfo(np.float64).tiny)))

    def wide(self, start: int, dimension: int) -> NestedForms:
        """The same about parameters start, start + 1, ... of more."""
        return replace(
            self, below=wide(self.below, start, dimension), above=wide(self.above, start, dimension)
        )


@dataclass(frozen=True)
class NestedRows:
    """Rows first .. first + count - 1 of a family, all with the same right side, and the forms that
    say the same.
    """

    first: int
    count: int
    families: tuple[NestedForms, ...]

    def moved(self, rows: int) -> NestedRows:
        return replace(self, first=self.first + rows)

    def wide(self, start: int, dimension: int) -> NestedRows:
        return replace(
            self, families=tuple(forms.wide(start, dimension) for forms in self.families)
        )

    def right(self, b: Floats) -> float | None:
        """The right side that all rows share; None where they do not."""
        mine = b[self.first : self.first + self.count]
        return float(mine[0]) if mine.size and np.all(mine == mine[0]) else None


def wide(rows: Matrix, start: int, dimension: int) -> Matrix:
    """Rows about the first parameters as rows about parameters start, start + 1, ... of more."""
    rows = sparse.csr_matrix(rows)
    return sparse.csr_matrix(
        (rows.data, rows.indices + start, rows.indptr), shape=(rows.shape[0], dimension)
    )


class WithNested(Protocol):
    """A family that knows which of its rows are nested."""

    @property
    def nested(self) -> Sequence[NestedRows]: ...
    @property
    def count(self) -> int: ...


def one_after_another(parts: Sequence[WithNested]) -> tuple[NestedRows, ...]:
    """The nested rows of several families stacked in order."""
    found: list[NestedRows] = []
    rows = 0
    for part in parts:
        found += [block.moved(rows) for block in part.nested]
        rows += part.count
    return tuple(found)
