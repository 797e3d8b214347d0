"""Sections about the model beside others: without a rule, by group, trained on other rows."""

from __future__ import annotations

from collections.abc import Sequence

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
)
from lighttouch.report.diagnostics import with_interval
from lighttouch.report.groups import Group
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import Markup, fill, joined, number, section, soft, table
from lighttouch.report.refits import MORE_TIME, Folds, Price

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
            f"How much worse the model is on the rows “{held_out}” than one with the same curves "
            "and lattices that was trained without that rule; negative: the rule makes it better. "
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
