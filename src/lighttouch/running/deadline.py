"""How long a call may take, and whether it was asked to stop: set around it, looked at by the loops
inside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float] = ContextVar("until", default=math.inf)
_asked: ContextVar[Callable[[], bool]] = ContextVar("asked", default=lambda: False)


class OutOfTimeError(Exception):
    """The time that a projection was given is over.

    It is no RuntimeError, so that `except RuntimeError` around numerical work (a singular factor,
    say) lets it pass.
    """


@contextmanager
def within(seconds: float, asked: Callable[[], bool] | None = None) -> Iterator[None]:
    """Projections inside the block end by then, with an OutOfTimeError; a shorter limit set outside
    stays in force. When `asked()` becomes true, the time is over at once.
    """
    until = _until.set(min(_until.get(), time.perf_counter() + seconds))
    question = _asked.set(_asked.get() if asked is None else asked)
    try:
        yield
    finally:
        _until.reset(until)
        _asked.reset(question)


def seconds_left() -> float:
    """Infinite without a limit; 0 where someone has asked to stop."""
    return 0.0 if _asked.get()() else _until.get() - time.perf_counter()


def check() -> None:
    if seconds_left() <= 0.0:
        raise OutOfTimeError(
            "the projection onto the constraints was not finished within its time limit; "
            "allow more time"
        )
