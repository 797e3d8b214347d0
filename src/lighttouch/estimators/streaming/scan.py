"""One pass over all files: columns, kinds, categories, ranges, gaps, labels and weights.

What is found in a shard is merged with what others found in the order of the shards, so that the
number of workers changes nothing. Counts, ranges and categories are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.streaming.reading import is_parquet
from lighttouch.estimators.streaming.source import Shard, Source, cells_of, of_piece
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
