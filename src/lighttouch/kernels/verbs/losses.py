"""The table of losses: one row per loss, and the kernels that read it.

A loss phi(z; y) is convex in the prediction z, for the target y. To add one, write its functions as
kernels of the arguments given in `LossRow` (in `loss_functions`), and its row
in `TABLE`: the kernels at the end of this file (`loss`, `slope`, `smooth_loss`, ...) are generated
from the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.verbs.loss_functions import (
    absolute_model,
    absolute_rounded,
    absolute_slope,
    absolute_value,
    any_slope,
    error_of,
    gamma_conjugate,
    gamma_curvature,
    gamma_model,
    gamma_rounded,
    gamma_slope,
    gamma_slopes,
    gamma_value,
    hinge_model,
    hinge_rounded,
    hinge_slope,
    hinge_value,
    huber_model,
    huber_rounded,
    huber_slope,
    huber_slopes,
    huber_value,
    insensitive_conjugate,
    insensitive_model,
    insensitive_rounded,
    insensitive_slope,
    insensitive_value,
    label_slopes,
    linear_conjugate,
    log_residual,
    logistic_conjugate,
    logistic_curvature,
    logistic_model,
    logistic_rounded,
    logistic_slope,
    logistic_value,
    no_curvature,
    poisson_conjugate,
    poisson_curvature,
    poisson_model,
    poisson_rounded,
    poisson_slope,
    poisson_slopes,
    poisson_value,
    quadratic_conjugate,
    quantile_model,
    quantile_rounded,
    quantile_slope,
    quantile_slopes,
    quantile_value,
    shortfall,
    squared_model,
    squared_rounded,
    squared_slope,
    squared_value,
    tweedie_conjugate,
    tweedie_curvature,
    tweedie_model,
    tweedie_rounded,
    tweedie_slope,
    tweedie_slopes,
    tweedie_value,
    unit_slopes,
)

ANY, LABELS, NONNEGATIVE, POSITIVE = "any", "labels", "nonnegative", "positive"  # kinds of targets


@dataclass(frozen=True)
class LossRow:
    """One loss: facts, and scalar functions that numba compiles.

    `value(level, z, y)` and `slope(level, z, y)`: the loss and a subgradient in z, 0 where a kink
    allows it. `rounded(level, width, z, y)`: value and slope of the Moreau envelope.
    `model(level, width, z, y)`: slope and curvature of a quadratic that touches the rounded loss at
    z and lies above it (with a log link as far as the minimum; with `taylor` it is the Taylor
    polynomial, which may lie below). `residual(z, y)`: by how much the prediction misses, in units
    of z. `conjugate(level, s, y)`: phi*(s), the supremum of s z - phi(z), for slopes s between the
    two that `slope_range(level, y)` gives.
    `curvature(level, z, y)`: the second derivative, of losses without `roundness`.
    """

    name: str
    targets: str  # which it takes: LABELS are -1 and +1
    largest_curvature: float  # of the loss itself; infinite where it has a kink or a log link
    value: Callable[..., float]
    slope: Callable[..., float]
    rounded: Callable[..., tuple[float, float]]
    model: Callable[..., tuple[float, float]]
    residual: Callable[..., float]
    conjugate: Callable[..., float]
    slope_range: Callable[..., tuple[float, float]]
    curvature: Callable[..., float]
    roundness: float | None = None  # phi*(s) = s y + roundness s^2 / 2 + dead_zone |s|
    log_link: bool = False  # whether predictions are logarithms of targets
    parameter: str = ""  # what `level` is; empty for losses without a parameter
    taylor: bool = False  # whether `model` may lie below the loss: steps are then shortened
    estimators: bool = True  # whether estimators and the command line take it by its name
    purpose: str = ""  # what such targets are, said to users beside its name
    power: float = 0.0  # log link: a target's variance is proportional to this power of its mean
    number: int = -1  # by which kernels know it: its place in the table
    level: float | np.ndarray = 0.0  # the loss's parameter, or one for each example
    users: Any = None  # a user's own loss, which has no number

    @property
    def labelled(self) -> bool:
        return self.targets == LABELS

    @property
    def kinked(self) -> bool:
        smooth = self.log_link or (self.users is not None and self.users.curvature is not None)
        return math.isinf(self.largest_curvature) and not smooth

    @property
    def variance_power(self) -> float:
        return float(self.level) if self.parameter == "power" else self.power

    @property
    def dead_zone(self) -> float:
        """How far a prediction may miss without loss."""
        return float(self.level) if self.parameter == "epsilon" else 0.0

    @cached_property
    def levels(self) -> np.ndarray:
        """As kernels read them: one for each example, or a single one for all."""
        return np.atleast_1d(np.asarray(self.level, dtype=np.float64))


# ------------------------------------------------------------------------------------- the table

# The numbers of losses are part of saved runs: a new row goes to the end.
TABLE: tuple[LossRow, ...] = (
    LossRow(
        "hinge", LABELS, math.inf, hinge_value, hinge_slope, hinge_rounded, hinge_model,
        shortfall, linear_conjugate, label_slopes, no_curvature, 0.0,
    ),
    LossRow(
        "logistic", LABELS, 0.25, logistic_value, logistic_slope, logistic_rounded, logistic_model,
        shortfall, logistic_conjugate, label_slopes, logistic_curvature,
        taylor=True,
    ),
    LossRow(
        "squared", ANY, 1.0, squared_value, squared_slope, squared_rounded, squared_model,
        error_of, quadratic_conjugate, any_slope, no_curvature, 1.0,
    ),
    LossRow(
        "absolute", ANY, math.inf, absolute_value, absolute_slope, absolute_rounded,
        absolute_model, error_of, linear_conjugate, unit_slopes, no_curvature, 0.0,
    ),
    LossRow(
        "huber", ANY, 1.0, huber_value, huber_slope, huber_rounded, huber_model,
        error_of, quadratic_conjugate, huber_slopes, no_curvature, 1.0,
        parameter="threshold", level=1.0,
    ),
    LossRow(
        "quantile", ANY, math.inf, quantile_value, quantile_slope, quantile_rounded,
        quantile_model, error_of, linear_conjugate, quantile_slopes, no_curvature, 0.0,
        parameter="level",
    ),
    LossRow(
        "poisson", NONNEGATIVE, math.inf, poisson_value, poisson_slope, poisson_rounded,
        poisson_model, log_residual, poisson_conjugate, poisson_slopes, poisson_curvature,
        log_link=True, purpose="counts", power=1.0,
    ),
    LossRow(
        "gamma", POSITIVE, math.inf, gamma_value, gamma_slope, gamma_rounded, gamma_model,
        log_residual, gamma_conjugate, gamma_slopes, gamma_curvature, log_link=True,
        purpose="positive amounts", power=2.0,
    ),
    LossRow(
        "tweedie", NONNEGATIVE, math.inf, tweedie_value, tweedie_slope, tweedie_rounded,
        tweedie_model, log_residual, tweedie_conjugate, tweedie_slopes, tweedie_curvature,
        log_link=True, parameter="power", purpose="amounts that are often 0",
    ),
    LossRow(
        "epsilon_insensitive", ANY, math.inf, insensitive_value, insensitive_slope,
        insensitive_rounded, insensitive_model, error_of, insensitive_conjugate, unit_slopes,
        no_curvature, 0.0, parameter="epsilon", estimators=False,  # they have no such parameter
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


# ------------------------------------------------------------------------- all examples at once


@lean_kernel
def level_of(levels, example):
    return levels[example] if levels.size > 1 else levels[0]


def _loop_of_each(name: str, arguments: str, *lines: str) -> tuple[Any, ...]:
    """For every row of the table a kernel `name(<arguments>)`, which does the lines for every
    example i; they call the row's functions by the names of its columns.

    One kernel each: what a fit compiles is then its own loss, and not all of them.
    """
    source = "\n".join(
        [
            f"def {name}({arguments}):",
            "    for i in range(y.size):",
            *(" " * 8 + ln for ln in lines),
        ]
    )
    found = []
    for row in TABLE:
        namespace = {field.name: getattr(row, field.name) for field in fields(row)}
        namespace |= {"__name__": __name__, "level_of": level_of}
        exec(compile(source.replace(name, f"{name}_{row.name}", 1), __file__, "exec"), namespace)
        found.append(lean_kernel(namespace[f"{name}_{row.name}"]))
    return tuple(found)


plain_values = _loop_of_each(
    "plain_values", "levels, z, y, out", "out[i] = value(level_of(levels, i), z[i], y[i])"
)
"""The loss of every example."""
rounded_values = _loop_of_each(
    "rounded_values",
    "levels, width, z, y, out",
    "out[i] = rounded(level_of(levels, i), width, z[i], y[i])[0]",
)
"""The loss of every example, its kink rounded over `width` > 0."""
quadratic_models = _loop_of_each(
    "quadratic_models",
    "levels, width, z, y, slopes, curvatures",
    "slopes[i], curvatures[i] = model(level_of(levels, i), width, z[i], y[i])",
)
derivatives = _loop_of_each(
    "derivatives",
    "levels, z, y, values, slopes, curvatures",
    "level = level_of(levels, i)",
    "values[i] = value(level, z[i], y[i])",
    "slopes[i] = slope(level, z[i], y[i])",
    "curvatures[i] = curvature(level, z[i], y[i])",
)
"""The loss of every example with its first and second derivative."""
residuals = _loop_of_each("residuals", "z, y, out", "out[i] = residual(z[i], y[i])")
conjugates = _loop_of_each(
    "conjugates",
    "levels, s, y, out",
    "lowest, highest = slope_range(level_of(levels, i), y[i])",
    "s[i] = min(highest, max(lowest, s[i]))",
    "out[i] = conjugate(level_of(levels, i), s[i], y[i])",
)
"""phi* at the slopes s, which are first moved into its domain."""
