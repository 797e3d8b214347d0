"""The page: the verdict first, then what was asked, chosen and reached, and the shape of the
model.
"""

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
from lighttouch.report.escape import number, text
from lighttouch.report.sections import Words, chosen, facts, table
from lighttouch.report.slices import Scorer, Slice, slices

MOST_COLUMNS = 40
LARGEST = 1_000_000  # bytes


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    data: Data,
    measured: Sequence[Accuracy] = (),
    asked: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> None:
    """Write one HTML file about a fitted estimator: nothing in it is loaded from elsewhere, and no
    text of the data is ever markup.

    `data` holds rows to draw slices from, usually those of training; `asked` is shown as given;
    `seconds` is how long training took.
    """
    Path(path).write_text(page(model, data, measured, asked, seconds), encoding="utf-8")


def page(
    model: Any,
    data: Data,
    measured: Sequence[Accuracy],
    asked: Mapping[str, Any] | None,
    seconds: float | None,
) -> str:
    found = slices(Scorer(model, data.X))
    unit = Scorer(model, data.X.iloc[:1] if hasattr(data.X, "iloc") else data.X[:1]).unit
    for most in (MOST_COLUMNS, 15, 5, 0):
        whole = _page(
            model, data, measured, asked or {}, seconds, found[:most], len(found) - most, unit
        )
        if len(whole.encode("utf-8")) < LARGEST:
            return whole
    raise DataError(
        "the report would exceed 1 MB: there are too many rules to list; write no report"
    )


def _page(
    model: Any,
    data: Data,
    measured: Sequence[Accuracy],
    asked: Mapping[str, Any],
    seconds: float | None,
    found: list[Slice],
    more: int,
    unit: str,
) -> str:
    report = model.check_constraints()
    title = f"{asked.get('target') or 'Ranking'}: {type(model).__name__}"
    body = [
        (
            f"<header><h1>{text(title)}</h1><p "
            f"class='soft'>{text(asked.get('data') or data.name)}, trained by "
            "lighttouch</p></header>"
        ),
        _verdict(report),
        _asked(model, asked, data),
        _section("What was chosen", chosen(model, seconds)),
        _accuracy(measured),
        _convergence(model),
        _binding(model.constraint_report_),
        _shapes(found, more, unit),
    ]
    script = _resource("charts.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta "
        "name='referrer' content='no-referrer'>"
        f"<title>{text(title)}</title><style>{_resource('style.css')}</style></head>\n<body><main>\n"
        + "\n".join(body)
        + (
            "\n<footer>This file needs no network and holds no row of the "
            f"data.</footer></main>\n<script>{script}</script></body></html>\n"
        )
    )


def _resource(name: str) -> str:
    return resources.files("lighttouch.report").joinpath(name).read_text(encoding="utf-8")


def _section(title: str, inside: str, long: bool = False) -> str:
    return f"<section{' class=long' if long else ''}><h2>{text(title)}</h2>{inside}</section>"


def _verdict(report: ConstraintReport) -> str:
    if not report.rules:
        return (
            "<section class='verdict'><h2>No rules were asked for</h2><p>The model is free in "
            "every column.</p></section>"
        )
    holds = report.violation == 0.0
    broken = sum(rule.violation > 0.0 for rule in report.rules)
    count = len(report.rules)
    told = (
        ("The rule holds" if count == 1 else f"Every one of the {count:,} rules holds")
        if holds
        else f"{broken} of {count} rules are broken"
    )
    exact = "exactly 0" if holds else number(report.violation)
    lead = (
        f"{report.rows:,} inequalities on the model's parameters, recomputed for this report. "
        f"The largest violation is {exact}."
    )
    rows = [
        [
            rule.rule,
            "holds" if rule.violation == 0.0 else "BROKEN",
            f"{rule.rows:,}",
            number(rule.violation),
        ]
        for rule in report.rules
    ]
    proof = table(
        ["rule", "verdict", "inequalities checked", "largest violation"], rows, numeric=(2, 3)
    )
    return (
        "<section "
        f"class='verdict{'' if holds else ' broken'}'><h2>{text(told)}</h2><p>{text(lead)}</p>{proof}</section>"
    )


def _asked(model: Any, asked: Mapping[str, Any], data: Data) -> str:
    rows: list[tuple[str, Any]] = [
        ("data", asked.get("data")),
        ("rows", f"{len(data.X):,} of {data.X.shape[1]} columns"),
    ]
    rows += [("target", asked.get("target")), ("task", asked.get("task"))]
    if hasattr(model, "classes_"):
        rows.append(
            (
                "classes",
                (
                    f"{model.classes_[0]} and {model.classes_[1]}; rules speak of the chance "
                    f"of {model.classes_[1]}"
                ),
            )
        )
    rows.append(
        ("rules", "; ".join(rule.rule for rule in model.constraint_report_.rules) or "none")
    )
    if asked.get("command"):
        rows.append(("command", Words(asked["command"].split(" "))))
    return _section("What was asked", facts(rows))


def _accuracy(measured: Sequence[Accuracy]) -> str:
    if not measured:
        return ""
    names = list(dict.fromkeys(name for each in measured for name in each.measures))
    header = ["", *(f"{each.name} ({each.rows:,})" for each in measured)]
    rows = [
        [name, *(number(each.measures[name]) if name in each.measures else "" for each in measured)]
        for name in names
    ]
    note = (
        ""
        if len(measured) > 1
        else "<p class='soft'>Measured on the rows the model was trained on, which flatters it.</p>"
    )
    return _section(
        "Accuracy", table(header, rows, numeric=tuple(range(1, len(header))), narrow=True) + note
    )


def _convergence(model: Any) -> str:
    history = getattr(model, "history_", None)
    if history is None or len(history) < 2:
        return _section(
            "Convergence",
            (
                "<p class='soft'>The training history is not kept in model files; a report "
                "written by train shows it.</p>"
            ),
        )
    objective = Series("objective", history.objective.tolist())
    dots = len(history) < 60
    seconds, checks = history.seconds.tolist(), history.constraint_checks.tolist()
    charts = {
        "Against time": line_chart(
            "Objective against seconds", seconds, [objective], "seconds", "training objective", dots
        ),
        "Against constraint checks": line_chart(
            "Objective against constraint checks",
            checks,
            [objective],
            "constraint checks",
            "training objective",
            dots,
        ),
    }
    worst = float(history.violation.max())
    told = (
        f"In every record of training the rules held to {number(worst, 2)}; a last exact "
        "projection removed that too."
    )
    if worst == 0.0:
        told = "In every record of training all rules held."
    if worst > 1e-9:
        violation = Series("violation", history.violation.tolist())
        charts["Violation on the way"] = line_chart(
            "Violation against seconds",
            seconds,
            [violation],
            "seconds",
            "largest violation",
            dots=True,
        )
        told = (
            f"Before the last projection the largest violation was {number(worst)}; after it, "
            "it is 0."
        )
    cards = "".join(
        f"<div class='card'><h3>{title}</h3>{chart}</div>" for title, chart in charts.items()
    )
    spent = f"{int(checks[-1]):,} constraint checks in {seconds[-1]:.2f} seconds."
    return _section(
        "Convergence and violation",
        f"<p>{text(spent)} {text(told)}</p><div class='cards'>{cards}</div>",
    )


def _binding(report: ConstraintReport) -> str:
    if not report.rules:
        return ""
    if report.price is None:
        lead = "What the rules cost was not computed for a model of this size."
    else:
        free = number(report.objective_without_rules or 0.0, 5)
        cost = number(report.price, 3)
        lead = (
            f"The training objective is {number(report.objective, 5)} with the rules and "
            f"{free} without them: they cost {cost}."
        )
    rows = []
    for rule in report.rules:
        broken = "not computed" if rule.broken_without is None else f"{rule.broken_without:,}"
        worst = "" if rule.violation_without is None else number(rule.violation_without, 3)
        rows.append([rule.rule, f"{rule.rows:,}", f"{rule.binding.size:,}", broken, worst])
    header = ["rule", "inequalities", "binding", "broken without rules", "by at most"]
    meaning = (
        "A binding inequality holds with equality: the data pull against it. The last two "
        "columns are of the same model trained "
        "without any rule: what it would have broken, in units of its score."
    )
    return _section(
        "Which rules bind, and what they cost",
        (
            f"<p>{text(lead)}</p>{table(header, rows, numeric=(1, 2, 3, 4))}<p "
            f"class='soft'>{text(meaning)}</p>"
        ),
    )


def _shapes(found: list[Slice], more: int, unit: str) -> str:
    lead = (
        "How the prediction moves with one column: averaged over rows of the data, and for "
        "a typical row (medians, commonest categories). "
        "Columns with rules come first, then those that matter most. Point at a chart to "
        "read values; press a name to hide its line."
    )
    cards = "".join(_card(each, unit) for each in found)
    note = f"<p class='soft'>{more} more columns are not drawn.</p>" if more > 0 else ""
    return _section(
        "What the model learnt, column by column",
        f"<p class='soft'>{text(lead)}</p><div class='cards'>{cards}</div>{note}",
        long=True,
    )


def _card(each: Slice, unit: str) -> str:
    chips = "".join(f"<span class='chip'>{text(rule)}</span>" for rule in each.rules)
    if each.categories is not None:
        chart = bar_chart(
            f"Average {unit} by {each.name}",
            each.categories,
            Series("average over rows", each.average.tolist()),
            unit,
        )
    else:
        lines = [
            Series("average over rows", each.average.tolist()),
            Series("typical row", each.typical.tolist()),
        ]
        chart = line_chart(
            f"{unit} along {each.name}", each.values.tolist(), lines, each.name, unit
        )
    return (
        f"<div class='card'><h3>{text(each.name)}</h3><div "
        f"class='chips'>{chips}</div>{chart}{_own_curve(each)}</div>"
    )


def _own_curve(each: Slice) -> str:
    if each.curve is None or each.curve[0].size < 2:
        return ""
    keypoints, heights = each.curve
    if each.categories is not None:
        chart = bar_chart(
            f"Own curve of {each.name}",
            each.categories,
            Series("score", heights.tolist()),
            "added to the score",
        )
    else:
        chart = line_chart(
            f"Own curve of {each.name}",
            keypoints.tolist(),
            [Series("score", heights.tolist())],
            each.name,
            "added to the score",
            dots=True,
        )
    return (
        f"<details><summary>The column's own curve, before interactions</summary>{chart}</details>"
    )
