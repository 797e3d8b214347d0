"""What a model does along one column: on a typical row, on average over rows, and in the column's
own curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.estimators.losses import chance

Floats = NDArray[np.float64]
SAMPLE = 100
EVENLY = 24


@dataclass(frozen=True)
class Slice:
    """One column: values (or categories) and the predictions there."""

    name: str
    rules: list[str]
    values: Floats
    categories: list[str] | None
    average: Floats
    typical: Floats
    curve: tuple[Floats, Floats] | None  # keypoints and the column's own curve, in score units

    @property
    def reach(self) -> float:
        return float(np.ptp(self.average))


class Scorer:
    """A fitted estimator over a table of plain numbers (categories as codes)."""

    def __init__(self, model: Any, X: Any) -> None:
        self.model = model
        self.lattice = hasattr(model, "columns_")
        self.columns = (model.columns_ if self.lattice else model._columns).columns
        self.table: Floats = (
            model.columns_.read(X) if self.lattice else np.asarray(X, dtype=np.float64)
        )
        self.probability = hasattr(model, "classes_") and hasattr(model, "predict_proba")

    def __call__(self, table: Floats) -> Floats:
        if self.lattice:
            scores = self.model.model_.evaluate(table, self.model.parameters_)
        else:
            scores = self.model.intercept_ + table @ self.model.coef_
        return chance(scores) if self.probability else np.asarray(scores)

    @property
    def unit(self) -> str:
        if self.probability:
            return f"probability of {self.model.classes_[1]}"
        return (
            f"score of {self.model.classes_[1]}"
            if hasattr(self.model, "classes_")
            else "prediction"
        )


def slices(scorer: Scorer) -> list[Slice]:
    """Columns with rules first, then by how much they matter."""
    rng = np.random.default_rng(0)
    count = scorer.table.shape[0]
    sample = scorer.table[np.sort(rng.choice(count, min(SAMPLE, count), replace=False))]
    typical = np.array(
        [
            _typical(scorer.table[:, place], column.categorical)
            for place, column in enumerate(scorer.columns)
        ]
    )
    found = [_slice(scorer, place, sample, typical) for place in range(len(scorer.columns))]
    return sorted(found, key=lambda each: (not each.rules, -each.reach))


def _typical(values: Floats, categorical: bool) -> float:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return float("nan")
    if categorical:
        codes, counts = np.unique(present, return_counts=True)
        return float(codes[counts.argmax()])
    return float(np.quantile(present, 0.5, method="lower"))


def _slice(scorer: Scorer, place: int, sample: Floats, typical: Floats) -> Slice:
    column = scorer.columns[place]
    values = (
        np.arange(len(column.categories), dtype=np.float64)
        if column.categorical
        else _grid(scorer, place)
    )
    shown = [str(each) for each in column.categories] if column.categorical else None
    many = np.repeat(sample, values.size, axis=0)
    many[:, place] = np.tile(values, sample.shape[0])
    average = scorer(many).reshape(sample.shape[0], values.size).mean(axis=0)
    one = np.tile(typical, (values.size, 1))
    one[:, place] = values
    return Slice(
        column.name,
        rules_of(scorer.model, place, column.name),
        values,
        shown,
        average,
        scorer(one),
        _curve(scorer, place),
    )


def _grid(scorer: Scorer, place: int) -> Floats:
    values = scorer.table[:, place]
    present = values[~np.isnan(values)]
    if present.size == 0:
        return np.zeros(1)
    even = np.linspace(present.min(), present.max(), EVENLY)
    piece = _calibrator(scorer, place)
    return np.unique(np.concatenate([even, piece.maps[0].keypoints])) if piece is not None else even


def _calibrator(scorer: Scorer, place: int) -> Any:
    if not scorer.lattice:
        return None
    own = scorer.model.model_.calibrator_of(place)
    return None if own is None else scorer.model.model_.terms[own]


def _curve(scorer: Scorer, place: int) -> tuple[Floats, Floats] | None:
    piece = _calibrator(scorer, place)
    if piece is None:
        return None
    own = scorer.model.model_.calibrator_of(place)
    keypoints = piece.maps[0].keypoints
    theta = scorer.model.parameters_[scorer.model.model_.part(own)]
    return keypoints, theta[: keypoints.size]


def rules_of(model: Any, place: int, name: str) -> list[str]:
    """What was asked of a column, in a word or two each."""
    signs = model.monotonic_cst
    sign = (
        0
        if signs is None
        else (
            signs.get(name, signs.get(place, 0)) if isinstance(signs, dict) else int(signs[place])
        )
    )
    words = [] if not sign else ["increasing" if sign > 0 else "decreasing"]
    listed = model.shape_constraints or []
    for shape in listed if isinstance(listed, list | tuple) else [listed]:
        if name in shape.columns or place in shape.columns:
            words.append(str(shape))
    return words
