"""The examples by which smoothing is chosen: their features, held, made anew for every product, or
known by sums only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.cholesky import zeros
from lighttouch.estimators.costs import SMOOTHING
from lighttouch.estimators.model import Features, FeaturesMadeAnew
from lighttouch.estimators.penalties import Roughness
from lighttouch.kernels.numerics.matrices import add_products, add_transposed, mirror
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.objectives import FactoredSquares
from lighttouch.solvers.quadratic_model import add_gram, gram


@dataclass(frozen=True)
class Judged:
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
        moment = self.back(self.weights * self.y)
        return self._gram(self.weights), moment, float(self.weights @ np.square(self.y))

    def _gram(self, weights: Floats) -> Floats:
        found = gram_of(self.features, weights)
        if self.differences:
            found[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
        return found

    def quadratic(self, w: Floats) -> tuple[Floats, Floats]:
        """H and c of the quadratic model w'Hw / 2 - c.w of the mean loss at w."""
        if self.row is None:
            return self._squared[:2]
        slopes, curvatures = losses.quadratic(self.row, self.predictions(w), self.y, 0.0)
        H = self._gram_near(self.weights * curvatures, w)
        return H, H @ w - self.slope(w, slopes)

    @cached_property
    def _rows(self) -> tuple[Any, Any] | None:
        """Parameters and values of every row, where all rows have as many: SciPy takes as long to
        find out what to do as to do it where rows are few.
        """
        X = self.features
        if not sparse.isspmatrix_csr(X) or X.nnz == 0 or (np.diff(X.indptr) != X.indptr[1]).any():
            return None
        return X.indices.reshape(X.shape[0], -1), X.data.reshape(X.shape[0], -1)

    def times(self, w: Floats) -> Floats:
        """X w."""
        if self._rows is None:
            return np.asarray(self.features @ w)
        out = np.zeros(self.features.shape[0])
        add_products(*self._rows, w, out)
        return out

    def back(self, v: Floats) -> Floats:
        """X'v."""
        if self._rows is None:
            return np.asarray(self.features.T @ v)
        out = np.zeros(self.features.shape[1])
        add_transposed(*self._rows, v, out)
        return out

    def slope(self, w: Floats, slopes: Floats) -> Floats:
        """The slope of the mean loss at a point where that of every example is `slopes`."""
        known: Floats | None = self._kept.get("slope") if self._kept.get("point") is w else None
        return self.back(self.weights * slopes) if known is None else known

    def looked_ahead(self, z: Floats, move: Floats) -> tuple[Floats, Floats | None]:
        """How a move changes the predictions z, and the slope at its end; None where that takes a
        pass of its own, which a shorter move would not need.
        """
        X = self.features
        if not isinstance(X, FeaturesMadeAnew):
            return self.times(move), None
        return X.there_and_back(move, lambda moved, here: self._pull(z[here] + moved, here))

    def _pull(self, z: Floats, here: slice) -> Floats:
        """Weighted slopes of the loss of some examples at predictions z."""
        return self.weights[here] * derivatives(self.row, z, self.y[here])[0]

    def _gram_near(self, curved: Floats, w: Floats) -> Floats:
        """The Gram matrix for these weights, or for earlier ones that are near: steps with it still
        go downhill, because the slopes are exact (a chord method).
        """
        known = self._kept.get("weights", self.curvature)
        if known is None or np.abs(curved - known).sum() > SMOOTHING.stale * known.sum():
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

    def objective(
        self, w: Floats, predictions: Floats, roughness: Roughness, strengths: Floats
    ) -> float:
        """The mean loss and the roughness at a point with these predictions, of losses other than
        squared errors; of the point that was asked for last once. Strengths belong to one
        roughness, predictions to one point.
        """
        assert self.row is not None
        point, smoothed, value = self._kept.get("objective", (None, None, 0.0))
        if point is not w or smoothed is not strengths:
            loss = float(self.weights @ losses.values(self.row, predictions, self.y, 0.0))
            value = loss + roughness.value(w, strengths)
            self._kept["objective"] = w, strengths, value
        return float(value)

    def predictions(self, w: Floats) -> Floats:
        """X w and the offset, of the point that was asked for last once; where features are made
        for it, its slope too.
        """
        if self._kept.get("point") is not w:
            nothing = np.zeros(self.y.size) if self.offset is None else self.offset
            moved, slope = self.looked_ahead(nothing, w)
            self.remember(w, moved if self.offset is None else moved + self.offset, slope)
        found: Floats = self._kept["predictions"]
        return found

    def remember(self, w: Floats, predictions: Floats, slope: Floats | None = None) -> None:
        """The predictions, and maybe the slope, of the point that will be asked for next."""
        self._kept.update(point=w, predictions=predictions, slope=slope)

    def noise(self, w: Floats, freedom: float) -> float:
        """The variance of an example's noise, in units of the loss; 1 for the logistic loss, whose
        variance is known.
        """
        room = max(1.0 - freedom / self.count, SMOOTHING.least_room)
        if self.row is None:
            H, c, energy = self._squared
            error = energy - 2.0 * float(w @ c) + float(w @ (H @ w))
            return max(error, 1e-12 * energy) / room
        if self.row.name == "logistic":
            return 1.0
        residual, weights = self.residual(w)
        return float(weights @ np.square(residual)) / room

    def part(self, rows: NDArray[np.int64]) -> Judged | None:
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
        curvatures = np.maximum(curvatures, SMOOTHING.least_curvature)
        return -slopes / curvatures, self.weights * curvatures


def gram_of(X: Any, weights: Floats) -> Floats:
    """X' diag(weights) X."""
    return X.gram(weights) if isinstance(X, Features) else gram(X, weights)


@dataclass(frozen=True)
class SquaredSums:
    """X'SX, X'Sy and y'Sy for weights S."""

    squares: Floats
    moment: Floats
    energy: float
    examples: int

    @classmethod
    def over(cls, parts: Iterable[tuple[Any, Floats, Floats]]) -> SquaredSums:
        """Of features, targets and weights that come in parts."""
        squares, moment, energy, examples = np.zeros((0, 0)), np.zeros(0), 0.0, 0
        for X, y, weights in parts:
            if not squares.size:
                squares, moment = zeros(X.shape[1], X.shape[1]), np.zeros(X.shape[1])
            add_gram(X, weights, squares)
            moment += X.T @ (weights * y)
            energy += float(weights @ np.square(y))
            examples += y.size
            del X  # before the features of the next part are made
        mirror(squares)
        return cls(squares, moment, energy, examples)

    def objective(self, D: Any, pull: float) -> FactoredSquares:
        """Half of these squares, with ||D w||^2 / 2 + pull ||w||^2 / 2."""
        return FactoredSquares(self.squares, self.moment, self.energy, self.examples, D, pull)


def derivatives(row: LossRow | None, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the loss at predictions z; None for squared errors."""
    return (z - y, np.ones(y.size)) if row is None else losses.quadratic(row, z, y, 0.0)


def most_judged(entries: int, dense: bool) -> int:
    """The most rows by which smoothing is chosen, of so many entries each: so many that it takes
    seconds, and that they are held in memory at once.
    """
    affordable = SMOOTHING.judged_entries / entries
    if dense:
        affordable = min(
            SMOOTHING.judged_products / entries**2, SMOOTHING.judged_dense_entries / entries
        )
    return int(max(SMOOTHING.least_judged, affordable))
