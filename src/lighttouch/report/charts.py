"""Charts as inline SVG that read well without a script; charts.js adds a readout and switches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.report.markup import Markup, as_json, clipped, fill, joined, number

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 40
BAR = 20
MOST_BARS = 14


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    y: Sequence[float]


def line_chart(
    title: str,
    x: Sequence[float],
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    dots: bool = False,
) -> Markup:
    """One or more lines over the same x."""
    across = _Axis(min(x), max(x), LEFT, WIDTH - RIGHT)
    values = [value for each in series for value in each.y]
    up = _Axis(min(values), max(values), HEIGHT - BOTTOM, TOP, padded=True)
    lines = [
        _line(place, [(across(a), up(b)) for a, b in zip(x, each.y, strict=True)], dots)
        for place, each in enumerate(series)
    ]
    data = {
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
        "xl": x_label,
    }
    inside = joined([_grid(across, up), *lines, _labels(x_label, y_label, HEIGHT)])
    return _figure(title, inside, HEIGHT, series, data)


def _line(place: int, points: list[tuple[float, float]], dots: bool) -> Markup:
    circle = '<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>'
    return fill(
        '<g class="series s{place}" data-series="{place}"><polyline points="{path}"/>{circles}</g>',
        place=place,
        path=" ".join(f"{a:.1f},{b:.1f}" for a, b in points),
        circles=joined(fill(circle, a=a, b=b) for a, b in points if dots),
    )


def bar_chart(title: str, names: Sequence[str], series: Series, y_label: str) -> Markup:
    """One bar per category, the largest first."""
    order = sorted(range(len(names)), key=lambda place: -series.y[place])
    left_out = max(0, len(order) - MOST_BARS)
    kept = order if not left_out else order[: MOST_BARS // 2] + order[-(MOST_BARS // 2) :]
    shown = [series.y[place] for place in kept]
    height = TOP + BAR * len(kept) + BOTTOM
    low, high = min(0.0, *shown), max(0.0, *shown)
    across = _Axis(low, high if high > low else low + 1.0, 128, WIDTH - RIGHT - 44)
    bars = [_bar(row, names[place], series.y[place], across) for row, place in enumerate(kept)]
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
    return _figure(title, joined([*bars, label]), height, [series], data)


def _bar(row: int, name: str, value: float, across: _Axis) -> Markup:
    a, b = sorted((across(0.0), across(value)))
    y = TOP + BAR * row
    return fill(
        '<g class="bar" data-index="{row}"><rect x="{a:.1f}" y="{top}" width="{width:.1f}" '
        'height="{height}" rx="2"/><text x="122" y="{y}" text-anchor="end">{name}</text>'
        '<text class="value" x="{end:.1f}" y="{y}">{value}</text></g>',
        row=row,
        a=a,
        top=y + 3,
        width=max(b - a, 1),
        height=BAR - 6,
        y=y + 14,
        name=clipped(name, 19),
        end=b + 4,
        value=number(value, 3),
    )


class _Axis:
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


def _grid(across: _Axis, up: _Axis) -> Markup:
    rule = '<line class="{look}" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    word = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{tick}</text>'
    ends = {"left": LEFT, "right": WIDTH - RIGHT}
    parts = []
    for tick in up.ticks():
        y = up(tick)
        parts.append(fill(rule, ends, look="grid", y=y))
        parts.append(fill(word, x=LEFT - 6, y=y + 3.5, anchor="end", tick=_tick(tick)))
    bottom = HEIGHT - BOTTOM
    for tick in across.ticks():
        x = across(tick)
        parts.append(fill(word, x=x, y=bottom + 15, anchor="middle", tick=_tick(tick)))
    return joined([*parts, fill(rule, ends, look="axis", y=bottom)])


def _tick(value: float) -> str:
    if abs(value) >= 1e6 or (value and abs(value) < 1e-3):
        return f"{value:.3g}"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"


def _labels(x_label: str, y_label: str, height: int) -> Markup:
    return fill(
        '<text class="label" x="{middle:.0f}" y="{below}" text-anchor="middle">{across}</text>'
        '<text class="label" x="11" y="{half:.0f}" text-anchor="middle" '
        'transform="rotate(-90 11 {half:.0f})">{up}</text>',
        middle=(LEFT + WIDTH - RIGHT) / 2,
        below=height - 8,
        across=clipped(x_label, 50),
        half=(TOP + height - BOTTOM) / 2,
        up=clipped(y_label, 32),
    )


def _figure(
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
