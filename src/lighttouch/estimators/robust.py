"""The unit of Huber's loss: where errors stop counting as squares, from a robust scale.

The standard deviation of the targets is no such unit: one per cent of wild targets makes it so
large that no error is beyond it. A first fit under the absolute loss, which they move little,
leaves residuals whose median size is a scale that they do not move either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.outputs import weighted_quantiles

EFFICIENT = 1.345
"""Threshold in standard deviations of normal errors at which Huber's estimate of a mean is 95% as
efficient as the mean (Huber 1981, 4.5)."""
NORMAL = 1.4826
"""Standard deviation of normal errors over the median of their sizes."""
WILD = 5.0
"""Robust standard deviations from the median beyond which targets are wild: they do not decide how
much a fit under the absolute loss is smoothed. Of normal targets, one in a million is that far."""
FIRST_ROWS = 5000
"""Rows of the first fit; the scale of their residuals is within about 2% of that of all rows."""


@dataclass(frozen=True)
class RobustUnits:
    """A centre and a unit of the targets that wild ones do not move, and targets in these units,
    without wild ones, that stand for the others wherever squared errors are used.
    """

    centre: float
    unit: float
    pseudo: Floats


def robust_units(
    targets: Floats,
    weights: Floats,
    first_fit: Callable[[Indices, Floats], Floats],
) -> RobustUnits | None:
    """Units in which Huber's loss has the threshold 1. `pseudo` are Huber's pseudo-values: the
    first fit plus its residuals cut off at the threshold, so that squared errors of them have the
    same gradient there as Huber's loss.

    `first_fit(rows, targets)` fits the absolute loss to some rows and predicts all. None where more
    than half of the residuals are 0, so that their scale says nothing.
    """
    rows = first_rows(np.flatnonzero(weights > 0.0))
    predicted = first_fit(rows, targets[rows])
    found = robust_scale(targets[rows], weights[rows], predicted[rows])
    if found is None:
        return None
    return RobustUnits(*found, pseudo_values(targets, predicted, *found))


def first_rows(rows: Indices) -> Indices:
    """Those of the first fit."""
    if rows.size <= FIRST_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, FIRST_ROWS, replace=False))


def robust_scale(targets: Floats, weights: Floats, predicted: Floats) -> tuple[float, float] | None:
    """Centre and unit of targets, from what a first fit predicts for them."""
    centre, _ = _centre_and_spread(targets, weights)
    unit = EFFICIENT * NORMAL * _median(np.abs(targets - predicted), weights)
    size = float(np.abs(targets - centre).max(initial=0.0))
    return (centre, unit) if unit > np.finfo(np.float64).eps * size else None


def pseudo_values(targets: Floats, predicted: Floats, centre: float, unit: float) -> Floats:
    """The first fit plus its residuals cut off at the threshold, in the units."""
    cut = np.clip(targets - predicted, -unit, unit)
    return np.asarray((predicted + cut - centre) / unit)


def units_of_wild(targets: Floats, weights: Floats) -> RobustUnits | None:
    """Units of targets of which some are wild; None where none is."""
    counted = weights > 0.0
    centre, spread = _centre_and_spread(targets[counted], weights[counted])
    standard = (targets - centre) / spread if spread > 0.0 else np.zeros(1)
    if not np.abs(standard).max(initial=0.0) > WILD:
        return None
    return RobustUnits(centre, spread, np.clip(standard, -WILD, WILD))


def _centre_and_spread(targets: Floats, weights: Floats) -> tuple[float, float]:
    centre = _median(targets, weights)
    return centre, NORMAL * _median(np.abs(targets - centre), weights)


def _median(values: Floats, weights: Floats) -> float:
    return float(weighted_quantiles(values, weights / weights.sum(), (0.5,))[0])
