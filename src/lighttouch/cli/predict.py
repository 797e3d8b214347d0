"""`lighttouch predict` and `lighttouch check`: a saved model on a table of any size, a chunk at a
time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lighttouch.cli import outputs, tables
from lighttouch.cli.failures import OK, RULES_BROKEN, FileProblem, one_line, say
from lighttouch.cli.tables import Dialect, Writer
from lighttouch.errors import DataError


def predict(options: argparse.Namespace) -> int:
    if options.output is not None:
        outputs.refuse(options.output, "output", options.overwrite, [options.model, options.data])
        if options.output.suffix.lower() == ".zip":
            raise FileProblem(
                "predictions cannot be written to .zip; name a .csv, .csv.gz or .parquet file"
            )
    model = load(options.model)
    parts = _predictions(model, options)
    if options.output is None:
        _write(parts, Writer(sys.stdout, None))
        return OK
    with outputs.whole(options.output) as beside:
        count = _write(parts, Writer(beside, options.output))
    if not options.quiet:
        say(f"{count:,} predictions in {one_line(str(options.output))}", sys.stderr)
    return OK


def load(path: Path) -> Any:
    from lighttouch.estimators import load as load_model

    if path.is_dir():
        raise FileProblem(f"{path} is a folder, not a model")
    return load_model(path)


def _write(parts: Iterator[Any], writer: Writer) -> int:
    count = 0
    try:
        for part in parts:
            writer.append(part)
            count += len(part)
    finally:
        writer.close()
    return count


def _predictions(model: Any, options: argparse.Namespace) -> Iterator[Any]:
    dialect = Dialect(options.separator, options.decimal, tuple(options.missing), options.encoding)
    for part in tables.chunks(options.data, dialect, as_text=_text_columns(model)):
        for name in options.keep:
            tables.place(name, part, "--keep", options.data)
        out = part[list(options.keep)].reset_index(drop=True)
        for name, values in _columns(model, features(model, part, options.data)).items():
            out.insert(
                out.shape[1], name, values, allow_duplicates=False
            ) if name not in out else _refuse_clash(name)
        yield out if options.raw else tables.harmless(out)


def _refuse_clash(name: str) -> None:
    raise DataError(f"--keep {name} would hide the prediction of the same name; rename that column")


def _columns(model: Any, X: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"prediction": model.predict(X)}
    if hasattr(model, "classes_"):
        found |= (
            {"probability": model.predict_proba(X)[:, 1]}
            if hasattr(model, "predict_proba")
            else {"score": model.decision_function(X)}
        )
    return found


def features(model: Any, part: Any, path: Path) -> Any:
    """The model's columns of a part of a table, in the model's order."""
    if not hasattr(model, "feature_names_in_"):
        if part.shape[1] != model.n_features_in_:
            raise DataError(
                f"the model was trained without column names on {model.n_features_in_} "
                f"columns; {path} has {part.shape[1]}"
            )
        return part.to_numpy()
    for name in model.feature_names_in_:
        tables.place(str(name), part, "the model needs a column that is missing:", path)
    X = part[[str(name) for name in model.feature_names_in_]]
    tables.refuse_infinite(X, path)
    for name in _number_columns(model):
        tables.require_numbers(X, name, path, "the column")
    return X


def _text_columns(model: Any) -> list[str]:
    """A chunk in which a text column happens to hold numbers only must not be read as numbers."""
    columns = getattr(model, "columns_", None)
    listed = [] if columns is None else columns.columns
    return [
        column.name
        for column in listed
        if column.categories and all(isinstance(each, str) for each in column.categories)
    ]


def _number_columns(model: Any) -> list[str]:
    columns = getattr(model, "columns_", None)
    if columns is None:
        return [str(name) for name in model.feature_names_in_]
    return [column.name for column in columns.columns if not column.categorical]


def check(options: argparse.Namespace) -> int:
    model = load(options.model)
    report = model.check_constraints()
    rules = {rule.rule: (rule.rows, rule.binding.size, rule.violation) for rule in report.rules}
    if options.data is not None:
        _check_predictions(model, options, rules)
    worst = max((violation for _, _, violation in rules.values()), default=0.0)
    if not options.quiet:
        _show(options, rules, worst)
    return OK if worst == 0.0 else RULES_BROKEN


def _check_predictions(
    model: Any, options: argparse.Namespace, rules: dict[str, tuple[int, int, float]]
) -> None:
    dialect = Dialect(options.separator, options.decimal, tuple(options.missing), options.encoding)
    fixed = set(rules)
    for part in tables.chunks(options.data, dialect, as_text=_text_columns(model)):
        for rule in model.check_constraints(features(model, part, options.data)).rules:
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
    width = max([len(one_line(name)) for name in rules] + [4])
    say(f"{'rule':<{width}}  {'rows':>10}  largest violation")
    for name, (rows, _, violation) in rules.items():
        say(
            f"{one_line(name):<{width}}  {rows:>10,}  {violation:g}{'' if violation == 0.0 else '   BROKEN'}"
        )
    total = sum(rows for rows, _, _ in rules.values())
    if not rules:
        say("the model was trained without rules")
    elif worst == 0.0:
        say(f"\nevery rule holds: {total:,} rows checked, largest violation 0")
    else:
        broken = sum(violation > 0.0 for _, _, violation in rules.values())
        named = one_line(str(options.model))
        say(
            f"\n{broken} of {len(rules)} rules are broken in {named}: the largest "
            f"violation is {worst:g}. Train it again"
        )
