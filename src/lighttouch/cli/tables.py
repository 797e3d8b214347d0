"""Tables in and out: CSV and Parquet, compressed too, whole or in chunks.

Every complaint names the column, the cell and the line.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from lighttouch.cli.failures import FileProblem
from lighttouch.errors import DataError
from lighttouch.estimators.tables import refuse_same_names
from lighttouch.text import did_you_mean, one_of_the_columns

if TYPE_CHECKING:
    from pandas import DataFrame, Series

CHUNK = 50_000
LONGEST_CELL = 10_000  # letters: categories are names, and a report shows them
READERS = ("zstandard", "compression", "_zstd", "zipfile", "pyarrow", "zlib", "_lzma", "bz2")
PARQUET = (".parquet", ".pq")
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
DATE = re.compile(r"\s*(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})([ T].*)?")


@dataclass(frozen=True)
class Dialect:
    """How a user's CSV is written."""

    separator: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    encoding: str = "utf-8"

    @classmethod
    def of(cls, options: argparse.Namespace) -> Dialect:
        return cls(options.separator, options.decimal, tuple(options.missing), options.encoding)


def frames() -> Any:
    """Pandas, or how to get it."""
    try:
        import pandas
    except ImportError:
        raise DataError(
            "reading tables needs pandas, which is not installed: pip install pandas pyarrow"
        ) from None
    return pandas


def is_parquet(path: Path) -> bool:
    return path.suffix.lower() in PARQUET


def read(path: Path, dialect: Dialect) -> DataFrame:
    """A whole table with at least one row and one column."""
    parts = list(chunks(path, dialect, rows=None))
    return parts[0]


def chunks(
    path: Path, dialect: Dialect, rows: int | None = CHUNK, as_text: Sequence[str] = ()
) -> Iterator[DataFrame]:
    """The table in pieces of `rows` rows (None: at once); columns named in `as_text` stay text
    whatever they look like.
    """
    refuse_unreadable(path)
    read_parts = (
        _parquet_chunks(path, rows)
        if is_parquet(path)
        else _csv_chunks(path, dialect, rows, as_text)
    )
    count = 0
    for part in read_parts:
        count += len(part)
        if len(part):
            yield part
    if count == 0:
        raise DataError(f"{path} holds a header and no rows; at least one row is needed")


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


def refuse_unreadable(path: Path) -> None:
    if path.is_dir():
        raise FileProblem(f"{path} is a folder, not a table; name a CSV or Parquet file")
    if not path.exists():
        others = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        raise FileProblem(f"there is no file {path}{did_you_mean(path.name, others)}")


def _parquet_chunks(path: Path, rows: int | None) -> Iterator[DataFrame]:
    frames()
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "reading Parquet needs pyarrow, which is not installed: pip install pyarrow"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
        refuse_same_names(list(file.schema_arrow.names))
        if rows is None:
            yield file.read().to_pandas(ignore_metadata=True)
            return
        for batch in file.iter_batches(rows):
            yield batch.to_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{path} is not a Parquet file, or is damaged: {error}") from None


def _csv_chunks(
    path: Path, dialect: Dialect, rows: int | None, as_text: Sequence[str]
) -> Iterator[DataFrame]:
    pandas = frames()
    separator, names = _header(path, dialect)
    options: dict[str, Any] = {
        "sep": separator,
        "decimal": dialect.decimal,
        "encoding": dialect.encoding,
        "index_col": False,
    }
    options |= {
        "na_values": list(dialect.missing),
        "low_memory": False,
        "skipinitialspace": True,
    } | _exact(pandas)
    options["dtype"] = {name: str for name in as_text if name in names}
    with _complaints(path, dialect, len(names)), warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        if rows is None:
            yield pandas.read_csv(path, **options)
        else:
            with pandas.read_csv(path, chunksize=rows, **options) as parts:
                yield from parts


@contextmanager
def _complaints(path: Path, dialect: Dialect, names: int = 0) -> Iterator[None]:
    """What pandas and the decompressors complain of, in words a user can act on."""
    errors = frames().errors
    try:
        yield
    except errors.ParserWarning:
        raise DataError(
            f"{path}: rows have more cells than the header has names ({names}); check the "
            "separator and the quotes"
        ) from None
    except errors.EmptyDataError:
        raise DataError(f"{path} is empty; a header and at least one row are needed") from None
    except errors.ParserError as error:
        told = str(error).removeprefix("Error tokenizing data. ")
        raise DataError(f"{path} is not a well-formed table: {told}") from None
    except UnicodeError:
        raise DataError(
            f"{path} is not {dialect.encoding} text; name its encoding, such as --encoding latin-1"
        ) from None
    except LookupError:
        raise DataError(
            f"there is no text encoding {dialect.encoding!r}; try utf-8 or latin-1"
        ) from None
    except Exception as error:
        raise _of_the_file(error, path) from None


def _of_the_file(error: Exception, path: Path) -> Exception:
    """What decompressors and readers raise, as a complaint about the file; ours as they are."""
    if isinstance(error, ImportError):
        return DataError(f"reading {path} needs a package that is missing: {error}")
    reader = type(error).__module__.partition(".")[0] in READERS
    unnamed = isinstance(error, OSError) and error.errno is None  # not the system's own words
    if isinstance(error, EOFError) or reader or unnamed:
        return FileProblem(f"{path} cannot be decompressed, it is damaged: {error}")
    if type(error) is ValueError:
        return DataError(f"{path} cannot be read as a table: {error}")
    return error


def _exact(pandas: Any) -> dict[str, Any]:
    """Every number as the nearest double: what pandas does by itself since 3.1."""
    major, minor = (int(part) for part in pandas.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _header(path: Path, dialect: Dialect) -> tuple[str, list[str]]:
    """The separator and the names as they stand: pandas would rename duplicates in silence."""
    pandas = frames()
    options = {
        "header": None,
        "nrows": 1,
        "dtype": str,
        "encoding": dialect.encoding,
        "keep_default_na": False,
        "index_col": False,
    }
    with _complaints(path, dialect):
        whole_line = str(pandas.read_csv(path, sep="\x01", quoting=3, **options).iloc[0, 0])
        separator = dialect.separator or max(",;\t", key=whole_line.count)
        first = pandas.read_csv(path, sep=separator, skipinitialspace=True, **options).iloc[0]
    names = [str(name) for name in first]
    refuse_same_names(names)
    return separator, names


def place(name: str, frame: DataFrame, what: str, path: Path) -> str:
    """The name, if the table has such a column."""
    names = [str(each) for each in frame.columns]
    if name not in names:
        raise DataError(
            f"{what} {name!r} is not a column of {path}{one_of_the_columns(name, names)}"
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
