"""Which losses the estimators take, and probabilities from log-odds."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import LOSSES, Huber, Quantile, Tweedie, loss_of
from lighttouch.validation import one_of

Floats = NDArray[np.float64]
LINEAR_REGRESSION = ("squared", "absolute", "huber", "quantile")
POWERS: dict[str, Callable[[LossRow], float]] = {
    "poisson": lambda row: 1.0,
    "gamma": lambda row: 2.0,
    "tweedie": lambda row: float(row.level),
}
"""Losses with a log link: the variance of a target is proportional to this power of its mean."""
REGRESSION = (*LINEAR_REGRESSION, *POWERS)
LARGEST_LOGARITHM = 700.0  # e^700 is 1e304
CLASSIFICATION = tuple(name for name, row in LOSSES.items() if row.labelled)


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


def mean_of(z: Floats) -> Floats:
    """e^z, never falling in z to the last bit, positive and finite.

    z is rounded as in `chance`, which changes a mean by less than 1e-9 of it.
    """
    steps = np.round(np.clip(z, -LARGEST_LOGARITHM, LARGEST_LOGARITHM) * 2.0**32) / 2.0**32
    return np.exp(steps)


def regression_loss(loss: Any, quantile: Any, names: tuple[str, ...] = REGRESSION) -> LossRow:
    """The row of a loss of errors, or of one with a log link."""
    if isinstance(loss, Quantile):
        if np.ndim(loss.level):
            raise ValueError(
                "loss must be a Quantile with a single level, got one per example; for several "
                'levels use loss="quantile" with a list as quantile'
            )
        return loss_of(loss)
    if isinstance(loss, Huber) or (isinstance(loss, Tweedie) and "tweedie" in names):
        return loss_of(loss)
    name = one_of(loss, names, "loss")
    if name == "tweedie":
        return loss_of(Tweedie())
    if name != "quantile":
        return loss_of(name)
    return loss_of(Quantile(_level(quantile)))


def quantile_levels(loss: Any, quantile: Any) -> tuple[float, ...] | None:
    """The levels that are predicted together; None for a single number."""
    if loss != "quantile" or np.ndim(quantile) == 0:
        return None
    levels = tuple(_level(each) for each in quantile)
    if len(levels) == 0 or any(low >= high for low, high in pairwise(levels)):
        raise ValueError(
            f"quantile must be a number or a list in ascending order, got {list(quantile)!r}"
        )
    return levels


def _level(quantile: Any) -> float:
    number = isinstance(quantile, int | float | np.number) and not isinstance(quantile, bool)
    if not (number and math.isfinite(quantile) and 0.0 < quantile < 1.0):
        raise ValueError(f"quantile must lie strictly between 0 and 1, got {quantile!r}")
    return float(quantile)


def margin_loss(loss: Any) -> LossRow:
    return loss_of(one_of(loss, CLASSIFICATION, "loss"))
