"""`fit_files`, which the estimators share: files are opened, and their rows become the examples of
a task, one shard at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.classes import ordinal_examples_in
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.examples import Examples, independent_pairs, noise_of_pairs
from lighttouch.estimators.outputs import ONE_SCORE, Outputs
from lighttouch.estimators.pairs import Pairs, pair_examples, weighted_pairs
from lighttouch.estimators.regression import Task, Units, pseudo_values, read_exposure
from lighttouch.estimators.streaming.examples import ExamplesOfShard, Make, StreamedExamples
from lighttouch.estimators.streaming.reading import Cutter, Dialect, Paths, Piece, files_of
from lighttouch.estimators.streaming.source import (
    Check,
    Facts,
    Parts,
    Passes,
    Reader,
    Rows,
    Shard,
    Source,
    names_of,
    scanned,
    shards_of,
)
from lighttouch.estimators.tables import Columns, Total, listed, place_of, read_targets
from lighttouch.estimators.training import on_the_clock
from lighttouch.running import Engine, working_with
from lighttouch.validation import told

Self = TypeVar("Self", bound="FitsFiles")


class FitsFiles:
    """Estimators that can be fitted to rows in files.

    A class offers `_fit_open(files)`; `_other_parts` says which of exposure and qid it takes,
    `_whole_files` whether files are not cut.
    """

    _other_parts: tuple[str, ...] = ()
    _whole_files = False
    n_features_in_: int
    feature_names_in_: Any

    def fit_files(
        self: Self,
        paths: Paths,
        *,
        target: str,
        sample_weight: str | None = None,
        exposure: str | None = None,
        qid: str | None = None,
        drop: Iterable[str] = (),
        csv: Mapping[str, Any] | None = None,
        engine: Engine | None = None,
        progress: bool = False,
    ) -> Self:
        """Fit the model to rows in CSV or Parquet files, which may be larger than memory.

        Rows are read in parts of at most 50,000, once for every pass of the training. No process
        holds more than one part, and samples of the rows by which the model is chosen. The model is
        that of `fit` on the same rows: to the bit where they are one part, else to rounding.

        Parameters
        ----------
        paths : str, path or sequence of them
            Files, patterns such as `loans/*.parquet`, or folders. All files must have the same
            columns; files without rows are fine. Rows come in the order of the files' names.
        target : str
            The column to predict.
        sample_weight : str, optional
            The column with the weight of every row; all equal by default.
        exposure : str, optional
            The column that says how much of each row was observed, for losses with a log link.
        qid : str, optional
            The column with the query of every row, for a ranker. All rows of a query must lie in
            one file, and files are not cut.
        drop : iterable of str, optional
            Columns to leave out.
        csv : dict, optional
            How CSV files are written: "separator", "decimal", "missing" (texts that stand for a
            missing cell), "encoding". Separators are found by themselves.
        engine : Engine, optional
            What reads the files and adds up: `lt.Processes(workers)`, `lt.Ray(address)`, or None
            for this process. The model is the same, to the bit.
        progress : bool, default False
            Whether every pass shows how far it is.

        Returns
        -------
        estimator
            The estimator itself.

        Raises
        ------
        DataError
            If a file cannot be read, has other columns or other kinds of values, or there are no
            rows; the message names the file.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import numpy as np
        >>> import lighttouch as lt
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> rng = np.random.default_rng(0)
        >>> for name in ("january.csv", "february.csv"):
        ...     x = rng.random(100)
        ...     rows = np.column_stack([x, 2.0 * x])
        ...     np.savetxt(folder / name, rows, delimiter=",", header="income,limit", comments="")
        >>> model = lt.ConstrainedLinearRegressor()
        >>> model.fit_files(folder / "*.csv", target="limit").coef_.round(3)
        array([2.])
        """
        parts = Parts(target, sample_weight, exposure, qid, tuple(drop))
        wanted = Wanted(paths, parts, read_dialect(csv), bool(progress))
        with working_with(engine):
            return self._fit_wanted(wanted)

    @on_the_clock
    def _fit_wanted(self: Self, wanted: Wanted) -> Self:
        """The same, with the engine that is there."""
        for word, name in wanted.parts.named.items():
            if word in ("exposure", "qid") and word not in self._other_parts:
                raise ValueError(f"{type(self).__name__} takes no {word}, got {name!r}")
        categorical = getattr(self, "categorical_features", None)
        self._fit_open(opened(wanted, categorical, self._whole_files))
        return self

    @abstractmethod
    def _fit_open(self, files: OpenFiles) -> None:
        """Fit to files whose columns are known."""

    def _take_names(self, columns: Columns) -> None:
        """What `fit` learns of the names of a frame."""
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns.names, dtype=object)


# -------------------------------------------------------------------------------------------------
# Files made ready for a fit: cut into shards, scanned, and their rows summed over.


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


# -------------------------------------------------------------------------------------------------
# From the rows of a shard to examples: one small class per task, which can be sent to workers.


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
    noise: float
    queries: NDArray[Any]


def _pair_facts(reader: Reader, make: PairsOfShard, shard: Shard) -> PairFacts:
    rows = reader.without_features(shard)
    pairs = make.pairs(rows)
    return PairFacts(
        int(pairs.better.size),
        int(np.count_nonzero(pairs.weights)),
        int(np.unique(np.concatenate([pairs.better, pairs.worse])).size),
        float(pairs.weights.sum()),
        noise_of_pairs(pairs.better, pairs.worse, pairs.weights),
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
        independent=independent_pairs(total, sum(each.noise for each in facts)),
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
