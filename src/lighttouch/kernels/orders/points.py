"""The componentwise order of points: x <= y where no coordinate of x is above that of y."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def below(x, y):
    """Whether x <= y."""
    for k in range(x.size):
        if x[k] > y[k]:
            return False
    return True


@lean_kernel
def covers(points, equal, first, work, lower, upper):
    """Pairs (i, j) with points[i] <= points[j] and no point between: the transitive reduction of
    the order of different points, which ascend lexicographically. The first `equal` coordinates
    must be the same.

    The points above i come after it. One of them covers i if it is not above another that does.
    It begins with i = `first`, and ends where so many comparisons are made or where there may be no
    more room: the next i, and how many pairs were written.
    """
    count = points.shape[0]
    found = compared = 0
    for i in range(first, count):
        if compared > work or found + count - i > lower.size:
            return i, found
        many = 0
        for j in range(i + 1, count):
            compared += 1
            if not below(points[j, :equal], points[i, :equal]):
                break  # the points after it differ too
            if not below(points[i], points[j]):
                continue
            nearest = True
            for k in range(found, found + many):
                compared += 1
                if below(points[upper[k]], points[j]):
                    nearest = False
                    break
            if nearest:
                lower[found + many], upper[found + many] = i, j
                many += 1
        found += many
    return count, found


@lean_kernel
def largest_below(
    points: np.ndarray, values: np.ndarray, rows: np.ndarray, none: float, out: np.ndarray
) -> None:
    """out[r] = the first value of a point that is at most rows[r]; values must not rise."""
    for r in range(rows.shape[0]):
        out[r] = none
        for i in range(points.shape[0]):
            if below(points[i], rows[r]):
                out[r] = values[i]
                break


@lean_kernel
def smallest_above(
    points: np.ndarray, values: np.ndarray, rows: np.ndarray, none: float, out: np.ndarray
) -> None:
    """out[r] = the first value of a point that is at least rows[r]; values must not fall."""
    for r in range(rows.shape[0]):
        out[r] = none
        for i in range(points.shape[0]):
            if below(rows[r], points[i]):
                out[r] = values[i]
                break
