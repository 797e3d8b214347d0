"""What is drawn of a model: its predictions on one or more scales, one line per output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import (
    Model,
    has_probabilities,
    has_several_outputs,
    is_classifier,
)


@dataclass(frozen=True)
class Scale:
    """A name for the axis, names of the outputs (one empty name where there is one), and the
    values of rows: one column per output.
    """

    unit: str
    outputs: tuple[str, ...]
    values: Callable[[Any], Floats]
    score: bool = False  # not what `predict` gives, but what rules about differences hold for

    @property
    def single(self) -> bool:
        return len(self.outputs) == 1


def scales_of(model: Model, on_score: bool) -> list[Scale]:
    """The scale on which a rule holds first, then the one that users see."""
    anything: Any = model
    if not is_classifier(model):
        return _numbers(anything, on_score)
    if len(model.classes_) == 2:
        return _two_classes(anything, on_score)
    if hasattr(model, "thresholds_"):
        return _ordered(anything, on_score)
    classes = _some(len(model.classes_))
    names = tuple(str(model.classes_[k]) for k in classes)
    if not has_probabilities(model):
        return [Scale("score", names, lambda rows: anything.decision_function(rows)[:, classes])]
    return [Scale("probability", names, lambda rows: anything.predict_proba(rows)[:, classes])]


def _numbers(model: Any, on_score: bool) -> list[Scale]:
    levels: Any = getattr(model, "quantile", 0.5)
    if has_several_outputs(model):
        chosen = _some(len(levels))
        names = tuple(f"quantile {levels[k]:g}" for k in chosen)
        return [Scale("prediction", names, lambda rows: model.predict(rows)[:, chosen])]
    if not on_score:
        return [Scale("prediction", ("",), lambda rows: _column(model.predict(rows)))]
    return [
        Scale("log-mean", ("",), lambda rows: _column(np.log(model.predict(rows))), True),
        Scale("mean", ("",), lambda rows: _column(model.predict(rows))),
    ]


def _two_classes(model: Any, on_score: bool) -> list[Scale]:
    second = str(model.classes_[1])
    if not has_probabilities(model):
        unit = f"score of {second}"
        return [Scale(unit, ("",), lambda rows: _column(model.decision_function(rows)))]
    chance = Scale(
        f"probability of {second}", ("",), lambda rows: _column(model.predict_proba(rows)[:, 1])
    )
    odds = Scale(
        f"log-odds of {second}", ("",), lambda rows: _column(model.decision_function(rows)), True
    )
    return [odds, chance] if on_score else [chance]


def _ordered(model: Any, on_score: bool) -> list[Scale]:
    chosen = _some(len(model.classes_) - 1)
    names = tuple(f"above {model.classes_[k]}" for k in chosen)

    def chances(rows: Any) -> Floats:
        return np.asarray(model.predict_cumulative(rows)[:, chosen])

    def odds(rows: Any) -> Floats:
        share = np.clip(chances(rows), np.finfo(float).tiny, 1.0 - np.finfo(float).eps)
        return np.asarray(np.log(share) - np.log1p(-share))

    chance = Scale("probability", names, chances)
    return [Scale("log-odds", names, odds, True), chance] if on_score else [chance]


def _some(count: int) -> list[int]:
    """So many outputs as can be drawn, from the first to the last."""
    most = min(count, LIMITS.outputs)
    return [round(k) for k in np.linspace(0, count - 1, most)]


def _column(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)
