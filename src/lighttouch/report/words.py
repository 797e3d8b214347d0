"""Rules in words: what each says, of what, and on which scale it holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.estimators.outputs import LEVELS_IN_ORDER, THRESHOLDS_IN_ORDER
from lighttouch.estimators.proof import RuleReport
from lighttouch.estimators.rules import ShapeConstraint
from lighttouch.estimators.rules.base import monotone_label
from lighttouch.report.models import Model, column_names, is_classifier

MONOTONE = {
    1: "{it} never falls when {column} rises and all else stays as it is.",
    -1: "{it} never rises when {column} rises and all else stays as it is.",
}
SENTENCES = {
    "Convex": "{it} bends upwards along {column}: every further unit adds at least as much as the "
    "one before.",
    "Concave": "{it} bends downwards along {column}: every further unit adds at most as much as "
    "the one before.",
    "Unimodal": "{it} {turn} after it, along {column}.",
    "SlopeBound": "{it} changes by at most {limit} per unit of {column}.",
    "CategoryOrder": "{it} never falls from the first to the second of: {pairs} ({column}).",
    "EdgeworthTrust": "The {more} {conditional}, the more {its} rises with {main}.",
    "TrapezoidTrust": "The {more} {conditional}, the wider the range of {its} over {main}.",
    "Dominates": "Raising {dominant} by some amount raises {its} at least as much as raising "
    "{weak} by the same amount.",
    "RangeDominates": "The whole range of {dominant} moves {its} at least as much as that of "
    "{weak}.",
    "JointlyMonotonic": "{it} never falls when {first} and {second} rise by the same amount.",
    "Supermodular": "{first} and {second} are complements: each raises the other's effect on "
    "{its}.",
    "Submodular": "{first} and {second} are substitutes: each lowers the other's effect on {its}.",
}
OTHERS = {
    LEVELS_IN_ORDER: "A higher quantile is never below a lower one, for any row.",
    THRESHOLDS_IN_ORDER: "The probability of exceeding a class never rises from class to class.",
}
TURNS = {"valley": "falls until {mode} and rises", "peak": "rises until {mode} and falls"}
CANONICAL = "canonical examples"


@dataclass(frozen=True)
class Rule:
    """A rule of a fitted model.

    `name` is what reports call it, `words` what it says, `columns` which columns it is about, and
    `without` the parameters of an estimator that lacks it (None where it cannot be left out, and
    `stays` says why).
    """

    name: str
    words: str
    scale: str
    columns: tuple[int, ...] = ()
    without: dict[str, Any] | None = None
    stays: str = "it follows from another rule"

    @property
    def about_two(self) -> bool:
        return len(self.columns) == 2


def rules_asked(model: Model) -> list[Rule]:
    """Every rule of the model's report, in its order."""
    return [_rule(model, each) for each in model.constraint_report_.rules]


def _rule(model: Model, report: RuleReport) -> Rule:
    names = column_names(model)
    subject = subject_of(model, report.scale)
    for place, sign in signs_of(model).items():
        if report.rule == monotone_label(names[place], sign):
            words = _sentence(MONOTONE[sign], subject, {"column": names[place]})
            return Rule(report.rule, words, report.scale, (place,), _without_sign(model, place))
    for shape in shapes_of(model):
        if report.rule == label_of(shape, names):
            places = tuple(_place(each, names) for each in shape.columns)
            rest = [each for each in shapes_of(model) if each is not shape]
            words = shape_in_words(shape, names, subject)
            return Rule(
                report.rule, words, report.scale, places, {"shape_constraints": rest or None}
            )
    if report.rule.startswith(CANONICAL):
        words = "Rows that were given come out on their side, by the margin asked for."
        return Rule(report.rule, words, report.scale, (), {"canonical_examples": None})
    for place, name in enumerate(names):  # what another rule implies
        for sign in (1, -1):
            if report.rule == monotone_label(name, sign):
                words = _sentence(MONOTONE[sign], subject, {"column": name})
                return Rule(report.rule, words, report.scale, (place,))
    stays = "every model of this kind obeys it, and none can be trained without it"
    return Rule(report.rule, OTHERS.get(report.rule, report.rule), report.scale, stays=stays)


def subject_of(model: Model, scale: str) -> str:
    """What a rule is about, on the scale on which it holds."""
    if scale in ("probability", "log-odds") and is_classifier(model):
        return f"the {scale} of {model.classes_[1]}"
    if scale.startswith("cumulative"):
        return f"the {scale.removeprefix('cumulative ')} of exceeding any class"
    return f"the {scale}"


def _sentence(template: str, subject: str, values: Mapping[str, object]) -> str:
    return template.format(it=subject[0].upper() + subject[1:], its=subject, **values)


def shape_in_words(shape: ShapeConstraint, names: list[str], subject: str) -> str:
    """One sentence."""
    kind = type(shape).__name__
    if kind not in SENTENCES:
        return str(shape)
    values: dict[str, object] = {
        each.name: getattr(shape, each.name) for each in dataclasses.fields(shape)
    }
    for each in shape.column_fields:
        values[each] = names[_place(getattr(shape, each), names)]
    values["more"] = "higher" if values.get("sign", 1) == 1 else "lower"
    if kind == "Unimodal":
        values["turn"] = TURNS[str(values["shape"])].format(mode=f"{values['mode']:g}")
    if kind == "CategoryOrder":
        pairs: Any = values["pairs"]
        values["pairs"] = ", ".join(f"{low} and {high}" for low, high in pairs)
    return _sentence(SENTENCES[kind], subject, values)


def signs_of(model: Model) -> dict[int, int]:
    """The monotone columns that were asked for, by position."""
    given, names = getattr(model, "monotonic_cst", None), column_names(model)
    if given is None:
        return {}
    if isinstance(given, dict):
        return {_place(name, names): int(sign) for name, sign in given.items() if sign}
    return {place: int(sign) for place, sign in enumerate(given) if sign}


def _without_sign(model: Model, place: int) -> dict[str, Any]:
    given, names = model.monotonic_cst, column_names(model)
    if isinstance(given, dict):
        rest = {name: sign for name, sign in given.items() if _place(name, names) != place}
        return {"monotonic_cst": rest or None}
    return {"monotonic_cst": [0 if k == place else sign for k, sign in enumerate(given)]}


def shapes_of(model: Model) -> list[ShapeConstraint]:
    """The shape constraints that were asked for."""
    listed = getattr(model, "shape_constraints", None) or []
    return list(listed) if isinstance(listed, Sequence) else [listed]


def label_of(shape: ShapeConstraint, names: list[str]) -> str:
    """What reports call the rule."""
    told = (names[_place(each, names)] for each in shape.columns)
    return f"{type(shape).__name__}({', '.join(told)})"


def _place(name: Any, names: list[str]) -> int:
    return names.index(name) if isinstance(name, str) else int(name)
