"""Tables in files (CSV, Parquet, compressed too): whole, in chunks or in parts, and which files are
meant.
"""

from __future__ import annotations

import glob
import io
import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.errors import DataError, FileProblem
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.tables import refuse_same_names
from lighttouch.text import closest_name
from lighttouch.validation import told

if TYPE_CHECKING:
    from pandas import DataFrame


CHUNK = 50_000
READERS = ("zstandard", "compression", "_zstd", "zipfile", "pyarrow", "zlib", "_lzma", "bz2")
PARQUET = (".parquet", ".pq")
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")


@dataclass(frozen=True)
class Dialect:
    """How a user's CSV is written."""

    separator: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    encoding: str = "utf-8"

    @classmethod
    def of(cls, options: Any) -> Dialect:
        """From the options of a command."""
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


def chunks(
    path: Path,
    dialect: Dialect,
    rows: int | None = CHUNK,
    as_text: Sequence[str] = (),
    empty: bool = False,
) -> Iterator[DataFrame]:
    """The table in pieces of `rows` rows (None: at once); columns named in `as_text` stay text
    whatever they look like. A table without rows is refused, unless it may be `empty`.
    """
    refuse_unreadable(path)
    read_parts = (
        _parquet_chunks(path, rows)
        if is_parquet(path)
        else csv_chunks(path, dialect, rows, as_text)
    )
    count = 0
    for part in read_parts:
        count += len(part)
        if len(part):
            yield part
    if count == 0 and not empty:
        raise DataError(f"{path} holds a header and no rows; at least one row is needed")


def refuse_unreadable(path: Path) -> None:
    if path.is_dir():
        raise FileProblem(f"{path} is a folder, not a table; name a CSV or Parquet file")
    if not path.exists():
        others = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        close = closest_name(path.name, others)
        advice = "" if close is None else f"; did you mean {str(path.with_name(close))!r}?"
        raise FileProblem(f"there is no file {path}{advice}")


def _parquet_chunks(path: Path, rows: int | None) -> Iterator[DataFrame]:
    with parquet_file(path) as file:
        if rows is None:
            yield file.read().to_pandas(ignore_metadata=True)
            return
        for batch in file.iter_batches(rows):
            yield batch.to_pandas()


@contextmanager
def parquet_file(path: Path) -> Iterator[Any]:
    """An open Parquet file whose columns have different names."""
    frames()
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "reading Parquet needs pyarrow, which is not installed: pip install pyarrow"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            refuse_same_names(list(file.schema_arrow.names))
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{path} is not a Parquet file, or is damaged: {error}") from None


def csv_chunks(
    path: Path,
    dialect: Dialect,
    rows: int | None,
    as_text: Sequence[str],
    text: BytesIO | None = None,
) -> Iterator[DataFrame]:
    """The table, or with `text` a part of it that begins with its header."""
    pandas = frames()
    separator, names = header(path, dialect, text)
    source = path if text is None else text
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
            yield pandas.read_csv(source, **options)
        else:
            with pandas.read_csv(source, chunksize=rows, **options) as parts:
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


def header(path: Path, dialect: Dialect, text: BytesIO | None = None) -> tuple[str, list[str]]:
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
        whole_line = str(
            pandas.read_csv(_begun(path, text), sep="\x01", quoting=3, **options).iloc[0, 0]
        )
        separator = dialect.separator or max(",;\t", key=whole_line.count)
        cells = pandas.read_csv(
            _begun(path, text), sep=separator, skipinitialspace=True, **options
        ).iloc[0]
        _begun(path, text)
    names = [str(name) for name in cells]
    refuse_same_names(names)
    return separator, names


def _begun(path: Path, text: BytesIO | None) -> Any:
    """What is read, from its beginning."""
    if text is None:
        return path
    text.seek(0)
    return text


# -------------------------------------------------------------------------------------------------
# Which files are meant: names, patterns and folders, in a fixed order.


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
        shown = ", ".join(each.name for each in inside[: STREAMING.shown]) or "nothing"
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


# -------------------------------------------------------------------------------------------------
# Parts of files that are read at once: rows of a Parquet file, lines of a CSV file.
#
# Parquet is cut at its row groups, and within those that are too large. CSV is cut at line ends,
# which a scan finds, where no cell holds one; what cannot be cut (compressed files, cells with line
# breaks, encodings other than ASCII's relatives) is read from its beginning for every part.


LINE_END, QUOTE = 10, 34  # as bytes
INDEX = "__index_level_"  # what pandas calls an index without a name in Parquet files
BLANK = b" \t\r\n\xef\xbb\xbf"


@dataclass(frozen=True)
class Piece:
    """Some rows of one file, one after the other."""

    path: Path
    first: int  # its first row's number in the file
    rows: int  # at most: lines may be empty
    group: int | None = None  # of a Parquet file
    skipped: int = 0  # rows of the group, or of a file that cannot be cut, before it
    header: tuple[int, int] | None = None  # where a CSV file's first line lies, in bytes
    lines: tuple[int, int] | None = None  # and the piece's own

    def read(
        self, dialect: Dialect, columns: Sequence[str] | None = None, as_text: Sequence[str] = ()
    ) -> DataFrame:
        """The rows, numbered as in the file; of Parquet only the named columns, where the file has
        them.
        """
        refuse_unreadable(self.path)
        frame = self._frame(dialect, columns, as_text)
        return frame.set_axis(range(self.first, self.first + len(frame)), axis=0)

    def _frame(
        self, dialect: Dialect, columns: Sequence[str] | None, as_text: Sequence[str]
    ) -> DataFrame:
        if self.group is not None:
            return _of_group(self.path, self.group, self.skipped, self.rows, columns)
        if self.lines is None:
            parts = chunks(self.path, dialect, self.rows, as_text)
            return next(itertools.islice(parts, self.skipped // self.rows, None))
        with open(self.path, "rb") as file:
            text = b"".join(_between(file, *place) for place in (self.header, self.lines) if place)
        return next(csv_chunks(self.path, dialect, None, as_text, io.BytesIO(text)))


def _between(file: Any, start: int, stop: int) -> bytes:
    file.seek(start)
    return bytes(file.read(stop - start))


def _of_group(
    path: Path, group: int, skipped: int, rows: int, columns: Sequence[str] | None
) -> DataFrame:
    with parquet_file(path) as file:
        there = set(file.schema_arrow.names)
        wanted = None if columns is None else [name for name in columns if name in there]
        parts = file.iter_batches(rows, row_groups=[group], columns=wanted)
        batch = next(itertools.islice(parts, skipped // rows, None))
        return batch.to_pandas(ignore_metadata=True)


@dataclass(frozen=True)
class Cutter:
    """Cuts a file into pieces; a class, so that it can be sent to workers."""

    dialect: Dialect
    rows: int

    def __call__(self, path: Path) -> list[Piece]:
        refuse_unreadable(path)
        if is_parquet(path):
            return self._cut_parquet(path)
        if path.stat().st_size == 0:
            return []
        if path.suffix.lower() not in COMPRESSED and self._plain_text():
            found = self._cut_lines(path)
            if found is not None:
                return found
        return self._cut_rows(path)

    def _plain_text(self) -> bool:
        try:
            return '\n"'.encode(self.dialect.encoding) == b'\n"'
        except LookupError:
            raise DataError(
                f"there is no text encoding {self.dialect.encoding!r}; try utf-8 or latin-1"
            ) from None

    def _cut_parquet(self, path: Path) -> list[Piece]:
        found, first = [], 0
        with parquet_file(path) as file:
            for group in range(file.metadata.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                for skipped in range(0, count, self.rows):
                    rows = min(self.rows, count)
                    found.append(Piece(path, first + skipped, rows, group, skipped))
                first += count
        return found

    def _cut_lines(self, path: Path) -> list[Piece] | None:
        """Cuts after line ends; None where a cell holds one, or there are none."""
        ends, size = line_ends(path, self.rows)
        if ends is None:
            return None
        header = (0, int(ends[0]))
        cuts = [*ends.tolist(), *([size] if ends[-1] < size else [])]
        return [
            Piece(path, place * self.rows, self.rows, header=header, lines=(low, high))
            for place, (low, high) in enumerate(itertools.pairwise(cuts))
        ]

    def _cut_rows(self, path: Path) -> list[Piece]:
        """So many rows at a time, each time read from the beginning."""
        found, first = [], 0
        for part in chunks(path, self.dialect, self.rows, empty=True):
            found.append(Piece(path, first, self.rows, skipped=first))
            first += len(part)
        return found


def line_ends(path: Path, rows: int) -> tuple[Any, int]:
    """Where the first line that is not empty ends, and every so many lines after it, in bytes; and
    the size. None in place of the ends where a line has an odd number of quotes: a cell may hold
    the line end.
    """
    kept, lines, place, quotes = [], 0, 0, 0
    with open(path, "rb") as file:
        while block := file.read(STREAMING.block):
            letters = np.frombuffer(block, dtype=np.uint8)
            ends = np.flatnonzero(letters == LINE_END) + 1
            quoted = np.cumsum(letters == QUOTE) + quotes
            if (quoted[ends - 1] % 2).any():
                return None, 0
            if place == 0:  # empty lines before the header, and the mark that some programs write
                ends = ends[ends > len(block) - len(block.lstrip(BLANK))]
            kept.append(place + ends[(lines + np.arange(ends.size)) % rows == 0])
            lines, place, quotes = lines + int(ends.size), place + len(block), int(quoted[-1])
    found = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    return (found if found.size else None), place
