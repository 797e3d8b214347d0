"""The simple set W as one record, and its projection, coordinate by coordinate where that is
possible.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel

EVERYWHERE, BOX, BALL = 0, 1, 2


class DomainRecord(NamedTuple):
    kind: int
    lower: np.ndarray  # one number for all coordinates, or one each
    upper: np.ndarray
    center: np.ndarray
    radius: float


@lean_kernel
def clamp(domain, coordinate, value):
    """Projection of one coordinate (bounds are infinite where there is no box); a ball is left to
    `pull_factor` afterwards.
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
