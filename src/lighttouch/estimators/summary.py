"""What a linear model keeps of the examples of earlier calls of partial_fit: a quadratic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.estimators.scaling import ends
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.solvers.quadratic_model import gram
from lighttouch.validation import refuse_if_too_large

Floats = NDArray[np.float64]
WIDTH = 0.1  # of a rounded kink, in mean residuals
NARROWEST = 1e-9
LEAST_EIGENVALUE = 1e-12  # relative to the largest, below which a direction was never seen


@dataclass(frozen=True)
class QuadraticSummary:
    """The sum of the quadratics p'bend p / 2 - pull.p that stand for earlier examples, in units
    fixed by the first of them. For squared errors it is exact.
    """

    sizes: Floats
    scale: float
    shift: float
    bend: Floats
    pull: Floats
    worth: float  # the sum of the examples' weights
    lowest: Floats
    highest: Floats

    @classmethod
    def nothing(cls, sizes: Floats, scale: float, shift: float) -> QuadraticSummary:
        count = sizes.size + 1
        refuse_if_too_large(
            24 * count**2,
            f"remembering examples of {sizes.size:,} columns",
            "use fit, or fewer columns",
        )
        free = np.full(sizes.size, np.inf)
        return cls(sizes, scale, shift, np.zeros((count, count)), np.zeros(count), 0.0, free, -free)

    def with_ranges(self, X: Any) -> QuadraticSummary:
        low, high = ends(X)
        return replace(
            self, lowest=np.minimum(self.lowest, low), highest=np.maximum(self.highest, high)
        )

    def with_examples(
        self, features: Any, y: Floats, weights: Floats, loss: LossRow, p: Floats
    ) -> QuadraticSummary:
        """Besides, the quadratic that touches the loss of these examples at the parameters p."""
        z = np.asarray(features @ p)
        width = WIDTH * losses.typical_residual(loss, z, y) if loss.kinked else 0.0
        slopes, curvatures = losses.quadratic(loss, z, y, max(width, NARROWEST))
        bend = gram(features, weights * curvatures)
        pull = bend @ p - np.asarray(features.T @ (weights * slopes))
        return replace(
            self,
            bend=self.bend + bend,
            pull=self.pull + pull,
            worth=self.worth + float(weights.sum()),
        )

    def __add__(self, other: QuadraticSummary) -> QuadraticSummary:
        """Of the examples of both, which are measured in the same units."""
        return replace(
            self,
            bend=self.bend + other.bend,
            pull=self.pull + other.pull,
            worth=self.worth + other.worth,
            lowest=np.minimum(self.lowest, other.lowest),
            highest=np.maximum(self.highest, other.highest),
        )

    def as_penalty(self) -> tuple[Floats, Floats]:
        """D and t with p'bend p / 2 - pull.p = ||D p - t||^2 / 2 up to a constant.

        bend = V diag(e) V' gives D = diag(sqrt e) V' and t = diag(1 / sqrt e) V' pull. Directions
        without curvature are left out: no example has touched them, so that they have no pull.
        """
        values, vectors = np.linalg.eigh(self.bend)
        seen = values > LEAST_EIGENVALUE * max(float(values[-1]), 1e-300)
        roots, directions = np.sqrt(values[seen]), vectors[:, seen].T
        return roots[:, None] * directions, (directions @ self.pull) / roots
