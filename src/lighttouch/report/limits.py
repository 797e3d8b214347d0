"""Every number that decides what the report computes and draws."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportLimits:
    """What is computed, how much of it, and from when something counts as little."""

    seconds: float = 20.0
    """Seconds that models trained again for the report (prices of rules, folds) may take in all;
    they are left out, with a sentence, where that does not suffice."""
    resamples: int = 300
    """Bootstrap samples behind an interval: its ends move by about a tenth of its width between
    seeds."""
    least_resamples: int = 50
    """The same for large tables, where intervals are narrow."""
    resampled_rows: float = 3e7
    """Rows of all bootstrap samples together: about a second."""
    coverage: float = 0.95
    """Of intervals, by convention."""
    folds: int = 5
    """Parts for cross-validation, by convention (Hastie, Tibshirani and Friedman 2009, 7.10)."""
    bins: int = 10
    """Deciles of predictions in a calibration curve, as in the test of Hosmer and Lemeshow."""
    support_bins: int = 24
    """Bars of the histogram under a curve: as many as the points drawn evenly along it."""
    thin_rows: int = 30
    """Rows in a bar of that histogram below which its part of the curve rests on few; 30 is what
    a mean needs to be nearly normal."""
    thin_share: float = 0.25
    """The same for small tables: a share of the rows that an average bar holds."""
    thin_reach: float = 0.1
    """Part of a curve's whole range which it must move on thin support to be warned of."""
    tail: float = 1e-3
    """Share of cells beyond which a curve is not drawn if the range would be stretched ..."""
    stretched: float = 10.0
    """... by more than so many times."""
    probed_rows: int = 500
    """Rows around which rules are tested on predictions."""
    sample: int = 100
    """Rows over which a curve of one column is averaged."""
    pair_sample: int = 40
    """Rows over which a picture of two columns is averaged."""
    pair_side: int = 14
    """Cells of such a picture along a column: 2 kB each."""
    pictures: int = 8
    """Interactions that are drawn, the largest first; rules about two columns all are."""
    small_effect: float = 1e-3
    """Mean size of an interaction, on the score, below which it is only called small."""
    columns: int = 40
    """Columns that are drawn."""
    largest: int = 1_000_000
    """Bytes of a report."""
    groups: int = 12
    """Groups of a column that are told apart; numbers with more values are cut at quartiles."""
    least_group: int = 20
    """Rows below which nothing is measured for a group."""
    outputs: int = 5
    """Quantiles, thresholds or classes that are drawn."""
    listed_classes: int = 12
    """Classes up to which a table of predicted against true ones is shown."""


LIMITS = ReportLimits()
