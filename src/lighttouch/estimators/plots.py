"""Pictures of lattice models: curves of single columns, slices along one or two columns, and which
rules bind. Needs matplotlib.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lighttouch.estimators.checks import as_table
from lighttouch.text import printable

Floats = NDArray[np.float64]
LINE, MARK, FREE = "#2456a6", "#c2571a", "#b9c4d6"
GRID = 121


def plot_calibrators(estimator: Any, columns: Any = None) -> Any:
    """One panel a column: its own effect on the prediction, the other columns left out; returns the
    figure.
    """
    check_is_fitted(estimator, "parameters_")
    places = (
        range(len(estimator.columns_))
        if columns is None
        else [estimator.columns_.place(column) for column in columns]
    )
    drawn = [place for place in places if estimator.model_.calibrator_of(place) is not None]
    figure, axes = _panels(len(drawn))
    for axis, place in zip(axes, drawn, strict=True):
        _draw_calibrator(axis, estimator, place)
    return figure


def plot_slice(estimator: Any, X: Any, columns: Any, rows: int = 30) -> Any:
    """The prediction along one column (for some rows of X, and their mean) or over two (a map,
    other columns at one typical row).
    """
    check_is_fitted(estimator, "parameters_")
    listed = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    places = [estimator.columns_.place(column) for column in listed]
    table = estimator.columns_.read(as_table(X))
    figure, (axis,) = _panels(1)
    if len(places) == 1:
        shown = table[:: max(1, table.shape[0] // rows)][:rows]
        _draw_curves(axis, estimator, shown, places[0], _along(estimator, table, places[0]))
    elif len(places) == 2:
        _draw_map(figure, axis, estimator, table, places[0], places[1])
    else:
        raise ValueError(f"a slice goes along one or two columns, got {len(places)}")
    return figure


def plot_constraints(estimator: Any) -> Any:
    """One bar a rule: its rows, and how many of them bind."""
    check_is_fitted(estimator)
    rules = [rule for rule in estimator.constraint_report_.rules if rule.rows]
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 1.2 + 0.42 * max(1, len(rules))), layout="constrained")
    names = [_label(rule.rule) for rule in rules]
    share = [rule.binding.size / rule.rows for rule in rules]
    axis.barh(names, [1.0] * len(rules), color=FREE, label="free")
    axis.barh(names, share, color=MARK, label="binding")
    for place, rule in enumerate(rules):
        axis.text(
            1.02,
            place,
            f"{rule.binding.size:,} of {rule.rows:,} bind, violation {rule.violation:g}",
            va="center",
            fontsize=9,
        )
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.set_xlabel("share of the rule's rows that hold with equality")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _panels(count: int) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    width = min(3, max(1, count))
    height = -(-max(1, count) // width)
    size = (5.6, 4.0) if count == 1 else (3.4 * width, 2.7 * height)
    figure, axes = plt.subplots(height, width, figsize=size, squeeze=False, layout="constrained")
    flat = list(axes.ravel())
    for axis in flat[count:]:
        axis.set_visible(False)
    for axis in flat[:count]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, flat[:count]


def _label(text: str) -> str:
    """A name as text: matplotlib would read dollar signs as formulas."""
    short = printable(text)
    return (short if len(short) <= 40 else short[:37] + "...").replace("$", r"\$")


def _draw_calibrator(axis: Any, estimator: Any, place: int) -> None:
    model, column = estimator.model_, estimator.columns_[place]
    own = model.calibrator_of(place)
    piece, theta = model.pieces[own], estimator.parameters_[model.part(own)]
    axis.set_title(_label(column.name), fontsize=10)
    if column.categorical:
        names = [_label(str(category))[:14] for category in column.categories] + ["other"]
        ascending = np.argsort(theta[:-1])
        order = [*ascending, theta.size - 1]
        axis.barh(np.arange(len(order)), theta[order], color=[LINE] * ascending.size + [FREE])
        axis.set_yticks(
            np.arange(len(order)), [names[k] for k in order], fontsize=8 if len(order) < 12 else 6
        )
        axis.set_xlabel("effect", fontsize=9)
        return
    axis.plot(piece.maps[0].keypoints, theta[:-1], color=LINE, marker="o", markersize=3)
    axis.axhline(theta[-1], color=MARK, linewidth=1, linestyle=":", label="missing")
    axis.legend(fontsize=8, frameon=False)
    axis.set_ylabel("effect", fontsize=9)


def _along(estimator: Any, table: Floats, place: int) -> Floats:
    column = estimator.columns_[place]
    if column.categorical:
        return np.arange(len(column.categories), dtype=np.float64)
    present = table[~np.isnan(table[:, place]), place]
    low, high = (present.min(), present.max()) if present.size else (0.0, 1.0)
    return np.linspace(low, high, GRID)


def _draw_curves(axis: Any, estimator: Any, table: Floats, place: int, grid: Floats) -> None:
    curves = []
    for row in table:
        moved = np.repeat(row[None, :], grid.size, axis=0)
        moved[:, place] = grid
        curves.append(estimator.model_.evaluate(moved, estimator.parameters_))
    for curve in curves:
        axis.plot(grid, curve, color=FREE, linewidth=0.8)
    axis.plot(
        grid,
        np.mean(curves, axis=0),
        color=LINE,
        linewidth=2.2,
        label=f"mean of {len(curves)} rows",
    )
    _name_axis(axis.xaxis, estimator, place, grid)
    axis.set_ylabel("score" if hasattr(estimator, "classes_") else "prediction")
    axis.legend(frameon=False, fontsize=9)


def _draw_map(
    figure: Any, axis: Any, estimator: Any, table: Floats, first: int, second: int
) -> None:
    xs, ys = _along(estimator, table, first), _along(estimator, table, second)
    moved = np.repeat(_typical(table)[None, :], xs.size * ys.size, axis=0)
    moved[:, first], moved[:, second] = np.tile(xs, ys.size), np.repeat(ys, xs.size)
    values = estimator.model_.evaluate(moved, estimator.parameters_).reshape(ys.size, xs.size)
    shown = axis.pcolormesh(xs, ys, values, cmap="viridis", shading="nearest", rasterized=True)
    if values.max() > values.min() and min(values.shape) > 2:
        axis.contour(xs, ys, values, colors="white", linewidths=0.7, alpha=0.8)
    figure.colorbar(
        shown, ax=axis, label="score" if hasattr(estimator, "classes_") else "prediction"
    )
    _name_axis(axis.xaxis, estimator, first, xs)
    _name_axis(axis.yaxis, estimator, second, ys)


def _typical(table: Floats) -> Floats:
    """The row of a table that is nearest to its medians."""
    middle = np.nanmedian(np.where(np.isnan(table).all(axis=0), 0.0, table), axis=0)
    spread = np.nanstd(table, axis=0) + 1e-12
    return np.asarray(table[int(np.argmin(np.nansum(np.abs((table - middle) / spread), axis=1)))])


def _name_axis(axis: Any, estimator: Any, place: int, grid: Floats) -> None:
    column = estimator.columns_[place]
    axis.set_label_text(_label(column.name))
    if column.categorical:
        axis.set_ticks(grid, [_label(str(category))[:14] for category in column.categories])
