"""The examples that smoothing is chosen on: their loss, its quadratic model, and its noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.estimators.smoothing.costs import COSTS
from lighttouch.estimators.sums import SquaredSums
from lighttouch.estimators.term_features import TermFeatures
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.solvers.quadratic_model import gram


@dataclass(frozen=True)
class Examples:
    """Rows of features with targets and weights that add up to 1, for one loss.

    `row` is the loss that is trained where it is smooth; None for squared errors.
    """

    features: Any
    y: Floats
    weights: Floats
    row: LossRow | None
    count: float  # how many examples they are worth
    differences: bool = False  # of two rows each: without an intercept
    curvature: Floats | None = None  # weights to begin with: a Gram matrix near the present one
    sums: SquaredSums | None = None  # of squared errors; then there are no features
    offset: Floats | None = None  # what is added to the predictions, of losses other than squares
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _squared(self) -> tuple[Floats, Floats, float]:
        if self.sums is not None:
            return self.sums.squares, self.sums.moment, self.sums.energy
        moment = np.asarray(self.features.T @ (self.weights * self.y))
        return self._gram(self.weights), moment, float(self.weights @ np.square(self.y))

    def _gram(self, weights: Floats) -> Floats:
        stored = isinstance(self.features, TermFeatures)
        found = self.features.gram(weights) if stored else gram(self.features, weights)
        if self.differences:
            found[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
        return found

    def quadratic(self, w: Floats) -> tuple[Floats, Floats]:
        """H and c of the quadratic model w'Hw / 2 - c.w of the mean loss at w."""
        if self.row is None:
            return self._squared[:2]
        slopes, curvatures = losses.quadratic(self.row, self.predictions(w), self.y, 0.0)
        H = self._gram_near(self.weights * curvatures, w)
        return H, H @ w - np.asarray(self.features.T @ (self.weights * slopes))

    def _gram_near(self, curved: Floats, w: Floats) -> Floats:
        """The Gram matrix for these weights, or for earlier ones that are near: steps with it still
        go downhill, because the slopes are exact (a chord method).
        """
        known = self._kept.get("weights", self.curvature)
        if known is None or np.abs(curved - known).sum() > COSTS.stale * known.sum():
            known = curved
            self._kept["reference"] = w
        if self._kept.get("weights") is not known:
            self._kept.update(weights=known, gram=self._gram(known))
        found: Floats = self._kept["gram"]
        return found

    @property
    def near(self) -> tuple[Floats, Floats] | None:
        """The last Gram matrix, after the point whose curvatures it has; None if unknown."""
        if self.row is None or self.differences or "reference" not in self._kept:
            return None
        return self._kept["reference"], self._kept["gram"]

    @property
    def last_curvature(self) -> Floats | None:
        """The weights of the last Gram matrix."""
        return self._kept.get("weights", self.curvature)

    def value(self, predictions: Floats) -> float:
        """The mean loss, of losses other than squared errors."""
        assert self.row is not None
        return float(self.weights @ losses.values(self.row, predictions, self.y, 0.0))

    def predictions(self, w: Floats) -> Floats:
        """X w and the offset, of the point that was asked for last once."""
        if self._kept.get("point") is not w:
            z = np.asarray(self.features @ w)
            self.remember(w, z if self.offset is None else z + self.offset)
        found: Floats = self._kept["predictions"]
        return found

    def remember(self, w: Floats, predictions: Floats) -> None:
        """The predictions of the point that will be asked for next."""
        self._kept.update(point=w, predictions=predictions)

    def noise(self, w: Floats, freedom: float) -> float:
        """The variance of an example's noise, in units of the loss; 1 for the logistic loss, whose
        variance is known.
        """
        room = max(1.0 - freedom / self.count, COSTS.least_room)
        if self.row is None:
            H, c, energy = self._squared
            error = energy - 2.0 * float(w @ c) + float(w @ (H @ w))
            return max(error, 1e-12 * energy) / room
        if self.row.name == "logistic":
            return 1.0
        residual, weights = self.residual(w)
        return float(weights @ np.square(residual)) / room

    def part(self, rows: NDArray[np.int64]) -> Examples | None:
        """Some of the examples; None where they have no weight."""
        total = float(self.weights[rows].sum())
        if total == 0.0:
            return None
        return replace(
            self,
            features=self.features[rows],
            y=self.y[rows],
            weights=self.weights[rows] / total,
            offset=None if self.offset is None else self.offset[rows],
            count=self.count * rows.size / self.y.size,
            curvature=None,
            _kept={},
        )

    def residual(self, w: Floats) -> tuple[Floats, Floats]:
        """What the quadratic model at w leaves over for every example, and its weight there."""
        z = self.predictions(w)
        if self.row is None:
            return self.y - z, self.weights
        slopes, curvatures = losses.quadratic(self.row, z, self.y, 0.0)
        return -slopes / curvatures, self.weights * curvatures
