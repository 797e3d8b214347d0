"""Examples whose rows are in files, one shard at a time.

What a fit looks at closely is a part of the rows, drawn as it is from a table in memory, and held.
What needs all rows is a sum over shards, taken in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.estimators.examples import (
    AnyExamples,
    Examples,
    RiskOfPart,
    averages,
    independent_of,
)
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import OrderedClasses, Outputs
from lighttouch.estimators.record import RECORD, TrainingRecord, evenly
from lighttouch.estimators.streaming.source import Facts, Passes, Reader, Rows, Shard
from lighttouch.estimators.tables import Columns
from lighttouch.fingerprints import fingerprint
from lighttouch.losses import Loss
from lighttouch.objectives import ShardedRisk

Answer = TypeVar("Answer")
Make = Callable[[Rows], Examples]


@dataclass(frozen=True)
class ExamplesOfShard:
    """The examples of one shard, read when they are asked for."""

    reader: Reader
    shard: Shard
    make: Make

    def __call__(self) -> Examples:
        return self.make(self.reader(self.shard))


@dataclass(frozen=True)
class SpreadOfShard:
    """The same with the sizes of what a model leaves over as targets of the structure."""

    examples: Callable[[], Examples]
    model: AdditiveModel
    w: Floats
    centre: float = 0.0
    unit: float = 1.0

    def __call__(self) -> Examples:
        examples = self.examples()
        sizes = examples.left_over(self.model, self.w)
        return replace(examples, nearby=((sizes - self.centre) / self.unit, examples.squares[1]))


@dataclass(frozen=True)
class StreamedExamples(AnyExamples):
    """Examples in shards of files.

    `shards` are those that have examples, `sizes` says how many, `tables` how many rows of tables.
    """

    shards: tuple[Callable[[], Examples], ...]
    names: tuple[str, ...]  # of the shards, for messages
    sizes: tuple[int, ...]
    tables: tuple[int, ...]
    facts: Facts
    passes: Passes
    weighted: tuple[int, ...]  # examples of every shard with a weight
    outputs: Outputs
    scale: float = 1.0
    shift: float = 0.0
    independent: int | None = None
    stands_for_another: bool = False
    differences: bool = False

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def table_size(self) -> int:
        return sum(self.tables)

    @property
    def count(self) -> int:
        known = self.independent
        total = sum(self.weighted)
        return total if known is None else min(total, known)

    def _map(
        self, ask: Callable[[Examples], Answer], what: str, shards: Any = None
    ) -> Iterator[Answer]:
        chosen = self.shards if shards is None else shards
        names = self.names if len(chosen) == len(self.names) else None
        return self.passes.map(_Ask(ask), chosen, what, names)

    def rows(self, chosen: NDArray[np.int64], seldom: bool = False) -> Examples:
        parts = self._picked(_rows_of, chosen, self.sizes, "taking a sample of the rows")
        return joined(parts)

    def whole(self) -> Examples:
        return self._whole

    @cached_property
    def _whole(self) -> Examples:
        if len(self.shards) == 1:
            return next(self._map(_itself, "reading the rows"))
        return joined(list(self._map(_itself, "reading the rows")))

    def forget(self) -> None:
        if "_whole" in self.__dict__:  # otherwise nothing is kept
            self._whole.forget()

    def table_rows(self, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
        parts = self._picked(_table_rows_of, chosen, self.tables, "taking a sample of the rows")
        return np.vstack([table for table, _ in parts]), np.concatenate([w for _, w in parts])

    def _picked(
        self,
        pick: Callable[[NDArray[np.int64], Examples], Answer],
        chosen: NDArray[np.int64],
        sizes: tuple[int, ...],
        what: str,
    ) -> list[Answer]:
        """What `pick` takes of every shard in which rows were chosen."""
        ends = np.cumsum(sizes)
        cuts = np.searchsorted(chosen, np.concatenate([[0], ends]))
        items = []
        for place, shard in enumerate(self.shards):
            mine = chosen[cuts[place] : cuts[place + 1]] - (ends[place] - sizes[place])
            if mine.size:
                items.append(_Picked(shard, partial(pick, mine)))
        return list(self.passes.map(_called, items, what))

    def objective(self, model: AdditiveModel, loss: Loss, roughness: Any, pull: float) -> Any:
        total = None
        if isinstance(self.outputs, OrderedClasses) and len(self.shards) > 1:
            total = sum(self._map(partial(_total_of, self.outputs), "adding up weights"))
        shards = [
            RiskOfPart(shard, model, loss, roughness, pull, total)
            for shard, count in zip(self.shards, self.weighted, strict=True)
            if count
        ]
        return shards[0]() if len(shards) == 1 else ShardedRisk(shards)

    def average_effects(self, model: AdditiveModel, scores: list[Floats]) -> list[list[float]]:
        ask = partial(_effects_of, model, scores)
        parts = list(self._map(ask, "averaging effects"))
        gaps = np.any([part[2] for part in parts], axis=0)
        sums = sum((part[0] for part in parts), np.zeros((len(scores), len(model.terms))))
        return averages(model, sums, sum(part[1] for part in parts), np.asarray(gaps))

    def spread(self, model: AdditiveModel, w: Floats) -> StreamedExamples:
        centre = sum(self._map(partial(_mean_left_over, model, w), "measuring spread"))
        squares = sum(self._map(partial(_squares_left_over, model, w, centre), "measuring spread"))
        unit = float(np.sqrt(squares))
        unit = unit if unit > 1e-12 * max(1.0, abs(centre)) else 1.0
        shards = tuple(SpreadOfShard(shard, model, w, centre, unit) for shard in self.shards)
        return replace(self, shards=shards)

    def constant_columns(self) -> list[int]:
        return [place for place, found in enumerate(self.facts.columns.values()) if found.constant]

    def record(
        self, columns: Columns, scores: Callable[[Floats], Floats], most: int = RECORD.rows
    ) -> TrainingRecord:
        """The SHA-256 of the data is that of the shards' own ones."""
        few = len(columns) <= RECORD.columns
        rows = evenly(self.table_size, most)
        starts = np.cumsum((0, *self.tables[:-1]))
        items = [
            _Picked(shard, partial(_recorded, int(-start % rows.step), rows.step, few))
            for shard, start in zip(self.shards, starts, strict=True)
        ]
        parts = list(self.passes.map(_called, items, "recording the rows", self.names))
        some = np.vstack([part for part, _ in parts]) if few else None
        data = fingerprint([columns.names, [digest for _, digest in parts]])
        record = TrainingRecord.of_some(columns, self.table_size, some, data, scores)
        return with_facts(record, columns, self.facts)


def with_facts(record: TrainingRecord, columns: Columns, facts: Facts) -> TrainingRecord:
    """Ranges and counts over all rows."""
    described = []
    for known, column in zip(record.columns, columns.columns, strict=bool(record.columns)):
        found = facts.columns[column.name]
        if column.categories is not None:
            counts = tuple(int(found.categories[each]) for each in column.categories)
            described.append(replace(known, counts=counts))
        elif found.present:
            described.append(replace(known, low=found.low, high=found.high))
        else:
            described.append(known)
    return replace(record, columns=tuple(described))


@dataclass(frozen=True)
class _Ask:
    """Asks the examples of a shard."""

    ask: Callable[[Examples], Any]

    def __call__(self, shard: Callable[[], Examples]) -> Any:
        return self.ask(shard())


@dataclass(frozen=True)
class _Picked:
    """Some rows of one shard."""

    shard: Callable[[], Examples]
    pick: Callable[[Examples], Any]

    def __call__(self) -> Any:
        return self.pick(self.shard())


def _called(item: Callable[[], Answer]) -> Answer:
    return item()


def _itself(examples: Examples) -> Examples:
    return examples


def _rows_of(chosen: NDArray[np.int64], examples: Examples) -> Examples:
    return examples.rows(chosen)


def _table_rows_of(chosen: NDArray[np.int64], examples: Examples) -> tuple[Floats, Floats]:
    return examples.table_rows(chosen)


def _total_of(outputs: OrderedClasses, examples: Examples) -> float:
    return outputs.total(examples.y, examples.weights)


def _effects_of(
    model: AdditiveModel, scores: list[Floats], examples: Examples
) -> tuple[Floats, float, NDArray[np.bool_]]:
    return examples.effect_sums(model, scores)


def _mean_left_over(model: AdditiveModel, w: Floats, examples: Examples) -> float:
    return float(examples.squares[1] @ examples.left_over(model, w))


def _squares_left_over(model: AdditiveModel, w: Floats, centre: float, examples: Examples) -> float:
    return float(examples.squares[1] @ np.square(examples.left_over(model, w) - centre))


def _recorded(first: int, step: int, few: bool, examples: Examples) -> tuple[Floats, str]:
    """Evenly spread rows, and the SHA-256 of all."""
    some = examples.table[first::step].copy() if few else np.empty((0, 0))  # no view of all rows
    return some, fingerprint([examples.table, examples.y])


def joined(parts: list[Examples]) -> Examples:
    """Examples one after the other."""
    first = parts[0]
    if len(parts) == 1:
        return first
    signs = [sign for _, sign in first.signed_tables]
    source, weights = _joined_sources(parts), np.concatenate([part.weights for part in parts])
    return replace(
        first,
        signed_tables=[
            (np.vstack([part.signed_tables[k][0] for part in parts]), sign)
            for k, sign in enumerate(signs)
        ],
        y=np.concatenate([part.y for part in parts]),
        weights=weights,
        offset=(
            None
            if first.offset is None
            else np.concatenate([np.asarray(part.offset) for part in parts])
        ),
        nearby=(
            None
            if first.nearby is None
            else (
                np.concatenate([part.squares[0] for part in parts]),
                np.concatenate([part.squares[1] for part in parts]),
            )
        ),
        independent=None if source is None else independent_of(source, weights),
        source=source,
        _known={},
    )


def _joined_sources(parts: list[Examples]) -> Any:
    """Rows that pairs repeat, one after the other, and which each takes."""
    sources = [part.source for part in parts if part.source is not None]
    if len(sources) < len(parts):
        return None
    starts = np.cumsum([0] + [table.shape[0] for table, _ in sources])
    sides = [
        np.concatenate([rows[side] + starts[k] for k, (_, rows) in enumerate(sources)])
        for side in range(len(sources[0][1]))
    ]
    return np.vstack([table for table, _ in sources]), sides
