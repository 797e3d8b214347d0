"""Losses as a sequence of quadratic models: value, slope and curvature of every example at the
current predictions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.objectives.losses import Quantile
from lighttouch.validation import one_of

Floats = NDArray[np.float64]
REGRESSION = ("squared", "absolute", "huber", "quantile")
CLASSIFICATION = ("logistic", "hinge")


class PointLoss:
    """One of the library's losses, its kinks rounded over `width` where it has any.

    Slope and curvature make a quadratic that lies above the rounded loss and touches it (for
    logistic loss: its Taylor polynomial), so that minimising the quadratic lowers the loss.
    """

    def __init__(self, name: str, level: float = 0.5) -> None:
        self.name, self.level = name, level

    @property
    def kinked(self) -> bool:
        return self.name in ("absolute", "quantile", "hinge")

    @property
    def of_the_library(self) -> Any:
        """The loss as `EmpiricalRisk` takes it."""
        return Quantile(self.level) if self.name == "quantile" else self.name

    def values(self, z: Floats, y: Floats, width: float = 0.0) -> Floats:
        if self.name == "squared":
            return 0.5 * np.square(z - y)
        if self.name == "logistic":
            return np.logaddexp(0.0, -y * z)
        residual = self._residual(z, y)
        if self.name == "huber":
            return np.where(
                np.abs(residual) <= 1.0, 0.5 * np.square(residual), np.abs(residual) - 0.5
            )
        straight, bent = self._slopes()
        return straight * residual + bent * _rounded_size(residual, width)

    def quadratic(self, z: Floats, y: Floats, width: float) -> tuple[Floats, Floats]:
        """Slopes and curvatures at the predictions z."""
        if self.name == "squared":
            return z - y, np.ones_like(z)
        if self.name == "logistic":
            wrong = chance(-y * z)
            return -y * wrong, np.maximum(wrong * (1.0 - wrong), 1e-4)
        residual = self._residual(z, y)
        if self.name == "huber":
            return np.clip(residual, -1.0, 1.0), 1.0 / np.maximum(1.0, np.abs(residual))
        straight, bent = self._slopes()
        size = np.maximum(np.abs(residual), width)
        sign = -y if self.name == "hinge" else 1.0
        return sign * (straight + bent * residual / size), bent / size

    def _residual(self, z: Floats, y: Floats) -> Floats:
        return 1.0 - y * z if self.name == "hinge" else z - y

    def _slopes(self) -> tuple[float, float]:
        """The loss is straight * residual + bent * |residual|."""
        if self.name == "absolute":
            return 0.0, 1.0
        if self.name == "quantile":
            return 0.5 - self.level, 0.5
        return 0.5, 0.5


def _rounded_size(residual: Floats, width: float) -> Floats:
    size = np.abs(residual)
    if width == 0.0:
        return size
    return np.where(size < width, 0.5 * (np.square(residual) / width + width), size)


def chance(z: Floats) -> Floats:
    """1 / (1 + e^-z), never falling in z to the last bit.

    z is rounded to a multiple of 2^-32 (which changes a probability by less than 1e-10): neighbours
    on that grid give values that differ by far more than the rounding errors of `exp`, so the
    computed values keep their order.
    """
    steps = np.round(np.clip(z, -740.0, 740.0) * 2.0**32) / 2.0**32
    small = np.exp(-np.abs(steps))
    rare = small / (1.0 + small)
    return np.where(steps > 0.0, 1.0 - rare, rare)


def regression_loss(loss: Any, quantile: float) -> PointLoss:
    if isinstance(loss, Quantile):
        return PointLoss("quantile", loss.level)
    name = one_of(loss, REGRESSION, "loss")
    if name == "quantile" and not (
        isinstance(quantile, int | float) and math.isfinite(quantile) and 0.0 < quantile < 1.0
    ):
        raise ValueError(f"quantile must lie strictly between 0 and 1, got {quantile!r}")
    return PointLoss(name, float(quantile))


def margin_loss(loss: Any) -> PointLoss:
    return PointLoss(one_of(loss, CLASSIFICATION, "loss"))
