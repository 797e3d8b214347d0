"""Rows of files as arrays: which column plays which part, and one shard at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.streaming.pieces import INDEX, Piece
from lighttouch.estimators.streaming.reading import Dialect, header, is_parquet, parquet_file
from lighttouch.estimators.tables import Columns, numbers, split
from lighttouch.text import one_of_the_columns

if TYPE_CHECKING:
    from pandas import DataFrame

Shard = tuple[Piece, ...]
Check = Callable[[Any, Path], None]  # of the features of a piece, and the file they are from


def shards_of(pieces: Sequence[Piece], rows: int) -> list[Shard]:
    """Neighbouring pieces together, as long as they have so many rows at most."""
    found: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        if piece.rows > room or not found:
            found.append([])
            room = rows
        found[-1].append(piece)
        room -= piece.rows
    return [tuple(shard) for shard in found]


@dataclass(frozen=True)
class Parts:
    """Which columns are not features."""

    target: str
    weight: str | None = None
    exposure: str | None = None
    query: str | None = None
    drop: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, str]:
        """What is read beside the features, with the words for messages."""
        words = {
            "target": self.target,
            "sample_weight": self.weight,
            "exposure": self.exposure,
            "qid": self.query,
        }
        return {word: name for word, name in words.items() if name is not None}

    def features(self, names: Sequence[str], path: Path) -> list[str]:
        """The other columns of a file."""
        for word, name in [*self.named.items(), *(("drop", each) for each in self.drop)]:
            if name not in names:
                raise DataError(
                    f"{word} must name a column, but {name!r} is not a column of {path}"
                    f"{one_of_the_columns(name, list(names))}"
                )
        taken = {*self.named.values(), *self.drop}
        found = [name for name in names if name not in taken]
        if not found:
            raise DataError(f"{path} has no column left to learn from beside the target")
        return found


def names_of(path: Path, dialect: Dialect) -> list[str]:
    """The names of a file's columns; columns without a name (row numbers?) are left out."""
    if is_parquet(path):
        with parquet_file(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
    else:
        names = header(path, dialect)[1]
    return [name for name in names if not is_unnamed(name)]


def is_unnamed(name: str) -> bool:
    """Whether a column has no name of its own: pandas calls it so."""
    return not name or re.fullmatch(r"Unnamed: \d+", name) is not None or name.startswith(INDEX)


@dataclass(frozen=True)
class Source:
    """How files are read: the features' names in order, the other parts, the kind of CSV, and which
    columns stay text whatever they look like.
    """

    features: tuple[str, ...]
    parts: Parts
    dialect: Dialect
    as_text: tuple[str, ...] = ()
    check: Check | None = None

    def frames(
        self, shard: Shard, features: bool = True, everything: bool = False
    ) -> Iterator[tuple[Piece, DataFrame]]:
        """Every piece with its rows; every one must have the same columns. Of Parquet files only
        the columns that are needed are read, unless `everything` is.
        """
        wanted = [*(self.features if features else ()), *self.parts.named.values()]
        for piece in shard:
            frame = piece.read(self.dialect, None if everything else wanted, self.as_text)
            given = [str(name) for name in frame.columns if not is_unnamed(str(name))]
            self._refuse_other_columns(wanted, given, piece.path)
            yield piece, frame[wanted]

    def _refuse_other_columns(self, wanted: list[str], given: list[str], path: Path) -> None:
        known = {*self.features, *self.parts.named.values(), *self.parts.drop}
        missing = [name for name in wanted if name not in given]
        extra = [name for name in given if name not in known]
        if missing:
            name = sorted(missing)[0]
            raise DataError(
                f"all files must have the same columns: {path} lacks {name!r}"
                f"{one_of_the_columns(name, extra or given)}"
            )
        if extra:
            raise DataError(
                f"all files must have the same columns: {path} has {extra[0]!r}, which the first "
                "file lacks; leave the column out (drop), or the file"
            )


@dataclass(frozen=True)
class Rows:
    """The rows of a shard as arrays: features as plain numbers, the other parts as they are."""

    table: Floats
    y: NDArray[Any]
    weights: Floats | None = None
    exposure: Floats | None = None
    query: NDArray[Any] | None = None


@dataclass(frozen=True)
class Reader:
    """Reads shards of files whose columns are known."""

    source: Source
    columns: Columns

    def __call__(self, shard: Shard) -> Rows:
        return self._rows(shard, True)

    def without_features(self, shard: Shard) -> Rows:
        return self._rows(shard, False)

    def _rows(self, shard: Shard, features: bool) -> Rows:
        tables: list[Floats] = []
        others: list[dict[str, NDArray[Any]]] = []
        for piece, frame in self.source.frames(shard, features):
            with of_piece(piece):
                if features:
                    tables.append(self.columns.read(frame[list(self.source.features)]))
                others.append(cells_of(frame, self.source.parts))
        empty = np.empty((0, len(self.columns)))
        known = {word: np.concatenate([each[word] for each in others]) for word in others[0]}
        return Rows(
            np.vstack(tables) if tables else empty,
            known["target"],
            known.get("sample_weight"),
            known.get("exposure"),
            known.get("qid"),
        )


def cells_of(frame: DataFrame, parts: Parts) -> dict[str, NDArray[Any]]:
    """The columns beside the features; weights and exposures as numbers."""
    found = {}
    for word, name in parts.named.items():
        cells = split(frame[[name]])[1][0]
        found[word] = numbers(cells, name) if word in ("sample_weight", "exposure") else cells
    return found


@contextmanager
def of_piece(piece: Piece) -> Iterator[None]:
    """Complaints name the file, and from where its rows are counted."""
    try:
        yield
    except (DataError, TypeError) as error:
        where = f", from row {piece.first + 1:,} on" if piece.first else ""
        raise DataError(f"{piece.path}{where}: {error}") from None
