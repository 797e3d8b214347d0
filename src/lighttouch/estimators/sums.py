"""Squared errors by their sums: of many rows only X'X, X'y and y'y are kept, so that memory does
not grow with them, and one pass over the rows is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats
from lighttouch.solvers.quadratic_model import gram


@dataclass(frozen=True)
class SquaredSums:
    """X'SX, X'Sy and y'Sy for weights S."""

    squares: Floats
    moment: Floats
    energy: float

    @classmethod
    def over(cls, parts: Iterable[tuple[Any, Floats, Floats]]) -> SquaredSums:
        """Of features, targets and weights that come in parts."""
        total: SquaredSums | None = None
        for X, y, weights in parts:
            squares, energy = gram(X, weights), float(weights @ np.square(y))
            moment = np.asarray(X.T @ (weights * y))
            if total is None:
                total = cls(squares, moment, energy)
            else:
                squares += total.squares
                total = cls(squares, total.moment + moment, total.energy + energy)
        assert total is not None  # there are examples
        return total

    def rows(self) -> tuple[Floats, Floats]:
        """A few rows X and targets y whose mean of (X w - y)^2 is what these sums say, for every w.

        From the pivoted Cholesky factor R'R = X'SX (LAPACK's dpstrf), as far as its rank goes: the
        targets solve R'y = X'Sy, and what they leave of y'Sy stands in a row of zeros.
        """
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(self.squares)
        order = pivots - 1
        upper = np.triu(factor[:rank])
        y = scipy.linalg.solve_triangular(upper[:, :rank], self.moment[order[:rank]], trans="T")
        X = np.zeros((rank + 1, self.moment.size))
        X[:rank, order] = upper
        left = math.sqrt(max(self.energy - float(y @ y), 0.0))
        scale = math.sqrt(rank + 1)
        return scale * X, scale * np.append(y, left)
