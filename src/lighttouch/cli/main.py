"""main(): from words to an exit code. The module named like the command has its `run`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from lighttouch.cli.failures import BAD_USAGE, OK, exit_code, tell
from lighttouch.cli.parser import build_parser


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; for --help and bad options argparse exits."""
    parser = build_parser()
    options = parser.parse_args(words)
    options.words = list(sys.argv[1:] if words is None else words)
    if options.command is None:
        parser.print_help()
        return BAD_USAGE
    try:
        # Imported when asked for: scikit-learn and pandas take a second.
        return int(importlib.import_module(f"lighttouch.cli.{options.command}").run(options))
    except BrokenPipeError:  # the reader of our output went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except BaseException as error:
        if options.debug or not isinstance(error, Exception | KeyboardInterrupt):
            raise
        tell(error)
        return exit_code(error)
