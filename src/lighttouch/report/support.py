"""How many rows lie under a curve, and where there are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import number


@dataclass(frozen=True)
class Support:
    """A histogram of a column of numbers over the range that is drawn; `beyond` cells lie outside
    it, `missing` have no value.
    """

    edges: Floats
    counts: Indices
    rows: int
    missing: int
    beyond: int = 0

    @classmethod
    def of(cls, values: Floats) -> Support:
        present = values[~np.isnan(values)]
        low, high = drawn_range(present)
        distinct = np.unique(present)
        edges = np.linspace(low, high, LIMITS.support_bins + 1)
        if 2 <= distinct.size <= LIMITS.support_bins:  # one bar for each value
            middles = 0.5 * (distinct[1:] + distinct[:-1])
            edges = np.concatenate([[low], middles, [high]])
        counts = np.histogram(present, edges)[0]
        beyond = int(((present < low) | (present > high)).sum())
        return cls(edges, counts, values.size, values.size - present.size, beyond)

    @property
    def thin(self) -> Indices:
        """The bars with few rows."""
        average = self.counts.sum() / self.counts.size
        return np.flatnonzero(self.counts < min(LIMITS.thin_rows, LIMITS.thin_share * average))

    def runs(self) -> list[tuple[float, float, int]]:
        """Neighbouring thin bars together: from, to, rows."""
        if self.thin.size == 0:
            return []
        parts = np.split(self.thin, np.flatnonzero(np.diff(self.thin) > 1) + 1)
        return [
            (
                float(self.edges[part[0]]),
                float(self.edges[part[-1] + 1]),
                int(self.counts[part].sum()),
            )
            for part in parts
        ]


def drawn_range(present: Floats) -> tuple[float, float]:
    """The range of the cells, without a few far ones that would make all others look equal."""
    if present.size == 0:
        return 0.0, 1.0
    low, high = float(present.min()), float(present.max())
    inner = np.quantile(present, [LIMITS.tail, 1.0 - LIMITS.tail])
    width = float(inner[1] - inner[0])
    if width > 0.0 and high - low > LIMITS.stretched * width:
        low, high = float(inner[0]), float(inner[1])
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def warning(support: Support, values: Floats, heights: Floats) -> str:
    """A sentence where a curve moves much over few rows; empty if it does not."""
    whole = float(np.ptp(heights)) if heights.size else 0.0
    worst, told = LIMITS.thin_reach * whole, ""
    for low, high, rows in support.runs():
        ends = np.interp([low, high], values, heights)
        within = heights[(values >= low) & (values <= high)]
        moved = float(np.ptp(np.concatenate([ends, within])))
        if moved > worst:
            worst = moved
            share = moved / whole
            told = (
                f"Thin support: between {number(low)} and {number(high)} lie {rows:,} of "
                f"{support.rows:,} rows, and the average moves by {number(moved, 3)} there, "
                f"{share:.0%} of its whole range."
            )
    return told
