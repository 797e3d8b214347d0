"""Sections about columns: curves with the rows under them, missing cells, pictures of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lighttouch.report.charts import Extras, Series, bar_chart, heat_map, line_chart
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import (
    Markup,
    cards,
    fill,
    joined,
    number,
    repeated,
    section,
    soft,
    table,
    titled,
)
from lighttouch.report.slices import Axis, Slice, Surface, View, warning
from lighttouch.report.words import Rule

MISSING = "(missing)"
CHIP = "<span class='chip'>{each}</span>"


def curves(found: Sequence[Slice], more: int) -> Markup:
    """Every column's effect, with the support under it."""
    lead = (
        "How the prediction moves with one column: averaged over rows of the data, and for a "
        "typical row (medians, most common categories). Columns with rules come first, then those "
        "that matter most. Under each curve are the rows it rests on; where they are few, it is "
        "shaded. Point at a chart to read values; press a name to hide its line."
    )
    if any(view.scale.score for each in found for view in each.views):
        lead += (
            " Columns with a rule that holds on a score only (the log-odds, say) are drawn on "
            "that scale, with what users see beside it."
        )
    return section(
        "What the model learnt, column by column",
        joined(
            [
                soft(lead),
                cards([_card(each) for each in found]),
                soft(f"{more} more columns are not drawn." if more > 0 else ""),
            ]
        ),
        "long",
    )


def _card(each: Slice) -> Markup:
    charts = joined(_chart(each, view) for view in each.views)
    wide = len(each.views) > 1
    if wide:
        charts = fill("<div class='beside'>{charts}</div>", charts=charts)
    inside = joined([_chips(each.rules), charts, _thin(each), _own_curve(each)])
    return titled(each.name, inside, wide)


def _chips(rules: Sequence[Rule]) -> Markup:
    words = [f"{rule.name}, on the {rule.scale}" for rule in rules]
    return fill("<div class='chips'>{chips}</div>", chips=repeated(CHIP, words))


def _chart(each: Slice, view: View) -> Markup:
    if each.categories is not None:
        return _bars(each, view)
    scale, extras = view.scale, Extras(support=each.support)
    if scale.single:
        lines = [
            Series("average over rows", view.average[0].tolist()),
            Series("typical row", view.typical[0].tolist()),
        ]
        if view.missing is not None:
            flat = [float(view.missing[0])] * each.values.size
            lines.append(Series("cell missing", flat))
    else:
        lines = [
            Series(name, heights.tolist())
            for name, heights in zip(scale.outputs, view.average, strict=True)
        ]
    title = f"{scale.unit} along {each.name}"
    return line_chart(title, each.values.tolist(), lines, each.name, scale.unit, extras)


def _bars(each: Slice, view: View) -> Markup:
    middle = len(view.scale.outputs) // 2
    name = view.scale.outputs[middle]
    names, counts = list(each.categories or []), each.counts.tolist()
    heights = view.average[middle].tolist()
    if view.missing is not None:
        names.append(MISSING)
        counts.append(each.support.missing)
        heights.append(float(view.missing[middle]))
    unit = view.scale.unit + (f", {name}" if name else "")
    title = f"Average {unit} by {each.name}"
    return bar_chart(title, names, Series("average", heights), unit, counts, LIMITS.thin_rows)


def _thin(each: Slice) -> Markup:
    """A warning where a curve moves much over few rows, and what is not drawn."""
    told = []
    if each.categories is None:
        view = each.views[-1]
        far = max(range(len(view.average)), key=lambda k: float(np.ptp(view.average[k])))
        if words := warning(each.support, each.values, view.average[far]):
            told.append(fill("<p class='warn'>{words}</p>", words=words))
        if each.support.beyond:
            words = f"{each.support.beyond:,} far cells are beyond what is drawn."
            told.append(soft(words))
    else:
        few = sum(count < LIMITS.thin_rows for count in each.counts.tolist())
        if few:
            words = (
                f"{few} of {each.counts.size} categories have fewer than {LIMITS.thin_rows} rows."
            )
            told.append(soft(words))
    return joined(told)


def _own_curve(each: Slice) -> Markup:
    if each.curve is None or each.curve[0].size < 2:
        return Markup()
    keypoints, heights = each.curve
    title, unit = f"Own curve of {each.name}", "added to the score"
    line = Series("score", heights.tolist())
    if each.categories is not None:
        chart = bar_chart(title, each.categories, line, unit)
    else:
        chart = line_chart(title, keypoints.tolist(), [line], each.name, unit, Extras(dots=True))
    return fill(
        "<details><summary>The column's own curve, before interactions</summary>{chart}</details>",
        chart=chart,
    )


def pairs(
    found: Sequence[Surface], sizes: dict[tuple[int, ...], float], names: Sequence[str]
) -> Markup:
    """Rules about two columns and the largest interactions, as pictures."""
    if not found and not sizes:
        return Markup()
    wider = {places: size for places, size in sizes.items() if len(places) > 2}
    more = len(sizes) - len(wider) - sum(each.importance is not None for each in found)
    lead = (
        "The average prediction over rows of the data with both columns set, by colour (the scale "
        "is under each picture); faded where no row of training lies. Rules about two columns come "
        "first, each on the scale on which it holds; then the largest interactions. Their sizes "
        "are on the score, before it becomes a probability or a mean, or is cut off at limits."
    )
    parts = [soft(lead), cards([_surface(each) for each in found])]
    if more > 0:
        parts.append(soft(f"{more} smaller interactions of two columns are not drawn."))
    if wider:
        shown = [
            [" × ".join(names[place] for place in places), number(size, 3)]
            for places, size in list(wider.items())[: LIMITS.pictures]
        ]
        parts.append(soft("Interactions of three and more columns, by their mean size:"))
        parts.append(table(["columns", "mean size on the score"], shown, (1,), narrow=True))
    return section("Two columns together", joined(parts), "long")


def _surface(each: Surface) -> Markup:
    output = f", {each.output}" if each.output else ""
    title = f"{each.unit}{output} by {each.across.name} and {each.up.name}"
    told = joined(fill("<p>{words}</p>", words=rule.words) for rule in each.rules)
    size = " ".join([_size(each.importance), *map(_shown, (each.across, each.up))]).strip()
    name = f"{each.across.name} × {each.up.name}"
    if not each.rules:
        return titled(name, joined([heat_map(title, each), soft(size)]))
    words = fill("<div>{parts}</div>", parts=joined([_chips(each.rules), told, soft(size)]))
    beside = joined([words, heat_map(title, each)])
    return titled(name, fill("<div class='beside'>{parts}</div>", parts=beside), wide=True)


def _shown(axis: Axis) -> str:
    if not axis.some_only:
        return ""
    return (
        f"The {len(axis.labels)} most common of {axis.categories} categories of {axis.name} are "
        "shown."
    )


def _size(importance: float | None) -> str:
    if importance is None:
        return "The model has no interaction of the two: their effects add up."
    if importance < LIMITS.small_effect:
        return f"The interaction moves the score by less than {LIMITS.small_effect:g} on average."
    return f"The interaction moves the score by {number(importance, 3)} on average."


def missing_cells(found: Sequence[Slice], taken: bool) -> Markup:
    """What the model predicts where a cell is missing; `taken` says whether it takes such rows."""
    if not taken:
        return section("Missing cells", soft("The model refuses rows with missing cells."))
    rows = []
    for each in found:
        for view in each.views[-1:]:
            if view.missing is None:
                continue
            for k, name in enumerate(view.scale.outputs):
                low, high = view.average[k].min(), view.average[k].max()
                rows.append(
                    [
                        each.name + (f" ({name})" if name else ""),
                        f"{each.support.missing:,}",
                        f"{each.support.missing / each.support.rows:.1%}",
                        number(float(view.missing[k]), 3),
                        f"{number(float(low), 3)} to {number(float(high), 3)}",
                    ]
                )
    rest = (
        "A missing cell of any other column counts as that column's average effect, and in trees, "
        "if there are any, as its median."
        if rows
        else "No cell of the training rows is missing; one that is later counts as its column's "
        "average effect, and in trees, if there are any, as its median."
    )
    if not rows:
        return section("Missing cells", soft(rest))
    unit = next(view.scale.unit for each in found for view in each.views[-1:])
    header = ["column", "missing", "of the rows", f"average {unit}", "while present, it moves"]
    lead = (
        "Missing cells have an effect of their own. The average prediction over rows of the data "
        "with the cell taken away, beside the range over which it moves with the cell's value:"
    )
    shown = table(header, rows, numeric=(1, 2, 3, 4))
    return section("Missing cells", joined([soft(lead), shown, soft(rest)]))
