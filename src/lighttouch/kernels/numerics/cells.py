"""How much of a residual the cells of coarse grids explain."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def explained_by_cells(
    codes: np.ndarray,
    signs: np.ndarray,
    strides: np.ndarray,
    members: np.ndarray,
    pulls: np.ndarray,
    weights: np.ndarray,
    shrinkage: float,
    sums: np.ndarray,
    mass: np.ndarray,
    explained: np.ndarray,
    used: np.ndarray,
) -> None:
    """For every row of `members` (columns, then -1) the explained part of the weighted squares and
    the number of cells with examples.

    `codes[s, c, i]` is the bin of column c in example i of signed table s, `pulls` are residuals
    times weights, `strides` the number of bins of every column; `sums` and `mass` are scratch.
    """
    for k in range(members.shape[0]):
        count = 1
        for m in range(members.shape[1]):
            if members[k, m] >= 0:
                count *= strides[members[k, m]]
        sums[:count] = 0.0
        mass[:count] = 0.0
        for s in range(codes.shape[0]):
            for i in range(codes.shape[2]):
                cell = 0
                for m in range(members.shape[1]):
                    column = members[k, m]
                    if column >= 0:
                        cell = cell * strides[column] + codes[s, column, i]
                sums[cell] += signs[s] * pulls[i]
                mass[cell] += weights[i]
        for cell in range(count):
            if mass[cell] > 0.0:
                explained[k] += sums[cell] * sums[cell] / (mass[cell] + shrinkage)
                used[k] += 1
