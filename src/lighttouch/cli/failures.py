"""Exit codes, and how an error becomes one line and one of them."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO

from lighttouch.errors import (
    CheckpointMismatchError,
    ConstraintError,
    DataError,
    FileProblem,
    InfeasibleConstraintsError,
    ModelFileError,
)
from lighttouch.signals import TERMINATED
from lighttouch.text import printable

OK, RULES_BROKEN, BAD_USAGE, INFEASIBLE, NOT_CONVERGED, FILE_PROBLEM, DRIFTED = range(7)
OUR_MISTAKE = 70  # as sysexits.h calls an internal error
INTERRUPTED = 130  # as shells report a process ended by SIGINT


class DriftError(Exception):
    """New rows differ from those of training by more than --strict allows."""


def exit_code(error: BaseException) -> int:
    """The code for an error that is the user's to mend, or OUR_MISTAKE."""
    kinds: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        (InfeasibleConstraintsError, INFEASIBLE),
        ((ModelFileError, CheckpointMismatchError, OSError, EOFError), FILE_PROBLEM),
        ((DataError, ConstraintError, ValueError, TypeError, MemoryError, ImportError), BAD_USAGE),
        (DriftError, DRIFTED),
        (KeyboardInterrupt, INTERRUPTED),
        (SystemExit, TERMINATED),
    ]
    return next((code for kind, code in kinds if isinstance(error, kind)), OUR_MISTAKE)


def tell(error: BaseException) -> None:
    """The message on the error stream, its control characters made visible."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        say("interrupted: nothing was written", sys.stderr)
        return
    text = described(error)
    say("lighttouch: error: " + printable(text, line_breaks=True), sys.stderr)
    if exit_code(error) == OUR_MISTAKE:
        say(
            (
                f"this {type(error).__name__} is a mistake of lighttouch's, not yours; please "
                "report it with the output of --debug"
            ),
            sys.stderr,
        )


def described(error: BaseException) -> str:
    """The message of an error; that of a system call with the path it is about."""
    if isinstance(error, OSError) and not isinstance(error, FileProblem) and error.strerror:
        return f"{error.filename or 'a file'}: {error.strerror}"
    if isinstance(error, ImportError):
        return f"{error}; install what is missing"
    return str(error) or type(error).__name__


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print, even where the terminal cannot show every letter."""
    stream = stream or sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(BrokenPipeError):
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
