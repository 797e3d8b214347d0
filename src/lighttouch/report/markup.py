"""Markup that cannot forget to escape: `fill` escapes every value that is not markup already.

No other function makes `Markup` out of a value, so a name or a cell of the data is never markup,
wherever in the report it stands.
"""

from __future__ import annotations

import html
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lighttouch.text import printable


class Markup(str):
    """HTML that is safe to write: a template of this package, filled."""


class _Escaping(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        return value if isinstance(value, Markup) else text(format(value, format_spec))


_ESCAPING = _Escaping()


def fill(template: str, values: Mapping[str, Any] | None = None, **more: Any) -> Markup:
    """The template, written in this package, with its {fields} replaced by escaped values."""
    return Markup(_ESCAPING.vformat(template, (), {**(values or {}), **more}))


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Pieces of markup one after the other."""
    return Markup(between.join(parts))


def repeated(template: str, values: Iterable[Any]) -> Markup:
    """The template once per value, which stands in it as {each}."""
    return joined(fill(template, each=value) for value in values)


def text(value: object) -> Markup:
    """Any value as HTML text or quoted attribute; control and direction characters are visible."""
    return Markup(html.escape(printable(str(value)), quote=True))


def clipped(value: object, length: int) -> Markup:
    """Like `text`, but at most `length` letters."""
    shown = printable(str(value))
    return text(shown if len(shown) <= length else shown[: length - 1] + "…")


def as_json(value: object) -> str:
    """JSON that no HTML or JavaScript parser can mistake for anything else, wherever it stands."""
    plain = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&'":
        plain = plain.replace(letter, f"\\u{ord(letter):04x}")
    return plain


def number(value: float, digits: int = 4) -> str:
    """A number for people: thousands separated, few digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 10.0**digits <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.{digits - 1}g}"


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: tuple[int, ...] = (),
    narrow: bool = False,
) -> Markup:
    """A table; the columns in `numeric` are aligned to the right."""
    marks = [Markup(" class='n'" if place in numeric else "") for place in range(len(header))]

    def cells(template: str, row: Sequence[str]) -> Markup:
        return joined(
            fill(template, mark=mark, name=name, cell=cell)
            for mark, name, cell in zip(marks, header, row, strict=True)
        )

    body = (cells("<td{mark} data-label='{name}'>{cell}</td>", row) for row in rows)
    return fill(
        "<div class='scroll'><table class='{look}'><thead><tr>{head}</tr></thead>"
        "<tbody>{body}</tbody></table></div>",
        look="stacked narrow" if narrow else "stacked",
        head=cells("<th{mark}>{cell}</th>", header),
        body=repeated("<tr>{each}</tr>", body),
    )


def soft(words: str) -> Markup:
    """A paragraph in small letters; nothing where there are no words."""
    return fill("<p class='soft'>{words}</p>", words=words) if words else Markup()


def titled(title: str, inside: Markup, wide: bool = False) -> Markup:
    """A card with a heading, of single or double width."""
    return fill(
        "<div class='card{look}'><h3>{title}</h3>{inside}</div>",
        look=" wide" if wide else "",
        title=title,
        inside=inside,
    )


def cards(parts: Sequence[Markup]) -> Markup:
    """Cards side by side."""
    return fill("<div class='cards'>{parts}</div>", parts=joined(parts)) if parts else Markup()


def section(title: str, inside: Markup, look: str = "") -> Markup:
    """A part of the page with its heading."""
    return fill(
        "<section class='{look}'><h2>{title}</h2>{inside}</section>",
        title=title,
        inside=inside,
        look=look,
    )
