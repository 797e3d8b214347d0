"""What a model was trained on, and how far new rows have moved from it.

`TrainingRecord` is kept in model files: who made the model, when, of what, and how each column and
the scores were distributed. `Drift` compares new rows with it by the population stability index
(PSI): the sum over bins of (new - old) * ln(new / old), where old and new are shares of rows.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats, dense
from lighttouch.checkpoints import own_version
from lighttouch.errors import DataError
from lighttouch.estimators.tables import Columns, as_table, known_columns, missing_cell, split
from lighttouch.fingerprints import fingerprint

LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas")


@dataclass(frozen=True)
class RecordLimits:
    """What a model's record of its training rows holds, and when new rows are called different."""

    bins: int = 10
    """Of equal shares of the training rows, per column of numbers. Convention: that of PSI."""

    least_share: float = 1e-4
    """What an empty bin counts as, so that the index stays finite. Convention."""

    missing: float = 0.05
    """By how much the share of missing cells must rise to be told. Convention: one row in
    twenty."""

    rows: int = 2_500
    """Rows, evenly spread, that distributions are taken from: quantiles within 2%. Chance alone
    makes a PSI of 0.004 of them. Budget."""

    late_rows: int = 1_000
    """The same where the time limit is over: quantiles within 3%, in some milliseconds. Budget."""

    columns: int = 1000
    """The most columns that are recorded. Memory: 100 kB of the model file."""

    @cached_property
    def cuts(self) -> Floats:
        """Shares of the training rows below the edges of bins."""
        return np.linspace(0.0, 1.0, self.bins + 1)[1:-1]

    def rows_for(self, late: bool) -> int:
        """How many distributions are taken from; `late` says that the time limit is over."""
        return self.late_rows if late else self.rows


RECORD = RecordLimits()


@dataclass(frozen=True)
class ColumnRecord:
    """How one column, or the score, was distributed in training: shares of rows.

    Numbers lie in bins between `edges`, categories are counted one by one; both lists of `shares`
    end with that of missing cells.
    """

    name: str
    shares: tuple[float, ...]
    edges: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    categories: tuple[str, ...] | None = None
    counts: tuple[int, ...] | None = None

    @classmethod
    def of(cls, name: str, values: Floats, categories: Sequence[Any] | None) -> ColumnRecord:
        present = values[~np.isnan(values)]
        if categories is not None:
            counts = np.bincount(present.astype(np.int64), minlength=len(categories))
            told = tuple(str(each) for each in categories)
            shares = _shares(np.append(counts, values.size - present.size))
            return cls(name, shares, categories=told, counts=tuple(int(each) for each in counts))
        if present.size == 0:
            return cls(name, _shares(np.array([0, values.size])))
        ordered = np.sort(present)
        edges = np.unique(quantiles(ordered, RECORD.cuts))
        counts = np.diff([0, *ordered.searchsorted(edges), ordered.size, values.size])
        low, high = float(ordered[0]), float(ordered[-1])
        return cls(name, _shares(counts), tuple(edges.tolist()), low, high)

    def counted(self, values: Floats, unseen: int) -> Any:
        """Cells per bin, missing, with unknown categories, and outside the range: they add up."""
        outside = 0
        if self.categories is not None:
            present = values[~np.isnan(values)].astype(np.int64)
            bins = np.bincount(present, minlength=len(self.categories))
            bins = np.append(bins, values.size - present.size - unseen)
        else:
            bins = _counted(values, self.edges)
            if self.low is not None and self.high is not None:
                outside = int(np.sum((values < self.low) | (values > self.high)))
        return np.concatenate([bins, [unseen, outside]])

    def compare(self, counts: Any, rows: int) -> ColumnDrift:
        """What was counted in new rows, beside the shares of training."""
        return ColumnDrift(
            name=self.name,
            psi=stability_index((*self.shares, 0.0), counts[:-1] / rows),
            outside=int(counts[-1]),
            unseen=int(counts[-2]),
            missing=float(counts[-3]) / rows,
            missing_before=self.shares[-1],
        )


def quantiles(ordered: Floats, shares: Floats) -> Floats:
    """`np.quantile` of values in order, to the same bits; faster where they are few."""
    last = ordered.size - 1
    places = shares * last
    below = places.astype(np.int64)
    part, low, high = places - below, ordered[below], ordered[np.minimum(below + 1, last)]
    return np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1.0 - part))


def _counted(values: Floats, edges: Sequence[float]) -> Any:
    present = values[~np.isnan(values)]
    bins = np.searchsorted(np.asarray(edges), present, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    return np.append(counts, values.size - present.size)


def _shares(counts: Any) -> tuple[float, ...]:
    total = max(1, int(counts.sum()))
    return tuple(each / total for each in counts.tolist())


def stability_index(before: Sequence[float], now: Any) -> float:
    """PSI; an empty bin counts as a small share, so that it stays finite."""
    old = np.maximum(np.asarray(before, dtype=np.float64), RECORD.least_share)
    new = np.maximum(np.asarray(now, dtype=np.float64), RECORD.least_share)
    return float(np.sum((new - old) * np.log(new / old)))


@dataclass(frozen=True)
class TrainingRecord:
    """Where a model comes from.

    Parameters
    ----------
    rows : int
        Rows of the training table.
    data : str
        SHA-256 of the training table as the model reads it, and of the targets.
    created : str
        When it was trained, in UTC.
    libraries : mapping
        Versions of Python, lighttouch and what it uses.
    columns : sequence of ColumnRecord
        How each column was distributed.
    scores : ColumnRecord or None
        How the model's own scores on the training rows were.
    notes : mapping
        What else is on record: seed, command, text of the rules.
    """

    rows: int
    data: str
    created: str
    libraries: Mapping[str, str]
    columns: tuple[ColumnRecord, ...]
    scores: ColumnRecord | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Columns,
        table: Any,
        y: Any,
        score: Callable[[Floats], Floats],
        most: int = RECORD.rows,
    ) -> TrainingRecord:
        """The record of a table of plain numbers, dense or sparse; `score` gives the scores, and
        distributions are taken from about `most` rows.
        """
        rows, count = table.shape
        some = dense(table[evenly(rows, most)]) if count <= RECORD.columns else None
        record = cls.of_some(columns, rows, some, fingerprint([columns.names, table, y]), score)
        return replace(record, columns=_with_ranges(record.columns, table))

    @classmethod
    def of_some(
        cls,
        columns: Columns,
        rows: int,
        some: Floats | None,
        data: str,
        score: Callable[[Floats], Floats],
    ) -> TrainingRecord:
        """The same from some rows, evenly spread; None where there are too many columns."""
        described: tuple[ColumnRecord, ...] = ()
        if some is not None:
            described = tuple(
                ColumnRecord.of(column.name, some[:, place], column.categories)
                for place, column in enumerate(columns.columns)
            )
        return cls(
            rows=int(rows),
            data=data,
            created=_now(),
            libraries=dict(_libraries()),
            columns=described,
            scores=None if some is None else ColumnRecord.of("score", _one(score(some)), None),
        )

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TrainingRecord:
        return cls(
            rows=int(state["rows"]),
            data=str(state["data"]),
            created=str(state["created"]),
            libraries={str(k): str(v) for k, v in state["libraries"].items()},
            columns=tuple(_column_from(each) for each in state["columns"]),
            scores=None if state["scores"] is None else _column_from(state["scores"]),
            notes=dict(state["notes"]),
        )


def evenly(rows: int, most: int = RECORD.rows) -> slice:
    """The rows that distributions are taken from: `most` and less than twice as many."""
    return slice(None, None, max(1, rows // most))


class Tally:
    """Counts of new rows, a part at a time; memory does not grow with them."""

    def __init__(self, record: TrainingRecord) -> None:
        self._record, self._rows = record, 0
        self._columns = [*record.columns, *([] if record.scores is None else [record.scores])]
        self._counts: list[Any] = [0] * len(self._columns)

    def add(self, table: Floats, unseen: Sequence[int], scores: Floats) -> None:
        """More rows, as plain numbers, with how many cells per column hold unknown categories."""
        self._rows += int(table.shape[0])
        parts = [*(table[:, place] for place in range(table.shape[1])), _one(scores)]
        for place, (column, values) in enumerate(zip(self._columns, parts, strict=False)):
            known = int(unseen[place]) if place < len(unseen) else 0
            self._counts[place] = self._counts[place] + column.counted(values, known)

    def empty(self) -> Tally:
        """Another one that has counted nothing."""
        return Tally(self._record)

    def merge(self, other: Tally) -> None:
        """What another one has counted too."""
        self._rows += other._rows
        both = zip(self._counts, other._counts, strict=True)
        self._counts = [mine + others for mine, others in both]

    def drift(self) -> Drift:
        if self._rows == 0:
            raise DataError("drift needs at least one row, got 0")
        found = tuple(
            column.compare(counts, self._rows)
            for column, counts in zip(self._columns, self._counts, strict=True)
        )
        own = len(self._record.columns)
        return Drift(self._rows, found[:own], found[own] if len(found) > own else None)


def _one(scores: Floats) -> Floats:
    """Of several outputs (levels, classes) the first stands for all."""
    return scores if scores.ndim == 1 else scores[:, 0]


def _with_ranges(columns: tuple[ColumnRecord, ...], table: Any) -> tuple[ColumnRecord, ...]:
    """Ranges and counts over all rows, not only over some."""
    return tuple(_with_range(column, table[:, [place]]) for place, column in enumerate(columns))


def _with_range(column: ColumnRecord, cells: Any) -> ColumnRecord:
    values = dense(cells).ravel()
    present = values[~np.isnan(values)]
    if column.categories is not None:
        counts = np.bincount(present.astype(np.int64), minlength=len(column.categories))
        return replace(column, counts=tuple(int(each) for each in counts))
    if present.size:
        return replace(column, low=float(present.min()), high=float(present.max()))
    return column


def _column_from(state: Mapping[str, Any]) -> ColumnRecord:
    def numbers(name: str) -> tuple[float, ...]:
        values = tuple(float(each) for each in state[name])
        if not all(math.isfinite(each) for each in values):
            raise DataError(f"{name} of {state['name']!r} must be finite")
        return values

    categories, counts = state["categories"], state["counts"]
    column = ColumnRecord(
        name=str(state["name"]),
        shares=numbers("shares"),
        edges=numbers("edges"),
        low=None if state["low"] is None else float(state["low"]),
        high=None if state["high"] is None else float(state["high"]),
        categories=None if categories is None else tuple(str(each) for each in categories),
        counts=None if counts is None else tuple(int(each) for each in counts),
    )
    bins = len(column.edges) + 1 if column.categories is None else len(column.categories)
    if len(column.shares) != bins + 1 or list(column.edges) != sorted(column.edges):
        raise DataError(f"the record of column {column.name!r} contradicts itself")
    return column


def _now() -> str:
    """SOURCE_DATE_EPOCH makes files repeatable to the byte (reproducible-builds.org)."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def _libraries() -> dict[str, str]:
    """Versions; reading them takes as long as a small fit."""
    found = {"python": platform.python_version(), "lighttouch": own_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class ColumnDrift:
    """One column of new rows beside training: PSI, rows outside its range or with unknown
    categories, and the shares of missing cells.
    """

    name: str
    psi: float
    outside: int
    unseen: int
    missing: float
    missing_before: float


@dataclass(frozen=True)
class Drift:
    """How far new rows are from those of training; `estimator.drift(X)` makes it.

    By convention a PSI below 0.1 is no change to speak of, above 0.25 a large one.

    Parameters
    ----------
    rows : int
        New rows.
    columns : sequence of ColumnDrift
        Each with `name`, `psi`, `outside` (rows beyond the training range), `unseen` (rows with an
        unknown category), `missing` and `missing_before` (shares of missing cells).
    score : ColumnDrift or None
        The same for the model's scores.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((500, 2))
    >>> model = lt.LatticeRegressor(lattices=0).fit(X, X[:, 0])
    >>> model.drift(X).largest < 0.01
    True
    >>> model.drift(X + [0.0, 5.0]).worst.name
    'x1'
    """

    rows: int
    columns: tuple[ColumnDrift, ...]
    score: ColumnDrift | None = None

    @property
    def all(self) -> tuple[ColumnDrift, ...]:
        """The columns, and the score after them."""
        return self.columns if self.score is None else (*self.columns, self.score)

    @property
    def worst(self) -> ColumnDrift:
        """The column, or the score, with the largest index."""
        return max(self.all, key=lambda each: each.psi)

    @property
    def largest(self) -> float:
        """The largest index of any column or of the score."""
        return self.worst.psi

    @property
    def unseen(self) -> int:
        """Cells with categories that training did not see."""
        return sum(each.unseen for each in self.columns)

    @property
    def outside(self) -> int:
        """Cells beyond the range of training."""
        return sum(each.outside for each in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self) | {"largest": self.largest}

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows: largest PSI {self.largest:.3f} ({self.worst.name}); "
            f"{self.outside:,} cells outside the training range, {self.unseen:,} with unseen "
            f"categories{self._about_missing()}"
        )

    def _about_missing(self) -> str:
        more = [
            f"{each.name} {each.missing:.0%} (was {each.missing_before:.0%})"
            for each in self.columns
            if each.missing > each.missing_before + RECORD.missing
        ]
        return f"; missing more often: {', '.join(more[:5])}" if more else ""


class RecordedEstimator(BaseEstimator):  # type: ignore[misc]
    """Keeps a record of its training rows, with which it compares new ones; a class offers
    `fitted_columns`, `read_rows` and `scores_of`.
    """

    training_record_: TrainingRecord | None = None

    def drift(self, X: Any) -> Drift:
        """Compare new rows with those of training, column by column and by the scores.

        Parameters
        ----------
        X : table of shape (n, columns)
            New rows, as for `predict`.

        Returns
        -------
        Drift
            Population stability indices, cells outside the training range, unseen categories and
            missing cells.
        """
        tally = self.tally()
        self.count_rows(X, tally)
        return tally.drift()

    def tally(self) -> Tally:
        """An empty count of new rows, for tables that are read in parts."""
        check_is_fitted(self)
        if self.training_record_ is None or not self.training_record_.columns:
            raise DataError(
                "this model holds no record of its training rows: it was saved by an earlier "
                f"lighttouch, or has more than {RECORD.columns:,} columns; train it again"
            )
        return Tally(self.training_record_)

    def count_rows(self, X: Any, tally: Tally) -> None:
        """Add rows to a tally."""
        table = self.read_rows(X)
        tally.add(table, self._unseen(X, table), self.recorded_scores(table))

    def recorded_scores(self, table: Floats) -> Floats:
        """One number per row whose distribution is compared: the score, or the mean of several."""
        scores = np.asarray(self.scores_of(table))
        return scores if scores.ndim == 1 else np.asarray(scores.mean(axis=1))

    def _unseen(self, X: Any, table: Floats) -> list[int]:
        """How many cells of each column hold a category that training did not see."""
        columns = self.fitted_columns.columns
        if not any(column.categorical for column in columns):
            return [0] * len(columns)
        _, cells = split(known_columns(as_table(X), self.fitted_columns))
        return [
            sum(not missing_cell(values[row]) for row in np.flatnonzero(np.isnan(table[:, place])))
            if column.categorical
            else 0
            for place, (column, values) in enumerate(zip(columns, cells, strict=True))
        ]

    @property
    def fitted_columns(self) -> Columns:
        """Names and kinds of the columns of the training table."""
        raise NotImplementedError

    def read_rows(self, X: Any) -> Floats:
        """Rows of X as plain numbers."""
        raise NotImplementedError

    def scores_of(self, table: Floats) -> Floats:
        """Scores of rows of plain numbers."""
        raise NotImplementedError
