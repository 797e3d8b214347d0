"""The page: the verdict first, then what was asked, chosen and reached, and the model's shape."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from lighttouch.errors import DataError
from lighttouch.estimators.proof import ConstraintReport
from lighttouch.report.accuracy import Accuracy, Data
from lighttouch.report.charts import Series, bar_chart, line_chart
from lighttouch.report.markup import Markup, fill, joined, number, repeated, table
from lighttouch.report.models import Model, is_classifier, scale_note
from lighttouch.report.sections import Words, chosen, facts
from lighttouch.report.slices import Slice, slices

MOST_COLUMNS = 40
LARGEST = 1_000_000  # bytes
PAGE = """\
<!doctype html>
<html lang='en'><head><meta charset='utf-8'>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<meta name='viewport' content='width=device-width, initial-scale=1'>
<meta name='referrer' content='no-referrer'>
<title>{title}</title><style>{style}</style></head>
<body><main>
<header><h1>{title}</h1><p class='soft'>{data}, trained by lighttouch</p></header>
{body}
<footer>This file needs no network and holds no row of the data.</footer></main>
<script>{script}</script></body></html>
"""


def write_report(
    model: Model,
    path: str | os.PathLike[str],
    data: Data,
    measured: Sequence[Accuracy] = (),
    asked: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> None:
    """Write one HTML file about a fitted estimator.

    Nothing in it is loaded from elsewhere, and no text of the data is ever markup. `data` holds
    rows to draw slices from, usually those of training; `asked` is shown as given; `seconds` is how
    long training took.
    """
    Path(path).write_text(page(model, data, measured, asked or {}, seconds), encoding="utf-8")


def page(
    model: Model,
    data: Data,
    measured: Sequence[Accuracy],
    asked: Mapping[str, Any],
    seconds: float | None,
) -> Markup:
    """The report with as many columns drawn as fit into a megabyte."""
    found = slices(model, data.X)
    before = [
        _verdict(model),
        _asked(model, asked, data),
        _section("What was chosen", chosen(model, seconds)),
        _accuracy(measured),
        _convergence(model),
        _binding(model.constraint_report_),
    ]
    title = f"{asked.get('target') or 'Ranking'}: {type(model).__name__}"
    named = asked.get("data") or data.name
    for most in (MOST_COLUMNS, 15, 5, 0):
        shapes = _shapes(found[:most], len(found) - most)
        whole = _page(title, named, [*before, shapes])
        if len(whole.encode("utf-8")) < LARGEST:
            return whole
    raise DataError(
        "the report would exceed 1 MB: there are too many rules to list; write no report"
    )


def _page(title: str, data: str, sections: list[Markup]) -> Markup:
    script = _resource("charts.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return fill(
        PAGE,
        title=title,
        data=data,
        digest=Markup(digest),
        style=_resource("style.css"),
        script=script,
        body=joined(sections, "\n"),
    )


def _resource(name: str) -> Markup:
    return Markup(resources.files("lighttouch.report").joinpath(name).read_text(encoding="utf-8"))


def _section(title: str, inside: Markup, look: str = "") -> Markup:
    return fill(
        "<section class='{look}'><h2>{title}</h2>{inside}</section>",
        title=title,
        inside=inside,
        look=look,
    )


def _verdict(model: Model) -> Markup:
    report = model.check_constraints()
    if not report.rules:
        told = Markup("<p>The model is free in every column.</p>")
        return _section("No rules were asked for", told, "verdict")
    holds = report.violation == 0.0
    rows = [
        [
            rule.rule,
            "holds" if rule.violation == 0.0 else "BROKEN",
            rule.scale,
            f"{rule.rows:,}",
            number(rule.violation),
        ]
        for rule in report.rules
    ]
    header = ["rule", "verdict", "on the", "inequalities checked", "largest violation"]
    lead = fill(
        "<p>{rows:,} inequalities on the model's parameters, recomputed for this report. They make "
        "the rules hold for every possible prediction, not only for rows of the data. The largest "
        "violation is {worst}.</p>",
        rows=report.rows,
        worst="exactly 0" if holds else number(report.violation),
    )
    look = "verdict" if holds else "verdict broken"
    return _section(_headline(report), joined([lead, table(header, rows, numeric=(3, 4))]), look)


def _headline(report: ConstraintReport) -> str:
    count = len(report.rules)
    if report.violation == 0.0:
        return "The rule holds" if count == 1 else f"All {count:,} rules hold"
    broken = sum(rule.violation > 0.0 for rule in report.rules)
    return f"{broken} of {count} rules are broken"


def _asked(model: Model, asked: Mapping[str, Any], data: Data) -> Markup:
    rules = "; ".join(rule.rule for rule in model.constraint_report_.rules)
    rows: list[tuple[str, Any]] = [
        ("data", asked.get("data")),
        ("rows", f"{len(data.X):,} of {data.X.shape[1]} columns"),
        ("target", asked.get("target")),
        ("task", asked.get("task")),
        ("classes", _classes(model)),
        ("rules", rules or "none"),
        ("scale", scale_note(model) or None),
        ("command", Words(asked["command"].split(" ")) if asked.get("command") else None),
    ]
    return _section("What was asked", facts(rows))


def _classes(model: Model) -> str | None:
    if not is_classifier(model):
        return None
    first, second = model.classes_
    return f"{first} and {second}; rules are about {second}"


def _accuracy(measured: Sequence[Accuracy]) -> Markup:
    if not measured:
        return Markup()
    names = list(dict.fromkeys(name for each in measured for name in each.measures))
    header = ["", *(f"{each.name} ({each.rows:,})" for each in measured)]
    rows = [
        [name, *(number(each.measures[name]) if name in each.measures else "" for each in measured)]
        for name in names
    ]
    note = "Measured on the rows of training; new rows give less." if len(measured) == 1 else ""
    shown = table(header, rows, numeric=tuple(range(1, len(header))), narrow=True)
    return _section("Accuracy", joined([shown, _soft(note)]))


def _soft(words: str) -> Markup:
    return fill("<p class='soft'>{words}</p>", words=words) if words else Markup()


def _convergence(model: Model) -> Markup:
    history = getattr(model, "history_", None)  # not kept in model files
    if history is None or len(history) < 2:
        told = "The training history is not kept in model files; a report of train shows it."
        return _section("Convergence", _soft(told))
    seconds, checks = history.seconds.tolist(), history.constraint_checks.tolist()
    worst = float(history.violation.max())
    told = f"{int(checks[-1]):,} constraint checks in {seconds[-1]:.2f} seconds. " + _held(worst)
    objective = Series("objective", history.objective.tolist())
    dots = len(history) < 60
    labels = "training objective", dots
    charts = [
        ("Against time", line_chart("Objective", seconds, [objective], "seconds", *labels)),
        (
            "Against constraint checks",
            line_chart("Objective", checks, [objective], "constraint checks", *labels),
        ),
    ]
    if worst > 1e-9:
        broken = [Series("violation", history.violation.tolist())]
        chart = line_chart("Violation", seconds, broken, "seconds", "largest violation", dots=True)
        charts.append(("Violation on the way", chart))
    return _section(
        "Convergence and violation",
        fill(
            "<p>{told}</p><div class='cards'>{cards}</div>",
            told=told,
            cards=joined(_titled(title, chart) for title, chart in charts),
        ),
    )


def _titled(title: str, inside: Markup) -> Markup:
    return fill("<div class='card'><h3>{title}</h3>{inside}</div>", title=title, inside=inside)


def _held(worst: float) -> str:
    """What the records of training say of the rules."""
    if worst == 0.0:
        return "In every record of training all rules held."
    if worst > 1e-9:
        return (
            f"Before the last projection the largest violation was {number(worst)}; after it, it "
            "is 0."
        )
    return (
        f"In every record of training the rules held to {number(worst, 2)}; a last exact "
        "projection removed that too."
    )


def _binding(report: ConstraintReport) -> Markup:
    if not report.rules:
        return Markup()
    rows = []
    for rule in report.rules:
        broken = "not computed" if rule.broken_without is None else f"{rule.broken_without:,}"
        worst = "" if rule.violation_without is None else number(rule.violation_without, 3)
        rows.append([rule.rule, f"{rule.rows:,}", f"{rule.binding.size:,}", broken, worst])
    header = ["rule", "inequalities", "binding", "broken without rules", "by at most"]
    meaning = (
        "A binding inequality holds with equality: the data pull against it. The last two columns "
        "are of the same model trained without any rule: what it would have broken, in units of "
        "its score."
    )
    return _section(
        "Which rules bind, and what they cost",
        joined(
            [
                fill("<p>{told}</p>", told=_price(report)),
                table(header, rows, numeric=(1, 2, 3, 4)),
                _soft(meaning),
            ]
        ),
    )


def _price(report: ConstraintReport) -> str:
    if report.price is None:
        return "What the rules cost was not computed for a model of this size."
    return (
        f"The training objective is {number(report.objective, 5)} with the rules and "
        f"{number(report.objective_without_rules or 0.0, 5)} without them: they cost "
        f"{number(report.price, 3)}."
    )


def _shapes(found: list[Slice], more: int) -> Markup:
    lead = (
        "How the prediction moves with one column: averaged over rows of the data, and for a "
        "typical row (medians, most common categories). Columns with rules come first, then those "
        "that matter most. Point at a chart to read values; press a name to hide its line."
    )
    if any(each.log_odds for each in found):
        score = next(each.unit.split(" of ")[0] for each in found if each.log_odds)
        lead += f" Columns with a rule that holds on the {score} only are drawn on that scale."
    return _section(
        "What the model learnt, column by column",
        fill(
            "{lead}<div class='cards'>{cards}</div>{note}",
            lead=_soft(lead),
            cards=joined(_card(each) for each in found),
            note=_soft(f"{more} more columns are not drawn." if more > 0 else ""),
        ),
        "long",
    )


def _card(each: Slice) -> Markup:
    average = Series("average over rows", each.average.tolist())
    if each.categories is not None:
        title = f"Average {each.unit} by {each.name}"
        chart = bar_chart(title, each.categories, average, each.unit)
    else:
        lines = [average, Series("typical row", each.typical.tolist())]
        title = f"{each.unit} along {each.name}"
        chart = line_chart(title, each.values.tolist(), lines, each.name, each.unit)
    return _titled(
        each.name,
        fill(
            "<div class='chips'>{chips}</div>{chart}{own}",
            chips=repeated("<span class='chip'>{each}</span>", each.rules),
            chart=chart,
            own=_own_curve(each),
        ),
    )


def _own_curve(each: Slice) -> Markup:
    if each.curve is None or each.curve[0].size < 2:
        return Markup()
    keypoints, heights = each.curve
    title, unit = f"Own curve of {each.name}", "added to the score"
    line = Series("score", heights.tolist())
    if each.categories is not None:
        chart = bar_chart(title, each.categories, line, unit)
    else:
        chart = line_chart(title, keypoints.tolist(), [line], each.name, unit, dots=True)
    return fill(
        "<details><summary>The column's own curve, before interactions</summary>{chart}</details>",
        chart=chart,
    )
