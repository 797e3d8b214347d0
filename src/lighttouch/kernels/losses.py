"""The losses as numbers: value and slope in the prediction z, for the target y."""

from __future__ import annotations

import math

from lighttouch.kernels.compiled import kernel

HINGE, LOGISTIC, SQUARED, ABSOLUTE, HUBER, QUANTILE = 0, 1, 2, 3, 4, 5


@kernel
def loss(kind, level, z, y):
    if kind == HINGE:
        return max(0.0, 1.0 - y * z)
    if kind == LOGISTIC:
        margin = y * z
        if margin > 0.0:
            return math.log1p(math.exp(-margin))
        return math.log1p(math.exp(margin)) - margin
    error = z - y
    if kind == SQUARED:
        return 0.5 * error * error
    if kind == ABSOLUTE:
        return abs(error)
    if kind == HUBER:
        size = abs(error)
        return 0.5 * error * error if size <= 1.0 else size - 0.5
    return -level * error if error < 0.0 else (1.0 - level) * error


@kernel
def slope(kind, level, z, y):
    """A subgradient of the loss in z; 0 where a kink allows it."""
    if kind == HINGE:
        return -y if y * z < 1.0 else 0.0
    if kind == LOGISTIC:
        return _logistic_slope(z, y)
    error = z - y
    if kind == SQUARED:
        return error
    if kind == HUBER:
        return min(1.0, max(-1.0, error))
    if error == 0.0:
        return 0.0
    if kind == ABSOLUTE:
        return 1.0 if error > 0.0 else -1.0
    return -level if error < 0.0 else 1.0 - level


@kernel
def _logistic_slope(z, y):
    margin = y * z
    if margin > 0.0:
        shrunk = math.exp(-margin)
        return -y * shrunk / (1.0 + shrunk)
    return -y / (1.0 + math.exp(margin))
