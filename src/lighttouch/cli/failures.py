"""Exit codes, and how an error becomes one line and one of them."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO

from lighttouch.errors import ConstraintError, DataError, InfeasibleConstraintsError, ModelFileError
from lighttouch.text import printable

OK, RULES_BROKEN, BAD_USAGE, INFEASIBLE, NOT_CONVERGED, FILE_PROBLEM = range(6)
OUR_MISTAKE = 70  # as sysexits.h calls an internal error
INTERRUPTED = 130  # as shells report a process ended by SIGINT


class FileProblem(OSError):
    """A file that cannot be read or written, or must not be."""


def exit_code(error: BaseException) -> int:
    """The code for an error that is the user's to mend, or OUR_MISTAKE."""
    kinds: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        (InfeasibleConstraintsError, INFEASIBLE),
        ((ModelFileError, OSError, EOFError), FILE_PROBLEM),
        ((DataError, ConstraintError, ValueError, TypeError, MemoryError), BAD_USAGE),
        (KeyboardInterrupt, INTERRUPTED),
    ]
    return next((code for kind, code in kinds if isinstance(error, kind)), OUR_MISTAKE)


def tell(error: BaseException) -> None:
    """The message on the error stream, its control characters made visible."""
    if isinstance(error, KeyboardInterrupt):
        say("interrupted: nothing was written", sys.stderr)
        return
    text = str(error)
    if isinstance(error, OSError) and not isinstance(error, FileProblem) and error.strerror:
        text = f"{error.filename or 'a file'}: {error.strerror}"
    say(
        "lighttouch: error: " + printable(text or type(error).__name__, line_breaks=True),
        sys.stderr,
    )
    if exit_code(error) == OUR_MISTAKE:
        say(
            (
                f"this {type(error).__name__} is a mistake of lighttouch's, not yours; please "
                "report it with the output of --debug"
            ),
            sys.stderr,
        )


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print, even where the terminal cannot show every letter."""
    stream = stream or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(BrokenPipeError):
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
