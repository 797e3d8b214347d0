"""From the targets of a regression to examples: in units of their spread, in robust ones or, with a
log link, as multiples of their mean; and from scores to predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import ConstraintError, DataError
from lighttouch.estimators.fitting import Examples
from lighttouch.estimators.outputs import (
    Levels,
    Means,
    OneScore,
    Outputs,
    weighted_quantiles,
)
from lighttouch.estimators.parameters import LOG_LINK, REGRESSION
from lighttouch.estimators.rules import BoundShape
from lighttouch.estimators.rules.rows import Limits
from lighttouch.estimators.tables import (
    Total,
    mean_target,
    refuse_tiny,
    summed_centre_and_scale,
)
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import CLASSES, Quantile, loss_of, refuse_targets
from lighttouch.validation import finite_vector, one_of

LARGEST_LOGARITHM = 700.0  # e^700 is 1e304


@dataclass(frozen=True)
class Task:
    """What is minimised, and which quantiles are predicted together, if several are."""

    loss: LossRow
    levels: tuple[float, ...] | None = None

    @classmethod
    def of(cls, loss: object, quantile: object) -> Task:
        """What the parameters `loss` and `quantile` ask for."""
        levels = quantile_levels(loss, quantile)
        typical = quantile if levels is None else levels[len(levels) // 2]
        return cls(regression_loss(loss, typical), levels)

    @property
    def outputs(self) -> Outputs:
        if self.levels is not None:
            return Levels(self.levels)
        return Means() if self.loss.log_link else OneScore()

    def examples(
        self,
        table: Floats,
        targets: Floats,
        weights: Floats,
        exposure: Floats | None,
        robust: RobustUnits | None = None,
    ) -> Examples:
        """In the given robust units of the targets; by default in their spread or mean."""
        self.refuse(targets, exposure is not None)
        if robust is None and self.loss.name == "absolute":
            robust = units_of_wild(targets, weights)
        if robust is not None:
            own = Units(robust.unit, robust.centre)
            found = self.in_units(own, table, targets, weights, exposure)
            return replace(found, nearby=(robust.pseudo, weights))
        units = self.units(lambda part: part(targets, weights, exposure), exposure is not None)
        return self.in_units(units, table, targets, weights, exposure)

    def refuse(self, targets: Floats, exposed: bool) -> None:
        refuse_targets(self.loss, targets)
        if exposed and not self.loss.log_link:
            raise ValueError(
                f"exposure needs a loss with a log link ({', '.join(LOG_LINK)}), got loss="
                f"{self.loss.name!r}"
            )

    def units(self, total: Total, exposed: bool) -> Units:
        """What the targets are measured in."""
        if not self.loss.log_link:
            shift, scale = summed_centre_and_scale(total)
            return Units(scale, shift)
        exposure = total(mean_exposure)
        mean = total(mean_target)
        if not mean > 0.0:
            raise DataError(
                f"y must be positive somewhere for the {self.loss.name} loss (where its weights "
                "are), got only zeros"
            )
        refuse_tiny(mean)
        power = 2.0 - self.loss.variance_power
        shares = total(SharesOfExposure(exposure, power))
        shift = float(np.log(mean / (exposure if exposed else 1.0)))
        return Units(1.0, shift, mean, exposure, shares)

    def in_units(
        self,
        units: Units,
        table: Floats,
        targets: Floats,
        weights: Floats,
        exposure: Floats | None,
    ) -> Examples:
        """Examples whose targets are measured so.

        With a log link they are multiples of the mean per exposure. At that mean the loss of an
        example has slope e - y and curvature e^(2 - power), where e is its exposure (of mean 1) and
        y its target: squared errors of y / e - 1 with such weights have the same second-order
        expansion.
        """
        if not self.loss.log_link:
            standard = (targets - units.shift) / units.scale
            return Examples(
                [(table, 1.0)], standard, weights, units.scale, units.shift, outputs=self.outputs
            )
        power = 2.0 - self.loss.variance_power
        unit = exposures(targets, exposure) / units.exposure
        shares = weights * unit**power
        return Examples(
            [(table, 1.0)],
            targets / units.mean,
            weights,
            shift=units.shift,
            offset=None if exposure is None else np.log(unit),
            nearby=(targets / units.mean / unit - 1.0, shares / units.shares),
            outputs=self.outputs,
        )


def regression_loss(loss: Any, quantile: Any, names: tuple[str, ...] = REGRESSION) -> LossRow:
    """The row of a loss of errors, or of one with a log link."""
    if isinstance(loss, Quantile):
        if np.ndim(loss.level):
            raise ValueError(
                "loss must be a Quantile with a single level, got one per example; for several "
                'levels use loss="quantile" with a list as quantile'
            )
        return loss_of(loss)
    if any(isinstance(loss, CLASSES[name]) for name in names if name in CLASSES):
        return loss_of(loss)
    name = one_of(loss, names, "loss")
    if name == "quantile":
        return loss_of(Quantile(_level(quantile)))
    return loss_of(CLASSES[name]() if name in CLASSES else name)


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


@dataclass(frozen=True)
class Units:
    """What targets are measured in: their spread about their mean or, with a log link, their mean
    per exposure.
    """

    scale: float = 1.0
    shift: float = 0.0
    mean: float = 1.0
    exposure: float = 1.0
    shares: float = 1.0


def exposures(targets: Floats, exposure: Floats | None) -> Floats:
    return np.ones(targets.size) if exposure is None else exposure


def mean_exposure(targets: Floats, weights: Floats, exposure: Floats | None) -> float:
    return float(weights @ exposures(targets, exposure))


@dataclass(frozen=True)
class SharesOfExposure:
    """What the squared errors that stand for a loss with a log link weigh together."""

    mean: float
    power: float

    def __call__(self, targets: Floats, weights: Floats, exposure: Floats | None) -> float:
        unit = exposures(targets, exposure) / self.mean
        return float((weights * unit**self.power).sum())


def read_exposure(exposure: ArrayLike | None, rows: int) -> Floats | None:
    """Positive numbers, one per row."""
    if exposure is None:
        return None
    given = finite_vector(exposure, "exposure", rows)
    if (given <= 0.0).any():
        row = int(np.argmax(given <= 0.0))
        raise DataError(
            f"exposure must be positive, got {given[row]} in row {row}; drop rows that were never "
            "exposed"
        )
    return given


# -------------------------------------------------------------------------------------------------
# The unit of Huber's loss: where errors stop counting as squares, from a robust scale.
#
# The standard deviation of the targets is no such unit: one per cent of wild targets makes it so
# large that no error is beyond it. A first fit under the absolute loss, which they move little,
# leaves residuals whose median size is a scale that they do not move either.


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


# -------------------------------------------------------------------------------------------------
# From scores to predictions: through the link, and within the limits that the user asked for.


@dataclass(frozen=True)
class OutputLimits:
    """Predictions of at least `least` and at most `most`: scores (with a log link e^score), cut
    off there.

    Cutting off is an increasing function with slopes of at most 1: it keeps every rule that is
    about order, and bounds of slopes. A convex function stays convex if it is cut off below, a
    concave one if it is cut off above.
    """

    least: float = -math.inf
    most: float = math.inf
    log_link: bool = False

    @classmethod
    def of(cls, least: Any, most: Any, log_link: bool) -> OutputLimits:
        """What `output_min` and `output_max` ask for."""
        low = -math.inf if least is None else _number(least, "output_min")
        high = math.inf if most is None else _number(most, "output_max")
        if low > high:
            raise ValueError(f"output_min must not be above output_max, got {least!r} and {most!r}")
        if log_link and high <= 0.0:
            raise ValueError(
                f"output_max must be positive with a log link, whose predictions are, got {most!r}"
            )
        return cls(low, high, log_link)

    @property
    def none(self) -> bool:
        return math.isinf(self.least) and math.isinf(self.most)

    def predictions(self, scores: Floats) -> Floats:
        values = mean_of(scores) if self.log_link else scores
        if self.none:
            return values
        return np.clip(values, self.least, self.most)

    def refuse_rules_that_clipping_breaks(self, shapes: Sequence[BoundShape]) -> None:
        for bound in shapes:
            for name, asked, kept in (
                ("output_min", not math.isinf(self.least), bound.shape.kept_below),
                ("output_max", not math.isinf(self.most), bound.shape.kept_above),
            ):
                if asked and not kept:
                    raise ConstraintError(
                        f"{name} cuts predictions off, which {bound.shape} does not survive: it "
                        "compares differences of predictions. Drop one of the two, or "
                        "transform y so that its range has no end there"
                    )

    def state(self) -> list[Any]:
        ends = [None if math.isinf(end) else end for end in (self.least, self.most)]
        return [*ends, self.log_link]

    @classmethod
    def from_state(cls, state: list[Any] | None) -> OutputLimits:
        """What `state` gave; the first files of version 1 have no limits."""
        least, most, log_link = state or [None, None, False]
        return cls.of(least, most, bool(log_link))


def mean_of(z: Floats) -> Floats:
    """e^z, never falling in z to the last bit, positive and finite.

    z is rounded as in `classes.chance`, which changes a mean by less than 1e-9 of it.
    """
    steps = np.round(np.clip(z, -LARGEST_LOGARITHM, LARGEST_LOGARITHM) * 2.0**32) / 2.0**32
    return np.exp(steps)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number or None, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}; None is no limit")
    return float(value)


def within_margin(
    label: str, table: Floats, wanted: Floats, margin: float, log_link: bool
) -> Limits:
    """Predictions of canonical examples within `margin` of their targets, as limits of scores."""
    low, high = wanted - margin, wanted + margin
    if log_link:
        if (high <= 0.0).any():
            row = int(np.argmax(high <= 0.0))
            raise DataError(
                "canonical examples must have targets above minus the margin, because predictions "
                f"are positive: row {row} asks for at most {high[row]:g}"
            )
        with np.errstate(divide="ignore"):
            low, high = np.log(np.maximum(low, 0.0)), np.log(high)
    return Limits(label, table, low, high)


def explained_pinball(
    predicted: Floats, targets: Floats, levels: tuple[float, ...], weights: Floats
) -> float:
    """1 minus the pinball loss over that of the targets' own quantiles."""
    constant = weighted_quantiles(targets, weights, levels)
    worst = _pinball(np.broadcast_to(constant, predicted.shape), targets, levels, weights)
    own = _pinball(predicted, targets, levels, weights)
    return 1.0 - own / worst if worst > 0.0 else float(own == 0.0)


def _pinball(
    predicted: Floats, targets: Floats, levels: tuple[float, ...], weights: Floats
) -> float:
    errors, level = targets[:, None] - predicted, np.asarray(levels)
    return float(weights @ np.maximum(level * errors, (level - 1.0) * errors).mean(axis=1))
