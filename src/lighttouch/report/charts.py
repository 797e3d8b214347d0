"""Charts as inline SVG that read well without a script; charts.js adds a readout and switches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.report.escape import as_json, clipped, number, text

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
) -> str:
    """One or more lines over the same x."""
    across = _Axis(min(x), max(x), LEFT, WIDTH - RIGHT)
    values = [value for each in series for value in each.y]
    up = _Axis(min(values), max(values), HEIGHT - BOTTOM, TOP, padded=True)
    parts = [_grid(across, up)]
    for place, each in enumerate(series):
        points = [(across(a), up(b)) for a, b in zip(x, each.y, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        circles = (
            "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in points)
            if dots
            else ""
        )
        parts.append(
            f'<g class="series s{place}" data-series="{place}"><polyline '
            f'points="{path}"/>{circles}</g>'
        )
    parts.append(_labels(x_label, y_label, HEIGHT))
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
    return _figure(title, "".join(parts), HEIGHT, series, data)


def bar_chart(title: str, names: Sequence[str], series: Series, y_label: str) -> str:
    """One bar a category, the largest first."""
    order = sorted(range(len(names)), key=lambda place: -series.y[place])
    left_out = max(0, len(order) - MOST_BARS)
    kept = order if not left_out else order[: MOST_BARS // 2] + order[-(MOST_BARS // 2) :]
    shown = [series.y[place] for place in kept]
    height = TOP + BAR * len(kept) + BOTTOM
    low, high = min(0.0, *shown), max(0.0, *shown)
    across = _Axis(low, high if high > low else low + 1.0, 128, WIDTH - RIGHT - 44)
    parts = []
    for row, place in enumerate(kept):
        a, b = sorted((across(0.0), across(series.y[place])))
        y = TOP + BAR * row
        parts.append(
            f'<g class="bar" data-index="{row}"><rect x="{a:.1f}" y="{y + 3}" '
            f'width="{max(b - a, 1):.1f}" height="{BAR - 6}" rx="2"/>'
            f'<text x="122" y="{y + 14}" text-anchor="end">{clipped(names[place], 19)}</text>'
            f'<text class="value" x="{b + 4:.1f}" '
            f'y="{y + 14}">{text(number(series.y[place], 3))}</text></g>'
        )
    note = f"; {left_out} in the middle are not shown" if left_out else ""
    parts.append(
        f'<text class="label" x="{WIDTH / 2:.0f}" y="{height - 14}" '
        f'text-anchor="middle">{clipped(y_label + note, 52)}</text>'
    )
    data = {
        "names": [names[place] for place in kept],
        "values": [_short(series.y[place]) for place in kept],
    }
    return _figure(title, "".join(parts), height, [series], data)


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


def _grid(across: _Axis, up: _Axis) -> str:
    parts = []
    for tick in up.ticks():
        y = up(tick)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{text(_tick(tick))}</text>'
        )
    for tick in across.ticks():
        parts.append(
            f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 15}" '
            f'text-anchor="middle">{text(_tick(tick))}</text>'
        )
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" '
        f'y2="{HEIGHT - BOTTOM}"/>'
    )
    return "".join(parts)


def _tick(value: float) -> str:
    if abs(value) >= 1e6 or (value and abs(value) < 1e-3):
        return f"{value:.3g}"
    if abs(value) >= 1e4:
        return f"{value / 1e3:g}k"
    return f"{value:g}"


def _labels(x_label: str, y_label: str, height: int) -> str:
    middle = (LEFT + WIDTH - RIGHT) / 2
    up = (TOP + height - BOTTOM) / 2
    return (
        f'<text class="label" x="{middle:.0f}" y="{height - 8}" '
        f'text-anchor="middle">{clipped(x_label, 50)}</text>'
        f'<text class="label" x="11" y="{up:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 11 {up:.0f})">{clipped(y_label, 32)}</text>'
    )


def _figure(
    title: str, inside: str, height: int, series: Sequence[Series], data: dict[str, Any]
) -> str:
    keys = "".join(
        (
            f'<button type="button" class="key s{place}" data-series="{place}" '
            f'aria-pressed="true">{clipped(each.name, 40)}</button>'
        )
        for place, each in enumerate(series)
    )
    legend = f'<div class="keys">{keys}</div>' if len(series) > 1 else ""
    return (
        f'<figure class="chart" data-chart="{text(as_json(data))}">{legend}'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" tabindex="0" '
        f'aria-label="{text(title)}"><title>{text(title)}</title>{inside}'
        '<g class="cursor"></g></svg><figcaption class="readout" '
        'aria-live="polite">&nbsp;</figcaption></figure>'
    )


def _short(value: float) -> float:
    return float(f"{value:.6g}")
