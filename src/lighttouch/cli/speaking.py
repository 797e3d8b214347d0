"""What a command says: sentences, or with --json one JSON object at its end."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from lighttouch.cli.failures import say


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
