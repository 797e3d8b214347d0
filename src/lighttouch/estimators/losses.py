"""Which losses the estimators take, and probabilities from log-odds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import LOSSES, Quantile, loss_of
from lighttouch.validation import one_of

Floats = NDArray[np.float64]
REGRESSION = ("squared", "absolute", "huber", "quantile")
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


def regression_loss(loss: Any, quantile: float) -> LossRow:
    if isinstance(loss, Quantile):
        if np.ndim(loss.level):
            raise ValueError("loss must be a Quantile with a single level, got one per example")
        return loss_of(loss)
    name = one_of(loss, REGRESSION, "loss")
    if name != "quantile":
        return loss_of(name)
    if not (isinstance(quantile, int | float) and math.isfinite(quantile) and 0.0 < quantile < 1.0):
        raise ValueError(f"quantile must lie strictly between 0 and 1, got {quantile!r}")
    return loss_of(Quantile(float(quantile)))


def margin_loss(loss: Any) -> LossRow:
    return loss_of(one_of(loss, CLASSIFICATION, "loss"))
