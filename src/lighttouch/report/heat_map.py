"""A picture of a function of two columns: colours in cells, pale where no row lies."""

from __future__ import annotations

import numpy as np

from lighttouch.report.charts import BOTTOM, RIGHT, TOP, WIDTH, Axis, figure, short_tick
from lighttouch.report.charts import LEFT as NUMBERS_LEFT
from lighttouch.report.markup import Markup, clipped, fill, joined, number
from lighttouch.report.surfaces import Axis as Side
from lighttouch.report.surfaces import Surface

SHADES = 9
TALL = 250
NAMES_LEFT = 96  # room for names of categories
LETTER = 6.2  # the width of a letter
KEY = 34  # the legend under the picture


def heat_map(title: str, surface: Surface) -> Markup:
    """Cells by colour, a legend with the ends of the scale, names of the columns."""
    up, across = surface.heights.shape
    bottom, left = TALL - BOTTOM, NUMBERS_LEFT if surface.up.numbers else NAMES_LEFT
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
    room = max(2, int((WIDTH - RIGHT - left) / max(1, len(ticks)) / LETTER))
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
