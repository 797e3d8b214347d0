"""The rows of all parts as one picture (a bar for every ratio, a line for every cost) and one
Markdown table.
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path

from benchmarks.speed.paper_problem import Row

GOOD, BAD, PLAIN = "#1b7a3d", "#b3261e", "#0b6e99"
AT_THE_END = re.compile(r"[=>] ?([\d.,]+)x?$")  # "4.80 / 0.200 s = 24x"
ASKED = re.compile(r"^(?:>=?|<=) ?([\d.]+)x?$")


def ratio_of(row: Row) -> float | None:
    """The row's ratio: as given, or as the last thing that `measured` says."""
    if row.ratio is not None:
        return row.ratio
    said = AT_THE_END.search(row.measured)
    return float(said[1].replace(",", "")) if said else None


def markdown(rows: list[Row]) -> str:
    lines = ["| what | measured | target | met |", "|---|---|---|---|"]
    mark = {True: "yes", False: "NO", None: ""}
    lines += [
        f"| {_cell(row.what)} | {_cell(row.measured)} | {_cell(row.target)} | {mark[row.good]} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def draw(rows: list[Row], path: Path) -> None:
    """Bars above, one line a growing size below."""
    from matplotlib.figure import Figure  # not pyplot: no global state, no display

    bars = [(row, ratio) for row in rows if (ratio := ratio_of(row)) is not None and ratio > 0]
    lines = {
        row.point[0]: [
            each.point[1:] for each in rows if each.point and each.point[0] == row.point[0]
        ]
        for row in rows
        if row.point
    }
    height = 0.9 + 0.52 * len(bars)
    figure = Figure(
        figsize=(10.5, (height if bars else 0.0) + (3.4 if lines else 0.0) or 1.0),
        layout="constrained",
    )
    parts = (
        figure.subfigures(2, 1, height_ratios=[height, 3.4]) if bars and lines else [figure, figure]
    )
    if bars:
        _bars(parts[0].subplots(), bars)
    if lines:
        for axes, (size, points) in zip(
            parts[1].subplots(1, len(lines), squeeze=False)[0], lines.items(), strict=True
        ):
            _line(axes, size, points)
    figure.savefig(path, dpi=120)


def _bars(axes, bars: list[tuple[Row, float]]) -> None:
    for place, (row, ratio) in enumerate(bars):
        color = {True: GOOD, False: BAD, None: PLAIN}[row.good]
        axes.barh(place, ratio - 1.0, left=1.0, color=color, height=0.62)
        label = f"{'> ' if '>' in row.measured else ''}{ratio:.3g}x"
        asked = ASKED.match(row.target)
        beyond = max(
            ratio, 1.0, float(asked[1]) if asked and ratio > 0.5 * float(asked[1]) else 0.0
        )  # clear of the target's mark
        axes.annotate(
            label,
            (beyond, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
        if asked:
            axes.plot(
                [float(asked[1])] * 2, [place - 0.42, place + 0.42], color="black", linewidth=1.4
            )
    axes.set_yticks(range(len(bars)), [textwrap.fill(row.what, 62) for row, _ in bars], fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="ratio, theirs / ours unless said otherwise (black: the target)")
    axes.axvline(1.0, color="0.4", linewidth=0.8)
    axes.margins(x=0.14)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.spines[["top", "right"]].set_visible(False)


def _line(axes, size: str, points: list[tuple[float, float]]) -> None:
    across, up = zip(*points, strict=True)
    axes.plot(across, up, "o-", color=PLAIN, linewidth=1.8, markersize=4.5)
    top = 10 ** math.ceil(math.log10(1.2 * max(up)))
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=size,
        ylabel="microseconds per iteration",
        ylim=(min(1.0, 0.8 * min(up)), top),
    )
    axes.set_xticks(across, [_short(value) for value in across])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(True, which="major", color="0.88")
    axes.spines[["top", "right"]].set_visible(False)


def _short(value: float) -> str:
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:g}"
