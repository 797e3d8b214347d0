"""How long a projection may take: set around a call, looked at by the loops inside it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_until: ContextVar[float] = ContextVar("until", default=math.inf)


class OutOfTimeError(Exception):
    """The time that a projection was given is over.

    It is no RuntimeError, so that `except RuntimeError` around numerical work (a singular factor,
    say) lets it pass.
    """


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Projections inside the block end by then, with an OutOfTimeError; a shorter limit set outside
    stays in force.
    """
    token = _until.set(min(_until.get(), time.perf_counter() + seconds))
    try:
        yield
    finally:
        _until.reset(token)


def seconds_left() -> float:
    """Infinite without a limit."""
    return _until.get() - time.perf_counter()


def check() -> None:
    if seconds_left() <= 0.0:
        raise OutOfTimeError(
            "the projection onto the constraints was not finished within its time limit; "
            "allow more time"
        )
