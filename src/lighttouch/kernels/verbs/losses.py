"""The table of losses: one row per loss, and the kernels that read it.

A loss phi(z; y) is convex in the prediction z, for the target y. To add one, write its functions as
kernels of the arguments given in `LossRow`, and its row in `TABLE`: the kernels at the end of this
file (`loss`, `slope`, `smooth_loss`, ...) are generated from the table.

Kinks are rounded by the Moreau envelope min_u phi(u) + (u - z)^2 / (2 width) (Moreau 1965; for
|error| it is Huber's function), which lies below the loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lighttouch.kernels.compiler.compiled import lean_kernel

SMALLEST_LOGISTIC_CURVATURE = 1e-4  # of its quadratic model: far from 0 the loss is almost straight


@dataclass(frozen=True)
class LossRow:
    """One loss: facts, and scalar functions that numba compiles.

    `value(level, z, y)` and `slope(level, z, y)`: the loss and a subgradient in z, 0 where a kink
    allows it. `rounded(level, width, z, y)`: value and slope of the Moreau envelope.
    `model(level, width, z, y)`: slope and curvature of a quadratic that touches the rounded loss at
    z and lies above it (for the logistic loss: its Taylor polynomial). `residual(z, y)`: by how
    much the prediction misses, in units of z. `conjugate(level, s, y)`: phi*(s), the supremum of
    s z - phi(z), for slopes s between the two that `slope_range(level, y)` gives.
    `curvature(level, z, y)`: the second derivative, of losses without `roundness`.
    """

    name: str
    labelled: bool  # whether targets are -1 and +1
    largest_curvature: float  # of the loss itself; infinite where it has a kink
    value: Callable[..., float]
    slope: Callable[..., float]
    rounded: Callable[..., tuple[float, float]]
    model: Callable[..., tuple[float, float]]
    residual: Callable[..., float]
    conjugate: Callable[..., float]
    slope_range: Callable[..., tuple[float, float]]
    curvature: Callable[..., float]
    roundness: float | None = None  # where phi*(s) is s y + roundness s^2 / 2 on its slope range
    number: int = -1  # by which kernels know it: its place in the table
    level: float = 0.0  # of the quantile loss

    @property
    def kinked(self) -> bool:
        return math.isinf(self.largest_curvature)


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


# --------------------------------------------- huber: squared up to an error of 1, straight beyond


@lean_kernel
def huber_value(level, z, y):
    error = z - y
    size = abs(error)
    return 0.5 * error * error if size <= 1.0 else size - 0.5


@lean_kernel
def huber_slope(level, z, y):
    return min(1.0, max(-1.0, z - y))


@lean_kernel
def huber_rounded(level, width, z, y):
    return huber_value(level, z, y), huber_slope(level, z, y)


@lean_kernel
def huber_model(level, width, z, y):
    return huber_slope(level, z, y), 1.0 / max(1.0, abs(z - y))


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


# ------------------------------------------------------------------------------------- the table

# The numbers of losses are part of saved runs: a new row goes to the end.
TABLE: tuple[LossRow, ...] = (
    LossRow(
        "hinge", True, math.inf, hinge_value, hinge_slope, hinge_rounded, hinge_model,
        shortfall, linear_conjugate, label_slopes, no_curvature, 0.0,
    ),
    LossRow(
        "logistic", True, 0.25, logistic_value, logistic_slope, logistic_rounded, logistic_model,
        shortfall, logistic_conjugate, label_slopes, logistic_curvature,
    ),
    LossRow(
        "squared", False, 1.0, squared_value, squared_slope, squared_rounded, squared_model,
        error_of, quadratic_conjugate, any_slope, no_curvature, 1.0,
    ),
    LossRow(
        "absolute", False, math.inf, absolute_value, absolute_slope, absolute_rounded,
        absolute_model, error_of, linear_conjugate, unit_slopes, no_curvature, 0.0,
    ),
    LossRow(
        "huber", False, 1.0, huber_value, huber_slope, huber_rounded, huber_model,
        error_of, quadratic_conjugate, unit_slopes, no_curvature, 1.0,
    ),
    LossRow(
        "quantile", False, math.inf, quantile_value, quantile_slope, quantile_rounded,
        quantile_model, error_of, linear_conjugate, quantile_slopes, no_curvature, 0.0,
    ),
)  # fmt: skip


def _chosen_by_number(name: str, column: str, arguments: str) -> Any:
    """A kernel `name(kind, <arguments>)` that calls the row's function in the given column.

    It is generated as a chain of comparisons, since numba's disk cache takes neither closures nor
    functions as arguments. Its file is this one, so that the cache sees every change of a row.
    """
    chain = [
        f"    if kind == {number}: return row_{number}({arguments})" for number in _NUMBERS[:-1]
    ]
    source = "\n".join(
        [f"def {name}(kind, {arguments}):", *chain, f"    return row_{_NUMBERS[-1]}({arguments})"]
    )
    namespace = {f"row_{number}": getattr(TABLE[number], column) for number in _NUMBERS}
    namespace["__name__"] = __name__
    exec(compile(source, __file__, "exec"), namespace)
    return lean_kernel(namespace[name])


_NUMBERS = range(len(TABLE))
loss = _chosen_by_number("loss", "value", "level, z, y")
slope = _chosen_by_number("slope", "slope", "level, z, y")
smooth_loss = _chosen_by_number("smooth_loss", "rounded", "level, width, z, y")
quadratic_model = _chosen_by_number("quadratic_model", "model", "level, width, z, y")
residual = _chosen_by_number("residual", "residual", "z, y")
conjugate = _chosen_by_number("conjugate", "conjugate", "level, s, y")
slope_range = _chosen_by_number("slope_range", "slope_range", "level, y")
curvature = _chosen_by_number("curvature", "curvature", "level, z, y")


# ------------------------------------------------------------------------- all examples at once


@lean_kernel
def rounded_values(kind, level, width, z, y, out):
    """The loss of every example, its kink rounded over `width` (0: not at all)."""
    for i in range(z.size):
        out[i] = (
            smooth_loss(kind, level, width, z[i], y[i])[0]
            if width > 0.0
            else loss(kind, level, z[i], y[i])
        )


@lean_kernel
def quadratic_models(kind, level, width, z, y, slopes, curvatures):
    for i in range(z.size):
        slopes[i], curvatures[i] = quadratic_model(kind, level, width, z[i], y[i])


@lean_kernel
def derivatives(kind, level, z, y, values, slopes, curvatures):
    """The loss of every example with its first and second derivative."""
    for i in range(z.size):
        values[i] = loss(kind, level, z[i], y[i])
        slopes[i] = slope(kind, level, z[i], y[i])
        curvatures[i] = curvature(kind, level, z[i], y[i])


@lean_kernel
def residuals(kind, z, y, out):
    for i in range(z.size):
        out[i] = residual(kind, z[i], y[i])


@lean_kernel
def conjugates(kind, level, s, y, out):
    """phi* at the slopes s, which are first moved into its domain."""
    for i in range(s.size):
        lowest, highest = slope_range(kind, level, y[i])
        s[i] = min(highest, max(lowest, s[i]))
        out[i] = conjugate(kind, level, s[i], y[i])
