"""main(): from words to an exit code. The module named like the command has its `run`."""

from __future__ import annotations

import gc
import importlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lighttouch.cli.parser import build_parser
from lighttouch.cli.speaking import BAD_USAGE, OK, described, exit_code, say, tell
from lighttouch.signals import TERMINATED, RaisedAtOnce


def program() -> None:
    """The command as a program of its own."""
    code = main()
    gc.freeze()  # else the interpreter looks for cycles in all modules: half a second
    sys.exit(code)


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; for --help and bad options argparse exits."""
    parser = build_parser()
    options = parser.parse_args(words)
    options.words = list(sys.argv[1:] if words is None else words)
    if options.command is None:
        parser.print_help()
        return BAD_USAGE
    try:
        with RaisedAtOnce(ends_program=True), _logging(options.debug):
            # Imported when asked for: scikit-learn and pandas take a second.
            return int(importlib.import_module(f"lighttouch.cli.{options.command}").run(options))
    except BrokenPipeError:  # the reader of our output went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except BaseException as error:
        known = isinstance(error, Exception | KeyboardInterrupt) or _is_termination(error)
        if options.debug or not known:
            raise
        tell(error)
        if getattr(options, "json", False):
            told = {"error": described(error), "kind": type(error).__name__}
            say(json.dumps(told | {"exit_code": exit_code(error)}))
        return exit_code(error)


def _is_termination(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code == TERMINATED


@contextmanager
def _logging(debug: bool) -> Iterator[None]:
    """With --debug, what the library logs goes to the error stream."""
    log = logging.getLogger("lighttouch")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = log.level
    if debug:
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
