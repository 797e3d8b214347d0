"""Squared errors and penalties that are known by their sums over the examples."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import EPSILON, Floats, Vector
from lighttouch.cholesky import Cholesky, zeros
from lighttouch.objectives.empirical import EmpiricalRisk

LIFT = 1e-10
"""Added to the diagonal of a matrix that is singular to rounding, in units of its mean, and ten
times as much at each further attempt. Rounding."""


class FactoredSquares(EmpiricalRisk):
    """w'Hw / 2 - m.w + e / 2, where H is a Gram matrix S and the penalties l2 I + D'D together.

    With H = L L' it is the mean square of as many rows as parameters, those of L', and of a row of
    zeros for what they leave over. They are the factor too, so that there is one matrix. Where H is
    singular to rounding, l2 is a little more than was asked for.

    S and m may leave out the last parameters, if no example depends on them. It comes from so many
    `examples`, whose rounding it has.
    """

    def __init__(
        self, squares: Floats, moment: Vector, energy: float, examples: int, D: Any, l2: float
    ) -> None:
        d, known = D.shape[1], moment.size
        penalty = (D.T @ D + l2 * sparse.identity(d)).tocoo()
        trace = float(np.trace(squares)) + float(penalty.diagonal().sum())
        rows, lift = zeros(d + 1, d), 0.0
        while True:
            rows.fill(0.0)
            rows[:known, :known] = squares
            np.add.at(rows, (penalty.row, penalty.col), penalty.data)
            rows.flat[: d * d : d + 1] += lift
            rows *= d + 1.0  # the mean is over so many rows
            factor = Cholesky.of(rows[:d])
            if factor is not None:
                break
            lift = max(10.0 * lift, LIFT * trace / d, np.finfo(float).tiny)
            assert lift < math.inf  # sums that are not finite have no factor
        assert np.may_share_memory(factor.lower, rows)
        right = (d + 1.0) * np.pad(moment, (0, d - known))
        y = scipy.linalg.solve_triangular(factor.lower, right, lower=True, check_finite=False)
        left = math.sqrt(max((d + 1.0) * energy - float(y @ y), 0.0))
        super().__init__(rows, np.append(y, left), copy=False)
        most = int(np.bincount(sparse.csr_matrix(D).indices, minlength=1).max())  # of a sum in D'D
        rounding = EPSILON * (examples * float(np.trace(squares)) + (d + most + 4) * trace)
        self.from_penalty = float(l2 + lift - rounding)

    @property
    def factor(self) -> Cholesky:
        """Of H."""
        return Cholesky(self.X[:-1].T, 1.0 / self.examples)

    @cached_property
    def least_curvature(self) -> float:
        """Of H in any direction, proven: the penalty's, because S and D'D have no negative one
        but for their rounding, and the factor is that of a matrix near H (Higham 2002, theorem
        10.3). Where that rounding is more, from the inverse of the factor: 1 / |L^-1|^2.
        """
        if self.from_penalty > 0.0:
            return self.from_penalty
        lower = self.factor.lower
        inverse = scipy.linalg.lapack.dtrtri(lower, lower=1)[0]
        sizes = float(np.linalg.norm(lower)), float(np.linalg.norm(inverse))
        error = EPSILON * self.dimension * sizes[0] * sizes[1]
        return float(self.factor.share * (1.0 - min(1.0, error)) ** 2 / sizes[1] ** 2)
