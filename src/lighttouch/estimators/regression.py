"""From the targets of a regression to examples: in units of their spread or, with a log link, as
multiples of their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.fitting import Examples
from lighttouch.estimators.losses import LOG_LINK, quantile_levels, regression_loss
from lighttouch.estimators.outputs import (
    Levels,
    Means,
    OneScore,
    Outputs,
    weighted_quantiles,
)
from lighttouch.estimators.robust import RobustUnits, units_of_wild
from lighttouch.estimators.rules.canonical import Limits
from lighttouch.estimators.targets import Total, mean_of, summed_centre_and_scale
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import refuse_targets
from lighttouch.validation import finite_vector


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
        mean = total(mean_of)
        if not mean > 0.0:
            raise DataError(
                f"y must be positive somewhere for the {self.loss.name} loss (where its weights "
                "are), got only zeros"
            )
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
