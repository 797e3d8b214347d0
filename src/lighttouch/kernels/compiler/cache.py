"""The machine code on disk: one folder, every file named by a digest of all sources it was built
from.

numba's own cache looks at the file of a kernel only, not at what the kernel imports, and fails
where a user's record class takes part; both are mended here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

_KERNELS = Path(__file__).parent.parent
_IMPORT = re.compile(
    r"^\s*(?:from|import)\s+lighttouch\.kernels((?:\.\w+)*)(?:\s+import\s+(\([^)]*\)|.+))?",
    re.MULTILINE,
)


class _Locator(caching._CacheLocator):
    """Finds the folder of a kernel's machine code, named by a digest of every source file the
    kernel is built from.
    """

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._stamp = _digest(Path(source))

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return f"{self._line}-{self._stamp[:12]}"


class _Implementation(caching.CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any], ending: str = "") -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function, inspect.getfile(function))
        self._filename_base = self.get_filename_base(
            f"{function.__module__}.{function.__qualname__}{ending}", ""
        )

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        short = re.sub(r"[^\w.]", "", fullname.removeprefix("lighttouch.kernels."))
        return f"{short}-{self._locator.get_disambiguator()}.py{sys.version_info.minor}"


class _Cache(caching.FunctionCache):
    """numba's function cache, except that a bad or missing cache warns once and that users' classes
    stay out of it.

    A user's record class in the shared cache would break every program that cannot import it.
    """

    def __init__(self, function: Callable[..., Any], ending: str) -> None:
        self._impl_class = functools.partial(_Implementation, ending=ending)  # type: ignore[assignment]
        super().__init__(function)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if _foreign(signature):
            return None
        try:
            return super().load_overload(signature, target_context)
        except Exception as error:
            _warn_once(
                f"the compile cache in {self.cache_path} could not be read ({error}); "
                "compiling afresh"
            )
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        if _foreign(signature):
            return
        try:
            super().save_overload(signature, data)
        except Exception as error:
            _warn_once(
                f"the compile cache in {self.cache_path} could not be written ({error}); "
                "every process compiles afresh"
            )

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        """Numba's key and a digest of the files of all records: their verbs are compiled in, though
        no kernel imports them.
        """
        files = sorted(
            {inspect.getfile(record) for record in _record_classes(_arguments(signature))}
        )
        return (
            *super()._index_key(signature, codegen),
            tuple(_digest(Path(file)) for file in files),
        )


def open_cache(function: Callable[..., Any], ending: str) -> Any:
    """Where the machine code of a kernel is looked for and kept; nowhere, with a warning, where
    there is no folder for it.
    """
    try:
        return _Cache(function, ending)
    except Exception as error:
        _warn_once(f"no compile cache ({error}); every process compiles afresh")
        return caching.NullCache()


def _foreign(signature: Any) -> bool:
    """Whether a signature mentions a record class from outside this package."""
    return any(
        not (record.__module__ or "").startswith("lighttouch.")
        for record in _record_classes(_arguments(signature))
    )


def _arguments(signature: Any) -> Any:
    return signature.args if hasattr(signature, "args") else signature


def _record_classes(kinds: Any) -> set[type]:
    """The classes of all records among the types, also of records in records."""
    found = {
        kind.instance_class for kind in kinds if getattr(kind, "instance_class", None) is not None
    }
    return found.union(*(_record_classes(kind.types) for kind in kinds if hasattr(kind, "types")))


@functools.cache
def cache_folder() -> Path:
    """Where machine code is kept: $LIGHTTOUCH_CACHE_DIR, else beside the sources, else the user's
    cache folder.
    """
    chosen = os.environ.get("LIGHTTOUCH_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lighttouch"
    candidates = [Path(chosen)] if chosen else [_KERNELS / "__pycache__", home]
    for candidate in candidates:
        if _writable(candidate / "machine-code"):
            return candidate / "machine-code"
    return candidates[0] / "machine-code"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@functools.cache
def _digest(source: Path) -> str:
    """A digest of a kernel file and of every kernel file it imports, directly or not."""
    texts = {path: path.read_bytes() for path in sorted(_sources(source, set()))}
    hasher = hashlib.sha256(numba.__version__.encode())
    for path, text in texts.items():
        hasher.update(path.name.encode() + b"\0" + text)
    return hasher.hexdigest()


def _sources(source: Path, seen: set[Path]) -> set[Path]:
    seen.add(source)
    for module, names in _IMPORT.findall(source.read_text()):
        folder = _KERNELS.joinpath(*module.split(".")[1:])
        candidates = [
            folder.with_suffix(".py"),
            *(folder / f"{name}.py" for name in re.findall(r"\w+", names)),
        ]
        for path in candidates:
            if path not in seen and path.exists():
                _sources(path, seen)
    return seen


_CACHED_NAME = re.compile(r"([\w.]+)\.\w+-\d+-([0-9a-f]{12})\.py\d+\.")


def remove_stale_code() -> tuple[int, int]:
    """Delete the machine code of kernels whose sources have changed since, or are gone; how many
    files that were, and how many bytes.

    Files of modules that are not kernels of this package stay: they may be a user's.
    """
    files = removed = 0
    for path in cache_folder().glob("*-*.py*"):
        name = _CACHED_NAME.match(path.name)
        if name is None or not _is_stale(name[1], name[2]):
            continue
        with contextlib.suppress(OSError):
            size = path.stat().st_size
            path.unlink()
            files, removed = files + 1, removed + size
    return files, removed


def _is_stale(module: str, digest: str) -> bool:
    """Whether the source of a kernel differs from what was compiled; a module that is missing in a
    folder of kernels has been renamed or removed.
    """
    source = _KERNELS.joinpath(*module.split(".")).with_suffix(".py")
    if source.exists():
        return not _digest(source).startswith(digest)
    return source.parent != _KERNELS and source.parent.is_dir()


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if not _warned:
        warnings.warn(f"lighttouch: {message}", RuntimeWarning, stacklevel=3)
    _warned.add(message)
