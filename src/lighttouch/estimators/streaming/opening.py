"""Files made ready for a fit: cut into shards, scanned, and their rows summed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.outputs import ONE_SCORE, Outputs
from lighttouch.estimators.streaming.examples import ExamplesOfShard, Make, StreamedExamples
from lighttouch.estimators.streaming.pieces import Cutter, Piece
from lighttouch.estimators.streaming.reading import Dialect, files_of
from lighttouch.estimators.streaming.scan import Facts, Passes, scanned
from lighttouch.estimators.streaming.source import (
    Check,
    Parts,
    Reader,
    Rows,
    Shard,
    Source,
    names_of,
    shards_of,
)
from lighttouch.estimators.tables import Columns, listed, place_of
from lighttouch.estimators.targets import Total
from lighttouch.validation import told

CSV = ("separator", "decimal", "missing", "encoding")


@dataclass(frozen=True)
class Wanted:
    """What the user asks of files."""

    paths: Any
    parts: Parts
    dialect: Dialect
    progress: bool = False
    check: Check | None = None  # of the features of every piece


def read_dialect(csv: Mapping[str, Any] | None) -> Dialect:
    """How the CSV is written, from a dict of the command line's words."""
    given = dict(csv or {})
    unknown = [name for name in given if name not in CSV]
    if unknown:
        raise ValueError(f"csv may hold {', '.join(CSV)}, got {told(unknown[0])}")
    missing = given.pop("missing", ())
    return Dialect(missing=(missing,) if isinstance(missing, str) else tuple(missing), **given)


@dataclass(frozen=True)
class Weighting:
    """What rows weigh: all together 1."""

    rows: int
    largest: float = 1.0
    total: float = 1.0  # of the weights relative to the largest

    def shares(self, rows: Rows) -> Floats:
        if rows.weights is None:
            return np.full(rows.y.size, 1.0 / self.rows)
        return np.asarray(rows.weights / self.largest / self.total)


@dataclass(frozen=True)
class OpenFiles:
    """Files whose columns are known."""

    reader: Reader
    shards: tuple[Shard, ...]  # those with rows
    facts: Facts
    weighting: Weighting
    passes: Passes

    @property
    def columns(self) -> Columns:
        return self.reader.columns

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_name(shard) for shard in self.shards)

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(count for count in self.facts.rows if count)

    @property
    def weighted(self) -> tuple[int, ...]:
        """Rows of every shard that have a weight."""
        both = zip(self.facts.rows, self.facts.weighted, strict=True)
        return tuple(weighted for count, weighted in both if count)

    def total(self, targets: Callable[[Rows], Floats]) -> Total:
        """Sums over all rows of functions of (targets, weights, exposure)."""

        def total(part: Callable[[Floats, Floats, Floats | None], float]) -> float:
            ask = partial(_part_of, self.reader, targets, self.weighting, part)
            found = self.passes.map(ask, self.shards, "adding up targets", self.names)
            return float(sum(found))

        return total

    def examples(self, make: Make, outputs: Outputs = ONE_SCORE, **fields: Any) -> StreamedExamples:
        """One example per row."""
        return StreamedExamples(
            shards=tuple(ExamplesOfShard(self.reader, shard, make) for shard in self.shards),
            names=self.names,
            sizes=self.rows,
            tables=self.rows,
            facts=self.facts,
            passes=self.passes,
            weighted=self.weighted,
            outputs=outputs,
            **fields,
        )


def _part_of(
    reader: Reader,
    targets: Callable[[Rows], Floats],
    weighting: Weighting,
    part: Callable[[Floats, Floats, Floats | None], float],
    shard: Shard,
) -> float:
    rows = reader.without_features(shard)
    return part(targets(rows), weighting.shares(rows), rows.exposure)


def _name(shard: Shard) -> str:
    """A shard in a message."""
    first, last = shard[0], shard[-1]
    more = "" if first.path == last.path else f" to {last.path}"
    return f"{first.path} from row {first.first + 1:,} on{more}"


def opened(wanted: Wanted, categorical: Any = None, whole_files: bool = False) -> OpenFiles:
    """Files ready for a fit; with `whole_files` none is cut."""
    files, passes = files_of(wanted.paths), Passes(wanted.progress)
    cut = passes.map(
        Cutter(wanted.dialect, STREAMING.rows), files, "looking at files", [str(f) for f in files]
    )
    pieces = [piece for of_file in cut for piece in of_file]
    if not pieces:
        raise DataError(f"the files hold no rows at all, the first is {files[0]}")
    first = pieces[0].path
    names = names_of(first, wanted.dialect)
    features = wanted.parts.features(names, first)
    forced = [
        features[place_of(column, features, True, "categorical_features")]
        for column in ([] if categorical is None else listed(categorical))
    ]
    source = Source(tuple(features), wanted.parts, wanted.dialect, check=wanted.check)
    shards = _files_of(pieces) if whole_files else shards_of(pieces, STREAMING.rows)
    source, facts = scanned(source, shards, forced, passes)
    reader = Reader(source, facts.learnt(forced))
    filled = tuple(shard for shard, rows in zip(shards, facts.rows, strict=True) if rows)
    weighting = Weighting(facts.count)
    if wanted.parts.weight is not None:
        weighting = _weighting(reader, filled, facts, passes)
    return OpenFiles(reader, filled, facts, weighting, passes)


def _files_of(pieces: Sequence[Piece]) -> list[Shard]:
    found: dict[Path, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(piece.path, []).append(piece)
    return [tuple(each) for each in found.values()]


def _weighting(reader: Reader, shards: Sequence[Shard], facts: Facts, passes: Passes) -> Weighting:
    if not facts.largest_weight > 0.0:
        raise DataError(
            "sample_weight must not be zero everywhere: give at least one example a positive weight"
        )
    ask = partial(_relative_weights, reader, facts.largest_weight)
    total = float(sum(passes.map(ask, shards, "adding up weights")))
    return Weighting(facts.count, facts.largest_weight, total)


def _relative_weights(reader: Reader, largest: float, shard: Shard) -> float:
    weights = reader.without_features(shard).weights
    assert weights is not None
    return float((weights / largest).sum())
