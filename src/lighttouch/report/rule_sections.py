"""Sections about the rules: the verdict, each in words, which bind, what they cost together."""

from __future__ import annotations

from typing import Any

from lighttouch.estimators.proof import ConstraintReport, RuleReport
from lighttouch.report.markup import Markup, fill, joined, number, repeated, section, soft, table
from lighttouch.report.models import Model, scale_note
from lighttouch.report.words import Rule

PROBED = ("predictions on X: ", "predictions on X monotone in ")


def verdict(model: Model) -> Markup:
    """The first thing to read."""
    report = model.check_constraints()
    if not report.rules:
        told = Markup("<p>The model is free in every column.</p>")
        return section("No rules were asked for", told, "verdict")
    holds = report.violation == 0.0
    lead = fill(
        "<p>{rows:,} inequalities on the model's parameters, recomputed for this report. They make "
        "the rules hold for every possible prediction, not only for rows of the data. The largest "
        "violation is {worst}.</p>",
        rows=report.rows,
        worst="exactly 0" if holds else number(report.violation),
    )
    chips = repeated(
        "<span class='chip'>{each}</span>",
        [
            rule.rule
            if rule.violation == 0.0
            else f"{rule.rule}: BROKEN by {number(rule.violation)}"
            for rule in report.rules
        ],
    )
    look = "verdict" if holds else "verdict broken"
    inside = fill("{lead}<div class='chips'>{chips}</div>", lead=lead, chips=chips)
    return section(_headline(report), inside, look)


def _headline(report: ConstraintReport) -> str:
    count = len(report.rules)
    if report.violation == 0.0:
        return "The rule holds" if count == 1 else f"All {count:,} rules hold"
    broken = sum(rule.violation > 0.0 for rule in report.rules)
    return f"{broken} of {count} rules are broken"


def rules_in_words(model: Model, rules: list[Rule], X: Any, rows: int) -> Markup:
    """What each rule says, on which scale it holds, and how it was checked there."""
    if not rules:
        return Markup()
    fixed = {each.rule: each for each in model.check_constraints().rules}
    probed = {each.rule: each for each in model.check_constraints(X).rules}
    shown = []
    for rule in rules:
        own, tried = fixed[rule.name], _tried(probed, rule)
        shown.append(
            [
                rule.words,
                rule.scale,
                f"{own.rows:,}",
                _told(own),
                "" if tried is None else f"{tried.rows:,}",
                "" if tried is None else _told(tried),
            ]
        )
    header = ["rule", "on the", "inequalities", "violation", "comparisons", "violation there"]
    tested = any(each[4] for each in shown)
    if not tested:
        header, shown = header[:4], [each[:4] for each in shown]
    note = "Inequalities are about the model's parameters and cover all predictions. "
    if tested:
        note += (
            f"Comparisons are of predictions around {rows:,} rows of the data, with the rule's "
            "columns moved within their ranges, on the rule's scale. "
        )
    scale = scale_note(model)
    numeric = tuple(range(2, len(header)))
    parts = [table(header, shown, numeric=numeric), soft(note)]
    if scale:
        parts.append(fill("<p>{told}.</p>", told=scale))
    return section("The rules in words", joined(parts))


def _told(rule: RuleReport) -> str:
    return "0: holds" if rule.violation == 0.0 else f"{number(rule.violation)}: BROKEN"


def _tried(probed: dict[str, RuleReport], rule: Rule) -> RuleReport | None:
    """The test of the rule on predictions, if there is one."""
    shape = probed.get(PROBED[0] + rule.name)
    if shape is not None:
        return shape
    _, _, column = rule.name.partition(" in ")
    return probed.get(PROBED[1] + column)


def binding(report: ConstraintReport) -> Markup:
    """Which inequalities hold with equality, and what a model without rules would break."""
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
    return section(
        "Which rules bind in training",
        joined(
            [
                fill("<p>{told}</p>", told=_price(report)),
                table(header, rows, numeric=(1, 2, 3, 4)),
                soft(meaning),
            ]
        ),
    )


def _price(report: ConstraintReport) -> str:
    if report.price is None:
        return (
            "What all rules together cost in training is not told: a training without rules was "
            "not done, or it or the model's own did not converge."
        )
    return (
        f"The training objective is {number(report.objective, 5)} with the rules and "
        f"{number(report.objective_without_rules or 0.0, 5)} without them: together they cost "
        f"{number(report.price, 3)} in training."
    )
