"""Rules tested on predictions: rows of a table with some columns replaced, and what a rule says
about the scores there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Floats

ROUNDING = 1e-12
"""Of the scores' sizes: differences of scores that are equal in exact arithmetic differ by a few
rounding errors, and cells between knots make slopes from them."""


@dataclass(frozen=True)
class Probe:
    """The scores of a model at rows of a table, with columns replaced; missing cells count as the
    lower end of their column.
    """

    scores: Callable[[Floats], Floats]
    table: Floats
    low: Floats  # the range of every column in training
    high: Floats

    def at(self, **replaced: tuple[int, Floats | float]) -> Floats:
        """The scores where each of the given columns (place, values) has these values."""
        rows = self.table.copy()
        for place, values in replaced.values():
            rows[:, place] = values
        return self.scores(rows)

    def draws(self, column: int, count: int) -> list[Floats]:
        """For every row so many values from the column's range, in ascending order; the same for
        the same column.
        """
        rng = np.random.default_rng(column)
        shares = np.sort(rng.random((count, self.table.shape[0])), axis=0)
        low, high = self.low[column], self.high[column]
        return [np.minimum(low + share * (high - low), high) for share in shares]

    def common_step(self, first: int, second: int) -> tuple[Floats, Floats, Floats]:
        """For every row a value of both columns, and a step of the same amount within the range of
        both.
        """
        a, _ = self.draws(first, 2)
        b, _ = self.draws(second, 2)
        share = np.random.default_rng(first + second).random(self.table.shape[0])
        room = np.minimum(self.high[first] - a, self.high[second] - b)
        return a, b, share * room


def rises(lower: Floats, upper: Floats, *, sign: float = 1.0) -> Floats:
    """By how much the first scores exceed the second (sign -1: fall short of them)."""
    return np.asarray(sign * (lower - upper)).ravel()


def at_least(terms: Sequence[tuple[float, Floats]], right: Floats | float = 0.0) -> Floats:
    """By how much sum of factor * scores falls short of `right`, beyond rounding."""
    total = sum(factor * scores for factor, scores in terms)
    size = sum(abs(factor) * np.abs(scores) for factor, scores in terms)
    wanted = np.asarray(right, dtype=np.float64)
    if wanted.ndim == 1 and np.ndim(total) == 2:
        wanted = wanted[:, None]
    return np.asarray(wanted - total - ROUNDING * (size + np.abs(wanted))).ravel()


def curvature(probe: Probe, column: int, sign: float) -> Floats:
    """The middle of three points lies below (sign 1) the chord of the others."""
    a, b, c = probe.draws(column, 3)
    width = np.where(c > a, c - a, 1.0)
    fa, fb, fc = (probe.at(x=(column, value)) for value in (a, b, c))
    left, right = (c - b) / width, (b - a) / width
    if fa.ndim == 2:
        left, right = left[:, None], right[:, None]
    return at_least([(sign, left * fa), (sign, right * fc), (-sign * 1.0, (left + right) * fb)])


def mixed(probe: Probe, first: int, second: int, *, sign: float) -> Floats:
    """What a rise of one column adds is larger (sign 1) where the other is higher."""
    (a, b), (c, d) = probe.draws(first, 2), probe.draws(second, 2)
    corners = [(1.0, b, d), (-1.0, a, d), (-1.0, b, c), (1.0, a, c)]
    return at_least([(sign * f, probe.at(x=(first, x), y=(second, y))) for f, x, y in corners])


def dominance(probe: Probe, dominant: int, weak: int) -> Floats:
    a, b, step = probe.common_step(dominant, weak)
    more = probe.at(x=(dominant, a + step), y=(weak, b))
    less = probe.at(x=(dominant, a), y=(weak, b + step))
    return at_least([(1.0, more), (-1.0, less)])


def joint_rise(probe: Probe, first: int, second: int) -> Floats:
    a, b, step = probe.common_step(first, second)
    after = probe.at(x=(first, a + step), y=(second, b + step))
    return at_least([(1.0, after), (-1.0, probe.at(x=(first, a), y=(second, b)))])


def range_dominance(probe: Probe, dominant: int, weak: int) -> Floats:
    ends = [
        (sign, probe.at(x=(column, end)))
        for column, first in ((dominant, 1.0), (weak, -1.0))
        for sign, end in ((first, probe.high[column]), (-first, probe.low[column]))
    ]
    return at_least(ends)


def trapezoid(probe: Probe, main: int, conditional: int, *, sign: float) -> Floats:
    """Falls with the conditional column where the main one is lowest, rises where it is highest."""
    a, b = probe.draws(conditional, 2)
    found = []
    for end, turn in ((probe.low[main], -sign), (probe.high[main], sign)):
        scores = [probe.at(x=(main, end), y=(conditional, value)) for value in (a, b)]
        found.append(rises(*scores, sign=turn))
    return np.concatenate(found)


def one_turn(probe: Probe, column: int, mode: float, sign: float) -> Floats:
    """Falls (sign 1) before the mode and rises after it."""
    a, b = probe.draws(column, 2)
    found = []
    for low, high, turn in (
        (np.minimum(a, mode), np.minimum(b, mode), -sign),
        (np.maximum(a, mode), np.maximum(b, mode), sign),
    ):
        scores = [probe.at(x=(column, value)) for value in (low, high)]
        found.append(rises(*scores, sign=turn))
    return np.concatenate(found)


def slope(probe: Probe, column: int, limit: float) -> Floats:
    a, b = probe.draws(column, 2)
    fa, fb = probe.at(x=(column, a)), probe.at(x=(column, b))
    room = -limit * (b - a)
    return np.concatenate([at_least([(sign, fa), (-sign, fb)], room) for sign in (1.0, -1.0)])


def category_order(probe: Probe, column: int, pairs: Sequence[tuple[int, int]]) -> Floats:
    found = [
        rises(probe.at(x=(column, float(low))), probe.at(x=(column, float(high))))
        for low, high in pairs
    ]
    return np.concatenate(found) if found else np.zeros(0)


def monotone(probe: Probe, column: int, sign: int) -> Floats:
    """Every row as it is, and raised: to a value from the range, and to the end of it."""
    present = ~np.isnan(probe.table[:, column])
    rows = probe.table[present]
    if len(rows) == 0:
        return np.zeros(0)
    before = probe.scores(rows)
    share = np.random.default_rng(column).random(len(rows))
    top = max(float(probe.high[column]), float(rows[:, column].max()))
    found = []
    for step in (share, np.ones(len(rows))):
        raised = rows.copy()
        higher = rows[:, column] + step * (top - rows[:, column])
        raised[:, column] = np.maximum(rows[:, column], higher)
        found.append(rises(before, probe.scores(raised), sign=float(sign)))
    return np.concatenate(found)
