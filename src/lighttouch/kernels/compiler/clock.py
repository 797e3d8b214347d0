"""How long numba has been compiling, so that clocks can leave that out."""

from __future__ import annotations

import threading
import time
from typing import Any

from numba.core import event


class _CompileClock(event.Listener):
    """Adds up, for each thread, the time between taking and releasing numba's compiler lock.

    Reading machine code from the disk cache happens under the same lock and is counted too.
    """

    def __init__(self) -> None:
        self._own = threading.local()

    def on_start(self, event: Any) -> None:
        depth = getattr(self._own, "depth", 0)
        if depth == 0:
            self._own.began = time.perf_counter()
        self._own.depth = depth + 1

    def on_end(self, event: Any) -> None:
        self._own.depth -= 1
        if self._own.depth == 0:
            self._own.total = self.total + time.perf_counter() - self._own.began

    @property
    def total(self) -> float:
        return float(getattr(self._own, "total", 0.0))


_clock = _CompileClock()
event.register("numba:compiler_lock", _clock)


def compile_seconds() -> float:
    """What this thread has spent so far compiling, or reading what was compiled before."""
    return _clock.total
