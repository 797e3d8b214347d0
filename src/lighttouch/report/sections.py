"""What was asked and what training chose by itself, as lists of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lighttouch.report.markup import Markup, fill, joined, number, repeated, text
from lighttouch.report.models import (
    LatticeModel,
    LinearModel,
    Model,
    column_names,
    is_lattice,
    is_linear,
)


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
    return repeated("<code>{each}</code> ", value) if isinstance(value, Words) else text(value)


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
