"""From the rows of a shard to examples: one small class per task, which can be sent to workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.classes import ordinal_examples_in
from lighttouch.estimators.examples import Examples
from lighttouch.estimators.outputs import ONE_SCORE
from lighttouch.estimators.pairs import Pairs, pair_examples, weighted_pairs
from lighttouch.estimators.regression import Task, Units, pseudo_values, read_exposure
from lighttouch.estimators.streaming.examples import ExamplesOfShard, StreamedExamples
from lighttouch.estimators.streaming.opening import OpenFiles, Weighting
from lighttouch.estimators.streaming.source import Reader, Rows, Shard
from lighttouch.estimators.targets import read_targets


@dataclass(frozen=True)
class Targets:
    """Targets of a regression, checked."""

    task: Task

    def __call__(self, rows: Rows) -> Floats:
        targets = read_targets(rows.y, None)
        self.task.refuse(targets, rows.exposure is not None)
        read_exposure(rows.exposure, targets.size)
        return targets


@dataclass(frozen=True, eq=False)
class FirstFit:
    """A model under the absolute loss, and the units of the targets that it leads to."""

    model: Any
    centre: float
    unit: float


@dataclass(frozen=True)
class InUnits:
    """Examples of a regression; with a first fit its pseudo-values stand for the targets while the
    structure is chosen.
    """

    task: Task
    units: Units
    weighting: Weighting
    first: FirstFit | None = None

    def __call__(self, rows: Rows) -> Examples:
        targets, weights = read_targets(rows.y, None), self.weighting.shares(rows)
        found = self.task.in_units(self.units, rows.table, targets, weights, rows.exposure)
        if self.first is None:
            return found
        predicted = self.first.model.predict(rows.table)
        pseudo = pseudo_values(targets, predicted, self.first.centre, self.first.unit)
        return replace(found, nearby=(pseudo, weights))


@dataclass(frozen=True, eq=False)
class Codes:
    """The numbers of classes, in the order that is asked for."""

    classes: NDArray[Any]  # sorted
    places: Indices | None = None  # of the sorted classes in another order

    def __call__(self, rows: Rows) -> Floats:
        codes = np.searchsorted(self.classes, rows.y)
        return (codes if self.places is None else self.places[codes]).astype(np.float64)


@dataclass(frozen=True)
class OneClass:
    """Examples of one class against the others: labels +1 and -1."""

    codes: Codes
    positive: int
    weighting: Weighting

    def __call__(self, rows: Rows) -> Examples:
        return Examples([(rows.table, 1.0)], self.signs(rows), self.weighting.shares(rows))

    def signs(self, rows: Rows) -> Floats:
        return np.where(self.codes(rows) == self.positive, 1.0, -1.0)


@dataclass(frozen=True)
class OrderedLabels:
    """Examples of ordered classes; `mean` and `spread` are those of their numbers."""

    codes: Codes
    mean: float
    spread: float
    weighting: Weighting

    def __call__(self, rows: Rows) -> Examples:
        count, shares = self.codes.classes.size, self.weighting.shares(rows)
        numbers = self.codes(rows)
        return ordinal_examples_in(self.mean, self.spread, rows.table, numbers, shares, count)


@dataclass(frozen=True)
class PairsOfShard:
    """Examples of a ranking: pairs of rows of the same query."""

    most: int
    seed: int
    weighting: Weighting
    total: float = 1.0  # of the weights of all pairs
    by_gain: bool = False

    def __call__(self, rows: Rows) -> Examples:
        return pair_examples(rows.table, self.pairs(rows), self.total)

    def pairs(self, rows: Rows) -> Pairs:
        relevance, shares = read_targets(rows.y, None), self.weighting.shares(rows)
        return weighted_pairs(relevance, rows.query, shares, self.most, self.seed, self.by_gain)


@dataclass(frozen=True, eq=False)
class PairFacts:
    """What is known of the pairs of a shard."""

    count: int
    weighted: int
    rows: int  # that are in a pair
    total: float
    queries: NDArray[Any]


def _pair_facts(reader: Reader, make: PairsOfShard, shard: Shard) -> PairFacts:
    rows = reader.without_features(shard)
    pairs = make.pairs(rows)
    return PairFacts(
        int(pairs.better.size),
        int(np.count_nonzero(pairs.weights)),
        int(np.unique(np.concatenate([pairs.better, pairs.worse])).size),
        float(pairs.weights.sum()),
        np.zeros(1) if rows.query is None else np.unique(rows.query),
    )


def paired(files: OpenFiles, make: PairsOfShard) -> StreamedExamples:
    """One example per pair of rows of a query."""
    ask = partial(_pair_facts, files.reader, make)
    facts = list(files.passes.map(ask, files.shards, "looking for pairs", files.names))
    refuse_split_queries(facts, files.names)
    total = float(sum(each.total for each in facts))
    if total == 0.0:
        raise DataError(
            "no two rows of the same query differ in relevance, so there is nothing to learn from; "
            "check qid and the target"
        )
    kept = [place for place, each in enumerate(facts) if each.count]
    make = replace(make, total=total)
    return StreamedExamples(
        shards=tuple(ExamplesOfShard(files.reader, files.shards[k], make) for k in kept),
        names=tuple(files.names[k] for k in kept),
        sizes=tuple(facts[k].count for k in kept),
        tables=tuple(facts[k].rows for k in kept),
        facts=files.facts,
        passes=files.passes,
        weighted=tuple(facts[k].weighted for k in kept),
        outputs=ONE_SCORE,
        independent=sum(each.rows for each in facts),
        differences=True,
    )


def refuse_split_queries(facts: list[PairFacts], names: tuple[str, ...]) -> None:
    """Rows of a query must lie in one file."""
    first: dict[Any, int] = {}
    for place, fact in enumerate(facts):
        for query in fact.queries.tolist():
            other = first.setdefault(query, place)
            if other != place:
                raise DataError(
                    f"all rows of a query must lie in one file: query {query!r} is in "
                    f"{names[other]} and in {names[place]}; sort the rows by query before they are "
                    "cut into files"
                )
