"""Rows of files as arrays: which column plays which part, one shard at a time, and what a first
pass over all of them finds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.streaming.reading import (
    INDEX,
    Dialect,
    Piece,
    header,
    is_parquet,
    parquet_file,
)
from lighttouch.estimators.tables import (
    Column,
    Columns,
    is_text,
    missing_cell,
    numbers,
    plain_cell,
    sorted_categories,
    split,
)
from lighttouch.running import ProgressBar, current_engine
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
                    f"{one_of_the_columns(name, list(names), taken=(self.target,))}"
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
                f"{one_of_the_columns(name, given, taken=known)}"
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


# -------------------------------------------------------------------------------------------------
# One pass over all files: columns, kinds, categories, ranges, gaps, labels and weights.
#
# What is found in a shard is merged with what others found in the order of the shards, so that the
# number of workers changes nothing. Counts, ranges and categories are exact.


Item = TypeVar("Item")
Answer = TypeVar("Answer")
NUMBER, TEXT = "numbers", "text"


@dataclass(frozen=True)
class Passes:
    """How shards are visited: by the engine of the run, answers in the order of the shards, with or
    without progress on the screen.
    """

    progress: bool = False

    def map(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        what: str,
        names: Sequence[str] | None = None,
    ) -> Iterator[Answer]:
        """`function` of every item, in order; `what` is done, for the screen."""
        bar = ProgressBar(self.progress, f"{what}: ")
        answers = current_engine().map(function, [(item,) for item in items], names)
        try:
            for done, answer in enumerate(answers, start=1):
                bar.show(done / len(items), f"{done} of {len(items)} parts")
                yield answer
        finally:
            bar.close()


@dataclass
class Found:
    """What a column holds, in some rows."""

    kinds: dict[str, Path] = field(default_factory=dict)  # each with the first file that has it
    present: int = 0
    missing: int = 0
    low: float = np.inf
    high: float = -np.inf
    categories: Counter[Any] = field(default_factory=Counter)

    def merge(self, other: Found) -> None:
        for kind, path in other.kinds.items():
            self.kinds.setdefault(kind, path)
        self.present += other.present
        self.missing += other.missing
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.categories.update(other.categories)

    @property
    def constant(self) -> bool:
        """Whether it has no two different values."""
        return len(self.categories) < 2 if self.categories else not self.low < self.high


@dataclass
class Facts:
    """What some shards hold."""

    rows: list[int]  # of every shard
    columns: dict[str, Found]
    target: Found
    labels: list[NDArray[Any]] = field(default_factory=list)
    weighted_labels: list[NDArray[Any]] = field(default_factory=list)  # of rows with a weight
    many: bool = False  # whether there are more different targets than classes may be
    largest_weight: float = 0.0
    weighted: list[int] = field(default_factory=list)  # rows of every shard with a weight

    def merge(self, other: Facts) -> None:
        self.rows += other.rows
        self.weighted += other.weighted
        for name, found in other.columns.items():
            self.columns[name].merge(found)
        self.target.merge(other.target)
        self.many = self.many or other.many
        if not self.many:
            self.labels = [np.unique(np.concatenate([*self.labels, *other.labels]))]
            more = [*self.weighted_labels, *other.weighted_labels]
            self.weighted_labels = [np.unique(np.concatenate(more))]
            self.many = self.labels[0].size > STREAMING.classes
        self.largest_weight = max(self.largest_weight, other.largest_weight)

    @property
    def count(self) -> int:
        return sum(self.rows)

    @property
    def classes(self) -> NDArray[Any]:
        """The different labels, sorted."""
        if self.many:
            raise DataError(
                f"the target holds more than {STREAMING.classes:,} different labels; a classifier "
                "takes at most so many"
            )
        return self.labels[0]

    @property
    def weighted_classes(self) -> NDArray[Any]:
        """Those that a row with a weight has."""
        return self.weighted_labels[0]

    def learnt(self, forced: Sequence[str]) -> Columns:
        """Names and kinds of the features."""
        return Columns(
            tuple(
                Column(
                    name,
                    sorted_categories(found.categories)
                    if name in forced or TEXT in found.kinds
                    else None,
                )
                for name, found in self.columns.items()
            ),
            named=True,
        )


@dataclass(frozen=True)
class Scan:
    """What one shard holds; a class, so that it can be sent to workers."""

    source: Source
    forced: tuple[str, ...]  # columns of categories whatever they look like

    def __call__(self, shard: Shard) -> Facts:
        found = Facts([0], {name: Found() for name in self.source.features}, Found())
        found.weighted = [0]
        for piece, frame in self.source.frames(shard, everything=True):
            with of_piece(piece):
                features = frame[list(self.source.features)]
                if self.source.check is not None:
                    self.source.check(features, piece.path)
                for name, cells in zip(*split(features), strict=True):
                    found.columns[name].merge(self._column(name, cells, piece.path))
                others = cells_of(frame, self.source.parts)
                found.target.merge(self._target(others["target"], piece.path))
                weights = _weights(others.get("sample_weight"))
                _add_labels(found, others["target"], weights)
            found.rows[0] += len(frame)
            found.weighted[0] += len(frame) if weights is None else int(np.count_nonzero(weights))
            if weights is not None:
                found.largest_weight = max(found.largest_weight, float(weights.max(initial=0.0)))
        return found

    def _column(self, name: str, cells: NDArray[Any], path: Path) -> Found:
        found = Found()
        text = is_text(cells, name)
        if text or name in self.forced:
            known = [plain_cell(cell) for cell in cells if not missing_cell(cell)]
            found.categories = Counter(known)
            found.present = len(known)
            if len(found.categories) > STREAMING.categories:
                raise DataError(
                    f"column {name!r} holds more than {STREAMING.categories:,} different values, "
                    "which looks like an identifier; leave it out (drop)"
                )
        else:
            values = numbers(cells, name)
            known_values = values[~np.isnan(values)]
            found.present = int(known_values.size)
            found.low = float(known_values.min(initial=np.inf))
            found.high = float(known_values.max(initial=-np.inf))
        found.missing = int(cells.size) - found.present
        if found.present:
            found.kinds = {TEXT if text else NUMBER: path}
        return found

    def _target(self, cells: NDArray[Any], path: Path) -> Found:
        gaps = (
            np.isnan(cells)
            if cells.dtype.kind == "f"
            else np.array([missing_cell(cell) for cell in cells], dtype=bool)
            if cells.dtype.kind == "O"
            else np.zeros(cells.size, dtype=bool)
        )
        name = self.source.parts.target
        if gaps.any():
            raise DataError(
                f"the target {name!r} is missing in {int(gaps.sum()):,} row(s), first in row "
                f"{int(gaps.argmax()) + 1:,}; drop those rows"
            )
        kind = TEXT if cells.size and is_text(cells, name) else NUMBER
        return Found({kind: path} if cells.size else {}, int(cells.size))


def _add_labels(found: Facts, labels: NDArray[Any], weights: Floats | None) -> None:
    """The different targets, as long as they are few."""
    known = np.unique(labels)
    found.many = found.many or known.size > STREAMING.classes
    if not found.many:
        found.labels.append(known)
        kept = known if weights is None else np.unique(labels[weights > 0.0])
        found.weighted_labels.append(kept)


def _weights(given: Floats | None) -> Floats | None:
    if given is None:
        return None
    bad = ~(np.isfinite(given) & (given >= 0.0))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"sample_weight must be finite and not negative, got {given[row]} in row {row}"
        )
    return given


def scanned(
    source: Source, shards: Sequence[Shard], forced: Sequence[str], passes: Passes
) -> tuple[Source, Facts]:
    """What the files hold, and how they are read from now on: a column of CSV files that is text
    anywhere is text everywhere.
    """
    facts = _merged(Scan(source, tuple(forced)), shards, passes)
    mixed = [name for name, found in _all(source, facts).items() if len(found.kinds) > 1]
    if mixed:
        for name in mixed:
            _refuse_mixed(name, _all(source, facts)[name])
        source = replace(source, as_text=(*source.as_text, *mixed))
        facts = _merged(Scan(source, tuple(forced)), shards, passes)
    for name, found in _all(source, facts).items():
        if len(found.kinds) > 1:
            _refuse_mixed(name, found, again=True)
        if len(found.categories) > STREAMING.categories:
            raise DataError(
                f"column {name!r} holds more than {STREAMING.categories:,} different values, which "
                "looks like an identifier; leave it out (drop)"
            )
    return source, facts


def _merged(scan: Scan, shards: Sequence[Shard], passes: Passes) -> Facts:
    total = Facts([], {name: Found() for name in scan.source.features}, Found())
    for facts in passes.map(scan, shards, "reading columns"):
        total.merge(facts)
    if total.count == 0:
        raise DataError(f"the files hold no rows at all, the first is {shards[0][0].path}")
    return total


def _all(source: Source, facts: Facts) -> dict[str, Found]:
    return facts.columns | {source.parts.target: facts.target}


def _refuse_mixed(name: str, found: Found, again: bool = False) -> None:
    """Text in one file, numbers in another: CSV can be read as text, Parquet says what it is."""
    if is_parquet(found.kinds[NUMBER]) or again:
        raise DataError(
            f"column {name!r} must hold the same kind of values in all files: it holds text in "
            f"{found.kinds[TEXT]} and numbers in {found.kinds[NUMBER]}"
        )
