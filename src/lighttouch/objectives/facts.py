"""What an objective says about itself: kinks, the size of its columns, and how much it weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Vector
from lighttouch.objectives.empirical import EmpiricalRisk
from lighttouch.objectives.quadratic import Quadratic
from lighttouch.objectives.sums import WeightedSum


def has_kinks(objective: Any) -> bool:
    """Whether it may have kinks: losses that do, l1, and functions of the user's own."""
    if isinstance(objective, WeightedSum):
        return any(has_kinks(part) for part in objective.objectives)
    if isinstance(objective, EmpiricalRisk):
        return objective.loss_row.kinked or objective.l1 > 0.0
    return not isinstance(objective, Quadratic)


def column_squares(objective: Any) -> Vector:
    """The mean square of every column of the data, the ridge added; 0 where it is unknown. For a
    quadratic form it is the diagonal.
    """
    if isinstance(objective, WeightedSum):
        parts = np.array([column_squares(part) for part in objective.objectives])
        return np.asarray(objective.weights @ parts)
    if isinstance(objective, Quadratic):
        P = objective.P
        diagonal = P.diagonal() if scipy.sparse.issparse(P) else np.diag(P)
        return np.asarray(np.maximum(0.0, diagonal))
    if not isinstance(objective, EmpiricalRisk):
        return np.zeros(objective.dimension)
    X = objective.X
    if scipy.sparse.issparse(X):
        shares = np.square(X.data) * (1.0 / X.shape[0])
        return np.asarray(np.bincount(X.indices, shares, minlength=X.shape[1]) + objective.l2)
    return np.asarray(np.square(X).mean(axis=0)) + objective.l2


def mass(objective: Any) -> float:
    """What it counts beside others that hold other examples: their number, or their weights."""
    weights = getattr(objective, "sample_weight", None)
    return float(objective.examples if weights is None else weights.sum())


def data_bytes(objective: Any) -> int:
    """What its arrays take in memory."""
    return _bytes(objective.record)


def _bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    return sum(_bytes(part) for part in value) if isinstance(value, tuple) else 0
