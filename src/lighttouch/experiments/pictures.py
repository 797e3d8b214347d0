"""The look that the figures share: colours that colour-blind readers can tell apart, a line style
each, spread as a band.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

Table = list[dict[str, Any]]

LOOKS: dict[str, tuple[str, Any]] = {
    "LightTouch": ("#0072B2", "-"),
    "FullTouch": ("#D55E00", (0, (5, 1.5))),
    "LightTouch, searched": ("#56B4E9", "-"),
    "FullTouch, searched": ("#E69F00", (0, (5, 1.5))),
    "MidTouch": ("#0072B2", "-"),
    "ApproxSGD": ("#009E73", (0, (1, 1))),
    "default solver": ("#000000", (0, (6, 1.5, 1, 1.5))),
}


def read_table(path: Path) -> Table:
    """A CSV of numbers and words."""
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


class Picture:
    """A row of panels with one legend below them, saved as PNG and SVG."""

    def __init__(self, panels: int, title: str) -> None:
        from matplotlib.figure import Figure  # not pyplot: no global state, no display

        self.figure: Any = Figure(
            figsize=(4.6 * panels + (0.4 if panels > 1 else 1.6), 4.0), layout="constrained"
        )
        self.axes: Any = self.figure.subplots(1, panels, squeeze=False)[0]
        self.figure.suptitle(title, fontsize=11)

    def panel(
        self,
        place: int,
        *,
        xlabel: str,
        ylabel: str | None,
        xscale: str = "linear",
        yscale: str = "linear",
    ) -> Any:
        axes = self.axes[place]
        axes.set(xlabel=xlabel, xscale=xscale, yscale=yscale)
        if ylabel:
            axes.set_ylabel(ylabel)
        axes.grid(True, which="major", color="0.88", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        return axes

    def curves(self, axes: Any, table: Table, x: str, y: str) -> None:
        """Every line of the table: its mean, its spread, and a dot where the default solver ends by
        itself.
        """
        for line in dict.fromkeys(row["line"] for row in table):
            rows = [
                row
                for row in table
                if row["line"] == line and (axes.get_xscale() != "log" or row[x] > 0)
            ]
            colour, style = LOOKS[line]
            across = [row[x] for row in rows]
            axes.fill_between(
                across,
                [row[f"{y}_low"] for row in rows],
                [row[f"{y}_high"] for row in rows],
                color=colour,
                alpha=0.18,
                lw=0,
            )
            axes.plot(
                across,
                [row[y] for row in rows],
                color=colour,
                linestyle=style,
                linewidth=1.8,
                label=line,
            )
            if line == "default solver":
                axes.plot(across[-1], rows[-1][y], "o", color=colour, markersize=5)

    def near_the_bottom(self, axes: Any, table: Table, x: str, column: str = "objective") -> None:
        """Show the last part of the way: the start at w = 0 has objective 1 and would flatten the
        rest.
        """
        low = min(row[f"{column}_low"] for row in table)
        top = low + 0.22 * abs(low)
        axes.set_ylim(low - 0.01 * abs(low), top)
        entered = [row[x] for row in _from_then_on_below(table, column, top)]
        if entered:
            axes.set_xlim(left=0.5 * min(entered))

    def save(self, path: Path) -> None:
        handles, labels = self.axes[0].get_legend_handles_labels()
        self.figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=3 if len(labels) > 4 else len(labels),
            frameon=False,
        )
        self.figure.savefig(path.with_suffix(".png"), dpi=110)
        self.figure.savefig(path.with_suffix(".svg"))


def _from_then_on_below(table: Table, column: str, top: float) -> Table:
    """Of every line the row from which on it stays below the top."""
    found = []
    for line in dict.fromkeys(row["line"] for row in table):
        rows = [row for row in table if row["line"] == line]
        last = max((place for place, row in enumerate(rows) if row[column] > top), default=-1)
        found += rows[last + 1 : last + 2]
    return found
