"""Parts of files that are read at once: rows of a Parquet file, lines of a CSV file.

Parquet is cut at its row groups, and within those that are too large. CSV is cut at line ends,
which a scan finds, where no cell holds one; what cannot be cut (compressed files, cells with line
breaks, encodings other than ASCII's relatives) is read from its beginning for every part.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.errors import DataError
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.streaming.reading import (
    COMPRESSED,
    Dialect,
    chunks,
    csv_chunks,
    is_parquet,
    parquet_file,
    refuse_unreadable,
)

if TYPE_CHECKING:
    from pandas import DataFrame

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
