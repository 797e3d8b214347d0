"""Where work in parts is done: in this process, unless an engine was asked for.

Objectives in shards and fits from files hand `map` a task and a list of arguments, and get the
results back in that order. What does it, and on which machines, is an engine's business
(`interfaces.Engine`): `InProcess` here, the others in `engines/`, which the core does not import.
The engine of a run is ambient, as its deadline is: `working_with` sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lighttouch.interfaces import Engine
from lighttouch.running import check_deadline, one_blas_thread
from lighttouch.validation import told


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
