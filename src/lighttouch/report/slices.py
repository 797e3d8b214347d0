"""What a model does along one column: on a typical row, on average, and in the column's own curve.

Predictions are the model's own, asked for rows of the user's table in which one column is replaced.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.rules.shapes import ShapeConstraint
from lighttouch.report.models import (
    Model,
    column_names,
    has_probabilities,
    is_classifier,
    is_lattice,
    rules_on_scores,
)

SAMPLE = 100
EVENLY = 24


@dataclass(frozen=True)
class Slice:
    """One column: values (or categories) and the predictions there."""

    name: str
    rules: list[str]
    unit: str
    log_odds: bool  # drawn on the score, because a rule about the column holds there only
    values: Floats
    categories: list[str] | None
    average: Floats
    typical: Floats
    curve: tuple[Floats, Floats] | None  # keypoints and the column's own curve, in score units

    @property
    def reach(self) -> float:
        return float(np.ptp(self.average))


@dataclass(frozen=True)
class Column:
    """A column of the model: its categories in the order of their codes, or None for numbers."""

    name: str
    categories: list[Any] | None = None


def columns_of(model: Model) -> list[Column]:
    """A linear model's columns are all numbers."""
    if not is_lattice(model):
        return [Column(name) for name in column_names(model)]
    return [
        Column(each.name, list(each.categories) if each.categorical else None)
        for each in model.columns_.columns
    ]


class Rows:
    """The user's table: its rows as they are, and as numbers (categories as codes)."""

    def __init__(self, model: Model, X: object) -> None:
        self.model, self.columns = model, columns_of(model)
        self.table = X.to_pandas() if hasattr(X, "to_pandas") else X
        self.numbers: Floats = (
            model.columns_.read(X) if is_lattice(model) else np.asarray(X, dtype=np.float64)
        )

    def pick(self, chosen: Indices) -> Any:
        """Some rows, as a table of its own."""
        if hasattr(self.table, "iloc"):
            return self.table.iloc[chosen].reset_index(drop=True)
        return np.asarray(self.table)[chosen]

    def put(self, rows: Any, place: int, values: Floats) -> None:
        """Replace a column of picked rows; values of a column of categories are their codes."""
        categories = self.columns[place].categories
        cells: Any = values
        if categories is not None:
            cells = [None if np.isnan(code) else categories[int(code)] for code in values]
        if not hasattr(rows, "iloc"):
            rows[:, place] = cells
            return
        kind = rows.dtypes.iloc[place]
        rows.isetitem(place, cells)
        if categories is not None and not np.isnan(values).any():
            rows.isetitem(place, rows.iloc[:, place].astype(kind))

    def typical(self, count: int) -> Any:
        """So many rows of medians and most common categories."""
        rows = self.pick(np.zeros(count, dtype=np.int64))
        for place, column in enumerate(self.columns):
            middle = _typical(self.numbers[:, place], column.categories is not None)
            self.put(rows, place, np.full(count, middle))
        return rows

    def predictions(self, rows: object, log_odds: bool) -> Floats:
        if has_probabilities(self.model) and not log_odds:
            return np.asarray(self.model.predict_proba(rows)[:, 1])
        model = self.model
        if is_classifier(model):
            return np.asarray(model.decision_function(rows))
        values = np.asarray(model.predict(rows))
        return np.log(values) if log_odds else values

    def unit(self, log_odds: bool) -> str:
        if not is_classifier(self.model):
            return "log-mean" if log_odds else "prediction"
        kind = "probability" if has_probabilities(self.model) else "score"
        return f"{'log-odds' if log_odds else kind} of {self.model.classes_[1]}"


def slices(model: Model, X: object) -> list[Slice]:
    """Columns with rules first, then by how much they matter."""
    rows = Rows(model, X)
    rng = np.random.default_rng(0)
    count = rows.numbers.shape[0]
    chosen = np.sort(rng.choice(count, min(SAMPLE, count), replace=False))
    found = [_slice(rows, place, chosen) for place in range(len(rows.columns))]
    return sorted(found, key=lambda each: (not each.rules, -each.reach))


def _typical(values: Floats, categorical: bool) -> float:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return float("nan")
    if categorical:
        codes, counts = np.unique(present, return_counts=True)
        return float(codes[counts.argmax()])
    return float(np.quantile(present, 0.5, method="lower"))


def _slice(rows: Rows, place: int, chosen: Indices) -> Slice:
    column = rows.columns[place]
    rules, log_odds = rules_of(rows.model, place, column.name)
    shown = None if column.categories is None else [str(each) for each in column.categories]
    values = _grid(rows, place) if shown is None else np.arange(len(shown), dtype=np.float64)
    many = rows.pick(np.repeat(chosen, values.size))
    rows.put(many, place, np.tile(values, chosen.size))
    one = rows.typical(values.size)
    rows.put(one, place, values)
    average = rows.predictions(many, log_odds).reshape(chosen.size, values.size).mean(axis=0)
    return Slice(
        column.name,
        rules,
        rows.unit(log_odds),
        log_odds,
        values,
        shown,
        average,
        rows.predictions(one, log_odds),
        _curve(rows.model, place),
    )


def _grid(rows: Rows, place: int) -> Floats:
    values = rows.numbers[:, place]
    present = values[~np.isnan(values)]
    if present.size == 0:
        return np.zeros(1)
    even = np.linspace(present.min(), present.max(), EVENLY)
    own = _curve(rows.model, place)
    return even if own is None else np.unique(np.concatenate([even, own[0]]))


def _curve(model: Model, place: int) -> tuple[Floats, Floats] | None:
    """Keypoints and heights of the column's own curve, if the model has one."""
    if not is_lattice(model) or (own := model.model_.calibrator_of(place)) is None:
        return None
    keypoints = model.model_.terms[own].maps[0].keypoints
    theta = model.parameters_[model.model_.part(own)]
    return keypoints, theta[: keypoints.size]


def rules_of(model: Model, place: int, name: str) -> tuple[list[str], bool]:
    """What was asked of a column, in words, and whether a rule holds on the score only."""
    signs = model.monotonic_cst
    sign = (
        0
        if signs is None
        else (
            signs.get(name, signs.get(place, 0)) if isinstance(signs, dict) else int(signs[place])
        )
    )
    words = [] if not sign else ["increasing" if sign > 0 else "decreasing"]
    scores, on_score = rules_on_scores(model), False
    listed = model.shape_constraints or []
    for shape in listed if isinstance(listed, list | tuple) else [listed]:
        if name in shape.columns or place in shape.columns:
            only = scores.get(_label(shape, column_names(model)))
            words.append(_in_words(shape) + (f", on the {only}" if only else ""))
            on_score = on_score or only is not None
    return words, on_score


def _label(shape: ShapeConstraint, names: list[str]) -> str:
    """What reports call the rule."""
    told = (each if isinstance(each, str) else names[each] for each in shape.columns)
    return f"{type(shape).__name__}({', '.join(told)})"


def _in_words(shape: ShapeConstraint) -> str:
    """As Python prints it, without quotes around names."""
    given = [
        str(getattr(shape, each.name))
        for each in dataclasses.fields(shape)
        if getattr(shape, each.name) != each.default
    ]
    return f"{type(shape).__name__}({', '.join(given)})"
