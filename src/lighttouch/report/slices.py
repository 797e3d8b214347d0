"""What a model does along one column: on a typical row, on average, with the cell missing, and in
the column's own curve.

Predictions are the model's own, asked for rows of the user's table in which one column is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import (
    Model,
    column_names,
    is_lattice,
    rules_on_scores,
)
from lighttouch.report.scales import Scale, scales_of
from lighttouch.report.support import Support, drawn_range
from lighttouch.report.words import Rule, rules_asked


@dataclass(frozen=True)
class View:
    """Predictions on one scale at the values of a column, one row per output: averaged over rows,
    on a typical row, and averaged with the cell missing (None where no cell of training was).
    """

    scale: Scale
    average: Floats
    typical: Floats
    missing: Floats | None


@dataclass(frozen=True)
class Slice:
    """One column: values (or categories), and the predictions there on one or two scales."""

    name: str
    place: int
    rules: list[Rule]
    values: Floats
    categories: list[str] | None
    counts: Indices  # rows of each category; empty for numbers
    support: Support
    views: list[View]
    curve: tuple[Floats, Floats] | None  # keypoints and the column's own curve, in score units

    @property
    def average(self) -> Floats:
        """Of the first output, on the scale on which its rules hold."""
        return np.asarray(self.views[0].average[0])

    @property
    def typical(self) -> Floats:
        return np.asarray(self.views[0].typical[0])

    @property
    def reach(self) -> float:
        """How far the average moves, on the scale that users see."""
        return float(np.ptp(self.views[-1].average, axis=1).max())


@dataclass(frozen=True)
class Column:
    """A column of the model: its categories in the order of their codes, or None for numbers."""

    name: str
    categories: list[Any] | None = None


def columns_of(model: Any) -> list[Column]:
    """A linear model's columns are all numbers."""
    known = getattr(model, "fitted_columns", None) if hasattr(model, "columns_") else None
    if known is None and not is_lattice(model):
        return [Column(name) for name in column_names(model)]
    return [
        Column(each.name, list(each.categories) if each.categorical else None)
        for each in model.columns_.columns
    ]


class Rows:
    """The user's table: its rows as they are, and as numbers (categories as codes)."""

    def __init__(self, model: Any, X: object) -> None:
        self.model, self.columns = model, columns_of(model)
        self.table = X.to_pandas() if hasattr(X, "to_pandas") else X
        self.numbers: Floats = (
            model.columns_.read(X)
            if hasattr(model, "columns_")
            else np.asarray(X, dtype=np.float64)
        )
        self._rng = np.random.default_rng(0)

    def some(self, most: int) -> Indices:
        """So many rows, drawn at random."""
        count = self.numbers.shape[0]
        return np.sort(self._rng.choice(count, min(most, count), replace=False))

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

    def averages(self, chosen: Indices, put: dict[int, Floats], scale: Scale) -> Floats:
        """The mean over the chosen rows with columns replaced: one row per output, one column per
        value.
        """
        size = next(iter(put.values())).size
        many = self.pick(np.repeat(chosen, size))
        for place, values in put.items():
            self.put(many, place, np.tile(values, chosen.size))
        values = scale.values(many)
        return np.asarray(values.reshape(chosen.size, size, values.shape[1]).mean(axis=0).T)


def slices(model: Model, X: object, rules: list[Rule] | None = None) -> list[Slice]:
    """Columns with rules first, then by how much they matter."""
    rows = Rows(model, X)
    chosen = rows.some(LIMITS.sample)
    asked = rules_asked(model) if rules is None else rules
    found = [_slice(rows, place, chosen, asked) for place in range(len(rows.columns))]
    return sorted(found, key=lambda each: (not each.rules, -each.reach))


def _typical(values: Floats, categorical: bool) -> float:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return float("nan")
    if categorical:
        codes, counts = np.unique(present, return_counts=True)
        return float(codes[counts.argmax()])
    return float(np.quantile(present, 0.5, method="lower"))


def _slice(rows: Rows, place: int, chosen: Indices, asked: list[Rule]) -> Slice:
    column, cells = rows.columns[place], rows.numbers[:, place]
    rules = [rule for rule in asked if place in rule.columns]
    shown = None if column.categories is None else [str(each) for each in column.categories]
    values = _grid(rows, place) if shown is None else np.arange(len(shown), dtype=np.float64)
    scores = rules_on_scores(rows.model)
    scales = scales_of(rows.model, any(rule.name in scores for rule in rules))
    present = cells[~np.isnan(cells)]
    counts = (
        np.zeros(0, dtype=np.int64)
        if shown is None
        else np.bincount(present.astype(np.int64), minlength=len(shown))
    )
    return Slice(
        column.name,
        place,
        rules,
        values,
        shown,
        counts,
        Support.of(cells),
        [_view(rows, place, values, chosen, scale) for scale in scales],
        _curve(rows.model, place),
    )


def _view(rows: Rows, place: int, values: Floats, chosen: Indices, scale: Scale) -> View:
    one = rows.typical(values.size)
    rows.put(one, place, values)
    missing = None
    if np.isnan(rows.numbers[:, place]).any():
        missing = rows.averages(chosen, {place: np.array([np.nan])}, scale)[:, 0]
    average = rows.averages(chosen, {place: values}, scale)
    return View(scale, average, scale.values(one).T, missing)


def _grid(rows: Rows, place: int) -> Floats:
    cells = rows.numbers[:, place]
    present = cells[~np.isnan(cells)]
    if present.size == 0:
        return np.zeros(1)
    low, high = drawn_range(present)
    if present.min() == present.max():
        return np.array([float(present.min())])
    even = np.linspace(low, high, LIMITS.support_bins)
    own = _curve(rows.model, place)
    if own is None:
        return even
    inside = own[0][(own[0] >= low) & (own[0] <= high)]
    return np.unique(np.concatenate([even, inside]))


def _curve(model: Any, place: int) -> tuple[Floats, Floats] | None:
    """Keypoints and heights of the column's own curve, if the model has one score with one."""
    if not is_lattice(model) or model.parameters_.ndim != 1:
        return None
    if (own := model.model_.calibrator_of(place)) is None:
        return None
    keypoints = model.model_.terms[own].maps[0].keypoints
    theta = model.parameters_[model.model_.part(own)]
    return keypoints, theta[: keypoints.size]
