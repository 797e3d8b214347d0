"""Symmetric matrices of dense blocks along the diagonal: several models that share no parameter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BlockDiagonal:
    """Dense blocks, each of a range of parameters; the ranges follow each other and cover all."""

    blocks: tuple[tuple[slice, Floats], ...]

    def copy(self) -> BlockDiagonal:
        return BlockDiagonal(tuple((here, block.copy()) for here, block in self.blocks))

    def diagonal(self) -> Floats:
        return np.concatenate([block.diagonal() for _, block in self.blocks])

    def plus(self, other: Any) -> BlockDiagonal:
        """The sum with a sparse matrix that has entries within the blocks only."""
        rows = sparse.csr_matrix(other)
        sums = (
            (here, np.asarray(block + rows[here, here].todense())) for here, block in self.blocks
        )
        return BlockDiagonal(tuple(sums))

    def solver(self) -> Callable[[Floats, Floats], Floats]:
        """(right, start) -> the solution; `start` is not needed, and the blocks are overwritten."""
        factors = [
            (here, scipy.linalg.cho_factor(block, lower=True, overwrite_a=True, check_finite=False))
            for here, block in self.blocks
        ]

        def solve(right: Floats, start: Floats) -> Floats:
            parts = [
                scipy.linalg.cho_solve(factor, right[here], check_finite=False)
                for here, factor in factors
            ]
            return np.concatenate(parts)

        return solve


def solver_by_parts(matrix: Any) -> Callable[[Floats], Floats]:
    """Solves with a sparse definite matrix by Cholesky's factors of its connected parts, such as
    the terms of a model; a LinAlgError where it is not definite. Parameters that are connected to
    none are divided all at once.
    """
    rows = sparse.csr_matrix(matrix)
    parts, part_of = csgraph.connected_components(rows, directed=False)
    sizes = np.bincount(part_of, minlength=parts)
    alone = sizes[part_of] == 1
    diagonal = rows.diagonal()[alone]
    if (diagonal <= 0.0).any():
        raise scipy.linalg.LinAlgError("a diagonal entry is not positive")
    order = np.argsort(part_of, kind="stable")
    order = order[~alone[order]]
    cuts = [0, *np.cumsum(sizes[sizes > 1]).tolist()]
    together = rows[order][:, order]
    ranges = [slice(*cut) for cut in itertools.pairwise(cuts)]
    solve = BlockDiagonal(tuple((h, together[h, h].toarray()) for h in ranges)).solver()

    def solved(right: Floats) -> Floats:
        out = np.empty(right.size)
        out[alone] = right[alone] / diagonal
        if order.size:
            out[order] = solve(right[order], right)
        return out

    return solved


Blocks = tuple[tuple[slice, slice], ...]
"""Ranges of rows, each with the range of columns that they have entries in."""


def row_blocks(X: Any, penalty: Any) -> Blocks:
    """Where a sparse matrix consists of blocks along the diagonal, and so does `penalty`, with the
    same columns: their rows and columns. Otherwise one block of everything.
    """
    rows, columns = X.shape
    whole = ((slice(0, rows), slice(0, columns)),)
    if not sparse.issparse(X) or rows < 2 or (np.diff(X.indptr) == 0).any():
        return whole
    low = np.minimum.reduceat(X.indices, X.indptr[:-1])
    high = np.maximum.reduceat(X.indices, X.indptr[:-1])
    still_to_come = np.minimum.accumulate(low[::-1])[::-1]
    ends = np.flatnonzero(np.maximum.accumulate(high)[:-1] < still_to_come[1:]) + 1
    if ends.size == 0:
        return whole
    row_cuts = [0, *ends.tolist(), rows]
    column_cuts = [0, *still_to_come[ends].tolist(), columns]
    entries = penalty.tocoo()
    block_of = np.searchsorted(column_cuts[1:-1], np.arange(columns), side="right")
    if (block_of[entries.row] != block_of[entries.col]).any():
        return whole
    return tuple(
        (slice(*row_cuts[k : k + 2]), slice(*column_cuts[k : k + 2]))
        for k in range(len(row_cuts) - 1)
    )
