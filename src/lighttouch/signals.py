"""Ctrl-C and SIGTERM: a run that they end has its best result, and none of them is lost.

Python raises what a handler raises wherever the program happens to be. In callbacks of a compiler
or of an import, and in finalisers, the interpreter can only print and forget it. So what is raised
here is also remembered, and raised again where work begins.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from lighttouch.kernels.compiler.compiled import (
    compile_seconds,
    end_compilation,
    go_on_compiling,
)

WORTH_WAITING = 10.0  # seconds of work: compiling all that a run needs takes less
TERMINATED = 128 + signal.SIGTERM  # the exit code of a program that SIGTERM ended
_told_to_end: set[int] = set()  # processes that had a SIGTERM while they were in a run


class _Handlers:
    """A block in which signals are handled here; only in the main thread, as Python has it."""

    def __init__(self) -> None:
        self._previous: dict[int, Any] = {}
        self._hook: Callable[[Any], object] | None = None
        self._sent: BaseException | None = None

    def _replaces(self, number: int) -> bool:
        raise NotImplementedError

    def _note(self, number: int, frame: FrameType | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if self._replaces(number):
                    self._previous[number] = signal.signal(number, self._note)
        if self._previous and not self._outer:
            self._hook, sys.unraisablehook = sys.unraisablehook, self._forgotten
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if self._hook is not None:
            sys.unraisablehook, self._hook = self._hook, None
            go_on_compiling()

    @property
    def _outer(self) -> list[_Handlers]:
        """The blocks just outside of this one."""
        owners = (_owner(handler) for handler in self._previous.values())
        return [owner for owner in owners if owner is not None]

    def _error(self, number: int) -> BaseException:
        """What the signal raises; known to the outermost block, which hides what callbacks print
        of it. A program that it ends does not look for cycles in all modules: half a second.
        """
        atexit.unregister(gc.freeze)
        atexit.register(gc.freeze)
        error = SystemExit(TERMINATED) if number == signal.SIGTERM else KeyboardInterrupt()
        outermost: _Handlers = self
        while outermost._outer:
            outermost = outermost._outer[0]
        outermost._sent = error
        return error

    def _forgotten(self, what: Any) -> None:
        """Instead of `sys.unraisablehook`: what we raised is remembered, and needs no traceback."""
        if what.exc_value is not self._sent and self._hook is not None:
            self._hook(what)


class Interrupts(_Handlers):
    """Turns the first Ctrl-C or SIGTERM into a flag, so that a run ends with its best result; a
    second one ends the program's work at once.

    Where one is inside another, the flag is set in both: what goes on after the inner run must know
    that it was interrupted, and an inner one that begins after the signal is interrupted from the
    start. A compilation that takes long raises the signal, because nothing else ends it soon;
    not where the run has worked for so long that its result is worth waiting for.

    At the end of the outermost block:

    - SIGINT is raised again where `deliver` is set (if nothing else was raised in the block);
    - SIGTERM was meant for the program. A handler of its own gets it. Where there is none the
      result is still returned, and the program ends with exit code 143 when it calls a run again,
      or by itself. With `ends_program` the caller sees to that.
    """

    def __init__(self, deliver: bool = False, ends_program: bool = False) -> None:
        super().__init__()
        self.raised = False
        self.number = 0  # of the signal
        self.deliver, self.ends_program = deliver, ends_program
        self._began, self._compiled_before = time.perf_counter(), compile_seconds()

    @property
    def _seconds(self) -> float:
        """Of work, without compiling."""
        compiling = compile_seconds() - self._compiled_before
        return time.perf_counter() - self._began - compiling

    def _replaces(self, number: int) -> bool:
        """What is ignored, as Ctrl-C in background jobs, stays ignored."""
        return signal.getsignal(number) != signal.SIG_IGN

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _end_if_told()
        super().__enter__()
        for outer in self._outer:
            if isinstance(outer, RaisedAtOnce) and outer.lost is not None:
                super().__exit__()
                raise outer.lost
            if isinstance(outer, Interrupts) and outer.raised:
                self.raised, self.number = True, outer.number
        return self

    def __exit__(self, failure: object = None, *_: object) -> None:
        super().__exit__()
        outside = [outer for outer in self._outer if isinstance(outer, Interrupts)]
        for outer in outside if self.raised else ():
            outer.raised, outer.number = True, self.number
        if not self.raised or outside or not self._previous or self.ends_program:
            return
        if self.number == signal.SIGTERM and self._previous[self.number] == signal.SIG_DFL:
            _end_program_later()
        elif self.number == signal.SIGTERM or (self.deliver and failure is None):
            signal.raise_signal(self.number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again = self.raised
        self.raised, self.number = True, number
        if again:
            raise self._error(number)
        outer = _owner(self._previous.get(number))
        if isinstance(outer, Interrupts):
            outer._note(number, frame)
        elif self._seconds < WORTH_WAITING:
            end_compilation(self._error(number))

    @property
    def exit_code(self) -> int:
        """Of a program that the signal ended."""
        return 128 + self.number


class RaisedAtOnce(_Handlers):
    """Work that has nothing to keep yet, such as reading a table: Ctrl-C is raised at once, as
    Python does, and so is SIGTERM where it `ends_program`.

    What was raised and got lost is raised again where an `Interrupts` begins inside, in the next
    part of a compilation, and at the end. Handlers of the program's own stay in place.
    """

    def __init__(self, ends_program: bool = False) -> None:
        super().__init__()
        self.ends_program = ends_program
        self.lost: BaseException | None = None

    def _replaces(self, number: int) -> bool:
        handler = signal.getsignal(number)
        if number == signal.SIGTERM:
            return self.ends_program and handler == signal.SIG_DFL
        return handler is signal.default_int_handler

    def __exit__(self, failure: object = None, *_: object) -> None:
        super().__exit__()
        if self.lost is not None and failure is None:
            raise self.lost

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.lost = self._error(number)
        end_compilation(self.lost)
        raise self.lost


def _owner(handler: Any) -> _Handlers | None:
    owner = getattr(handler, "__self__", None)
    return owner if isinstance(owner, _Handlers) else None


def _end_program_later() -> None:
    _told_to_end.add(os.getpid())
    atexit.unregister(_end_by_signal)
    atexit.register(_end_by_signal)


def _end_if_told() -> None:
    if os.getpid() in _told_to_end:
        _told_to_end.clear()
        raise SystemExit(TERMINATED)


def _end_by_signal() -> None:
    """Die of the signal, as the program would have without us: that is what its parent looks at."""
    if os.getpid() not in _told_to_end:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    logging.shutdown()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
