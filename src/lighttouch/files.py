"""Files that appear whole or not at all: written beside their place, flushed to disk, renamed."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from lighttouch.errors import ModelFileError

ENDING = ".part"
ABANDONED = 86_400.0  # seconds after which a temporary file of another machine is nobody's
_LONGEST = 100  # letters of a file's name in that of its temporary file: names end at 255


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` to write to; it takes the name `path` if the block succeeds.

    If the block or the writing fails, the temporary file is removed, what `path` held before is
    untouched, and the error names `path`. What a killed process left there is removed first.
    """
    with replacing_all([path]) as (beside,):
        yield beside


@contextmanager
def replacing_all(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The same for several files, which are replaced together: once one has its new content, so
    have all, unless the process is killed within the renames themselves.
    """
    with ExitStack() as cleaning:
        besides: list[Path] = []
        for path in paths:
            if path.name.startswith(".") and path.name.endswith(ENDING):
                besides.append(path)  # one of ours: whoever made it replaces it
                continue
            sweep(path)
            with naming(path):
                besides.append(_temporary(path, cleaning))
        with naming(*paths):
            yield besides
            for path, beside in zip(paths, besides, strict=True):
                _flush(beside)
                beside.chmod(_mode(path))
        for path, beside in zip(paths, besides, strict=True):
            if beside is not path:
                with naming(path):
                    os.replace(beside, path)
    for folder in {path.parent for path in paths}:
        _flush_folder(folder)


def _temporary(path: Path, cleaning: ExitStack) -> Path:
    prefix = f".{path.name[:_LONGEST]}.{_host()}-{os.getpid()}-"
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=ENDING, dir=path.parent)
    beside = Path(name)
    cleaning.callback(beside.unlink, missing_ok=True)
    os.close(handle)
    return beside


@contextmanager
def naming(*paths: Path) -> Iterator[None]:
    """An OSError without a path, or with that of a temporary file, gets the path it is about."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename and not str(error.filename).endswith(ENDING)):
            raise
        told = " or ".join(str(path) for path in paths)
        raise type(error)(error.errno, error.strerror, told) from error


def intended(path: Path) -> Path:
    """The file that a temporary one of ours will become; any other path is itself."""
    found = re.fullmatch(r"\.(.+)\.[0-9a-f]{8}-\d+-.*" + re.escape(ENDING), path.name)
    return path.with_name(found.group(1)) if found else path


def sweep(path: Path) -> None:
    """Remove temporary files of `path` whose process has ended without removing them."""
    beginning = f".{path.name[:_LONGEST]}."
    try:
        names = os.listdir(path.parent)
    except OSError:
        return
    for name in names:
        if name.startswith(beginning) and name.endswith(ENDING):
            left = path.parent / name
            if _is_abandoned(left, name.removeprefix(beginning)):
                with suppress(OSError):
                    left.unlink()


def _is_abandoned(left: Path, whose: str) -> bool:
    """Its process is gone; of other machines' files, and of older versions', the age decides."""
    host, _, rest = whose.partition("-")
    number = rest.partition("-")[0]
    if host == _host() and number.isdigit():
        return not _is_alive(int(number))
    with suppress(OSError):
        return time.time() - left.stat().st_mtime > ABANDONED
    return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@cache
def _host() -> str:
    """A few letters that stand for this machine: process numbers mean nothing elsewhere."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def refuse_unwritable(path: Path, what: str) -> None:
    """Raise before the work begins where `path` could not be written at its end."""
    if path.is_dir():
        raise ModelFileError(f"the {what} {path} is a folder; name a file")
    if not path.parent.is_dir():
        raise ModelFileError(
            f"the {what} {path} cannot be written: there is no folder {path.parent}"
        )
    if not os.access(path.parent, os.W_OK):
        raise ModelFileError(
            f"the {what} {path} cannot be written: no permission to write to the folder "
            f"{path.parent}"
        )


def write_whole(path: Path, content: bytes | str) -> None:
    """Write the file at once; text is written as UTF-8."""
    with replacing(path) as beside:
        beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def _mode(path: Path) -> int:
    """As the file that is replaced, or as any new file: mkstemp's are for their owner only."""
    with suppress(OSError):
        return path.stat().st_mode & 0o777
    return 0o666 & ~_umask()


@cache
def _umask() -> int:
    """Asked once: asking sets it, which other threads would notice."""
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
