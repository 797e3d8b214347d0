"""The simple set W as one record, and its projection: coordinate by coordinate for a box, of all
coordinates together for a ball and a simplex.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

EVERYWHERE, BOX, BALL, SIMPLEX = 0, 1, 2, 3  # from BALL on, coordinates depend on each other


class DomainRecord(NamedTuple):
    kind: int
    lower: np.ndarray  # one number for all coordinates, or one each
    upper: np.ndarray
    center: np.ndarray
    radius: float  # of a simplex: the sum


@lean_kernel
def clamp(domain, coordinate, value):
    """Projection of one coordinate (bounds are infinite where there is no box); a ball and a
    simplex are left to `pull_factor` and `put_on_simplex` afterwards.
    """
    lower = domain.lower[coordinate] if domain.lower.size > 1 else domain.lower[0]
    upper = domain.upper[coordinate] if domain.upper.size > 1 else domain.upper[0]
    return min(max(value, lower), upper)


@lean_kernel
def pull_factor(domain, w):
    """By how much the ball shrinks w towards its centre: 1 inside."""
    if domain.kind != BALL:
        return 1.0
    total = 0.0
    for j in range(w.size):
        away = w[j] - domain.center[j]
        total += away * away
    distance = math.sqrt(total)
    return 1.0 if distance <= domain.radius else domain.radius / distance


@lean_kernel
def simplex_level(w, total):
    """The t = highest + level for which the sum of max(w - t, 0) is the total, as its two parts.

    Michelot's method (C. Michelot, "A finite algorithm for finding the projection of a point onto
    the canonical simplex of R^n", Journal of Optimization Theory and Applications 50, 1986).
    Every round leaves out the coordinates below the level of those that are left: the level only
    rises, so that there are at most as many rounds as coordinates, and no array is needed.
    """
    highest = w[0]
    for j in range(w.size):
        highest = max(highest, w[j])
    level = -math.inf
    count = w.size + 1
    while True:
        above = 0
        missing = -total
        for j in range(w.size):
            if w[j] - highest > level:
                above += 1
                missing += w[j] - highest
        if above >= count or above == 0:  # rounding must not bring one back
            break
        count = above
        level = missing / above
    return highest, level


@lean_kernel
def put_on_simplex(w, total):
    """The nearest point of {w >= 0, sum of w = total}, in place.

    The positive coordinates then share what is missing: large ones round by more than a small total
    can bear.
    """
    highest, level = simplex_level(w, total)
    excess = -total
    positive = 0
    for j in range(w.size):
        w[j] = max(w[j] - highest - level, 0.0)
        if w[j] > 0.0:
            positive += 1
            excess += w[j]
    for j in range(w.size):
        if w[j] > 0.0:
            w[j] = max(w[j] - excess / positive, 0.0)
