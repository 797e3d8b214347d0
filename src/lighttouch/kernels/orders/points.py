"""The componentwise order of points: x <= y where no coordinate of x is above that of y."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel


@lean_kernel
def below(x, y):
    """Whether x <= y."""
    for k in range(x.size):
        if x[k] > y[k]:
            return False
    return True


@kernel
def covers(points: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Pairs (i, j) with points[i] <= points[j] and no point between: the transitive reduction of
    the order of different points, which ascend lexicographically.

    The points above i come after it. One of them covers i if it is not above another that does.
    At most `limit` pairs are written; how many there are comes third.
    """
    count = points.shape[0]
    lower, upper = np.empty(limit, dtype=np.int64), np.empty(limit, dtype=np.int64)
    found = 0
    mine = np.empty(count, dtype=np.int64)
    for i in range(count):
        many = 0
        for j in range(i + 1, count):
            if not below(points[i], points[j]):
                continue
            nearest = True
            for k in range(many):
                if below(points[mine[k]], points[j]):
                    nearest = False
                    break
            if nearest:
                mine[many] = j
                many += 1
        for k in range(many):
            if found < limit:
                lower[found], upper[found] = i, mine[k]
            found += 1
    return lower, upper, found


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
