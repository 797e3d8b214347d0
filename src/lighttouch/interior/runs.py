"""Sparse rows that hold the same parameters, one below the other, as dense matrices.

Examples of several outputs (quantiles, classes) come as such runs. BLAS takes them several times
faster than one entry at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.interior.costs import COSTS


@dataclass(frozen=True, eq=False)
class Run:
    """Rows first..last-1 hold the parameters `columns`, and nothing else."""

    first: int
    last: int
    columns: Indices
    entries: Floats


@dataclass(frozen=True, eq=False)
class Runs:
    """All rows of a matrix, run by run."""

    shape: tuple[int, int]
    each: Sequence[Run]

    def forward(self, x: Vector) -> Vector:
        out = np.zeros(self.shape[0])
        for run in self.each:
            np.dot(run.entries, x[run.columns], out=out[run.first : run.last])
        return out

    def add_backward(self, s: Vector, out: Vector) -> None:
        for run in self.each:
            out[run.columns] += s[run.first : run.last] @ run.entries

    def add_gram(self, weights: Vector, out: Floats) -> None:
        """Add the sum of weights[i] x_i x_i' to `out`."""
        for run in self.each:
            rows = np.sqrt(weights[run.first : run.last])[:, None] * run.entries
            out[np.ix_(run.columns, run.columns)] += rows.T @ rows


def runs_of(matrix: Matrix) -> Runs | None:
    """The runs of a CSR matrix; None where they are short or rows hold parameters twice."""
    if not matrix.has_canonical_format:
        return None
    most, counts = int(matrix.nnz / COSTS.shortest_run), np.diff(matrix.indptr)
    if len(_edges(matrix[: 2 * most])) - 1 > most:
        return None  # known from a few rows
    edges = _edges(matrix)
    if len(edges) - 1 > most:
        return None
    found = []
    for first, last in pairwise(edges):
        at, shape = slice(matrix.indptr[first], matrix.indptr[last]), (last - first, counts[first])
        places = matrix.indices[at].reshape(shape)
        if not np.all(places == places[0]):
            return None
        found.append(Run(first, last, places[0].copy(), matrix.data[at].reshape(shape)))
    return Runs(matrix.shape, found)


def _edges(matrix: Matrix) -> list[int]:
    """Where the runs begin, as far as sums of random numbers, one per parameter, tell rows apart,
    and the number of rows.
    """
    m, counts = matrix.shape[0], np.diff(matrix.indptr)
    key = np.random.default_rng(0).integers(1, 2**62, matrix.shape[1], dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(key[matrix.indices])])  # wraps around, which is no harm
    of_row = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    new = (np.diff(of_row) != 0) | (np.diff(counts) != 0)
    return [0, *(np.flatnonzero(new) + 1).tolist(), m]
