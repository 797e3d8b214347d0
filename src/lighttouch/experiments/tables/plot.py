"""Draws what an accuracy costs, for every algorithm of Tables 2 and 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lighttouch.experiments.pictures import LOOKS, Picture, read_table

MARKERS = "osD^v"
Row = dict[str, Any]


def plot(folder: Path) -> None:
    """Constraint checks to reach epsilon; one curve per algorithm and m, whose marker shows m."""
    costs = [
        row
        for row in read_table(folder / "costs.csv")
        if row["cost"] == "checks" and row["measured"] != ""
    ]
    picture = Picture(
        2, "Constraint checks until the error stays below ε (markers: number of constraints m)"
    )
    sizes = sorted({row["constraints"] for row in costs})
    for place, (table, error) in enumerate(((2, "f(w) - f(w*)"), (3, "|w - w*|²"))):
        axes = picture.panel(
            place,
            xlabel=f"1/ε,  error = {error}",
            ylabel=f"Table {table}: constraint checks",
            xscale="log",
            yscale="log",
        )
        shown = [row for row in costs if row["table"] == table]
        for rows in _curves(shown):
            axes.plot(
                [1 / row["epsilon"] for row in rows],
                [row["measured"] for row in rows],
                marker=MARKERS[sizes.index(rows[0]["constraints"])],
                **_look(rows[0]),
            )
        across = sorted({1 / row["epsilon"] for row in shown})
        axes.set_xticks(across, [f"{value:g}" for value in across])
        axes.minorticks_off()
    picture.save(folder / "tables")


def _curves(rows: list[Row]) -> list[list[Row]]:
    """The rows of every algorithm and m."""
    found: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        found.setdefault((row["algorithm"], row["constraints"]), []).append(row)
    return list(found.values())


def _look(row: Row) -> dict[str, Any]:
    colour, style = LOOKS[row["algorithm"]]
    name = "FullTouch" if row["algorithm"] == "FullTouch" else "LightTouch / MidTouch"
    label = f"{name}, m = {row['constraints']:.0f}"
    return {
        "color": colour,
        "linestyle": style,
        "markersize": 4.5,
        "linewidth": 1.4,
        "label": label,
    }
