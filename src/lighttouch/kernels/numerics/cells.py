"""How much of a residual the cells of coarse grids explain."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

COPIES = 4  # of every sum, so that an addition need not wait for the one before it


@lean_kernel
def explained_by_cells(
    codes: np.ndarray,
    signs: np.ndarray,
    strides: np.ndarray,
    members: np.ndarray,
    pulls: np.ndarray,
    weights: np.ndarray,
    shrinkage: float,
    cells: np.ndarray,
    sums: np.ndarray,
    mass: np.ndarray,
    explained: np.ndarray,
    used: np.ndarray,
) -> None:
    """For every row of `members` (columns, then -1) the explained part of the weighted squares and
    the number of cells with examples.

    `codes[s, c, i]` is the bin of column c in example i of signed table s, `pulls` are residuals
    times weights, `strides` the number of bins of every column; `cells` (of all examples), `sums`
    and `mass` (of all cells, `COPIES` times) are scratch. Cells are found first, in a loop that
    vectorises.
    """
    for k in range(members.shape[0]):
        count = 1
        for m in range(members.shape[1]):
            if members[k, m] >= 0:
                count *= strides[members[k, m]]
        sums[: COPIES * count] = 0.0
        mass[: COPIES * count] = 0.0
        for s in range(codes.shape[0]):
            cells[:] = 0
            for m in range(members.shape[1]):
                column = members[k, m]
                if column >= 0:
                    stride, bins = strides[column], codes[s, column]
                    for i in range(cells.size):
                        cells[i] = cells[i] * stride + bins[i]
            sign = signs[s]
            for i in range(cells.size):
                place = COPIES * cells[i] + i % COPIES
                sums[place] += sign * pulls[i]
                mass[place] += weights[i]
        for cell in range(count):
            pulled, held = 0.0, 0.0
            for place in range(COPIES * cell, COPIES * (cell + 1)):
                pulled += sums[place]
                held += mass[place]
            if held > 0.0:
                explained[k] += pulled * pulled / (held + shrinkage)
                used[k] += 1
