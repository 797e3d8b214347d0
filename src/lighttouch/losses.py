"""Losses by name: the rows of the table (`kernels.verbs.losses`), and their values on vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.verbs import losses as kernels
from lighttouch.kernels.verbs.losses import TABLE, LossRow

LOSSES: dict[str, LossRow] = {
    row.name: replace(row, number=number) for number, row in enumerate(TABLE)
}


@dataclass(frozen=True)
class Quantile:
    """The pinball loss, minimised by the conditional quantile of the given level.

    Parameters
    ----------
    level : float
        Strictly between 0 and 1; 0.5 gives half the absolute loss.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0], [1.0]], [0.0, 2.0], loss=lt.Quantile(0.25))
    >>> objective.value([1.0])
    0.5
    """

    level: float

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got {self.level}")


Loss = str | Quantile
NEEDS_LEVEL = "quantile"  # the one loss with a parameter, given as Quantile(level)


def loss_of(loss: Loss) -> LossRow:
    """The row of a loss given by its name or as Quantile(level)."""
    if isinstance(loss, Quantile):
        return replace(LOSSES[NEEDS_LEVEL], level=loss.level)
    names = [name for name in LOSSES if name != NEEDS_LEVEL]
    if loss not in names:
        raise ValueError(f"loss must be one of {', '.join(names)} or Quantile(level); got {loss!r}")
    return LOSSES[loss]


def given_as(row: LossRow) -> Loss:
    """The loss as `EmpiricalRisk` takes it: the inverse of `loss_of`."""
    return Quantile(row.level) if row.name == NEEDS_LEVEL else row.name


def values(row: LossRow, z: Vector, y: Vector, width: float = 0.0) -> Vector:
    """The loss of every example, its kink rounded over `width`."""
    out = np.empty(z.size)
    kernels.rounded_values(row.number, row.level, float(width), z, y, out)
    return out


def quadratic(row: LossRow, z: Vector, y: Vector, width: float) -> tuple[Vector, Vector]:
    """Slopes and curvatures of quadratics that touch the rounded loss at the predictions z."""
    slopes, curvatures = np.empty(z.size), np.empty(z.size)
    kernels.quadratic_models(row.number, row.level, float(width), z, y, slopes, curvatures)
    return slopes, curvatures


def derivatives(row: LossRow, z: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
    """The loss of every example with its first and second derivative."""
    found = np.empty(z.size), np.empty(z.size), np.empty(z.size)
    kernels.derivatives(row.number, row.level, z, y, *found)
    return found


def slope_ranges(row: LossRow, y: Vector) -> tuple[Vector, Vector]:
    """The smallest and the largest slope of every example."""
    far = np.full(y.size, np.inf)
    return conjugate_values(row, -far, y)[0], conjugate_values(row, far, y)[0]


def typical_residual(row: LossRow, z: Vector, y: Vector) -> float:
    """The mean size of what the predictions miss, in units of z."""
    out = np.empty(z.size)
    kernels.residuals(row.number, z, y, out)
    return float(np.mean(np.abs(out)))


def conjugate_values(row: LossRow, slopes: Vector, y: Vector) -> tuple[Vector, Vector]:
    """The nearest slopes in the domain of phi*, and phi* there: phi(z) >= s z - phi*(s)."""
    allowed, out = np.array(slopes, dtype=np.float64), np.empty(slopes.size)
    kernels.conjugates(row.number, row.level, allowed, y, out)
    return allowed, out
