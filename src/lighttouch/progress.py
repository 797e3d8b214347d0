"""A one-line progress bar on the error stream, and a gentle way to be interrupted."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

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
        line = f"{self._label}[{'=' * filled}{' ' * (BAR - filled)}] {100 * share:3.0f}%  {now - self._began:5.1f} s  {text}"
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        if self._on and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


class Interrupts:
    """Turns the first Ctrl-C or SIGTERM into a flag, so that a run ends with its best result; a second Ctrl-C raises.

    Where one is inside another, the flag is set in both: what goes on after the inner run must know that it was interrupted.
    """

    def __init__(self) -> None:
        self.raised = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
            outer = getattr(handler, "__self__", None)
            if self.raised and isinstance(outer, Interrupts):
                outer.raised = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised:
            raise KeyboardInterrupt
        self.raised, self.number = True, number
        outer = getattr(self._previous.get(number), "__self__", None)
        if isinstance(outer, Interrupts):
            outer._note(number, frame)
