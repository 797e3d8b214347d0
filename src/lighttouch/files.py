"""Files that appear whole or not at all: written beside their place, flushed to disk, renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the name `path` if the block succeeds.

    If the block or the writing fails, the temporary file is removed and what `path` held before is
    untouched.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        _flush(beside)
        beside.chmod(0o666 & ~_umask())  # as any new file: mkstemp's are readable by the owner only
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the file at once; text is written as UTF-8."""
    with replacing(path) as beside:
        beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _flush(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """The new name itself reaches the disk, where the system lets a folder be flushed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
