"""Simplex-exact dominance and joint monotonicity with few rows: 3^(D-2) pairs of sets S <= T become
2^(D-2) nodes and their edges.

With a(u) = theta[u + i] - theta[u] and so on, the rows of `pairs.py` read c(T) <= a(S) or c(S) <=
a(T) for all S <= T of one cell.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.constraints.nested import NestedForms, NestedRows
from lighttouch.lattice.stencils import steps

Form = tuple[int, int]  # theta[u + first] - theta[u + second]


def nested_dominance(grid: tuple[int, ...], i: int, j: int, rows: int) -> tuple[NestedRows, ...]:
    """theta[T+i+j] - theta[T+i] <= theta[S+i] - theta[S] and theta[S+j] - theta[S] <= theta[T+i+j]
    - theta[T+j].
    """
    a, b = steps(grid)[i], steps(grid)[j]
    nodes = _Nodes(grid, i, j)
    falling = nodes.forms(below=(a + b, a), above=(a, 0), rising=False)
    rising = nodes.forms(below=(b, 0), above=(a + b, b), rising=True)
    return (NestedRows(0, rows, (falling, rising)),)


def nested_joint_monotonicity(
    grid: tuple[int, ...], i: int, j: int, rows: int
) -> tuple[NestedRows, ...]:
    """theta[T+a] - theta[T+i+j] <= theta[S+a] - theta[S] for both features a."""
    a, b = steps(grid)[i], steps(grid)[j]
    nodes = _Nodes(grid, i, j)
    families = tuple(
        nodes.forms(below=(first, a + b), above=(first, 0), rising=False) for first in (a, b)
    )
    return (NestedRows(0, rows, families),)


class _Nodes:
    """One node for every cell and every set of the other features, and the vertex it stands for."""

    def __init__(self, grid: tuple[int, ...], i: int, j: int) -> None:
        others = [feature for feature in range(len(grid)) if feature not in (i, j)]
        strides = steps(grid)
        cells = np.zeros(1, dtype=np.int64)
        for feature in range(len(grid)):
            cells = (cells[:, None] + strides[feature] * np.arange(grid[feature] - 1)).ravel()
        subsets = product((False, True), repeat=len(others))
        other_strides = np.array([strides[feature] for feature in others], dtype=np.int64)
        sets = np.array(list(subsets), dtype=np.int64) @ other_strides
        self.vertex: Indices = (cells[:, None] + sets).ravel()
        self.parameters = math.prod(grid)
        self.smaller, self.larger = _inclusions(len(others), cells.size)

    def forms(self, below: Form, above: Form, rising: bool) -> NestedForms:
        place = np.arange(self.vertex.size)
        lower, upper = (self.smaller, self.larger) if rising else (self.larger, self.smaller)
        return NestedForms(
            self._form(*below), self._form(*above), place, place, place.size, lower, upper
        )

    def _form(self, plus: int, minus: int) -> Any:
        count = self.vertex.size
        columns = np.column_stack([self.vertex + plus, self.vertex + minus]).ravel()
        rows = np.repeat(np.arange(count), 2)
        return sparse.csr_matrix(
            (np.tile([1.0, -1.0], count), (rows, columns)), shape=(count, self.parameters)
        )


def _inclusions(features: int, cells: int) -> tuple[Indices, Indices]:
    """For every cell, the nodes of each set and of that set with one more feature."""
    sets = np.arange(2**features)
    without = [sets[(sets >> bit) & 1 == 0] for bit in range(features)]
    smaller = np.concatenate([np.empty(0, dtype=np.int64), *without])
    larger = np.concatenate(
        [np.empty(0, dtype=np.int64), *(each | (1 << bit) for bit, each in enumerate(without))]
    )
    first = 2**features * np.arange(cells)[:, None]
    return (first + smaller).ravel(), (first + larger).ravel()
