"""What a model does with two columns together: interactions, and rules about two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import Model, rules_on_scores
from lighttouch.report.scales import scales_of
from lighttouch.report.slices import Rows
from lighttouch.report.support import drawn_range
from lighttouch.report.words import Rule


@dataclass(frozen=True)
class Axis:
    """A column along a side of the picture: values, their names, and which row lies in which cell
    (-1: in none).
    """

    name: str
    values: Floats
    labels: list[str]
    numbers: bool
    cells: Indices


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
    model: Model, rows: Rows, rules: list[Rule], sizes: dict[tuple[int, ...], float]
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


def interactions(model: Any, rows: Rows) -> dict[tuple[int, ...], float]:
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
    rows: Rows, pair: tuple[int, ...], chosen: Indices, rules: list[Rule], size: float | None
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


def _axis(rows: Rows, place: int) -> Axis:
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
        return Axis(column.name, order.astype(np.float64), labels, False, found)
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
