"""Charts as inline SVG that read well without a script; charts.js adds a readout and switches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lighttouch.report.markup import Markup, as_json, clipped, fill, joined, number
from lighttouch.report.slices import Axis as Side
from lighttouch.report.slices import Support, Surface

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 40
STRIP = 38  # the histogram under a curve
BAR = 20
MOST_BARS = 14


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    y: Sequence[float]


@dataclass(frozen=True)
class Extras:
    """What a chart may show besides lines: dots, whiskers (low, high) at the points of the first
    line, the rows under the curve, and lines that are drawn thin and dashed (from this one on).
    """

    dots: bool = False
    whiskers: Sequence[tuple[float, float]] = ()
    support: Support | None = None
    straight_from: int = 99


NOTHING = Extras()


def line_chart(
    title: str,
    x: Sequence[float],
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    extras: Extras = NOTHING,
) -> Markup:
    """One or more lines over the same x."""
    support = extras.support
    ends = (min(x), max(x)) if support is None else (support.edges[0], support.edges[-1])
    across = Axis(float(ends[0]), float(ends[1]), LEFT, WIDTH - RIGHT)
    values = [value for each in series for value in each.y]
    values += [end for pair in extras.whiskers for end in pair]
    up = Axis(min(values), max(values), HEIGHT - BOTTOM, TOP, padded=True)
    lines = [
        _line(
            place,
            [(across(a), up(b)) for a, b in zip(x, each.y, strict=True)],
            extras.dots and place < extras.straight_from,
            place >= extras.straight_from,
        )
        for place, each in enumerate(series)
    ]
    below = STRIP if support is not None else 0
    data = _points(x, across, series, up, x_label) | {"end": HEIGHT - BOTTOM + below}
    if support is not None:
        data["rows"] = _rows_near(support, x)
    parts = [
        Markup() if support is None else _strip(support, across),
        _grid(across, up, below),
        *lines,
        _whiskers(extras.whiskers, x, across, up),
        _labels(x_label, y_label, HEIGHT + below, below),
    ]
    return figure(title, joined(parts), HEIGHT + below, series, data)


def histogram(
    title: str, edges: Sequence[float], series: Sequence[Series], x_label: str, y_label: str
) -> Markup:
    """Bars between edges; several series lie over each other."""
    across = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    up = Axis(0.0, max(value for each in series for value in each.y) or 1.0, HEIGHT - BOTTOM, TOP)
    middles = [0.5 * (a + b) for a, b in pairwise(edges)]
    bars = [_steps(place, edges, each.y, across, up) for place, each in enumerate(series)]
    data = _points(middles, across, series, up, x_label) | {"end": HEIGHT - BOTTOM}
    parts = [_grid(across, up, 0), *bars, _labels(x_label, y_label, HEIGHT, 0)]
    return figure(title, joined(parts), HEIGHT, series, data)


def _steps(
    place: int, edges: Sequence[float], heights: Sequence[float], across: Axis, up: Axis
) -> Markup:
    path = f"M{across(edges[0]):.1f} {up(0.0):.1f}"
    for right, height in zip(edges[1:], heights, strict=True):
        path += f"V{up(height):.1f}H{across(right):.1f}"
    return fill(
        '<g class="series s{place} steps" data-series="{place}"><path d="{path}"/></g>',
        place=place,
        path=path + f"V{up(0.0):.1f}Z",
    )


def _points(
    x: Sequence[float], across: Axis, series: Sequence[Series], up: Axis, label: str
) -> dict[str, Any]:
    return {
        "x": [_short(v) for v in x],
        "px": [round(across(v), 1) for v in x],
        "series": [
            {
                "name": each.name,
                "y": [_short(v) for v in each.y],
                "py": [round(up(v), 1) for v in each.y],
            }
            for each in series
        ],
        "xl": label,
    }


def _rows_near(support: Support, x: Sequence[float]) -> list[int]:
    """How many rows lie in the bar of each x."""
    place = np.searchsorted(support.edges, x, side="right") - 1
    return [int(each) for each in support.counts[np.clip(place, 0, support.counts.size - 1)]]


def _strip(support: Support, across: Axis) -> Markup:
    """The histogram under the curve; where it is thin, the plot is shaded."""
    bottom, tallest = HEIGHT - BOTTOM + STRIP, max(1, int(support.counts.max()))
    bars = []
    for k, count in enumerate(support.counts.tolist()):
        if count:
            left, right = across(float(support.edges[k])), across(float(support.edges[k + 1]))
            tall = max(1.0, (STRIP - 8) * count / tallest)
            wide = max(0.8, right - left - 1.0)
            bars.append(f"M{left + 0.5:.1f} {bottom}v-{tall:.1f}h{wide:.1f}v{tall:.1f}z")
    shade = '<rect class="thin" x="{a:.1f}" y="{top}" width="{width:.1f}" height="{tall}"/>'
    thin = joined(
        fill(
            shade,
            a=across(low),
            top=TOP,
            width=across(high) - across(low),
            tall=HEIGHT - BOTTOM - TOP,
        )
        for low, high, _ in support.runs()
    )
    return joined([thin, fill('<path class="support" d="{path}"/>', path="".join(bars))])


def _whiskers(
    ends: Sequence[tuple[float, float]], x: Sequence[float], across: Axis, up: Axis
) -> Markup:
    line = '<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
    return joined(
        fill(line, x=across(at), low=up(low), high=up(high))
        for at, (low, high) in zip(x, ends, strict=False)
    )


def _line(place: int, points: list[tuple[float, float]], dots: bool, plain: bool) -> Markup:
    circle = '<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>'
    return fill(
        '<g class="series s{place}{look}" data-series="{place}"><polyline points="{path}"/>'
        "{circles}</g>",
        place=place,
        look=" plain" if plain else "",
        path=" ".join(f"{a:.1f},{b:.1f}" for a, b in points),
        circles=joined(fill(circle, a=a, b=b) for a, b in points if dots),
    )


def bar_chart(
    title: str,
    names: Sequence[str],
    series: Series,
    y_label: str,
    counts: Sequence[int] = (),
    few: float = 0.0,
) -> Markup:
    """One bar per category, the largest first; bars of fewer than `few` rows are pale."""
    order = sorted(range(len(names)), key=lambda place: -series.y[place])
    left_out = max(0, len(order) - MOST_BARS)
    kept = order if not left_out else order[: MOST_BARS // 2] + order[-(MOST_BARS // 2) :]
    shown = [series.y[place] for place in kept]
    height = TOP + BAR * len(kept) + BOTTOM
    low, high = min(0.0, *shown), max(0.0, *shown)
    right = WIDTH - RIGHT - (96 if counts else 44)
    across = Axis(low, high if high > low else low + 1.0, 128, right)
    bars = [
        _bar(
            row,
            names[place],
            series.y[place],
            across,
            f"{counts[place]:,} rows" if counts else "",
            bool(counts) and counts[place] < few,
        )
        for row, place in enumerate(kept)
    ]
    note = f"; {left_out} in the middle are not shown" if left_out else ""
    label = fill(
        '<text class="label" x="{x:.0f}" y="{y}" text-anchor="middle">{words}</text>',
        x=WIDTH / 2,
        y=height - 14,
        words=clipped(y_label + note, 52),
    )
    data = {
        "names": [names[place] for place in kept],
        "values": [_short(series.y[place]) for place in kept],
    }
    return figure(title, joined([*bars, label]), height, [series], data)


def _bar(row: int, name: str, value: float, across: Axis, rows: str, pale: bool) -> Markup:
    a, b = sorted((across(0.0), across(value)))
    y = TOP + BAR * row
    return fill(
        '<g class="bar{look}" data-index="{row}"><rect x="{a:.1f}" y="{top}" '
        'width="{width:.1f}" height="{height}" rx="2"/>'
        '<text x="122" y="{y}" text-anchor="end">{name}</text>'
        '<text class="value" x="{end:.1f}" y="{y}">{value}</text>'
        '<text x="{far}" y="{y}" text-anchor="end">{rows}</text></g>',
        row=row,
        look=" few" if pale else "",
        a=a,
        top=y + 3,
        width=max(b - a, 1),
        height=BAR - 6,
        y=y + 14,
        name=clipped(name, 19),
        end=b + 4,
        value=number(value, 3),
        far=WIDTH - 2,
        rows=rows,
    )


class Axis:
    """Values to places, with round ticks."""

    def __init__(
        self, low: float, high: float, start: float, end: float, padded: bool = False
    ) -> None:
        if not high > low:
            low, high = low - max(0.5, abs(low) * 0.1), high + max(0.5, abs(high) * 0.1)
        if padded:
            low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        rough = (self.high - self.low) / 4
        size = 10.0 ** math.floor(math.log10(rough))
        step = min(
            (multiple * size for multiple in (1, 2, 2.5, 5, 10)), key=lambda each: abs(each - rough)
        )
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(place * step, 12) for place in range(first, last + 1)]


def _grid(across: Axis, up: Axis, below: int) -> Markup:
    rule = '<line class="{look}" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    word = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{tick}</text>'
    ends = {"left": LEFT, "right": WIDTH - RIGHT}
    parts = []
    for tick in up.ticks():
        y = up(tick)
        parts.append(fill(rule, ends, look="grid", y=y))
        parts.append(fill(word, x=LEFT - 6, y=y + 3.5, anchor="end", tick=short_tick(tick)))
    bottom = HEIGHT - BOTTOM
    for tick in across.ticks():
        x = across(tick)
        parts.append(fill(word, x=x, y=bottom + below + 15, anchor="middle", tick=short_tick(tick)))
    parts.append(fill(rule, ends, look="axis", y=bottom))
    if below:
        parts.append(fill(rule, ends, look="grid", y=bottom + below))
        parts.append(fill(word, x=LEFT - 6, y=bottom + below - 4, anchor="end", tick="rows"))
    return joined(parts)


def short_tick(value: float) -> str:
    if abs(value) >= 1e6 or (value and abs(value) < 1e-3):
        return f"{value:.3g}"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"


def _labels(x_label: str, y_label: str, height: int, below: int) -> Markup:
    return fill(
        '<text class="label" x="{middle:.0f}" y="{under}" text-anchor="middle">{across}</text>'
        '<text class="label" x="11" y="{half:.0f}" text-anchor="middle" '
        'transform="rotate(-90 11 {half:.0f})">{up}</text>',
        middle=(LEFT + WIDTH - RIGHT) / 2,
        under=height - 8,
        across=clipped(x_label, 50),
        half=(TOP + height - below - BOTTOM) / 2,
        up=clipped(y_label, 32),
    )


def figure(
    title: str, inside: Markup, height: int, series: Sequence[Series], data: dict[str, Any]
) -> Markup:
    key = (
        '<button type="button" class="key s{place}" data-series="{place}" '
        'aria-pressed="true">{name}</button>'
    )
    keys = joined(
        fill(key, place=place, name=clipped(each.name, 40)) for place, each in enumerate(series)
    )
    return fill(
        '<figure class="chart" data-chart="{data}">{legend}'
        '<svg viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-label="{title}">'
        '<title>{title}</title>{inside}<g class="cursor"></g></svg>'
        '<figcaption class="readout" aria-live="polite">&nbsp;</figcaption></figure>',
        data=as_json(data),
        legend=fill('<div class="keys">{keys}</div>', keys=keys) if len(series) > 1 else Markup(),
        width=WIDTH,
        height=height,
        title=title,
        inside=inside,
    )


def _short(value: float) -> float:
    return float(f"{value:.6g}")


# -------------------------------------------------------------------------------------------------
# A picture of a function of two columns: colours in cells, pale where no row lies.


SHADES = 9
TALL = 250
NAMES_LEFT = 96  # room for names of categories
LETTER = 6.2  # the width of a letter
KEY = 34  # the legend under the picture


def heat_map(title: str, surface: Surface) -> Markup:
    """Cells by colour, a legend with the ends of the scale, names of the columns."""
    up, across = surface.heights.shape
    bottom, left = TALL - BOTTOM, LEFT if surface.up.numbers else NAMES_LEFT
    xs = np.linspace(left, WIDTH - RIGHT, across + 1)
    ys = np.linspace(bottom, TOP, up + 1)
    low, high = float(surface.heights.min()), float(surface.heights.max())
    width = high - low if high > low else 1.0
    shades = np.minimum(((surface.heights - low) / width * SHADES).astype(int), SHADES - 1)
    parts = []
    for shade in range(SHADES):
        for empty in (False, True):
            chosen = np.argwhere((shades == shade) & ((surface.rows == 0) == empty))
            path = "".join(
                f"M{xs[j]:.1f} {ys[i + 1]:.1f}H{xs[j + 1]:.1f}V{ys[i]:.1f}H{xs[j]:.1f}z"
                for i, j in chosen.tolist()
            )
            if path:
                look = f"h{shade}{' empty' if empty else ''}"
                parts.append(fill('<path class="{look}" d="{path}"/>', look=look, path=path))
    data = {
        "heat": [[float(f"{v:.4g}") for v in row] for row in surface.heights.tolist()],
        "rows": surface.rows.tolist(),
        "xs": surface.across.labels,
        "ys": surface.up.labels,
        "xl": surface.across.name,
        "yl": surface.up.name,
        "box": [left, WIDTH - RIGHT, TOP, bottom],
    }
    inside = joined(
        [*parts, _sides(surface, xs, ys, bottom), _legend(low, high, surface.unit, left)]
    )
    return figure(title, inside, TALL + KEY, [], data)


def _sides(surface: Surface, xs: np.ndarray, ys: np.ndarray, bottom: int) -> Markup:
    word = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{tick}</text>'
    left, ticks = float(xs[0]), _ticks(surface.across, xs, 5)
    room = max(2, int((WIDTH - RIGHT - left) / max(1, len(ticks)) / LETTER) - 1)
    parts = [
        fill(word, x=at, y=bottom + 15, anchor="middle", tick=clipped(label, room))
        for at, label in ticks
    ]
    parts += [
        fill(word, x=left - 6, y=at + 3.5, anchor="end", tick=clipped(label, 12))
        for at, label in _ticks(surface.up, ys, 6)
    ]
    label = '<text class="label" x="{x:.0f}" y="{y:.0f}" text-anchor="middle"{turn}>{name}</text>'
    middle = (TOP + bottom) / 2
    parts.append(
        fill(
            label,
            x=(left + WIDTH - RIGHT) / 2,
            y=TALL - 8,
            turn=Markup(),
            name=clipped(surface.across.name, 50),
        )
    )
    turn = Markup(f' transform="rotate(-90 11 {middle:.0f})"')
    parts.append(fill(label, x=11, y=middle, turn=turn, name=clipped(surface.up.name, 32)))
    return joined(parts)


def _ticks(side: Side, places: np.ndarray, most: int) -> list[tuple[float, str]]:
    """Middles of some cells; of numbers, round values."""
    middles = 0.5 * (places[1:] + places[:-1])
    if side.numbers and side.values.size > most:
        first, last = float(side.values[0]), float(side.values[-1])
        axis = Axis(first, last, float(middles[0]), float(middles[-1]))
        return [(axis(tick), short_tick(tick)) for tick in axis.ticks()]
    step = max(1, -(-len(side.labels) // 7))
    return [(float(middles[k]), side.labels[k]) for k in range(0, len(side.labels), step)]


def _legend(low: float, high: float, unit: str, left: int) -> Markup:
    top, wide = TALL, (WIDTH - RIGHT - left) / SHADES
    box = '<rect class="h{k}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="8"/>'
    boxes = joined(
        fill(box, k=k, x=left + k * wide, y=top + 2, wide=wide + 0.3) for k in range(SHADES)
    )
    word = '<text x="{x}" y="{y}" text-anchor="{anchor}">{told}</text>'
    words = [
        fill(word, x=left, y=top + 24, anchor="start", told=number(low, 3)),
        fill(word, x=WIDTH - RIGHT, y=top + 24, anchor="end", told=number(high, 3)),
        fill(
            word,
            x=(left + WIDTH - RIGHT) // 2,
            y=top + 24,
            anchor="middle",
            told=clipped(unit, 34),
        ),
    ]
    return joined([boxes, *words])
