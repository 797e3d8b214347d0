"""Weighted sums of objectives, and what an objective says about itself, be it a sum or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.interfaces import Objective
from lighttouch.kernels.verbs.objectives import ExactPart, JoinedParts, SampledPart
from lighttouch.objectives.empirical import EmpiricalRisk, RecordObjective
from lighttouch.objectives.quadratic import Quadratic
from lighttouch.validation import finite_vector


class WeightedSum(RecordObjective):
    """The sum of weight_k f_k(w) over several objectives, of any kinds.

    A stochastic step draws from the examples of all parts, scaled such that the mean over examples
    is a gradient of the whole. Parts of a single term, such as `Quadratic`, take part in every
    step.

    Parameters
    ----------
    objectives : sequence of objectives
        At least one, all of the same dimension; a `WeightedSum` among them counts as its parts.
    weights : array-like, optional
        What each objective counts, not negative; 1 by default.

    Attributes
    ----------
    objectives : tuple of objectives
        The parts, sums among them taken apart.
    weights : array
        What each part counts.

    Raises
    ------
    DataError
        If there is no objective, dimensions differ, or a weight is negative.

    Examples
    --------
    >>> import lighttouch as lt
    >>> squared = lt.EmpiricalRisk([[1.0], [1.0]], [0.0, 2.0])
    >>> absolute = lt.EmpiricalRisk([[1.0]], [0.0], "absolute")
    >>> lt.WeightedSum([squared, absolute], [1.0, 0.5]).value([2.0])
    2.0
    """

    def __init__(self, objectives: Sequence[Any], weights: Any = None) -> None:
        given = tuple(objectives)
        if not given:
            raise DataError("objectives must hold at least one objective, got none")
        for place, each in enumerate(given):
            if isinstance(each, type) or not isinstance(each, Objective):
                raise DataError(
                    "objectives must hold objectives such as EmpiricalRisk, got "
                    f"{type(each).__name__} at place {place}"
                )
        dimensions = sorted({int(each.dimension) for each in given})
        if len(dimensions) > 1:
            raise DataError(f"all objectives must have the same dimension, got {dimensions}")
        pairs = _taken_apart(given, _weights(weights, len(given)))
        self.objectives: tuple[Any, ...] = tuple(part for part, _ in pairs)
        self.weights = np.array([weight for _, weight in pairs])
        self.dimension = dimensions[0]
        self.l2 = float(sum(weight * part.l2 for part, weight in pairs))
        self.interpreted = any(part.interpreted for part in self.objectives)
        self.independent = any(part.independent for part in self.objectives)
        sampled = [pair for pair in pairs if pair[0].examples > 1]
        exact = [pair for pair in pairs if pair[0].examples == 1]
        if not sampled:
            sampled, exact = exact[:1], exact[1:]
        self.examples = sum(part.examples for part, _ in sampled)
        self.cost = float(
            sum(part.cost * part.examples for part, _ in sampled) / self.examples
            + sum(part.cost for part, _ in exact)
        )
        self.record = self._record(sampled, exact)

    def _record(self, sampled: list[tuple[Any, float]], exact: list[tuple[Any, float]]) -> Any:
        parts: list[tuple[Any, int]] = [
            (
                SampledPart(part.record, self.examples * weight / part.examples, weight),
                part.examples,
            )
            for part, weight in sampled
        ]
        parts += [(ExactPart(part.record, weight), 0) for part, weight in exact]
        record = parts[-1][0]
        for part, count in reversed(parts[:-1]):
            record = JoinedParts(part, record, count)
        return record


def _taken_apart(objectives: Sequence[Any], weights: Sequence[float]) -> list[tuple[Any, float]]:
    pairs: list[tuple[Any, float]] = []
    for part, weight in zip(objectives, weights, strict=True):
        if isinstance(part, WeightedSum):
            pairs += [
                (inner, float(weight * own))
                for inner, own in zip(part.objectives, part.weights, strict=True)
            ]
        else:
            pairs.append((part, float(weight)))
    return pairs


def _weights(weights: Any, count: int) -> Any:
    if weights is None:
        return np.ones(count)
    given = finite_vector(weights, "weights", count)
    if (given < 0.0).any():
        place = int(np.argmax(given < 0.0))
        raise DataError(f"weights must not be negative, got {given[place]} at place {place}")
    return given


# -------------------------------------------------------------------------------------------------
# What an objective says about itself: kinks, the size of its columns, and how much it weighs.


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
