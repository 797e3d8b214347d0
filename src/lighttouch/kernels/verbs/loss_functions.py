"""Losses as scalar functions: the columns of the table in `losses`."""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel

# -------------------------------------------------------------------------------------------------
# Losses of errors and of margins
#
# Kinks are rounded by the Moreau envelope min_u phi(u) + (u - z)^2 / (2 width) (Moreau 1965; for
# |error| it is Huber's function), which lies below the loss.


SMALLEST_LOGISTIC_CURVATURE = 1e-6  # of its quadratic model: far from 0 the loss is almost straight


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


# -------------------------------------------------------------------------------------------------
# Losses of a mean e^z, for targets that are counts, sizes or amounts.
#
# Half the unit deviance of the Poisson, gamma and compound Poisson (Tweedie) laws, up to terms
# without z (Jorgensen 1987).
#
# They are smooth, but their curvature has no bound. An exponential that overflows is infinite in a
# value; in a slope it stops before, so that a gradient holds no 0 * infinity. The quadratic models
# have at least the curvature of the minimum, where e^z = y: between the present prediction and the
# minimum they lie above the loss, because the curvature is convex in z there.


LARGEST_EXPONENT = 709.0  # the exponential of 710 overflows
SMALLEST_CURVATURE = 1e-4  # of a quadratic model: far below the minimum the loss is almost straight
NEWTON_ACCURACY = 1e-12  # of a prediction; the conjugate's error is its square
NEWTON_STEPS = 100  # never reached: Newton's method on a concave function of bounded slopes


@lean_kernel
def exponential(x):
    """e^x, infinite where it overflows: plain Python would raise an error there."""
    return math.exp(x) if x <= LARGEST_EXPONENT else math.inf


@lean_kernel
def bounded_exponential(x):
    """e^x, or the largest that does not overflow."""
    return math.exp(min(x, LARGEST_EXPONENT))


@lean_kernel
def log_residual(z, y):
    """By how much e^z misses y, in units of z; 0 has no logarithm, so 1 takes its place."""
    return z - math.log(y) if y > 0.0 else z


@lean_kernel
def entropy(a, y):
    """a (log(a / y) - 1), the conjugate of y e^x at a: 0 at 0."""
    return a * (math.log(a / y) - 1.0) if a > 0.0 else 0.0


# ------------------------------------------------------------------------------ poisson: e^z - y z


@lean_kernel
def poisson_value(level, z, y):
    return exponential(z) - y * z


@lean_kernel
def poisson_slope(level, z, y):
    return bounded_exponential(z) - y


@lean_kernel
def poisson_rounded(level, width, z, y):
    return poisson_value(level, z, y), poisson_slope(level, z, y)


@lean_kernel
def poisson_curvature(level, z, y):
    return bounded_exponential(z)


@lean_kernel
def poisson_model(level, width, z, y):
    return poisson_slope(level, z, y), max(bounded_exponential(z), y, SMALLEST_CURVATURE)


@lean_kernel
def poisson_conjugate(level, s, y):
    return entropy(s + y, 1.0)


@lean_kernel
def poisson_slopes(level, y):
    return -y, math.inf


# ----------------------------------------------------------------------------- gamma: y e^-z + z


@lean_kernel
def gamma_value(level, z, y):
    return y * exponential(-z) + z


@lean_kernel
def gamma_slope(level, z, y):
    return 1.0 - bounded_exponential(math.log(y) - z)


@lean_kernel
def gamma_rounded(level, width, z, y):
    return gamma_value(level, z, y), gamma_slope(level, z, y)


@lean_kernel
def gamma_curvature(level, z, y):
    return bounded_exponential(math.log(y) - z)


@lean_kernel
def gamma_model(level, width, z, y):
    return gamma_slope(level, z, y), max(gamma_curvature(level, z, y), 1.0)


@lean_kernel
def gamma_conjugate(level, s, y):
    return entropy(1.0 - s, y)


@lean_kernel
def gamma_slopes(level, y):
    return -math.inf, 1.0


# --------- tweedie, of power p between 1 and 2: y e^((1 - p) z) / (p - 1) + e^((2 - p) z) / (2 - p)


@lean_kernel
def tweedie_value(power, z, y):
    grows = exponential((2.0 - power) * z) / (2.0 - power)
    if y == 0.0:
        return grows
    return y * exponential((1.0 - power) * z) / (power - 1.0) + grows


@lean_kernel
def tweedie_slope(power, z, y):
    grows = bounded_exponential((2.0 - power) * z)
    if y == 0.0:
        return grows
    return grows - bounded_exponential(math.log(y) + (1.0 - power) * z)


@lean_kernel
def tweedie_rounded(power, width, z, y):
    return tweedie_value(power, z, y), tweedie_slope(power, z, y)


@lean_kernel
def tweedie_curvature(power, z, y):
    grows = (2.0 - power) * bounded_exponential((2.0 - power) * z)
    if y == 0.0:
        return grows
    return grows + (power - 1.0) * bounded_exponential(math.log(y) + (1.0 - power) * z)


@lean_kernel
def tweedie_model(power, width, z, y):
    curvature = max(tweedie_curvature(power, z, y), SMALLEST_CURVATURE)
    if y > 0.0:
        curvature = max(curvature, bounded_exponential((2.0 - power) * math.log(y)))
    return tweedie_slope(power, z, y), curvature


@lean_kernel
def tweedie_conjugate(power, s, y):
    """s z - phi(z) where phi'(z) = s; without a closed form unless y = 0."""
    if s == math.inf or s == -math.inf:
        return math.inf
    if y == 0.0:
        return entropy(s, 1.0) / (2.0 - power)
    z = tweedie_prediction(power, s, y)
    return s * z - tweedie_value(power, z, y)


@lean_kernel
def tweedie_prediction(power, s, y):
    """The z with e^((2 - p) z) = s + y e^((1 - p) z), by Newton's method on the logarithms.

    For s >= 0 the logarithms of the two sides are compared, for s < 0 those of the two sides of
    y e^((1 - p) z) = -s + e^((2 - p) z). Either difference is concave in z, with slopes that are
    bounded away from 0: from anywhere, the steps after the first go straight to the root.
    """
    up = 2.0 - power
    down = 1.0 - power
    z = math.log(y)
    for _ in range(NEWTON_STEPS):
        alone = up * z if s >= 0.0 else math.log(y) + down * z
        along = math.log(y) + down * z if s >= 0.0 else up * z
        rate = up if s >= 0.0 else down
        other = down if s >= 0.0 else up
        size = abs(s)
        total, share = along, 1.0
        if size > 0.0:
            larger = max(math.log(size), along)
            scaled = math.exp(along - larger)
            both = math.exp(math.log(size) - larger) + scaled
            total, share = larger + math.log(both), scaled / both
        step = (alone - total) / (rate - other * share)
        z -= step
        if abs(step) <= NEWTON_ACCURACY * (1.0 + abs(z)):
            break
    return z


@lean_kernel
def tweedie_slopes(power, y):
    return (-math.inf, math.inf) if y > 0.0 else (0.0, math.inf)
