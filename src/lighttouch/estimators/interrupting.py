"""Ctrl-C and SIGTERM while a model is fitted: the best model so far is kept, and the signal goes on
its way.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from lighttouch.estimators.blocks import asked_to_stop
from lighttouch.running.interrupts import Interrupts


@contextmanager
def usable_when_interrupted() -> Iterator[None]:
    """Training inside the block ends early when a signal comes; after it, with a usable model, the
    signal is raised as if it came then.

    Where someone else listens already (the command line), that is left to them.
    """
    if asked_to_stop.get() is not None:
        yield
        return
    with Interrupts() as interrupts:
        token = asked_to_stop.set(lambda: interrupts.raised)
        try:
            yield
        finally:
            asked_to_stop.reset(token)
    if interrupts.raised:
        signal.raise_signal(interrupts.number)
