"""On which scale a rule of a classifier holds.

A classifier's rules are inequalities between log-odds, log(p / (1 - p)). Where a rule only orders
predictions (increasing, Dominates, Unimodal ...) it holds on the probability p too, which rises
with the log-odds. Where a rule compares differences of predictions (Concave, SlopeBound,
EdgeworthTrust ...) it does not carry over.
"""

from __future__ import annotations

from lighttouch.report.models import Model, has_probabilities, is_classifier

COMPARE_DIFFERENCES = frozenset(
    {
        "Convex",
        "Concave",
        "SlopeBound",
        "EdgeworthTrust",
        "RangeDominates",
        "Supermodular",
        "Submodular",
    }
)


def holds_on_log_odds_only(model: Model, rule: str) -> bool:
    """Whether the rule, named as in a report (`Concave(age)`), says nothing of probabilities."""
    return has_probabilities(model) and rule.partition("(")[0] in COMPARE_DIFFERENCES


def scale_of(model: Model, rule: str) -> str:
    """Where the rule holds: the log-odds, the probability, the score or the prediction."""
    if holds_on_log_odds_only(model, rule):
        return "log-odds"
    if has_probabilities(model):
        return "probability"
    return "score" if is_classifier(model) else "prediction"


def scale_note(model: Model) -> str:
    """A sentence about rules that hold on the log-odds only; empty if there are none."""
    rules = [
        rule.rule
        for rule in model.constraint_report_.rules
        if holds_on_log_odds_only(model, rule.rule)
    ]
    if not rules or not is_classifier(model):
        return ""
    return (
        f"{', '.join(rules)}: on the log-odds of {model.classes_[1]}, not on its probability; "
        "all other rules hold on both"
    )
