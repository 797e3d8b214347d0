"""Losses of errors and of margins, as scalar functions: the columns of the table in `losses`.

Kinks are rounded by the Moreau envelope min_u phi(u) + (u - z)^2 / (2 width) (Moreau 1965; for
|error| it is Huber's function), which lies below the loss.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel

SMALLEST_LOGISTIC_CURVATURE = 1e-4  # of its quadratic model: far from 0 the loss is almost straight


# ------------------------------------------------------------------------------- shared by several


@lean_kernel
def error_of(z, y):
    return z - y


@lean_kernel
def shortfall(z, y):
    """By how much the margin y z falls short of 1."""
    return 1.0 - y * z


@lean_kernel
def rounded_size(error, width):
    """|error| with its kink rounded: value and slope."""
    size = abs(error)
    if size >= width:
        return size - 0.5 * width, (1.0 if error > 0.0 else -1.0)
    return 0.5 * error * error / width, error / width


@lean_kernel
def no_curvature(level, z, y):
    """Of losses that are described by their `roundness` instead."""
    return 0.0


@lean_kernel
def linear_conjugate(level, s, y):
    """Of a loss that is positively homogeneous in z - y."""
    return s * y


@lean_kernel
def quadratic_conjugate(level, s, y):
    return s * y + 0.5 * s * s


@lean_kernel
def unit_slopes(level, y):
    return -1.0, 1.0


@lean_kernel
def label_slopes(level, y):
    """Between -y and 0."""
    return (-y, 0.0) if y > 0.0 else (0.0, -y)


# ------------------------------------------------------------------------------ hinge: (1 - y z)_+


@lean_kernel
def hinge_value(level, z, y):
    return max(0.0, 1.0 - y * z)


@lean_kernel
def hinge_slope(level, z, y):
    return -y if y * z < 1.0 else 0.0


@lean_kernel
def hinge_rounded(level, width, z, y):
    short = 1.0 - y * z
    if short >= width:
        return short - 0.5 * width, -y
    if short <= 0.0:
        return 0.0, 0.0
    return 0.5 * short * short / width, -y * short / width


@lean_kernel
def hinge_model(level, width, z, y):
    """The rounded hinge is x / 2 plus half of |x| rounded over width / 2, x = short - width / 2."""
    x = 1.0 - y * z - 0.5 * width
    size = max(abs(x), 0.5 * width)
    return -y * (0.5 + 0.5 * x / size), 0.5 / size


# --------------------------------------------------------------------- logistic: log(1 + exp(-y z))


@lean_kernel
def logistic_value(level, z, y):
    margin = y * z
    if margin > 0.0:
        return math.log1p(math.exp(-margin))
    return math.log1p(math.exp(margin)) - margin


@lean_kernel
def logistic_slope(level, z, y):
    margin = y * z
    if margin > 0.0:
        shrunk = math.exp(-margin)
        return -y * shrunk / (1.0 + shrunk)
    return -y / (1.0 + math.exp(margin))


@lean_kernel
def logistic_rounded(level, width, z, y):
    return logistic_value(level, z, y), logistic_slope(level, z, y)


@lean_kernel
def logistic_model(level, width, z, y):
    steepness = logistic_slope(level, z, y)
    chance = abs(steepness)  # of the wrong label
    return steepness, max(chance * (1.0 - chance), SMALLEST_LOGISTIC_CURVATURE)


@lean_kernel
def logistic_conjugate(level, s, y):
    """p log p + (1 - p) log(1 - p) with p = -s y."""
    p = min(1.0, max(0.0, -s * y))
    entropy = p * math.log(p) if p > 0.0 else 0.0
    return entropy + ((1.0 - p) * math.log1p(-p) if p < 1.0 else 0.0)


@lean_kernel
def logistic_curvature(level, z, y):
    chance = abs(logistic_slope(level, z, y))
    return chance * (1.0 - chance)


# ----------------------------------------------------------------------- squared: (z - y)^2 / 2


@lean_kernel
def squared_value(level, z, y):
    error = z - y
    return 0.5 * error * error


@lean_kernel
def squared_slope(level, z, y):
    return z - y


@lean_kernel
def squared_rounded(level, width, z, y):
    return squared_value(level, z, y), z - y


@lean_kernel
def squared_model(level, width, z, y):
    return z - y, 1.0


@lean_kernel
def any_slope(level, y):
    return -math.inf, math.inf


# ----------------------------------------------------------------------------- absolute: |z - y|


@lean_kernel
def absolute_value(level, z, y):
    return abs(z - y)


@lean_kernel
def absolute_slope(level, z, y):
    error = z - y
    if error == 0.0:
        return 0.0
    return 1.0 if error > 0.0 else -1.0


@lean_kernel
def absolute_rounded(level, width, z, y):
    return rounded_size(z - y, width)


@lean_kernel
def absolute_model(level, width, z, y):
    size = max(abs(z - y), width)
    return (z - y) / size, 1.0 / size


# -------------------------------- huber: squared up to an error of the threshold, straight beyond


@lean_kernel
def huber_value(threshold, z, y):
    error = z - y
    size = abs(error)
    if size <= threshold:
        return 0.5 * error * error
    return threshold * size - 0.5 * threshold * threshold


@lean_kernel
def huber_slope(threshold, z, y):
    return min(threshold, max(-threshold, z - y))


@lean_kernel
def huber_rounded(threshold, width, z, y):
    return huber_value(threshold, z, y), huber_slope(threshold, z, y)


@lean_kernel
def huber_model(threshold, width, z, y):
    return huber_slope(threshold, z, y), threshold / max(threshold, abs(z - y))


@lean_kernel
def huber_slopes(threshold, y):
    return -threshold, threshold


# ---------------------------- quantile ("pinball"): -level error below 0, (1 - level) error above


@lean_kernel
def quantile_value(level, z, y):
    error = z - y
    return -level * error if error < 0.0 else (1.0 - level) * error


@lean_kernel
def quantile_slope(level, z, y):
    error = z - y
    if error == 0.0:
        return 0.0
    return -level if error < 0.0 else 1.0 - level


@lean_kernel
def quantile_rounded(level, width, z, y):
    value, steepness = rounded_size(z - y, width)
    lean = 0.5 - level
    return 0.5 * value + lean * (z - y), 0.5 * steepness + lean


@lean_kernel
def quantile_model(level, width, z, y):
    size = max(abs(z - y), width)
    return 0.5 - level + 0.5 * (z - y) / size, 0.5 / size


@lean_kernel
def quantile_slopes(level, y):
    return -level, 1.0 - level


# ------------------------------------- epsilon-insensitive: (|z - y| - epsilon)_+ (Vapnik 1995)


@lean_kernel
def insensitive_value(epsilon, z, y):
    return max(0.0, abs(z - y) - epsilon)


@lean_kernel
def insensitive_slope(epsilon, z, y):
    error = z - y
    if abs(error) <= epsilon:
        return 0.0
    return 1.0 if error > 0.0 else -1.0


@lean_kernel
def insensitive_rounded(epsilon, width, z, y):
    value, steepness = hinge_rounded(0.0, width, epsilon + 1.0 - abs(z - y), 1.0)
    return value, (-steepness if z > y else steepness)


@lean_kernel
def insensitive_model(epsilon, width, z, y):
    """The sum of two rounded hinges, one for errors above epsilon and one for those below."""
    above, bend_above = hinge_model(0.0, width, epsilon + 1.0 - (z - y), 1.0)
    below, bend_below = hinge_model(0.0, width, epsilon + 1.0 + (z - y), 1.0)
    return below - above, bend_above + bend_below


@lean_kernel
def insensitive_conjugate(epsilon, s, y):
    return s * y + epsilon * abs(s)
