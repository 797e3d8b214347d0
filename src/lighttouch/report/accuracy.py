"""How good a model is on some rows: every measure, with an interval, beside what knowing nothing
would give.

Predictions are made once (`judge`); a measure is a function of them and of weights of rows, so that
bootstrap samples, groups and differences between two models on the same rows cost no prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.pairs import RANKED, ndcg_of_queries, pairs_within_queries
from lighttouch.estimators.regression import explained_pinball
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import Classifier, Model, has_probabilities, is_classifier

Measures = dict[str, float]
Interval = tuple[float, float]
AREA, GINI, SEPARATION = "area under the ROC curve", "Gini coefficient", "Kolmogorov-Smirnov"
BRIER, LOG_LOSS, ACCURACY = "Brier score", "log loss", "accuracy"
ABSOLUTE, ROOT, EXPLAINED = "mean absolute error", "root mean squared error", "R squared"
MEAN_ERROR, PINBALL = "mean error", "pinball loss explained"
ORDERED, NDCG = "pairs in the right order", f"NDCG at {RANKED}"
LARGE_IS_GOOD = {AREA, GINI, SEPARATION, ACCURACY, EXPLAINED, PINBALL, ORDERED, NDCG}
LEAST_SHARE = float(np.finfo(np.float64).eps)  # as scikit-learn's log_loss clips probabilities


@dataclass(frozen=True)
class Data:
    """Rows with their targets, or better rows with worse ones.

    Parameters
    ----------
    name : str
        What the report calls these rows.
    X : table
        The rows, as the model's `predict` takes them; of pairs, the better ones.
    y : array-like, default=None
        The targets; None where there are pairs.
    qid : array-like, default=None
        The query of each row, for a ranker.
    worse : table, default=None
        The worse row of each pair, for a ranker of pairs.
    exposure : array-like, default=None
        The exposure of each row, where the model was trained with one.
    groups : dict of str to array-like, default={}
        Columns by name, of the same rows, by which measures are told apart.

    Examples
    --------
    >>> from lighttouch.report import Data
    >>> Data("held out", [[1.0], [2.0]], [3.0, 5.0]).name
    'held out'
    """

    name: str
    X: Any
    y: Any = None
    qid: Any = None
    worse: Any = None
    exposure: Any = None
    groups: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Accuracy:
    """Measures by name, the first is the one to look at, and intervals of those that have one.

    Attributes
    ----------
    name : str
        What the rows are called.
    rows : int
        How many there are.
    measures : dict of str to float
        The measures, and after the first what knowing nothing would give.
    intervals : dict of str to (float, float)
        Where 95% of the bootstrap's values lie; empty where none was made.

    Examples
    --------
    >>> from lighttouch.report import Accuracy
    >>> print(Accuracy("held out", 100, {"mean absolute error": 0.25}))
    held out (100): mean absolute error 0.25
    """

    name: str
    rows: int
    measures: Measures
    intervals: dict[str, Interval] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} ({self.rows:,}): " + ", ".join(
            f"{name} {value:.4g}" for name, value in self.measures.items()
        )


class Judged:
    """Truth and predictions of some rows; `units` are what a bootstrap draws: rows, or queries."""

    @property
    def units(self) -> int:
        raise NotImplementedError

    @property
    def rows(self) -> int:
        return self.units

    def measures(self, weights: Floats) -> Measures:
        """Every measure, with a weight for each unit."""
        raise NotImplementedError

    def baselines(self) -> Measures:
        """What knowing nothing gives, by a name that stands after the first measure."""
        return {}

    def only(self, rows: Indices) -> Judged | None:
        """The same of some rows; None where measures are not of single rows."""
        return None

    def plain(self) -> Measures:
        """Every measure, all units alike."""
        return self.measures(np.ones(self.units)) if self.units else {}


@dataclass(frozen=True)
class TwoClasses(Judged):
    """`second` says which rows are of the second class; without probabilities, scores only."""

    second: NDArray[np.bool_]
    scores: Floats
    shares: Floats | None

    @property
    def units(self) -> int:
        return self.second.size

    def measures(self, weights: Floats) -> Measures:
        total = float(weights.sum())
        found = {ACCURACY: float(weights @ ((self.scores > 0.0) == self.second)) / total}
        first, second = self._masses(weights)
        if first.sum() > 0.0 and second.sum() > 0.0:
            area = area_under(first, second)
            gap = np.abs(np.cumsum(first) / first.sum() - np.cumsum(second) / second.sum())
            found |= {AREA: area, GINI: 2.0 * area - 1.0, SEPARATION: float(gap.max())}
        if self.shares is not None:
            found[BRIER] = float(weights @ np.square(self.shares - self.second)) / total
            found[LOG_LOSS] = float(weights @ self.log_losses) / total
        return found

    def only(self, rows: Indices) -> TwoClasses:
        shares = None if self.shares is None else self.shares[rows]
        return TwoClasses(self.second[rows], self.scores[rows], shares)

    def baselines(self) -> Measures:
        share = float(self.second.mean())
        return {"always the more common class": max(share, 1.0 - share)}

    @property
    def log_losses(self) -> Floats:
        """Of every row."""
        shares = np.clip(np.asarray(self.shares), LEAST_SHARE, 1.0 - LEAST_SHARE)
        return np.asarray(-np.log(np.where(self.second, shares, 1.0 - shares)))

    def _masses(self, weights: Floats) -> tuple[Floats, Floats]:
        """The weight of either class at each distinct score, in ascending order."""
        size, place = self._places
        of_second = np.bincount(place, weights * self.second, minlength=size)
        everyone = np.bincount(place, weights, minlength=size)
        return np.asarray(everyone - of_second), np.asarray(of_second, dtype=np.float64)

    @cached_property
    def _places(self) -> tuple[int, Indices]:
        distinct, place = np.unique(self.scores, return_inverse=True)
        return distinct.size, place

    @property
    def both_classes(self) -> bool:
        """Whether there are rows of both, without which nothing separates them."""
        return 0 < int(self.second.sum()) < self.units

    def roc(self) -> tuple[Floats, Floats]:
        """Shares of the first and of the second class above every score, highest score first."""
        first, second = (part[::-1] for part in self._masses(np.ones(self.units)))
        ends = [np.concatenate([[0.0], np.cumsum(part) / part.sum()]) for part in (first, second)]
        return ends[0], ends[1]


def area_under(first: Floats, second: Floats) -> float:
    """The area under the ROC curve (Mann and Whitney 1947), from the weights of either class at
    ascending scores; equal scores count half.
    """
    below = np.cumsum(first) - 0.5 * first
    return float(second @ below / (first.sum() * second.sum()))


@dataclass(frozen=True)
class ManyClasses(Judged):
    """Codes of the true and the predicted classes, and the probabilities of all."""

    truth: Indices
    predicted: Indices
    shares: Floats | None

    @property
    def units(self) -> int:
        return self.truth.size

    def measures(self, weights: Floats) -> Measures:
        total = float(weights.sum())
        found = {ACCURACY: float(weights @ (self.predicted == self.truth)) / total}
        if self.shares is not None:
            own = self.shares[np.arange(self.truth.size), self.truth]
            found[LOG_LOSS] = float(weights @ -np.log(np.maximum(own, LEAST_SHARE))) / total
            squares = np.square(self.shares).sum(axis=1) - 2.0 * own + 1.0
            found[BRIER] = float(weights @ squares) / total
        return found

    def only(self, rows: Indices) -> ManyClasses:
        shares = None if self.shares is None else self.shares[rows]
        return ManyClasses(self.truth[rows], self.predicted[rows], shares)

    def baselines(self) -> Measures:
        return {"always the most common class": float(np.bincount(self.truth).max() / self.units)}


@dataclass(frozen=True)
class Numbers(Judged):
    """Targets and predictions."""

    truth: Floats
    predicted: Floats

    @property
    def units(self) -> int:
        return self.truth.size

    def measures(self, weights: Floats) -> Measures:
        shares = weights / weights.sum()
        error = self.predicted - self.truth
        square = float(shares @ np.square(error))
        found = {ABSOLUTE: float(shares @ np.abs(error)), ROOT: float(np.sqrt(square))}
        spread = float(shares @ np.square(self.truth - shares @ self.truth))
        if spread > 0.0:
            found[EXPLAINED] = 1.0 - square / spread
        return found | {MEAN_ERROR: float(shares @ error)}

    def only(self, rows: Indices) -> Numbers:
        return Numbers(self.truth[rows], self.predicted[rows])

    def baselines(self) -> Measures:
        return {"always the median": float(np.mean(np.abs(self.truth - np.median(self.truth))))}


@dataclass(frozen=True)
class Levels(Judged):
    """Targets, and one column of predictions per quantile."""

    truth: Floats
    predicted: Floats
    levels: tuple[float, ...]

    @property
    def units(self) -> int:
        return self.truth.size

    def measures(self, weights: Floats) -> Measures:
        shares = weights / weights.sum()
        found = {PINBALL: explained_pinball(self.predicted, self.truth, self.levels, shares)}
        below = shares @ (self.truth[:, None] <= self.predicted)
        for level, share in zip(self.levels, below, strict=True):
            found[f"rows at or below quantile {level:g}"] = float(share)
        return found

    def only(self, rows: Indices) -> Levels:
        return Levels(self.truth[rows], self.predicted[rows], self.levels)


@dataclass(frozen=True)
class Ordered(Judged):
    """Of every query (or given pair): its pairs, those in the right order, and its NDCG."""

    pairs: Floats
    right: Floats
    gains: Floats | None
    count: int

    @property
    def rows(self) -> int:
        return self.count

    @property
    def units(self) -> int:
        return self.pairs.size

    def measures(self, weights: Floats) -> Measures:
        found, pairs = {}, float(weights @ self.pairs)
        if pairs > 0.0:
            found[ORDERED] = float(weights @ self.right) / pairs
        if self.gains is not None and self.gains.size:
            known = ~np.isnan(self.gains)
            if weights @ known > 0.0:
                found[NDCG] = float(weights[known] @ self.gains[known] / weights[known].sum())
        return found

    def baselines(self) -> Measures:
        return {"by chance": 0.5} if self.pairs.any() else {}


def judge(model: Model, data: Data) -> Judged:
    """Predict the rows, once."""
    if data.worse is not None:
        better, worse = model.predict(data.X), model.predict(data.worse)
        right = (better > worse) + 0.5 * (better == worse)
        return Ordered(np.ones(right.size), right, None, right.size)
    truth = np.asarray(data.y)
    if is_classifier(model):
        return _classified(model, data.X, truth)
    predicted = np.asarray(model.predict(data.X))
    if data.qid is not None:
        return _of_queries(predicted, truth.astype(np.float64), np.asarray(data.qid))
    if data.exposure is not None:
        predicted = predicted * np.asarray(data.exposure, dtype=np.float64)
    if predicted.ndim == 2:
        levels = tuple(model.quantile)  # type: ignore[attr-defined]
        return Levels(truth.astype(np.float64), predicted, levels)
    return Numbers(truth.astype(np.float64), predicted)


def _classified(model: Classifier, X: object, truth: NDArray[Any]) -> Judged:
    unknown = ~np.isin(truth, model.classes_)
    if unknown.any():
        raise DataError(
            f"{truth[unknown][0]!r} in row {int(unknown.argmax()) + 1} is not one of the "
            f"classes {[str(c) for c in model.classes_]}"
        )
    shares = model.predict_proba(X) if has_probabilities(model) else None
    if len(model.classes_) == 2:
        second = truth == model.classes_[1]
        scores = np.asarray(model.decision_function(X))
        return TwoClasses(second, scores, None if shares is None else shares[:, 1])
    known = {name: code for code, name in enumerate(model.classes_.tolist())}
    codes = [
        np.array([known[each] for each in names.tolist()], dtype=np.int64)
        for names in (truth, np.asarray(model.predict(X)))
    ]
    return ManyClasses(codes[0], codes[1], shares)


def _of_queries(scores: Floats, relevance: Floats, qid: NDArray[Any]) -> Ordered:
    queries = np.unique(qid, return_inverse=True)[1]
    better, worse = pairs_within_queries(relevance, queries, 500, 0)
    right = (scores[better] > scores[worse]) + 0.5 * (scores[better] == scores[worse])
    count = int(queries.max(initial=-1)) + 1
    pairs = np.bincount(queries[better], minlength=count).astype(np.float64)
    correct = np.asarray(np.bincount(queries[better], right, minlength=count), dtype=np.float64)
    gains = ndcg_of_queries(scores, relevance, queries)
    return Ordered(pairs, correct, gains, relevance.size)


def accuracy(model: Model, data: Data, intervals: bool = False) -> Accuracy:
    """How good a fitted model is on some rows, by predicting them afresh.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    data : Data
        The rows.
    intervals : bool, default=False
        Whether to add intervals, by the bootstrap (Efron 1979).

    Returns
    -------
    Accuracy
        The measures of the model's kind: errors, shares of right answers, pairs in order.

    Raises
    ------
    DataError
        If a target is none of the classifier's classes.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> from lighttouch.report import Data, accuracy
    >>> X = np.arange(8.0)[:, None]
    >>> model = lt.ConstrainedLinearRegressor(monotonic_cst={0: 1}).fit(X, 3.0 * X[:, 0])
    >>> accuracy(model, Data("training rows", X, 3.0 * X[:, 0])).measures["R squared"] > 0.999
    True
    """
    return summary(judge(model, data), data.name, intervals)


def summary(judged: Judged, name: str, intervals: bool = True) -> Accuracy:
    """The measures of rows that were predicted already."""
    measured = judged.plain()
    first = dict(list(measured.items())[:1])
    known = first | judged.baselines() | measured if measured else {}
    found = bootstrap(judged.units, judged.measures) if intervals and measured else {}
    return Accuracy(name, judged.rows, known, found)


def difference(judged: Judged, other: Judged) -> tuple[Measures, dict[str, Interval]]:
    """By how much each measure of the second exceeds that of the first, on the same rows."""

    def gap(weights: Floats) -> Measures:
        one, two = judged.measures(weights), other.measures(weights)
        return {name: two[name] - one[name] for name in one if name in two}

    return gap(np.ones(judged.units)), bootstrap(judged.units, gap)


def bootstrap(units: int, measures: Callable[[Floats], Measures]) -> dict[str, Interval]:
    """Percentile intervals of measures, by drawing units with replacement; the same every time."""
    rng = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {}
    many = int(LIMITS.resampled_rows / max(1, units))
    for _ in range(min(LIMITS.resamples, max(LIMITS.least_resamples, many))):
        counts = np.bincount(rng.integers(units, size=units), minlength=units)
        for name, value in measures(counts.astype(np.float64)).items():
            drawn.setdefault(name, []).append(value)
    ends = [0.5 - 0.5 * LIMITS.coverage, 0.5 + 0.5 * LIMITS.coverage]
    found = {name: np.quantile(values, ends) for name, values in drawn.items()}
    return {name: (float(low), float(high)) for name, (low, high) in found.items()}
