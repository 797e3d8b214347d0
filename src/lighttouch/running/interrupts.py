"""A gentle way to be interrupted: a signal becomes a flag."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """Turns the first Ctrl-C or SIGTERM into a flag, so that a run ends with its best result; a
    second Ctrl-C raises.

    Where one is inside another, the flag is set in both: what goes on after the inner run must know
    that it was interrupted, and an inner one that begins after the signal is interrupted from the
    start. With `deliver`, the signal is raised again at the end of the block (if
    nothing else was raised there), as if it came then, unless there is an outer one to know of it.
    """

    def __init__(self, deliver: bool = False) -> None:
        self.raised = False
        self.number = 0  # of the signal
        self.deliver = deliver
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._note)
                outer = getattr(self._previous[number], "__self__", None)
                if isinstance(outer, Interrupts) and outer.raised:
                    self.raised, self.number = True, outer.number
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        known_outside = False
        for number, handler in self._previous.items():
            signal.signal(number, handler)
            outer = getattr(handler, "__self__", None)
            if self.raised and isinstance(outer, Interrupts):
                outer.raised = known_outside = True
                outer.number = self.number
        if self.deliver and self.raised and failure is None and not known_outside:
            signal.raise_signal(self.number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised:
            raise KeyboardInterrupt
        self.raised, self.number = True, number
        outer = getattr(self._previous.get(number), "__self__", None)
        if isinstance(outer, Interrupts):
            outer._note(number, frame)
