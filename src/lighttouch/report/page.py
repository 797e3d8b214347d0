"""The page: the verdict, then what a validator asks, in this order: where the model comes from, how
good it is, what its rules cost, what it does, how stable it is, and how training went.
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
from lighttouch.files import write_whole
from lighttouch.report.accuracy import Accuracy, Data, judge
from lighttouch.report.charts import Extras, Series, line_chart
from lighttouch.report.column_sections import curves, missing_cells, pairs
from lighttouch.report.diagnostics import measures_table, pictures
from lighttouch.report.findings import Findings
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import Markup, cards, fill, joined, number, section, soft, titled
from lighttouch.report.models import Model, is_classifier, takes_gaps
from lighttouch.report.sections import (
    binding,
    chosen,
    fold_section,
    group_section,
    price_section,
    provenance,
    rules_in_words,
    verdict,
)
from lighttouch.report.slices import SlicedRows, interactions, slices, surfaces
from lighttouch.report.words import rules_asked

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
SIGNING = """\
<table class='facts signing'><tbody><tr><th>model</th><td><code>{model}</code></td></tr>
<tr><th>reviewed by</th><td></td></tr><tr><th>date</th><td></td></tr>
<tr><th>signature</th><td></td></tr></tbody></table>"""


def write_report(
    model: Model,
    path: str | os.PathLike[str],
    data: Data,
    measured: Sequence[Accuracy] = (),
    asked: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    *,
    test: Data | None = None,
    findings: Findings | None = None,
) -> None:
    """Write one HTML file about a fitted estimator.

    Nothing in it is loaded from elsewhere, and no text of the data is ever markup.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    path : str or path
        The file to write.
    data : Data
        Rows to draw curves from, usually those of training.
    measured : sequence of Accuracy, default=()
        From `accuracy`, where `findings` is not given.
    asked : dict, default=None
        What the model was asked for, shown as given.
    seconds : float, default=None
        How long training took.
    test : Data, default=None
        Rows that training has not seen.
    findings : Findings, default=None
        From `examine`, with what takes longer: intervals, prices of rules, groups and folds.

    Raises
    ------
    DataError
        If the page would exceed 1 MB, because there are too many rules to list.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> from lighttouch.report import Data, write_report
    >>> X = np.arange(8.0)[:, None]
    >>> model = lt.ConstrainedLinearRegressor(monotonic_cst={0: 1}).fit(X, 3.0 * X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, Path(folder) / "report.html", Data("rows", X, 3.0 * X[:, 0]))
    ...     print((Path(folder) / "report.html").read_text("utf-8")[:15])
    <!doctype html>
    """
    known = Findings(tuple(measured)) if findings is None else findings
    whole = page(model, data, known, asked or {}, seconds, test)
    write_whole(Path(path), whole)


def page(
    model: Model,
    data: Data,
    findings: Findings,
    asked: Mapping[str, Any],
    seconds: float | None,
    test: Data | None = None,
) -> Markup:
    """The report with as many columns drawn as fit into a megabyte."""
    rules = rules_asked(model)
    drawn = slices(model, data.X, rules)
    rows = SlicedRows(model, data.X)
    sizes = interactions(model, rows)
    pictured = surfaces(model, rows, rules, sizes)
    probe = rows.some(LIMITS.probed_rows)
    best = data if test is None else test
    before = [
        verdict(model),
        section("Where it comes from", provenance(model, asked, data, test)),
        _performance(model, findings.measured, best),
        price_section(findings.prices, best.name, findings.seconds),
    ]
    after = [
        missing_cells(drawn, takes_gaps(model)),
        rules_in_words(model, rules, rows.pick(probe), probe.size),
        group_section(findings.groups, best.name),
        fold_section(findings.folds),
        section("What training chose", chosen(model, seconds)),
        binding(model.constraint_report_),
        _convergence(model),
        section("Sign-off", fill(SIGNING, model=asked.get("model_sha256") or "")),
    ]
    target, kind = asked.get("target"), type(model).__name__
    title = f"{target}: {kind}" if target else kind  # rankings, and calls from Python, name none
    named = asked.get("data") or data.name
    for most in (LIMITS.columns, 15, 5, 0):
        shapes = [
            pairs(pictured[:most], sizes, [column.name for column in rows.columns]),
            curves(drawn[:most], len(drawn) - most),
        ]
        whole = _page(title, named, [*before, *shapes, *after])
        if len(whole.encode("utf-8")) < LIMITS.largest:
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


def _performance(model: Model, measured: Sequence[Accuracy], data: Data) -> Markup:
    if not measured:
        return Markup()
    classes = list(model.classes_) if is_classifier(model) else ()
    title = "Discrimination and calibration" if is_classifier(model) else "Accuracy and calibration"
    shown = pictures(judge(model, data), classes)
    where = soft(f"The pictures are of the rows “{data.name}”.") if shown else Markup()
    return section(title, joined([measures_table(measured), where, shown]), "long")


def _convergence(model: Model) -> Markup:
    history = getattr(model, "history_", None)  # not kept in model files
    if history is None or len(history) < 2:
        told = "The training history is not kept in model files; a report of train shows it."
        return section("Convergence", soft(told))
    seconds, checks = history.seconds.tolist(), history.constraint_checks.tolist()
    worst = float(history.violation.max())
    told = f"{int(checks[-1]):,} constraint checks in {seconds[-1]:.2f} seconds. " + _held(worst)
    objective = Series("objective", history.objective.tolist())
    labels = "training objective", Extras(dots=len(history) < 60)
    charts = [
        ("Against time", line_chart("Objective", seconds, [objective], "seconds", *labels)),
        (
            "Against constraint checks",
            line_chart("Objective", checks, [objective], "constraint checks", *labels),
        ),
    ]
    if worst > 1e-9:
        broken = [Series("violation", history.violation.tolist())]
        violated = "largest violation", Extras(dots=True)
        chart = line_chart("Violation", seconds, broken, "seconds", *violated)
        charts.append(("Violation on the way", chart))
    shown = cards([titled(title, chart) for title, chart in charts])
    return section("Convergence", joined([fill("<p>{told}</p>", told=told), shown]))


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
