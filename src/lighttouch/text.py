"""Words for people: text that is safe on a terminal, the closest of some names, readable sizes."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Sequence


def printable(text: str, line_breaks: bool = False) -> str:
    r"""The text with control and direction characters spelled out, as in \x1b.

    Such characters could move a cursor, colour a terminal or reverse what a reader sees. Line
    breaks stay only if `line_breaks` is true.
    """
    return "".join(
        letter if letter.isprintable() or (line_breaks and letter == "\n") else repr(letter)[1:-1]
        for letter in text
    )


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` most like `name`, or None if none is like it."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message about a name that does not exist; empty if no other is like it."""
    close = closest_name(name, names)
    return "" if close is None else f"; did you mean {close!r}?"


def one_of_the_columns(name: str, names: list[str], taken: Container[str | None] = ()) -> str:
    """The end of a message about a column that does not exist: the closest, or the first eight.
    Those that are taken, such as the target, are not what was meant.
    """
    listed = ", ".join(repr(each) for each in names[:8]) + (", ..." if len(names) > 8 else "")
    free = [each for each in names if each not in taken]
    return did_you_mean(name, free) or f"; the columns are {listed}"


def alternatives(words: Sequence[str]) -> str:
    """The words as a choice: "a, b or c"."""
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def readable_size(size: float) -> str:
    """A number of bytes for people, such as 3.2 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
