"""A one-line progress bar on the error stream."""

from __future__ import annotations

import sys
import time

BAR = 24


class ProgressBar:
    """Redraws one line at most five times a second; silent unless switched on."""

    def __init__(self, on: bool, label: str = "") -> None:
        self._on = on
        self._label = label
        self._began = time.perf_counter()
        self._drawn = -1.0
        self._width = 0

    def show(self, share: float, text: str) -> None:
        now = time.perf_counter()
        if not self._on or (now - self._drawn < 0.2 and share < 1.0):
            return
        self._drawn = now
        share = min(1.0, max(0.0, share))
        filled = int(BAR * share)
        line = (
            f"{self._label}[{'=' * filled}{' ' * (BAR - filled)}] {100 * share:3.0f}%  "
            f"{now - self._began:5.1f} s  {text}"
        )
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        if self._on and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()
