"""The only door for text into the page."""

from __future__ import annotations

import html
import json
from typing import Any

from lighttouch.text import printable


def text(value: Any) -> str:
    """Any value as HTML text or a quoted attribute: markup is inert, control and direction
    characters are visible.
    """
    return html.escape(printable(str(value)), quote=True)


def clipped(value: Any, length: int) -> str:
    """Like `text`, but at most so many letters."""
    shown = printable(str(value))
    return html.escape(shown if len(shown) <= length else shown[: length - 1] + "…", quote=True)


def as_json(value: Any) -> str:
    """JSON that no HTML or JavaScript parser can mistake for anything else, wherever it stands."""
    plain = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&'":
        plain = plain.replace(letter, f"\\u{ord(letter):04x}")
    return plain


def number(value: float, digits: int = 4) -> str:
    """A number for people: thousands separated, few digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{digits}g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.{digits - 1}g}"
