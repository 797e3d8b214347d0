"""Discrimination and calibration: measures with intervals, and the pictures behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.estimators.pairs import RANKED
from lighttouch.report.accuracy import (
    Accuracy,
    Judged,
    Levels,
    ManyClasses,
    Numbers,
    Ordered,
    TwoClasses,
)
from lighttouch.report.charts import Extras, Series, histogram, line_chart
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import Markup, cards, fill, joined, number, soft, table, titled

NORMAL_95 = 1.959963984540054  # the 0.975 quantile of the normal distribution
ROC_POINTS = 120
BARS = 30


def measures_table(measured: Sequence[Accuracy]) -> Markup:
    """One line per measure; with an interval where there is one."""
    names = list(dict.fromkeys(name for each in measured for name in each.measures))
    header = ["", *(f"{each.name} ({each.rows:,})" for each in measured)]
    rows = [[name, *(with_interval(each, name) for each in measured)] for name in names]
    note = (
        f"In brackets: {LIMITS.coverage:.0%} intervals by the bootstrap, the rows drawn again "
        "with replacement."
    )
    if len(measured) == 1:
        note += " Measured on the rows of training; new rows give less."
    numeric = tuple(range(1, len(header)))
    return joined([table(header, rows, numeric=numeric, narrow=True), soft(note)])


def with_interval(each: Accuracy, name: str) -> str:
    if name not in each.measures:
        return ""
    told = number(each.measures[name])
    if name in each.intervals:
        low, high = each.intervals[name]
        told += f" [{number(low, 3)}, {number(high, 3)}]"
    return told


def pictures(judged: Judged, classes: Sequence[Any]) -> Markup:
    """What the rows behind the measures look like."""
    if isinstance(judged, TwoClasses):
        return _two_classes(judged, [str(each) for each in classes])
    if isinstance(judged, ManyClasses):
        return _many_classes(judged, [str(each) for each in classes])
    if isinstance(judged, Levels):
        return _levels(judged)
    if isinstance(judged, Numbers):
        return _numbers(judged)
    return _queries(judged) if isinstance(judged, Ordered) else Markup()


def _two_classes(judged: TwoClasses, classes: list[str]) -> Markup:
    shown = []
    if judged.both_classes:
        shown.append(titled("ROC curve", _roc(judged)))
    if judged.shares is not None:
        shown.append(titled("Reliability", reliability(judged.shares, judged.second, classes[1])))
    unit = "score" if judged.shares is None else f"probability of {classes[1]}"
    values = judged.scores if judged.shares is None else judged.shares
    shown.append(titled("Distribution of scores", _distribution(judged, values, classes, unit)))
    told = table(*_cut_offs(judged, classes), numeric=(1, 2, 3, 4, 5))
    return joined([cards(shown), told])


def _roc(judged: TwoClasses) -> Markup:
    first, second = judged.roc()
    places = np.unique(np.linspace(0, first.size - 1, ROC_POINTS).astype(int))
    x = first[places]
    lines = [Series("the model", second[places].tolist()), Series("by chance", x.tolist())]
    labels = "false positive rate", "true positive rate"
    return line_chart("ROC curve", x.tolist(), lines, *labels, Extras(straight_from=1))


def reliability(shares: Floats, happened: Any, name: str) -> Markup:
    """Observed shares by deciles of the predicted probability, with Wilson's intervals (1927)."""
    means, seen, ends = [], [], []
    for rows in deciles(shares):
        share, count = float(np.mean(happened[rows])), rows.size
        means.append(float(shares[rows].mean()))
        seen.append(share)
        ends.append(wilson(share, count))
    lines = [Series("observed", seen), Series("perfect", means)]
    labels = f"predicted probability of {name}", "observed share"
    extras = Extras(dots=True, whiskers=ends, straight_from=1)
    return line_chart("Reliability", means, lines, *labels, extras)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95% score interval of a share."""
    square = NORMAL_95**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / count + square / (4 * count**2))
    half /= 1 + square / count
    return float(middle - half), float(middle + half)


def deciles(values: Floats) -> list[Any]:
    """The rows by tenths of their values, equal values together; empty parts left out."""
    cuts = np.unique(np.quantile(values, np.linspace(0.0, 1.0, LIMITS.bins + 1)[1:-1]))
    part = np.searchsorted(cuts, values, side="right")
    return [rows for k in range(cuts.size + 1) if (rows := np.flatnonzero(part == k)).size]


def _distribution(judged: TwoClasses, values: Floats, classes: list[str], unit: str) -> Markup:
    ends = (0.0, 1.0) if judged.shares is not None else None
    edges = np.histogram_bin_edges(values, BARS, ends)
    lines = []
    for name, rows in zip(classes, (~judged.second, judged.second), strict=True):
        counts = np.histogram(values[rows], edges)[0] / max(1, rows.sum())
        lines.append(Series(name, counts.tolist()))
    return histogram("Distribution of scores", edges.tolist(), lines, unit, "share of the class")


def _cut_offs(judged: TwoClasses, classes: list[str]) -> tuple[list[str], list[list[str]]]:
    """Right and wrong decisions where the classes are equally probable, and where the shares of
    the classes above differ most (the Kolmogorov-Smirnov statistic).
    """
    values = judged.scores if judged.shares is None else judged.shares
    ways = [("even odds", 0.0 if judged.shares is None else 0.5, judged.scores > 0.0)]
    if judged.both_classes:
        first, second = judged.roc()
        place = int(np.argmax(second - first))
        scores = np.unique(judged.scores)[::-1]
        best = float(scores[max(0, place - 1)])
        where = judged.scores >= best
        ways.append(("largest separation", float(values[where].min()), where))
    header = [
        "decide at",
        "from",
        f"{classes[1]}, found",
        f"{classes[1]}, missed",
        f"{classes[0]}, left alone",
        f"{classes[0]}, taken for {classes[1]}",
    ]
    rows = []
    for name, cut, above in ways:
        counts = (
            (above & judged.second).sum(),
            (~above & judged.second).sum(),
            (~above & ~judged.second).sum(),
            (above & ~judged.second).sum(),
        )
        rows.append([name, number(cut, 3), *(f"{int(each):,}" for each in counts)])
    return header, rows


def _many_classes(judged: ManyClasses, classes: list[str]) -> Markup:
    shown = []
    if judged.shares is not None:
        sure = judged.shares[np.arange(judged.units), judged.predicted]
        right = judged.predicted == judged.truth
        chart = reliability(sure, right, "the predicted class")
        shown.append(titled("Reliability", chart))
    if len(classes) > LIMITS.listed_classes:
        return cards(shown)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (judged.truth, judged.predicted), 1)
    rows = [
        [name, *(f"{each:,}" for each in row)] for name, row in zip(classes, counts, strict=True)
    ]
    header = ["true class", *(f"predicted {name}" for name in classes)]
    if judged.shares is not None:
        means = judged.shares.mean(axis=0)
        rows.append(["mean probability", *(number(float(each), 3) for each in means)])
        seen = np.bincount(judged.truth, minlength=len(classes)) / judged.units
        rows.append(["share of rows", *(number(float(each), 3) for each in seen)])
    return joined([cards(shown), table(header, rows, numeric=tuple(range(1, len(header))))])


def _numbers(judged: Numbers) -> Markup:
    means, seen, ends = [], [], []
    for rows in deciles(judged.predicted):
        target = judged.truth[rows]
        half = NORMAL_95 * float(target.std(ddof=1)) / np.sqrt(rows.size) if rows.size > 1 else 0.0
        means.append(float(judged.predicted[rows].mean()))
        seen.append(float(target.mean()))
        ends.append((seen[-1] - half, seen[-1] + half))
    lines = [Series("mean target", seen), Series("perfect", means)]
    extras = Extras(dots=True, whiskers=ends, straight_from=1)
    labels = "mean prediction, by tenths of the rows", "mean target"
    shown = [titled("Calibration", line_chart("Calibration", means, lines, *labels, extras))]
    error = judged.truth - judged.predicted
    inner = np.quantile(error, [0.005, 0.995])
    width = (float(inner[0]), float(inner[1])) if inner[1] > inner[0] else None
    counts, edges = np.histogram(error, BARS, width)
    bars = [Series("rows", counts.tolist())]
    chart = histogram("Residuals", edges.tolist(), bars, "target minus prediction", "rows")
    beyond = int(error.size - counts.sum())
    note = soft(f"{beyond:,} rows beyond the ends are not drawn." if beyond else "")
    shown.append(titled("Residuals", joined([chart, note])))
    points = (0.05, 0.25, 0.5, 0.75, 0.95)
    told = ", ".join(
        f"{p:.0%}: {number(float(v), 3)}"
        for p, v in zip(points, np.quantile(error, points), strict=True)
    )
    return joined([cards(shown), soft(f"Quantiles of the residuals: {told}.")])


def _levels(judged: Levels) -> Markup:
    below = (judged.truth[:, None] <= judged.predicted).mean(axis=0)
    ends = [wilson(float(each), judged.units) for each in below]
    levels = list(judged.levels)
    lines = [Series("observed", below.tolist()), Series("perfect", levels)]
    labels = "level of the quantile", "share of rows at or below it"
    extras = Extras(dots=True, whiskers=ends, straight_from=1)
    shown = [titled("Coverage", line_chart("Coverage", levels, lines, *labels, extras))]
    middle = judged.predicted[:, len(levels) // 2]
    parts = deciles(middle)
    x = [float(middle[rows].mean()) for rows in parts]
    lines = [
        Series(
            f"quantile {levels[k]:g}",
            [float((judged.truth[rows] <= judged.predicted[rows, k]).mean()) for rows in parts],
        )
        for k in {0: 0, 1: len(levels) - 1}.values()
    ]
    labels = "middle quantile, by tenths of the rows", "share at or below"
    chart = line_chart("Coverage along predictions", x, lines, *labels, Extras(dots=True))
    shown.append(titled("Coverage along predictions", chart))
    return cards(shown)


def _queries(judged: Ordered) -> Markup:
    if judged.gains is None or np.isnan(judged.gains).all():
        return Markup()
    known = judged.gains[~np.isnan(judged.gains)]
    counts, edges = np.histogram(known, BARS, (0.0, 1.0))
    label = f"NDCG at {RANKED}"
    bars = [Series("queries", counts.tolist())]
    chart = histogram("NDCG of queries", edges.tolist(), bars, label, "queries")
    lowest = fill(
        "<p class='soft'>{count:,} of {all:,} queries have nothing relevant and count for "
        "neither.</p>",
        count=int(judged.gains.size - known.size),
        all=int(judged.gains.size),
    )
    return joined([cards([titled("NDCG of queries", chart)]), lowest])
