"""Tables in and out: CSV and Parquet, compressed too, whole or in chunks.

Every complaint names the column, the cell and the line.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import sys
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from lighttouch.errors import DataError
from lighttouch.estimators.streaming.reading import (
    CHUNK,
    COMPRESSED,
    PARQUET,
    Dialect,
    chunks,
    frames,
    is_parquet,
)
from lighttouch.text import one_of_the_columns

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = [
    "CHUNK",
    "COMPRESSED",
    "PARQUET",
    "Dialect",
    "Writer",
    "chunks",
    "harmless",
    "is_parquet",
    "place",
    "read",
    "refuse_doubtful_text",
    "refuse_gaps",
    "refuse_infinite",
    "require_numbers",
    "standard_input",
    "where",
]
LONGEST_CELL = 10_000  # letters: categories are names, and a report shows them
FORMULA = ("=", "+", "-", "@", "\t", "\r")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
DATE = re.compile(r"\s*(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})([ T].*)?")


def read(path: Path, dialect: Dialect) -> DataFrame:
    """A whole table with at least one row and one column."""
    parts = list(chunks(path, dialect, rows=None))
    return parts[0]


@contextmanager
def standard_input(path: Path) -> Iterator[Path]:
    """The path itself, or a temporary file with what - stands for: tables are read twice."""
    if str(path) != "-":
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lighttouch-") as folder:
        with open(Path(folder) / "-", "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        with open(copy.name, "rb") as begun:
            parquet = begun.read(4) == b"PAR1"
        place = Path(copy.name)
        yield place.rename(place.with_name("standard input.parquet")) if parquet else place


def place(
    name: str, frame: DataFrame, what: str, path: Path, taken: Container[str | None] = ()
) -> str:
    """The name, if the table has such a column; columns that are taken are not what was meant."""
    names = [str(each) for each in frame.columns]
    if name not in names:
        raise DataError(
            f"{what} {name!r} is not a column of {path}{one_of_the_columns(name, names, taken)}"
        )
    return name


def refuse_doubtful_text(frame: DataFrame, path: Path, categorical: Sequence[str]) -> None:
    """Numbers spoilt by a few cells, decimal commas and dates would silently become thousands of
    categories.
    """
    for name in frame.columns:
        if not _is_text(frame[name]):
            continue
        cells = frame[name].dropna()
        _refuse_long_text(cells, name, path)
        if name in categorical or len(cells) == 0:
            continue
        _refuse_pattern(cells, name, path, DECIMAL_COMMA, "decimal commas", "pass --decimal ,")
        _refuse_pattern(
            cells,
            name,
            path,
            DATE,
            "dates",
            f"turn them into numbers, or leave the column out: --drop {name}",
        )
        _refuse_spoilt_numbers(cells, name, path)
        if len(cells) > 100 and cells.nunique() > len(cells) // 2:
            raise DataError(
                f"column {name!r} of {path} holds {cells.nunique():,} different texts in "
                f"{len(cells):,} rows, such as {cells.iloc[0]!r}: "
                f"it looks like an identifier. Leave it out (--drop {name}), or insist "
                f"(--categorical {name})"
            )


def _refuse_long_text(cells: Series, name: str, path: Path) -> None:
    lengths = np.array([len(cell) if isinstance(cell, str) else 0 for cell in cells])
    if lengths.size and lengths.max() > LONGEST_CELL:
        row = int(lengths.argmax())
        raise DataError(
            f"column {name!r} of {path} holds a text of {int(lengths[row]):,} letters in "
            f"{where(cells, row)}; a category has at most {LONGEST_CELL:,}. Shorten it, or leave "
            f"the column out: --drop {name}"
        )


def _is_text(series: Series) -> bool:
    return bool(series.dtype == object or str(series.dtype) in ("str", "string"))


def _refuse_pattern(
    cells: Series, name: str, path: Path, pattern: re.Pattern[str], what: str, remedy: str
) -> None:
    fits = np.array(
        [isinstance(cell, str) and pattern.fullmatch(cell) is not None for cell in cells]
    )
    if 2 * fits.sum() > fits.size:
        row = int(fits.argmax())
        raise DataError(
            f"column {name!r} of {path} holds {what}, such as {cells.iloc[row]!r} in "
            f"{where(cells, row)}: {remedy}"
        )


def _refuse_spoilt_numbers(cells: Series, name: str, path: Path) -> None:
    numeric = frames().to_numeric(cells, errors="coerce").notna().to_numpy()
    if numeric.all() or 2 * numeric.sum() <= numeric.size:
        return
    row = int(np.argmin(numeric))
    raise DataError(
        f"column {name!r} of {path} holds numbers, except in {int((~numeric).sum()):,} "
        f"row(s): the first is {cells.iloc[row]!r} in "
        f"{where(cells, row)}. Mend the cell, call it missing (--missing "
        f"{cells.iloc[row]!r}), or declare categories (--categorical {name})"
    )


def require_numbers(frame: DataFrame, name: str, path: Path, what: str) -> None:
    """The column holds finite numbers or gaps; else its first other cell is named."""
    series = frame[name]
    if _is_text(series):
        numeric = frames().to_numeric(series, errors="coerce").notna() | series.isna()
        row = int(np.argmin(numeric.to_numpy()))
        raise DataError(
            f"{what} {name!r} must hold numbers; {path} has {series.iloc[row]!r} in "
            f"{where(series, row)}"
        )
    values = np.asarray(series.to_numpy())
    if values.dtype.kind not in "iufb":
        raise DataError(
            f"{what} {name!r} must hold numbers; {path} has {series.dtype} data there, "
            f"such as {series.iloc[0]} in row 1"
        )


def refuse_infinite(frame: DataFrame, path: Path) -> None:
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype.kind == "f" and np.isinf(values).any():
            row = int(np.isinf(values).argmax())
            count = int(np.isinf(values).sum())
            raise DataError(
                f"column {name!r} of {path} holds infinity in {count:,} row(s), first in "
                f"{where(frame, row)}; drop or cap it"
            )


def refuse_gaps(series: Series, path: Path, what: str) -> None:
    gaps = series.isna().to_numpy()
    if gaps.any():
        first = where(series, int(gaps.argmax()))
        raise DataError(
            f"{what} {series.name!r} is missing in {int(gaps.sum()):,} row(s) of {path}, "
            f"first in {first}; drop those rows"
        )


def where(part: DataFrame | Series, row: int) -> str:
    """A row as people count: the first below the header is row 1, on line 2."""
    number = int(part.index[row]) + 1
    return f"row {number:,} (line {number + 1:,})"


def harmless(frame: DataFrame) -> DataFrame:
    """Text cells and names that a spreadsheet would run as formulas, with an apostrophe in front;
    numbers stay as they are.
    """
    safe = frame.copy()
    for name in safe.columns:
        if _is_text(safe[name]):
            safe[name] = [_quoted(cell) for cell in safe[name]]
    return safe.rename(columns=_quoted)


def _quoted(cell: object) -> object:
    return "'" + cell if isinstance(cell, str) and cell.startswith(FORMULA) else cell


class Writer:
    """Appends frames to a CSV (floats with all their digits) or Parquet file."""

    def __init__(self, path: Path | TextIO, kind: Path | None) -> None:
        self.path, self.parquet = path, kind is not None and is_parquet(kind)
        self.compression = (
            None
            if kind is None
            else {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}.get(kind.suffix.lower())
        )
        self.file: Any = None

    def append(self, frame: DataFrame) -> None:
        if self.parquet:
            self._append_parquet(frame)
            return
        first = self.file is None
        if first:
            self.file = self.path if hasattr(self.path, "write") else self._open()
        frame.to_csv(self.file, index=False, header=first, lineterminator="\n")

    def _open(self) -> Any:
        openers: dict[str | None, Any] = {
            "gzip": gzip.open,
            "bz2": bz2.open,
            "xz": lzma.open,
            None: open,
        }
        return openers[self.compression](self.path, "wt", encoding="utf-8", newline="")

    def _append_parquet(self, frame: DataFrame) -> None:
        import pyarrow
        import pyarrow.parquet

        if self.file is None:
            table = pyarrow.Table.from_pandas(frame, preserve_index=False)
            self.file = pyarrow.parquet.ParquetWriter(self.path, table.schema)
        else:
            table = pyarrow.Table.from_pandas(frame, schema=self.file.schema, preserve_index=False)
        self.file.write_table(table)

    def close(self) -> None:
        if self.file is not None and self.file is not self.path:
            self.file.close()


def same_columns(X: DataFrame, like: DataFrame, path: Path) -> DataFrame:
    """The columns of another table, in its order."""
    for name in like.columns:
        place(str(name), X, "the column", path)
    return X[list(like.columns)]
