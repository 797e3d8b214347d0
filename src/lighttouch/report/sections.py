"""Where a model comes from and what training chose by itself, as lists of facts."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.report.accuracy import Data
from lighttouch.report.markup import Markup, fill, joined, number, repeated, text
from lighttouch.report.models import (
    LatticeModel,
    LinearModel,
    Model,
    column_names,
    is_classifier,
    is_lattice,
    is_linear,
)


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
    rows.append(("loss", str(model.loss)))
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
