"""A clock that stands still while loops are being compiled."""

from __future__ import annotations

import time

from lighttouch.kernels.compiler.clock import compile_seconds


class Stopwatch:
    """Seconds since it was made, without those that went into compiling."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._compiled_before = compile_seconds()

    @property
    def compiling(self) -> float:
        """Seconds of compilation since it was made."""
        return compile_seconds() - self._compiled_before

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began - self.compiling
