"""What goes between this process and its workers: values that all of them read, and failures; and
every number that decides in the engines.
"""

from __future__ import annotations

import mmap
import pickle
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from lighttouch.errors import EngineError
from lighttouch.running import Shared

# -------------------------------------------------------------------------------------------------
# Values that workers read without copying them: pickled, with their arrays beside the pickle.
#
# Pickle protocol 5 hands out the buffers of arrays; they are laid into one file, which workers map
# into their memory. All workers of a machine read the same pages.


ALIGNMENT = 64  # bytes: a cache line


def pickled(value: object, buffers: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """By protocol 5, or an error that says what can be pickled."""
    try:
        return pickle.dumps(value, protocol=5, buffer_callback=buffers)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            "what is handed to other processes must be picklable: a function of a module, an "
            "object of a class of a module, or functools.partial of one, not a lambda or a "
            f"function inside a function; {error}"
        ) from None


def packed(value: object) -> tuple[bytes, list[memoryview]]:
    """The pickle without its arrays, and the arrays' bytes."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickled(value, buffers.append)
    return head, [buffer.raw() for buffer in buffers]


_lasting: dict[str, memoryview] = {}  # mapped once: page faults cost as much as a pass


def _memory_of(path: str) -> memoryview:
    with Path(path).open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


class Mapped(Shared):
    """A value in a file that every process of this machine maps.

    The mapping is private and copies on writing, so that kernels see ordinary arrays, and no worker
    can change what another one reads.
    """

    def __init__(
        self, path: str, head: bytes, places: list[tuple[int, int]], lasting: bool
    ) -> None:
        self._path, self._head, self._places, self._lasting = path, head, places, lasting

    def get(self) -> Any:
        whole = _lasting.get(self._path) or _memory_of(self._path)
        if self._lasting:
            _lasting[self._path] = whole
        parts = [whole[begin : begin + size] for begin, size in self._places]
        return pickle.loads(self._head, buffers=parts)

    def release(self) -> None:
        Path(self._path).unlink(missing_ok=True)


def mapped(head: bytes, buffers: list[memoryview], folder: Path, lasting: bool) -> Mapped:
    """Write the buffers one behind the other into a new file of the folder."""
    places: list[tuple[int, int]] = []
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        for buffer in buffers:
            begin = -(-file.tell() // ALIGNMENT) * ALIGNMENT
            file.seek(begin)
            file.write(buffer)
            places.append((begin, buffer.nbytes))
        file.truncate(max(1, file.seek(0, 2)))  # an empty file cannot be mapped
    return Mapped(file.name, head, places, lasting)


# -------------------------------------------------------------------------------------------------
# What a task raised somewhere else, raised again here with its own message.


class RemoteTracebackError(Exception):
    """Where in the other process it was; the cause of what is raised here."""

    def __str__(self) -> str:
        return f"in another process:\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """An exception on its way back."""

    pickled: bytes | None
    words: str
    where: str

    def reraise(self) -> NoReturn:
        error: BaseException = EngineError(self.words)
        if self.pickled is not None:
            error = pickle.loads(self.pickled)
        raise error from RemoteTracebackError(self.where)


def failure_of(error: BaseException) -> Failure:
    """The exception, if it survives the way; else its name and message."""
    words = f"{type(error).__name__}: {error}"
    where = "".join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return Failure(None, words, where)
    return Failure(pickled, words, where)


# -------------------------------------------------------------------------------------------------
# Every number that decides in the engines.


@dataclass(frozen=True)
class Limits:
    """When an engine gives up, and how it hands out work."""

    task_seconds: float = 3600.0
    """Seconds that one task may take by default: a shard that is read from a slow disk and solved
    takes minutes; a task without end must not hold a run for ever."""

    deaths: int = 5
    """Workers that one task may lose before it is the task's fault: a worker is killed by chance
    once or twice, one that runs out of memory is killed every time."""

    queue: int = 2
    """Tasks per worker: one that runs and one that waits there, so that no worker waits for us."""

    inline_bytes: int = 1 << 18
    """A value up to this size travels with every task: a file or an object of its own costs as
    much as 256 kB through a pipe, about 0.2 ms."""

    start_seconds: float = 120.0
    """Seconds for a worker to start, or for a cluster to answer: importing takes 2 s, on a machine
    with ten times as many processes as cores 20 s."""

    connections: int = 3
    """Attempts to start a Ray of this machine, or to reach a cluster."""

    stop_seconds: float = 5.0
    """Seconds for a worker to end by itself before it is killed."""

    look_seconds: float = 0.5
    """Seconds between two looks at deadlines and lost workers while waiting."""


LIMITS = Limits()
