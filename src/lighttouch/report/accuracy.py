"""How good a model is on some rows, beside what knowing nothing would give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.pairs import pairs_within_queries
from lighttouch.estimators.regression import explained_pinball
from lighttouch.report.models import Classifier, Model, has_probabilities, is_classifier


@dataclass(frozen=True)
class Data:
    """Rows with their targets, or better rows with worse ones."""

    name: str
    X: Any
    y: Any = None
    qid: Any = None
    worse: Any = None
    exposure: Any = None


@dataclass(frozen=True)
class Accuracy:
    """Measures by name; the first is the one to look at."""

    name: str
    rows: int
    measures: dict[str, float]

    def __str__(self) -> str:
        return f"{self.name} ({self.rows:,}): " + ", ".join(
            f"{name} {value:.4g}" for name, value in self.measures.items()
        )


def accuracy(model: Model, data: Data) -> Accuracy:
    """Measured by predicting the rows afresh."""
    if data.worse is not None:
        return Accuracy(
            data.name, len(data.X), _ordered(model.predict(data.X), model.predict(data.worse))
        )
    truth = np.asarray(data.y)
    if is_classifier(model):
        return Accuracy(data.name, truth.size, _classified(model, data.X, truth))
    if data.qid is not None:
        scores = model.predict(data.X)
        better, worse = pairs_within_queries(truth.astype(np.float64), np.asarray(data.qid), 500, 0)
        return Accuracy(data.name, truth.size, _ordered(scores[better], scores[worse]))
    predicted = np.asarray(model.predict(data.X))
    if data.exposure is not None:
        predicted = predicted * np.asarray(data.exposure, dtype=np.float64)
    if predicted.ndim == 2:
        levels = tuple(model.quantile)  # type: ignore[attr-defined]
        return Accuracy(data.name, truth.size, _quantiles(predicted, truth.astype(float), levels))
    return Accuracy(
        data.name,
        truth.size,
        _regressed(predicted, truth.astype(np.float64)),
    )


def _classified(model: Classifier, X: object, truth: NDArray[Any]) -> dict[str, float]:
    from sklearn.metrics import log_loss, roc_auc_score

    unknown = ~np.isin(truth, model.classes_)
    if unknown.any():
        raise DataError(
            f"{truth[unknown][0]!r} in row {int(unknown.argmax()) + 1} is not one of the "
            f"classes {[str(c) for c in model.classes_]}"
        )
    if len(model.classes_) > 2:
        return _of_many_classes(model, X, truth)
    second = truth == model.classes_[1]
    scores = model.decision_function(X)
    found = {
        "accuracy": float(np.mean((scores > 0.0) == second)),
        "always the more common class": float(max(second.mean(), 1 - second.mean())),
    }
    if 0 < second.sum() < second.size:
        found["area under the ROC curve"] = float(roc_auc_score(second, scores))
    if has_probabilities(model):
        found["log loss"] = float(
            log_loss(second, model.predict_proba(X)[:, 1], labels=[False, True])
        )
    return found


def _of_many_classes(model: Classifier, X: object, truth: NDArray[Any]) -> dict[str, float]:
    from sklearn.metrics import log_loss

    _, counts = np.unique(truth, return_counts=True)
    found = {
        "accuracy": float(np.mean(model.predict(X) == truth)),
        "always the most common class": float(counts.max() / truth.size),
    }
    if has_probabilities(model):
        sorted_classes = np.argsort(model.classes_)
        shares = model.predict_proba(X)[:, sorted_classes]
        labels = model.classes_[sorted_classes]
        found["log loss"] = float(log_loss(truth, shares, labels=labels))
    return found


def _quantiles(predicted: Floats, truth: Floats, levels: tuple[float, ...]) -> dict[str, float]:
    weights = np.full(truth.size, 1.0 / truth.size)
    found = {"pinball loss explained": explained_pinball(predicted, truth, levels, weights)}
    for k, level in enumerate(levels):
        found[f"rows at or below quantile {level:g}"] = float(np.mean(truth <= predicted[:, k]))
    return found


def _regressed(predicted: Floats, truth: Floats) -> dict[str, float]:
    error = predicted - truth
    spread = float(np.mean(np.square(truth - truth.mean())))
    found = {
        "mean absolute error": float(np.mean(np.abs(error))),
        "always the median": float(np.mean(np.abs(truth - np.median(truth)))),
    }
    found["root mean squared error"] = float(np.sqrt(np.mean(np.square(error))))
    if spread > 0.0:
        found["R squared"] = 1.0 - float(np.mean(np.square(error))) / spread
    return found


def _ordered(better: Floats, worse: Floats) -> dict[str, float]:
    if better.size == 0:
        return {}
    return {
        "pairs in the right order": float(np.mean((better > worse) + 0.5 * (better == worse))),
        "by chance": 0.5,
    }
