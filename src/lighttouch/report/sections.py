"""Tables, and the list of what training chose by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lighttouch.report.escape import number, text


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: tuple[int, ...] = (),
    narrow: bool = False,
) -> str:
    """A table whose every cell is escaped."""

    mark = [" class='n'" if place in numeric else "" for place in range(len(header))]
    head = "".join(f"<th{mark[place]}>{text(name)}</th>" for place, name in enumerate(header))

    def cells(row: Sequence[str]) -> str:
        return "".join(
            f"<td{mark[place]} data-label='{text(header[place])}'>{text(cell)}</td>"
            for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row)}</tr>" for row in rows)
    look = " class='narrow'" if narrow else " class='stacked'"
    return (
        "<div "
        f"class='scroll'><table{look}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


class Words(list[str]):
    """Shown with line breaks between the words only."""


@dataclass(frozen=True)
class Folded:
    """A line that opens into a list."""

    line: str
    parts: Sequence[str]


def facts(rows: Sequence[tuple[str, Any]]) -> str:
    shown = "".join(
        f"<tr><th>{text(name)}</th><td>{_value(value)}</td></tr>"
        for name, value in rows
        if value is not None
    )
    return f"<table class='facts'><tbody>{shown}</tbody></table>"


def _value(value: Any) -> str:
    if isinstance(value, Folded):
        chips = "".join(f"<span class='chip'>{text(part)}</span>" for part in value.parts)
        return (
            f"<details><summary>{text(value.line)}</summary><div "
            f"class='chips'>{chips}</div></details>"
        )
    return (
        " ".join(f"<code>{text(word)}</code>" for word in value)
        if isinstance(value, Words)
        else text(value)
    )


def chosen(model: Any, seconds: float | None) -> str:
    rows = _lattice(model) if hasattr(model, "model_") else _linear(model)
    rows.append(("loss", str(model.loss)))
    rows.append(("training", _training(model, seconds)))
    return facts(rows)


def _training(model: Any, seconds: float | None) -> str:
    steps = f"{model.n_iter_:,} step{'s' if model.n_iter_ != 1 else ''}"
    return f"{model.status_} after {steps}" + (
        "" if seconds is None else f" and {seconds:.1f} seconds"
    )


def _lattice(model: Any) -> list[tuple[str, Any]]:
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
                "generalised cross-validation"
            ),
        ),
    ]


def _linear(model: Any) -> list[tuple[str, Any]]:
    names = model._columns.names
    weights = "; ".join(
        f"{name} {number(float(weight), 3)}"
        for name, weight in zip(names, model.coef_, strict=True)
    )
    return [
        ("model", f"{type(model).__name__}: {model.coef_.size + 1:,} parameters"),
        ("coefficients", weights),
    ]
