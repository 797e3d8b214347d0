"""Measures by group: how good a model is for the rows of each value of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.report.accuracy import Accuracy, Judged, Numbers, TwoClasses, bootstrap
from lighttouch.report.limits import LIMITS

MISSING, OTHERS = "(missing)", "(all others)"


@dataclass(frozen=True)
class Group:
    """One value of a column: its rows, and the measures there where there are enough rows."""

    column: str
    group: str
    accuracy: Accuracy


def by_group(judged: Judged, columns: dict[str, Any]) -> list[Group]:
    """The measures of the rows of every group of each column, with intervals.

    Besides the usual measures: the mean prediction and the mean target (of two classes: the mean
    probability, the share of the second class and the share of rows that are predicted so).
    """
    found = []
    for name, values in columns.items():
        for group, rows in grouped(values):
            found.append(Group(name, group, _measured(judged, group, rows)))
    return found


def _measured(judged: Judged, name: str, rows: Indices) -> Accuracy:
    if rows.size < LIMITS.least_group:
        return Accuracy(name, int(rows.size), {})
    few = judged.only(rows)
    if few is None:
        return Accuracy(name, int(rows.size), {})
    measures = _means(few) | few.plain()
    return Accuracy(name, int(rows.size), measures, bootstrap(few.units, few.measures))


def _means(judged: Judged) -> dict[str, float]:
    if isinstance(judged, TwoClasses):
        found = {"share of the second class": float(judged.second.mean())}
        if judged.shares is not None:
            found["mean probability"] = float(judged.shares.mean())
        return found | {"predicted as second": float((judged.scores > 0.0).mean())}
    if isinstance(judged, Numbers):
        means = float(judged.truth.mean()), float(judged.predicted.mean())
        return {"mean target": means[0], "mean prediction": means[1]}
    return {}


def grouped(values: object) -> list[tuple[str, Indices]]:
    """The rows of each group: values, or quarters of numbers with many values."""
    cells = np.asarray(values)
    absent = _absent(cells)
    if cells.dtype.kind in "fiu" and np.unique(cells[~absent]).size > LIMITS.groups:
        found = _quarters(cells.astype(np.float64), absent)
    else:
        found = _values(cells, absent)
    if absent.any():
        found.append((MISSING, np.flatnonzero(absent)))
    return found


def _absent(cells: Any) -> Any:
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    if cells.dtype.kind == "O":
        return np.array([_is_nothing(each) for each in cells.tolist()], dtype=bool)
    return np.zeros(cells.shape, dtype=bool)


def _is_nothing(cell: object) -> bool:
    """None, NaN, or pandas' NA, which is not equal to itself either."""
    return cell is None or type(cell).__name__ == "NAType" or cell != cell  # noqa: PLR0124


def _quarters(cells: Floats, absent: Any) -> list[tuple[str, Indices]]:
    cuts = np.unique(np.quantile(cells[~absent], [0.0, 0.25, 0.5, 0.75, 1.0]))
    place = np.clip(np.searchsorted(cuts, cells, side="right") - 1, 0, max(0, cuts.size - 2))
    found = []
    for k in range(max(1, cuts.size - 1)):
        rows = np.flatnonzero((place == k) & ~absent)
        below = "" if k >= cuts.size - 2 else "below "
        found.append((f"{cuts[k]:g} to {below}{cuts[min(k + 1, cuts.size - 1)]:g}", rows))
    return found


def _values(cells: Any, absent: Any) -> list[tuple[str, Indices]]:
    names = np.array([str(each) for each in cells.tolist()], dtype=object)
    kinds, place, counts = np.unique(
        names[~absent].astype(str), return_inverse=True, return_counts=True
    )
    rows = np.flatnonzero(~absent)
    order = np.argsort(-counts, kind="stable")
    shown = order if order.size <= LIMITS.groups else order[: LIMITS.groups - 1]
    found = [(str(kinds[k]), rows[place == k]) for k in shown]
    if shown.size < order.size:
        found.append((OTHERS, rows[~np.isin(place, shown)]))
    return found
