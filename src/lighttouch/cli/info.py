"""`lighttouch info`: where a saved model comes from."""

from __future__ import annotations

import argparse
from typing import Any

from lighttouch.cli import saved
from lighttouch.cli.speaking import OK, Speaker, rule_facts, say
from lighttouch.report.models import column_names, is_classifier
from lighttouch.text import printable, readable_size

COLUMNS_SHOWN = 40


def run(options: argparse.Namespace) -> int:
    speaker = Speaker(options)
    model: Any = saved.load(options.model)
    facts = {
        "model": str(options.model),
        "bytes": options.model.stat().st_size,
        "kind": type(model).__name__,
        "loss": str(model.loss),
        "status": model.status_,
        "columns": column_names(model),
        "classes": [str(each) for each in model.classes_] if is_classifier(model) else None,
        "rules": rule_facts(model.constraint_report_),
        "record": None if model.training_record_ is None else model.training_record_.state(),
    }
    if not speaker.silent:
        for line in _lines(facts):
            say(printable(line))
    return speaker.conclude(OK, **facts)


def _lines(facts: dict[str, Any]) -> list[str]:
    record = facts["record"]
    lines = [
        f"{facts['model']}: {facts['kind']}, loss {facts['loss']}, {facts['status']}, "
        f"{readable_size(facts['bytes'])}",
    ]
    if facts["classes"]:
        lines.append(f"classes   {' and '.join(facts['classes'])}")
    if record is None:
        lines.append("record    none: made by lighttouch 0.1, or of a layer of PyTorch")
    else:
        libraries = ", ".join(f"{name} {each}" for name, each in record["libraries"].items())
        lines += [
            f"trained   {record['created']} on {record['rows']:,} rows of "
            f"{len(facts['columns'])} columns",
            f"data      SHA-256 {record['data']}",
            f"with      {libraries}",
        ]
        lines += [f"{name:<9} {value}" for name, value in record["notes"].items() if value]
    for rule in facts["rules"]:
        lines.append(f"rule      {rule['rule']}: {rule['inequalities']:,} inequalities")
    lines += [_column(each) for each in (record or {"columns": []})["columns"][:COLUMNS_SHOWN]]
    return lines


def _column(column: dict[str, Any]) -> str:
    missing = f", {column['shares'][-1]:.1%} missing" if column["shares"][-1] else ""
    if column["categories"] is not None:
        counted = zip(column["categories"], column["counts"], strict=True)
        ordered = sorted(counted, key=lambda pair: -pair[1])[:5]
        told = ", ".join(f"{name} {count:,}" for name, count in ordered)
        return (
            f"column    {column['name']}: {len(column['categories'])} categories ({told}){missing}"
        )
    if column["low"] is None:
        return f"column    {column['name']}: empty{missing}"
    return f"column    {column['name']}: {column['low']:g} to {column['high']:g}{missing}"
