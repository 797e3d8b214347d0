"""Weighted Gram matrices of sparse rows."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def weighted_gram(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, weights: np.ndarray, out: np.ndarray
) -> None:
    """Add sum_i weights[i] x_i x_i' to the lower triangle of `out`; every row's indices ascend."""
    for i in range(indptr.size - 1):
        if weights[i] == 0.0:
            continue
        for a in range(indptr[i], indptr[i + 1]):
            scaled = weights[i] * data[a]
            row = indices[a]
            for b in range(indptr[i], a + 1):
                out[row, indices[b]] += scaled * data[b]


@lean_kernel
def add_block(
    rows: np.ndarray,
    row_values: np.ndarray,
    columns: np.ndarray,
    column_values: np.ndarray,
    weights: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add sum_i weights[i] x_i y_i' to `out`: x_i and y_i are the parts of row i that lie in two
    groups of columns, each with as many entries in every row.

    `out` is small, so that it stays in the cache; every entry is added up in the order of the rows,
    as `weighted_gram` adds it up.
    """
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            scaled = weights[i] * row_values[i, a]
            row = rows[i, a]
            for b in range(columns.shape[1]):
                out[row, columns[i, b]] += scaled * column_values[i, b]
