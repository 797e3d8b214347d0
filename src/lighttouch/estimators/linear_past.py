"""What a linear model remembers of the examples of earlier calls of partial_fit, and how columns
are scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.estimators.blocks import gram
from lighttouch.estimators.losses import PointLoss
from lighttouch.validation import refuse_if_too_large

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Past:
    """The sum of the quadratics p'bend p / 2 - pull.p that stand for earlier examples, in units
    fixed by the first of them.
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
    def nothing(cls, sizes: Floats, scale: float, shift: float) -> Past:
        count = sizes.size + 1
        refuse_if_too_large(
            24 * count**2,
            f"remembering examples of {sizes.size:,} columns",
            "use fit, or fewer columns",
        )
        free = np.full(sizes.size, np.inf)
        return cls(sizes, scale, shift, np.zeros((count, count)), np.zeros(count), 0.0, free, -free)

    def with_ranges(self, X: Any) -> Past:
        low, high = ends(X)
        return replace(
            self, lowest=np.minimum(self.lowest, low), highest=np.maximum(self.highest, high)
        )

    def with_examples(
        self, features: Any, y: Floats, weights: Floats, loss: PointLoss, p: Floats
    ) -> Past:
        """Besides, the quadratic that touches the loss of these examples at the parameters p."""
        z = np.asarray(features @ p)
        width = 0.1 * float(np.mean(np.abs(loss._residual(z, y)))) if loss.kinked else 0.0
        slopes, curvatures = loss.quadratic(z, y, max(width, 1e-9))
        bend = gram(features, weights * curvatures)
        pull = bend @ p - np.asarray(features.T @ (weights * slopes))
        return replace(
            self,
            bend=self.bend + bend,
            pull=self.pull + pull,
            worth=self.worth + float(weights.sum()),
        )


def worth(sample_weight: Any, rows: int) -> float:
    """What examples are worth together: their number unless they have weights."""
    return (
        float(rows)
        if sample_weight is None
        else float(np.sum(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), rows)))
    )


def column_sizes(X: Any, weights: Floats) -> Floats:
    """The root mean square of every column about its mean (dense) or about 0 (sparse); 1 for a
    column of zeros.
    """
    squares = (
        np.asarray(X.multiply(X).T @ weights).ravel()
        if sparse.issparse(X)
        else weights @ np.square(X - weights @ X)
    )
    size = np.sqrt(squares)
    largest = (
        np.asarray(abs(X).max(axis=0).todense()).ravel()
        if sparse.issparse(X)
        else np.abs(X).max(axis=0, initial=0.0)
    )
    usable = size > 1e-10 * largest
    return np.where(usable, size, np.where(largest > 0.0, largest, 1.0))


def scaled(X: Any, sizes: Floats) -> Any:
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        matrix = sparse.hstack(
            [sparse.csr_matrix(ones), X @ sparse.diags(1.0 / sizes)], format="csr"
        )
        matrix.sort_indices()
        return matrix
    return np.hstack([ones, X / sizes])


def ranges(X: Any) -> Floats:
    lowest, highest = ends(X)
    return highest - lowest


def ends(X: Any) -> tuple[Floats, Floats]:
    """The smallest and the largest value of every column."""
    if sparse.issparse(X):
        return np.asarray(X.min(axis=0).todense()).ravel(), np.asarray(
            X.max(axis=0).todense()
        ).ravel()
    return np.asarray(X.min(axis=0)), np.asarray(X.max(axis=0))
