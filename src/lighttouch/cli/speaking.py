"""What a command says: sentences, or with --json one JSON object at its end; and how an error
becomes one line and an exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

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


class Speaker:
    """Sentences, unless --quiet or --json is given, and the JSON object of --json. Both go to
    stdout, unless that carries the output; `aside` sends sentences to stderr in any case.
    """

    def __init__(
        self, options: argparse.Namespace, stdout_taken: bool = False, aside: bool = False
    ) -> None:
        self._json = bool(getattr(options, "json", False))
        self._silent = bool(options.quiet) or self._json
        self._stream = sys.stderr if stdout_taken or aside else None
        self._json_stream = sys.stderr if stdout_taken else None
        self.facts: dict[str, Any] = {"command": options.command}

    @property
    def silent(self) -> bool:
        return self._silent

    def __call__(self, text: str) -> None:
        if not self._silent:
            say(text, self._stream)

    def conclude(self, exit_code: int, **facts: Any) -> int:
        """With --json, everything known, in one line; the exit code as it is."""
        if self._json:
            told = plain(self.facts | facts | {"exit_code": exit_code})
            say(json.dumps(told, allow_nan=False), self._json_stream)
        return exit_code


def plain(value: object) -> Any:
    """Values that JSON knows: NaN and infinities become null, anything unknown its text."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def ending_in_words(model: Any, seconds: float) -> str:
    """How training ended, in the last lines of `train`."""
    kind = type(model).__name__
    if model.status_ != "stalled":
        return f"{kind} {model.status_} after {seconds:.1f} s"
    return (
        f"{kind} stopped improving after {seconds:.1f} s: the fit is probably as good as it gets, "
        "but that is not proven"
    )


def rule_facts(report: Any) -> list[dict[str, Any]]:
    """One entry per rule of a constraint report."""
    return [
        {
            "rule": rule.rule,
            "holds": rule.violation == 0.0,
            "inequalities": rule.rows,
            "violation": rule.violation,
        }
        for rule in report.rules
    ]


# -------------------------------------------------------------------------------------------------
# Exit codes, and how an error becomes one line and one of them.


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
