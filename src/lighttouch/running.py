"""What every run needs: clock, deadline, progress, one BLAS thread, things made once, and the
engine that does its work in parts.
"""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Protocol, TypeVar, runtime_checkable

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from lighttouch.arrays import Floats
from lighttouch.kernels.compiler.compiled import compile_seconds
from lighttouch.validation import told


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


def out_of_time() -> bool:
    """Whether the time is over."""
    return seconds_left() <= 0.0


def check_deadline() -> None:
    """Raise an OutOfTimeError once the time is over."""
    if out_of_time():
        raise OutOfTimeError(
            "what was begun, such as a projection onto the constraints, was not finished within "
            "the time limit; allow more time"
        )


class Timed:
    """A user's function that is not called any more once the time is over: one call may take
    seconds, and only between calls can a limit be kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arguments: Any) -> Any:
        check_deadline()
        return self.function(*arguments)


BAR = 24
REDRAWN = 0.2  # seconds: five times a second looks steady
PLAIN = 10.0  # seconds between two lines where no terminal shows a bar


class ProgressBar:
    """Redraws one line at most five times a second on a terminal; elsewhere plain lines, one every
    ten seconds and one at the end. Silent unless switched on.
    """

    def __init__(self, on: bool, label: str = "") -> None:
        self._on = on
        self._label = label
        self._began = time.perf_counter()
        self._drawn = -1.0
        self._width = 0
        self._terminal = on and _is_terminal(sys.stderr)
        if on and not self._terminal:
            self._drawn = self._began

    def show(self, share: float, text: str) -> None:
        """How much is done, from 0 to 1."""
        if self._is_due(share >= 1.0):
            share = min(1.0, max(0.0, share))
            filled = int(BAR * share) if self._terminal else 0
            bar = f"[{'=' * filled}{' ' * (BAR - filled)}] " if self._terminal else ""
            self._write(f"{bar}{100 * share:3.0f}%", text)

    def count(self, done: int, what: str) -> None:
        """How many are done, where nobody knows of how many."""
        if self._is_due(False):
            self._write(f"{done:,} {what}", "")

    def _is_due(self, last: bool) -> bool:
        now = time.perf_counter()
        pause = REDRAWN if self._terminal else PLAIN
        if not self._on or (now - self._drawn < pause and not last):
            return False
        self._drawn = now
        return True

    def _write(self, amount: str, text: str) -> None:
        line = f"{self._label}{amount}  {self._drawn - self._began:5.1f} s  {text}".rstrip()
        if self._terminal:
            sys.stderr.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._on and self._width:
            sys.stderr.write("\n")
            sys.stderr.flush()


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


Made = TypeVar("Made")

MOST_PER_OWNER = 8  # variants (say, of the domain) kept beside each other


class _Kept(dict[Hashable, Any]):
    """What was made for one owner. It stays behind when the owner is pickled or deeply copied."""

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()


def prepared(owner: Any, key: Hashable, build: Callable[[], Made]) -> Made:
    """`build()`, made at the first call for this owner and key, and the same object afterwards.

    It is kept by the owner itself, so that it may refer to the owner: a table of weak keys would
    then keep both forever. Of many keys only the latest stay.
    """
    made = vars(owner).setdefault("_prepared", _Kept())
    if key not in made:
        while len(made) >= MOST_PER_OWNER:
            made.pop(next(iter(made)))
        made[key] = build()
    return made[key]  # type: ignore[no-any-return]


def is_prepared(owner: Any, key: Hashable) -> bool:
    """Whether `prepared` has it already."""
    return key in vars(owner).get("_prepared", ())


POINTS = 8  # a run asks again for its first, its best and its last point


def remembered(owner: Any, what: str, point: Floats, compute: Callable[[], Made]) -> Made:
    """`compute()`, or what it gave when it was last asked for this point: of the last few points
    it is kept by the owner.
    """
    known: OrderedDict[bytes, Made] = prepared(owner, what, OrderedDict)
    key = hashlib.sha256(point.tobytes()).digest()
    if key not in known:
        known[key] = compute()
        if len(known) > POINTS:
            known.popitem(last=False)
    known.move_to_end(key)
    return known[key]


# -------------------------------------------------------------------------------------------------
# Where work in parts is done: in this process, unless an engine was asked for.
#
# Objectives in shards and fits from files hand `map` a task and a list of arguments, and get the
# results back in that order. What does it, and on which machines, is an engine's business:
# `InProcess` here, the others in `engines/`, which the core does not import. The engine of a run is
# ambient, as its deadline is: `working_with` sets it.


@runtime_checkable
class Engine(Protocol):
    """What computes tasks somewhere: in this process, on several cores, on a cluster.

    A task is a picklable function that is deterministic in its arguments, so that it may be
    computed again wherever a worker was lost. Engines know nothing of what they compute.
    `InProcess` is the smallest one; `engines/` has the others, each in a file of its own.
    """

    @property
    def workers(self) -> int:
        """How many tasks are computed at the same time."""

    @property
    def session(self) -> int:
        """Another number whenever workers were started anew: what was shared before is gone."""

    def __enter__(self) -> Engine:
        """Start the workers; inside another block of the same engine, nothing."""

    def __exit__(self, *_: object) -> None:
        """Stop what was started; nothing is left running."""

    def share(self, value: object, lasting: bool = False) -> Any:
        """A `Shared`: the value, put once where every worker can read it. Arrays are not
        copied for each worker. A `lasting` one is asked for again and again.
        """

    def map(
        self,
        task: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        names: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """`task(*item)` for every item, in the order of the items.

        What a task raises is raised here, with its own message. Every wait ends: with the result,
        with the deadline of the run (`check_deadline`), or with the engine's own deadline
        for one task, in an error that calls the item by its name. Few results wait to be taken.
        """

    def describe(self) -> str:
        """Where the work is done, in words for the user."""


class Shared:
    """A value that every worker can read. Among the arguments of a task it stands for the value."""

    def get(self) -> Any:
        """The value, in whichever process."""
        raise NotImplementedError

    def release(self) -> None:
        """It is not needed any more."""


class Inline(Shared):
    """A value that is in this process, or small enough to travel with every task."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value

    def release(self) -> None:
        self._value = None


def run_task(task: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What every engine does with one item, so that all give the same bits."""
    with one_blas_thread():
        return task(*(each.get() if isinstance(each, Shared) else each for each in arguments))


class InProcess:
    """The engine that stands for None: one task after the other, in this process."""

    workers = 1
    session = 0

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing runs outside."""

    def share(self, value: object, lasting: bool = False) -> Shared:
        return Inline(value)

    def map(
        self,
        task: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        names: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        for arguments in items:
            check_deadline()
            yield run_task(task, arguments)

    def describe(self) -> str:
        return "this process"


HERE = InProcess()

_current: ContextVar[Engine] = ContextVar("engine", default=HERE)


def current_engine() -> Engine:
    """The engine of the run that this is part of."""
    return _current.get()


@contextmanager
def working_with(engine: Engine | None) -> Iterator[Engine]:
    """Everything in the block that is in parts is done by this engine, which is open for as long;
    None is the engine outside.
    """
    if engine is None:
        yield current_engine()
        return
    with refused_unless_engine(engine) as opened:
        token = _current.set(opened)
        try:
            yield opened
        finally:
            _current.reset(token)


def refused_unless_engine(engine: Any) -> Engine:
    """The engine, or an error that says what one is."""
    if isinstance(engine, type) or not isinstance(engine, Engine):
        raise ValueError(
            "engine must be None for this process, Processes(workers) or Ray(address), got "
            f"{told(engine)}"
        )
    return engine


def named(names: Sequence[str] | None, place: int) -> str:
    """An item in a message."""
    return f"task {place}" if names is None else names[place]
