"""main(): from words to an exit code, with no traceback unless asked."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from lighttouch.cli.failures import BAD_USAGE, OK, exit_code, tell
from lighttouch.cli.parser import build_parser

RUNS = {  # imported when asked for: scikit-learn and pandas take a second
    "train": "train:run",
    "predict": "predict:predict",
    "check": "predict:check",
    "plan": "others:plan",
    "reproduce": "others:reproduce",
    "warmup": "others:warmup",
    "completion": "others:completion",
}


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is returned, except for --help and bad options, where argparse
    exits by itself.
    """
    parser = build_parser()
    options = parser.parse_args(words)
    options.words = list(sys.argv[1:] if words is None else words)
    if options.command is None:
        parser.print_help()
        return BAD_USAGE
    try:
        module, function = RUNS[options.command].split(":")
        return int(getattr(importlib.import_module(f"lighttouch.cli.{module}"), function)(options))
    except BrokenPipeError:  # the reader of our output went away, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except BaseException as error:
        if options.debug or not isinstance(error, Exception | KeyboardInterrupt):
            raise
        tell(error)
        return exit_code(error)
