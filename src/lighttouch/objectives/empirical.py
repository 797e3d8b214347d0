"""Mean losses of a linear model over examples or over pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs.objectives import DenseExamples, SparseExamples
from lighttouch.objectives.base import RecordObjective
from lighttouch.objectives.losses import LABELLED, Loss, kind_and_level
from lighttouch.validation import finite_matrix, finite_vector, one_of, positive


class EmpiricalRisk(RecordObjective):
    """The (weighted) mean of loss(<w, x_i>, y_i), plus (l2/2) ||w||^2.

    X is dense or scipy sparse, one row an example; for hinge and logistic loss y holds -1 and +1.
    `visits` says how examples follow each other: in repeated random "permutations", as in the
    paper's experiments, or "independent".
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: Loss = "squared",
        l2: float = 0.0,
        sample_weight: Any = None,
        *,
        visits: str = "permutations",
    ) -> None:
        self.X: Matrix = finite_matrix(X, "X")
        self.examples, self.dimension = self.X.shape
        if self.examples == 0 or self.dimension == 0:
            raise DataError(
                f"X must hold at least one row and one column, got shape {self.X.shape}"
            )
        self.loss = loss
        self.y = finite_vector(y, "y", self.examples)
        self.l2 = positive(l2, "l2", zero=True)
        self.sample_weight = (
            None if sample_weight is None else _weights(sample_weight, self.examples)
        )
        self.independent = (
            one_of(visits, ("permutations", "independent"), "visits") == "independent"
        )
        if loss in LABELLED and not np.all(np.abs(self.y) == 1.0):
            bad = int(np.argmax(np.abs(self.y) != 1.0))
            raise DataError(
                f"y must hold only -1 and +1 for the {loss} loss, got {self.y[bad]} in row "
                f"{bad}; map your labels to -1 and +1"
            )
        self.cost = (
            float(max(1.0, self.X.nnz / self.examples))
            if scipy.sparse.issparse(self.X)
            else float(self.dimension)
        )
        self.record = self._record()

    def _record(self) -> DenseExamples | SparseExamples:
        kind, level = kind_and_level(self.loss)
        targets = self.y[:1] if np.all(self.y == self.y[0]) else self.y
        weights = np.zeros(0) if self.sample_weight is None else _of_mean_one(self.sample_weight)
        if scipy.sparse.issparse(self.X):
            return SparseExamples(
                self.X.data, self.X.indices, self.X.indptr, targets, weights, kind, level
            )
        return DenseExamples(self.X, targets, weights, kind, level)


class PairwiseRisk(EmpiricalRisk):
    """The (weighted) mean of loss(<w, better_i - worse_i>, +1): better rows should score above
    worse ones.
    """

    def __init__(
        self,
        better: Any,
        worse: Any,
        loss: Loss = "hinge",
        l2: float = 0.0,
        sample_weight: Any = None,
        *,
        visits: str = "permutations",
    ) -> None:
        better, worse = finite_matrix(better, "better"), finite_matrix(worse, "worse")
        if better.shape != worse.shape:
            raise DataError(
                f"better and worse must have the same shape, got {better.shape} and {worse.shape}"
            )
        with np.errstate(over="ignore"):
            difference = finite_matrix(better - worse, "better - worse")
        if scipy.sparse.issparse(difference):
            difference.eliminate_zeros()
        super().__init__(
            difference, np.ones(better.shape[0]), loss, l2, sample_weight, visits=visits
        )


def _weights(sample_weight: Any, examples: int) -> Vector:
    weights = finite_vector(sample_weight, "sample_weight", examples)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise DataError(f"sample_weight must not be negative, got {weights[row]} in row {row}")
    if not weights.any():
        raise DataError(
            "sample_weight must not be zero everywhere: give at least one example a positive weight"
        )
    return weights


def _of_mean_one(weights: Vector) -> Vector:
    relative = weights / weights.max()  # first, so that no sum of weights overflows
    return np.asarray(relative * (relative.size / relative.sum()))
