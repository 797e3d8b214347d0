"""Values that workers read without copying them: pickled, with their arrays beside the pickle.

Pickle protocol 5 hands out the buffers of arrays; they are laid into one file, which workers map
into their memory. All workers of a machine read the same pages.
"""

from __future__ import annotations

import mmap
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lighttouch.running import Shared

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
