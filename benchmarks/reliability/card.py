"""What a row of the scorecard is."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """How often something was tried and how often it went as users expect; `worst` is the worst
    case in words or numbers.
    """

    row: str
    tried: int
    ok: int
    worst: Any
    seconds: float

    @property
    def passed(self) -> bool:
        return self.tried > 0 and self.ok == self.tried

    def __str__(self) -> str:
        return json.dumps(asdict(self))


EVERY = 10  # tries between two notes
Outcome = tuple[int, int, Any]  # tried, ok, worst
ROWS: dict[str, Callable[[bool], Outcome]] = {}


def row(name: str) -> Callable[[Callable[[bool], Outcome]], Callable[[bool], Outcome]]:
    """Register a function of `quick` as a row."""

    def register(function: Callable[[bool], Outcome]) -> Callable[[bool], Outcome]:
        ROWS[name] = function
        return function

    return register


def note(name: str, tried: int, ok: int, worst: Any) -> None:
    """How far a long row has come, on the error stream."""
    if tried % EVERY == 0:
        print(f"{name}: {ok} of {tried} so far, worst {worst}", file=sys.stderr, flush=True)


def run(name: str, quick: bool) -> Score:
    began = time.perf_counter()
    try:
        tried, ok, worst = ROWS[name](quick)
        tried, ok = int(tried), int(ok)
    except Exception as error:
        tried, ok, worst = 1, 0, f"{type(error).__name__}: {error}"
    return Score(name, tried, ok, worst, round(time.perf_counter() - began, 2))
