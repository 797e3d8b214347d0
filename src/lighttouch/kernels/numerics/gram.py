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
