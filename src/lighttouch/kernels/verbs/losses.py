"""The losses as numbers: value and slope in the prediction z, for the target y."""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel

HINGE, LOGISTIC, SQUARED, ABSOLUTE, HUBER, QUANTILE = 0, 1, 2, 3, 4, 5


@lean_kernel
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


@lean_kernel
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


@lean_kernel
def _logistic_slope(z, y):
    margin = y * z
    if margin > 0.0:
        shrunk = math.exp(-margin)
        return -y * shrunk / (1.0 + shrunk)
    return -y / (1.0 + math.exp(margin))


@lean_kernel
def smooth_loss(kind, level, width, z, y):
    """A loss with its kink rounded over the given width: value and slope. It lies below the loss,
    by at most width / 2.
    """
    if kind == HINGE:
        short = 1.0 - y * z
        if short >= width:
            return short - 0.5 * width, -y
        if short <= 0.0:
            return 0.0, 0.0
        return 0.5 * short * short / width, -y * short / width
    if kind == ABSOLUTE:
        return rounded(z - y, width)
    if kind == QUANTILE:
        value, steepness = rounded(z - y, width)
        lean = 0.5 - level
        return 0.5 * value + lean * (z - y), 0.5 * steepness + lean
    return loss(kind, level, z, y), slope(kind, level, z, y)


@lean_kernel
def rounded(error, width):
    """|error| with its kink rounded."""
    size = abs(error)
    if size >= width:
        return size - 0.5 * width, (1.0 if error > 0.0 else -1.0)
    return 0.5 * error * error / width, error / width
