"""What a model does along one column (on a typical row, on average, with the cell missing, and in
the column's own curve), with two columns together, and how many rows lie there.

Predictions are the model's own, asked for rows of the user's table in which columns are replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import number
from lighttouch.report.models import (
    Model,
    column_names,
    has_probabilities,
    has_several_outputs,
    is_classifier,
    is_lattice,
    rules_on_scores,
)
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


class SlicedRows:
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
        return _taken(self.table, chosen)

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
        return _taken(self._middle, np.zeros(count, dtype=np.int64))

    @cached_property
    def _middle(self) -> Any:
        rows = self.pick(np.zeros(1, dtype=np.int64))
        for place, column in enumerate(self.columns):
            middle = _typical(self.numbers[:, place], column.categories is not None)
            self.put(rows, place, np.array([middle]))
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
    rows = SlicedRows(model, X)
    chosen = rows.some(LIMITS.sample)
    asked = rules_asked(model) if rules is None else rules
    found = [_slice(rows, place, chosen, asked) for place in range(len(rows.columns))]
    return sorted(found, key=lambda each: (not each.rules, -each.reach))


def _taken(table: Any, chosen: Indices) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[chosen].reset_index(drop=True)
    rows = np.asarray(table)[chosen]
    whole = rows.dtype.kind in "biu"  # values between whole numbers are put there too
    return rows.astype(np.float64) if whole else rows


def _typical(values: Floats, categorical: bool) -> float:
    present = values[~np.isnan(values)]
    if present.size == 0:
        return float("nan")
    if categorical:
        codes, counts = np.unique(present, return_counts=True)
        return float(codes[counts.argmax()])
    return float(np.quantile(present, 0.5, method="lower"))


def _slice(rows: SlicedRows, place: int, chosen: Indices, asked: list[Rule]) -> Slice:
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


def _view(rows: SlicedRows, place: int, values: Floats, chosen: Indices, scale: Scale) -> View:
    one = rows.typical(values.size)
    rows.put(one, place, values)
    missing = None
    if np.isnan(rows.numbers[:, place]).any():
        missing = rows.averages(chosen, {place: np.array([np.nan])}, scale)[:, 0]
    average = rows.averages(chosen, {place: values}, scale)
    return View(scale, average, scale.values(one).T, missing)


def _grid(rows: SlicedRows, place: int) -> Floats:
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


# -------------------------------------------------------------------------------------------------
# What a model does with two columns together: interactions, and rules about two columns.


@dataclass(frozen=True)
class Axis:
    """A column along a side of the picture: values, their names, which row lies in which cell (-1:
    in none), and how many categories there are in all.
    """

    name: str
    values: Floats
    labels: list[str]
    numbers: bool
    cells: Indices
    categories: int = 0

    @property
    def some_only(self) -> bool:
        """Whether the most common categories are shown only."""
        return self.categories > len(self.labels)


@dataclass(frozen=True)
class Surface:
    """Average predictions over a grid of two columns, and how many rows lie in each cell."""

    across: Axis
    up: Axis
    unit: str
    output: str
    heights: Floats  # one row per value of `up`
    rows: Indices
    rules: list[Rule]
    importance: float | None  # the mean size of the interaction, on the score


def surfaces(
    model: Model, rows: SlicedRows, rules: list[Rule], sizes: dict[tuple[int, ...], float]
) -> list[Surface]:
    """Rules about two columns first, then the largest interactions; `sizes` are those of all
    interactions, the largest first.
    """
    chosen = rows.some(LIMITS.pair_sample)
    asked = {tuple(sorted(rule.columns)): True for rule in rules if rule.about_two}
    largest = [pair for pair in sizes if len(pair) == 2 and pair not in asked]
    return [
        _surface(rows, pair, chosen, [r for r in rules if _about(r, pair)], sizes.get(pair))
        for pair in [*asked, *largest[: LIMITS.pictures]]
    ]


def _about(rule: Rule, pair: tuple[int, ...]) -> bool:
    return rule.about_two and tuple(sorted(rule.columns)) == pair


def interactions(model: Any, rows: SlicedRows) -> dict[tuple[int, ...], float]:
    """Columns that interact, by the mean size of their effect on the score, the largest first."""
    if not hasattr(model, "explain") or not hasattr(model, "model_"):
        return {}
    found = model.explain(rows.pick(rows.some(LIMITS.probed_rows)))
    places = dict(zip(found.names, found.columns, strict=True))
    return {
        tuple(int(column) for column in places[name]): size
        for name, size in found.importances.items()
        if len(places[name]) > 1 and size > 0.0
    }


def _surface(
    rows: SlicedRows, pair: tuple[int, ...], chosen: Indices, rules: list[Rule], size: float | None
) -> Surface:
    across, up = (_axis(rows, place) for place in pair)
    scores = rules_on_scores(rows.model)
    scale = scales_of(rows.model, any(rule.name in scores for rule in rules))[0]
    first = np.tile(across.values, up.values.size)
    second = np.repeat(up.values, across.values.size)
    found = rows.averages(chosen, {pair[0]: first, pair[1]: second}, scale)
    output = len(scale.outputs) // 2
    shape = up.values.size, across.values.size
    inside = (across.cells >= 0) & (up.cells >= 0)
    cells = up.cells[inside] * shape[1] + across.cells[inside]
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return Surface(
        across,
        up,
        scale.unit,
        scale.outputs[output],
        found[output].reshape(shape),
        counts,
        rules,
        size,
    )


def _axis(rows: SlicedRows, place: int) -> Axis:
    column, cells = rows.columns[place], rows.numbers[:, place]
    known = ~np.isnan(cells)
    if column.categories is not None:
        counts = np.bincount(cells[known].astype(np.int64), minlength=len(column.categories))
        order = np.argsort(-counts, kind="stable")[: LIMITS.pair_side]
        where = np.full(len(column.categories), -1)
        where[order] = np.arange(order.size)
        found = np.full(cells.size, -1)
        found[known] = where[cells[known].astype(np.int64)]
        labels = [str(column.categories[k]) for k in order]
        values = order.astype(np.float64)
        return Axis(column.name, values, labels, False, found, len(column.categories))
    distinct = np.unique(cells[known])
    if 0 < distinct.size <= LIMITS.pair_side:
        found = np.searchsorted(distinct, np.where(known, cells, distinct[0]))
        values = distinct
    else:
        low, high = drawn_range(cells[known])
        edges = np.linspace(low, high, LIMITS.pair_side + 1)
        values = 0.5 * (edges[1:] + edges[:-1])
        found = np.searchsorted(edges, cells, side="right") - 1
        found[cells == high] = values.size - 1
        known &= (cells >= low) & (cells <= high)
    found = np.where(known, np.clip(found, 0, values.size - 1), -1)
    return Axis(column.name, values, [f"{each:.4g}" for each in values], True, found)


# -------------------------------------------------------------------------------------------------
# What is drawn of a model: its predictions on one or more scales, one line per output.


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


# -------------------------------------------------------------------------------------------------
# How many rows lie under a curve, and where there are few.


@dataclass(frozen=True)
class Support:
    """A histogram of a column of numbers over the range that is drawn; `beyond` cells lie outside
    it, `missing` have no value.
    """

    edges: Floats
    counts: Indices
    rows: int
    missing: int
    beyond: int = 0

    @classmethod
    def of(cls, values: Floats) -> Support:
        present = values[~np.isnan(values)]
        low, high = drawn_range(present)
        distinct = np.unique(present)
        edges = np.linspace(low, high, LIMITS.support_bins + 1)
        if 2 <= distinct.size <= LIMITS.support_bins:  # one bar for each value
            middles = 0.5 * (distinct[1:] + distinct[:-1])
            edges = np.concatenate([[low], middles, [high]])
        counts = np.histogram(present, edges)[0]
        beyond = int(((present < low) | (present > high)).sum())
        return cls(edges, counts, values.size, values.size - present.size, beyond)

    @property
    def thin(self) -> Indices:
        """The bars with few rows."""
        average = self.counts.sum() / self.counts.size
        return np.flatnonzero(self.counts < min(LIMITS.thin_rows, LIMITS.thin_share * average))

    def runs(self) -> list[tuple[float, float, int]]:
        """Neighbouring thin bars together: from, to, rows."""
        if self.thin.size == 0:
            return []
        parts = np.split(self.thin, np.flatnonzero(np.diff(self.thin) > 1) + 1)
        return [
            (
                float(self.edges[part[0]]),
                float(self.edges[part[-1] + 1]),
                int(self.counts[part].sum()),
            )
            for part in parts
        ]


def drawn_range(present: Floats) -> tuple[float, float]:
    """The range of the cells, without a few far ones that would make all others look equal."""
    if present.size == 0:
        return 0.0, 1.0
    low, high = float(present.min()), float(present.max())
    inner = np.quantile(present, [LIMITS.tail, 1.0 - LIMITS.tail])
    width = float(inner[1] - inner[0])
    if width > 0.0 and high - low > LIMITS.stretched * width:
        low, high = float(inner[0]), float(inner[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def warning(support: Support, values: Floats, heights: Floats) -> str:
    """A sentence where a curve moves much over few rows; empty if it does not."""
    whole = float(np.ptp(heights)) if heights.size else 0.0
    worst, told = LIMITS.thin_reach * whole, ""
    for low, high, rows in support.runs():
        ends = np.interp([low, high], values, heights)
        within = heights[(values >= low) & (values <= high)]
        moved = float(np.ptp(np.concatenate([ends, within])))
        if moved > worst:
            worst = moved
            share = moved / whole
            told = (
                f"Thin support: between {number(low)} and {number(high)} lie {rows:,} of "
                f"{support.rows:,} rows, and the average moves by {number(moved, 3)} there, "
                f"{share:.0%} of its whole range."
            )
    return told
