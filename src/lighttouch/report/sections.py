"""Sections without curves: where a model comes from and what training chose by itself, its rules,
and the model beside others.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.estimators.proof import ConstraintReport, RuleReport
from lighttouch.report.accuracy import (
    ABSOLUTE,
    AREA,
    BRIER,
    EXPLAINED,
    LARGE_IS_GOOD,
    LOG_LOSS,
    NDCG,
    ORDERED,
    PINBALL,
    ROOT,
    Accuracy,
    Data,
)
from lighttouch.report.diagnostics import with_interval
from lighttouch.report.findings import MORE_TIME, Folds, Group, Price
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import (
    Markup,
    fill,
    joined,
    number,
    repeated,
    section,
    soft,
    table,
    text,
)
from lighttouch.report.models import (
    LatticeModel,
    LinearModel,
    Model,
    column_names,
    is_classifier,
    is_lattice,
    is_linear,
    scale_note,
)
from lighttouch.report.words import Rule


class Text(str):
    """Shown with its line breaks."""


class Words(list[str]):
    """Shown with line breaks between the words only."""


@dataclass(frozen=True)
class Folded:
    """A line that opens into a list."""

    line: str
    parts: Sequence[str]


def facts(rows: Sequence[tuple[str, object]]) -> Markup:
    """A table of names and values; a value of None is left out."""
    shown = joined(
        fill("<tr><th>{name}</th><td>{value}</td></tr>", name=name, value=_value(value))
        for name, value in rows
        if value is not None
    )
    return fill("<table class='facts'><tbody>{shown}</tbody></table>", shown=shown)


def _value(value: object) -> Markup:
    if isinstance(value, Folded):
        return fill(
            "<details><summary>{line}</summary><div class='chips'>{chips}</div></details>",
            line=value.line,
            chips=repeated("<span class='chip'>{each}</span>", value.parts),
        )
    if isinstance(value, Text):
        return fill("<pre>{value}</pre>", value=Markup("\n".join(map(text, value.splitlines()))))
    return repeated("<code>{each}</code> ", value) if isinstance(value, Words) else text(value)


def provenance(
    model: Model, asked: Mapping[str, Any], data: Data, test: Data | None = None
) -> Markup:
    """Date, versions, seed, hashes, the rules' text and the command."""
    record: Any = getattr(model, "training_record_", None)
    libraries = {} if record is None else dict(record.libraries)
    own = libraries.pop("lighttouch", "")
    others = ", ".join(f"{name} {version}" for name, version in libraries.items())
    shape = f"{len(data.X):,} of {data.X.shape[1]} columns"
    command = asked.get("command")
    rows: list[tuple[str, object]] = [
        (
            "trained",
            None if record is None else record.created.replace("T", " ").rstrip("Z") + " UTC",
        ),
        ("lighttouch", own or None),
        ("with", f"{others}; {platform.system()} {platform.machine()}" if others else None),
        ("seed", asked.get("seed")),
        ("data", asked.get("data")),
        ("SHA-256 of the file", _code(asked.get("data_sha256"))),
        ("SHA-256 as read", _code(None if record is None else record.data)),
        ("training rows", shape),
        ("held out", None if test is None else f"{test.name}: {len(test.X):,} rows"),
        ("SHA-256 of that file", _code(asked.get("test_sha256"))),
        ("SHA-256 of the model", _code(asked.get("model_sha256"))),
        ("target", asked.get("target")),
        ("task", asked.get("task")),
        ("classes", _classes(model)),
        ("rules", "; ".join(rule.rule for rule in model.constraint_report_.rules) or "none"),
        ("rules file", Text(asked["rules"]) if asked.get("rules") else None),
        ("command", Words(command.split(" ")) if command else None),
    ]
    return facts(rows)


def _code(value: str | None) -> Words | None:
    return Words([value]) if value else None


def _classes(model: Model) -> str | None:
    if not is_classifier(model):
        return None
    told = " and ".join(str(each) for each in model.classes_)
    if len(model.classes_) == 2:
        return f"{told}; rules are about {model.classes_[1]}"
    ordered = hasattr(model, "thresholds_")
    return f"{told}, in this order; rules are about exceeding each" if ordered else told


def chosen(model: Model, seconds: float | None) -> Markup:
    rows: list[tuple[str, object]] = []
    if is_lattice(model):
        rows = _lattice(model)
    elif is_linear(model):
        rows = _linear(model)
    rows.append(("loss", str(getattr(model, "loss", "squared"))))  # models of points have one only
    rows.append(("training", _training(model, seconds)))
    return facts(rows)


def _training(model: Model, seconds: float | None) -> str:
    steps = f"{model.n_iter_:,} step{'s' if model.n_iter_ != 1 else ''}"
    return f"{model.status_} after {steps}" + (
        "" if seconds is None else f" and {seconds:.1f} seconds"
    )


def _trees(model: LatticeModel) -> str:
    trees = getattr(model, "trees_", None)
    if trees is None:
        return "none"
    return (
        f"{trees.count} small ones follow what curves and lattices leave over, added to their "
        f"score; they split {len(trees.used)} of the columns"
    )


def _lattice(model: LatticeModel) -> list[tuple[str, object]]:
    pieces = model.model_.terms
    names = model.columns_.names
    lattices = [piece for piece in pieces if not piece.calibrator]
    shared = [
        " × ".join(names[column] for column in piece.columns)
        + " ("
        + " × ".join(map(str, piece.lattice.sizes))
        + ")"
        for piece in lattices
    ]
    curves, together = model.smoothing_
    return [
        (
            "model",
            (
                f"{type(model).__name__}: {model.parameters_.size:,} parameters fitted "
                "together, one convex problem"
            ),
        ),
        ("curves", f"{len(pieces) - len(lattices)}, one for each column"),
        (
            "lattices",
            Folded(f"{len(lattices)} where columns interact", shared)
            if lattices
            else "none: no interaction was found worth it",
        ),
        ("trees", _trees(model)),
        (
            "smoothing",
            (
                f"{number(curves, 3)} for curves, {number(together, 3)} for lattices, by "
                "marginal likelihood"
            ),
        ),
    ]


def _linear(model: LinearModel) -> list[tuple[str, object]]:
    names = column_names(model)
    weights = "; ".join(
        f"{name} {number(float(weight), 3)}"
        for name, weight in zip(names, model.coef_, strict=True)
    )
    return [
        ("model", f"{type(model).__name__}: {model.coef_.size + 1:,} parameters"),
        ("coefficients", weights),
    ]


# -------------------------------------------------------------------------------------------------
# Sections about the rules: the verdict, each in words, which bind, what they cost together.


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
            "not done, or it or the model's own ended before it converged."
        )
    both = (
        f"The training objective is {number(report.objective, 5)} with the rules and "
        f"{number(report.objective_without_rules or 0.0, 5)} without them"
    )
    if not report.proven:
        return (
            f"{both}. Both have stopped improving, probably near their optima; neither is proven, "
            "so what the rules cost in training is not known exactly."
        )
    return f"{both}: together they cost {number(report.price, 3)} in training."


# -------------------------------------------------------------------------------------------------
# Sections about the model beside others: without a rule, by group, trained on other rows.


PRICED = (LOG_LOSS, AREA, ROOT, ABSOLUTE, PINBALL, NDCG, ORDERED)
BY_GROUP = (AREA, LOG_LOSS, BRIER, ABSOLUTE, ROOT, EXPLAINED, PINBALL, "accuracy")


def price_section(prices: Sequence[Price], held_out: str, seconds: float) -> Markup:
    """What each rule costs on rows that no model has seen."""
    if not prices:
        return Markup()
    known = [each for each in prices if each.changes]
    names = [name for name in PRICED if any(name in each.changes for each in known)][:2]
    parts = []
    if known:
        lead = (
            f"How much worse the model is on the rows “{held_out}” than one without that rule; "
            "negative: the rule makes it better. Both have the curves and lattices of this model "
            "and were trained again alike. "
            f"In brackets: {LIMITS.coverage:.0%} intervals, both models judged on the same "
            "drawn rows. A price whose interval holds 0 is too small to be told from chance."
        )
        rows = [[each.rule, *(_cost(each, name) for name in names)] for each in known]
        header = ["rule", *(f"costs {name}" for name in names)]
        numeric = tuple(range(1, len(header)))
        parts = [soft(lead), table(header, rows, numeric=numeric)]
    reasons: dict[str, list[str]] = {}
    for each in prices:
        if each.untold:
            reasons.setdefault(each.untold, []).append(each.rule)
    for reason, rules in reasons.items():
        which = ", ".join(rules) if known or len(reasons) > 1 else "any rule"
        parts.append(fill("<p>No price of {which}: {why}.</p>", which=which, why=reason))
    if seconds > 0.0 and known:
        parts.append(soft(f"Models trained again had {seconds:g} seconds in all."))
    return section("The price of each rule, on held-out rows", joined(parts))


def _cost(price: Price, name: str) -> str:
    """How much worse the rule makes the measure."""
    if name not in price.changes:
        return ""
    sign = 1.0 if name in LARGE_IS_GOOD else -1.0
    value = sign * price.changes[name]
    low, high = sorted(sign * end for end in price.intervals.get(name, (0.0, 0.0)))
    return f"{number(value, 3)} [{number(low, 2)}, {number(high, 2)}]"


def group_section(groups: Sequence[Group], where: str) -> Markup:
    """Measures of the rows of each group."""
    if not groups:
        return Markup()
    parts = [soft(f"Measured on the rows “{where}”, with {LIMITS.coverage:.0%} intervals.")]
    for column in dict.fromkeys(each.column for each in groups):
        own = [each for each in groups if each.column == column]
        parts.append(fill("<h3>{column}</h3>", column=column))
        parts.append(_groups(own))
    return section("By group", joined(parts), "long")


def _groups(groups: list[Group]) -> Markup:
    measured: list[Accuracy] = [each.accuracy for each in groups]
    means = [
        name
        for name in dict.fromkeys(name for each in measured for name in each.measures)
        if not any(name in each.intervals for each in measured)
    ]
    names = [*means, *(name for name in BY_GROUP if any(name in m.measures for m in measured))]
    names = names[: len(means) + 3]
    rows = [
        [
            each.group,
            f"{each.accuracy.rows:,}",
            *(
                with_interval(each.accuracy, name)
                or ("too few" if not each.accuracy.measures else "")
                for name in names
            ),
        ]
        for each in groups
    ]
    header = ["group", "rows", *names]
    return table(header, rows, numeric=tuple(range(1, len(header))))


def fold_section(folds: Folds | None) -> Markup:
    """How measures vary between models trained on other rows."""
    if folds is None:
        told = f"No time was given to models trained on parts of the rows ({MORE_TIME})."
        return section("Stability over folds", soft(told))
    parts = []
    if folds.parts:
        header = ["measure", *(each.name for each in folds.parts), "mean", "standard deviation"]
        rows = [
            [
                name,
                *(number(each.measures.get(name, float("nan")), 3) for each in folds.parts),
                number(mean),
                number(deviation, 2),
            ]
            for name, (mean, deviation) in folds.spread().items()
        ]
        lead = (
            f"The training rows were dealt into {folds.asked} parts. The whole training, choice of "
            "structure included, was done again on all parts but one, and measured on that one."
        )
        numeric = tuple(range(1, len(header)))
        parts = [soft(lead), table(header, rows, numeric=numeric)]
    if folds.untold:
        done = f"{len(folds.parts)} of {folds.asked} models were trained: {folds.untold}."
        parts.append(fill("<p>{told}</p>", told=done))
    return section("Stability over folds", joined(parts))
