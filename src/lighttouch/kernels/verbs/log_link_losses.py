"""Losses of a mean e^z, for targets that are counts, sizes or amounts.

Half the unit deviance of the Poisson, gamma and compound Poisson (Tweedie) laws, up to terms
without z (Jorgensen 1987).

They are smooth, but their curvature has no bound. An exponential that overflows is infinite in a
value; in a slope it stops before, so that a gradient holds no 0 * infinity. The quadratic models
have at least the curvature of the minimum, where e^z = y: between the present prediction and the
minimum they lie above the loss, because the curvature is convex in z there.
"""

from __future__ import annotations

import math

from lighttouch.kernels.compiler.compiled import lean_kernel

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
