"""`lighttouch check`: whether the rules of a saved model hold."""

from __future__ import annotations

import argparse

from lighttouch.cli import saved, tables
from lighttouch.cli.speaking import OK, RULES_BROKEN, Speaker, say
from lighttouch.cli.tables import Dialect
from lighttouch.report.models import Model, scale_note
from lighttouch.text import printable


def run(options: argparse.Namespace) -> int:
    speaker = Speaker(options)
    model = saved.load(options.model)
    report = model.check_constraints()
    rules = {rule.rule: (rule.rows, rule.binding.size, rule.violation) for rule in report.rules}
    if options.data is not None:
        with tables.standard_input(options.data) as options.data:
            _check_predictions(model, options, rules)
    worst = max((violation for _, _, violation in rules.values()), default=0.0)
    if not speaker.silent:
        _show(options, rules, worst)
        if note := scale_note(model):
            say(printable(note))
    told = [
        {"rule": name, "inequalities": rows, "violation": violation, "holds": violation == 0.0}
        for name, (rows, _, violation) in rules.items()
    ]
    code = OK if worst == 0.0 else RULES_BROKEN
    return speaker.conclude(code, model=str(options.model), rules=told, violation=worst)


def _check_predictions(
    model: Model, options: argparse.Namespace, rules: dict[str, tuple[int, int, float]]
) -> None:
    dialect = Dialect.of(options)
    fixed = set(rules)
    for part in tables.chunks(options.data, dialect, as_text=saved.text_columns(model)):
        for rule in model.check_constraints(saved.features(model, part, options.data)).rules:
            if rule.rule not in fixed:
                rows, binding, violation = rules.get(rule.rule, (0, 0, 0.0))
                rules[rule.rule] = (
                    rows + rule.rows,
                    binding + rule.binding.size,
                    max(violation, rule.violation),
                )


def _show(
    options: argparse.Namespace, rules: dict[str, tuple[int, int, float]], worst: float
) -> None:
    width = max([len(printable(name)) for name in rules] + [4])
    say(f"{'rule':<{width}}  {'rows':>10}  largest violation")
    for name, (rows, _, violation) in rules.items():
        say(
            f"{printable(name):<{width}}  {rows:>10,}  {violation:g}"
            f"{'' if violation == 0.0 else '   BROKEN'}"
        )
    total = sum(rows for rows, _, _ in rules.values())
    if not rules:
        say("the model was trained without rules")
    elif worst == 0.0:
        say(f"\nevery rule holds: {total:,} rows checked, largest violation 0")
    else:
        broken = sum(violation > 0.0 for _, _, violation in rules.values())
        named = printable(str(options.model))
        say(
            f"\n{broken} of {len(rules)} rules are broken in {named}: the largest "
            f"violation is {worst:g}. Train it again"
        )
