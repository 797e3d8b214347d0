"""Draws what an accuracy costs, for every algorithm of Tables 2 and 3."""

from __future__ import annotations

from pathlib import Path

from lighttouch.experiments.pictures import LOOKS, Picture, read_table

MARKERS = "osD^v"


def plot(folder: Path) -> None:
    """Constraint checks to reach epsilon; one curve an algorithm and m, the marker telling m."""
    costs = [
        row
        for row in read_table(folder / "costs.csv")
        if row["cost"] == "checks" and row["measured"] != ""
    ]
    picture = Picture(
        2, "Constraint checks until the error stays below ε (markers: number of constraints m)"
    )
    sizes = sorted({row["constraints"] for row in costs})
    for place, table in enumerate((2, 3)):
        error = "f(w) - f(w*)" if table == 2 else "|w - w*|²"
        axes = picture.panel(
            place,
            xlabel=f"1/ε,  error = {error}",
            ylabel=f"Table {table}: constraint checks",
            xscale="log",
            yscale="log",
        )
        for row_line in dict.fromkeys(
            (row["algorithm"], row["constraints"]) for row in costs if row["table"] == table
        ):
            rows = [
                row
                for row in costs
                if row["table"] == table and (row["algorithm"], row["constraints"]) == row_line
            ]
            colour, style = LOOKS[row_line[0]]
            marker = MARKERS[sizes.index(row_line[1])]
            label = (
                f"{'LightTouch / MidTouch' if row_line[0] != 'FullTouch' else 'FullTouch'}, m "
                f"= {row_line[1]:.0f}"
            )
            across, up = [1 / row["epsilon"] for row in rows], [row["measured"] for row in rows]
            axes.plot(
                across,
                up,
                color=colour,
                linestyle=style,
                marker=marker,
                markersize=4.5,
                linewidth=1.4,
                label=label,
            )
        across = sorted({1 / row["epsilon"] for row in costs if row["table"] == table})
        axes.set_xticks(across, [f"{value:g}" for value in across])
        axes.minorticks_off()
    picture.save(folder / "tables")
