"""The largest of many planes."""

from __future__ import annotations

import math

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def largest_plane(
    rows: np.ndarray, points: np.ndarray, heights: np.ndarray, slopes: np.ndarray, out: np.ndarray
) -> None:
    """out[r] = max_i heights[i] + slopes[i].(rows[r] - points[i]).

    Products are added up in one order, so that out never falls in a column whose slopes are not
    negative, to the last bit.
    """
    for r in range(rows.shape[0]):
        largest = -math.inf
        for i in range(points.shape[0]):
            height = heights[i]
            for k in range(rows.shape[1]):
                height += slopes[i, k] * (rows[r, k] - points[i, k])
            largest = max(largest, height)
        out[r] = largest
