"""Which files are meant: names, patterns and folders, in a fixed order."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lighttouch.errors import DataError, FileProblem
from lighttouch.estimators.streaming.reading import COMPRESSED, PARQUET, refuse_unreadable
from lighttouch.validation import told

TABLES = (".csv", ".tsv", ".txt", *PARQUET)
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def files_of(paths: Any) -> tuple[Path, ...]:
    """The files of a name, a pattern such as "loans/*.parquet", a folder, or several of them.

    The files of a pattern or a folder come in the order of their names, so that the same rows
    always come in the same order.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, Iterable):
        raise DataError(f"paths must name files, patterns or folders, got {told(paths)}")
    found = [file for each in given for file in _files(Path(os.fspath(each)))]
    if not found:
        raise DataError("paths must name at least one file, got none")
    return tuple(dict.fromkeys(found))


def is_several(path: str | os.PathLike[str]) -> bool:
    """Whether a name stands for several files: a folder, or a pattern that is no file's name."""
    here = Path(path)
    return here.is_dir() or (not here.exists() and glob.has_magic(str(path)))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _of_folder(path)
    if path.exists() or not glob.has_magic(str(path)):
        refuse_unreadable(path)
        return [path]
    found = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
    files = [each for each in found if each.is_file()]
    if not files:
        raise FileProblem(f"no file matches {path}; quote the pattern, and check the folder")
    return files


def _of_folder(folder: Path) -> list[Path]:
    """Tables that lie in a folder; hidden files and what writers leave beside them do not count."""
    inside = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
    files = [each for each in inside if each.is_file() and is_table(each)]
    if not files:
        shown = ", ".join(each.name for each in inside[:5]) or "nothing"
        raise FileProblem(
            f"the folder {folder} holds no CSV or Parquet file (it holds {shown}); name the files, "
            f"such as {folder}/*.parquet"
        )
    return files


def is_table(path: Path) -> bool:
    name = path.name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return name.endswith(TABLES)
