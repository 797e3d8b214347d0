"""Examples as the models see them: rows of tables with a sign, targets and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.cholesky import zeros
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.judged import Judged, SquaredSums, most_judged
from lighttouch.estimators.large_smoothing import SampledErrors
from lighttouch.estimators.model import AdditiveModel, Features, FeaturesMadeAnew
from lighttouch.estimators.outputs import ONE_SCORE, OneScore, Outputs, ScoreProblem
from lighttouch.estimators.record import RECORD, TrainingRecord
from lighttouch.estimators.structure import Leftover
from lighttouch.estimators.tables import ROUNDING, Columns, centre_and_scale, rows_of
from lighttouch.estimators.training import COSTS as TRAINING
from lighttouch.kernels.numerics.matrices import add_products, add_transposed, mirror
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import Loss, loss_of
from lighttouch.objectives import EmpiricalRisk, ShardedRisk
from lighttouch.running import check_deadline
from lighttouch.solvers.quadratic_model import add_gram

Floats = NDArray[np.float64]

SMALLEST_NOISE = 1e-300  # of pairs; above 0 where one has a weight


class AnyExamples(ABC):
    """Examples in memory (`Examples`) or in shards of files (`streaming.examples`): what fitting
    asks of both. The structure of a model is chosen on a part of them, which is in memory.
    """

    scale: float  # one training unit in the user's units
    shift: float
    outputs: Outputs
    differences: bool  # of two rows each: without an intercept

    @property
    @abstractmethod
    def size(self) -> int:
        """How many they are."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many can be learnt from."""

    @property
    @abstractmethod
    def independent(self) -> int | None:
        """How many of them tell something of their own; None: all."""

    @property
    @abstractmethod
    def stands_for_another(self) -> bool:
        """Whether squared errors of other targets stand for the loss while the structure is
        chosen.
        """

    @abstractmethod
    def rows(self, chosen: NDArray[np.int64], seldom: bool = False) -> Examples:
        """Some of them, in memory, with the weights that they have; where they are `seldom` read,
        their tables need not be copied.
        """

    @abstractmethod
    def whole(self) -> Examples:
        """All of them, in memory."""

    def that_count(self) -> AnyExamples:
        """Without those of weight 0; files are read as they are, and only what is drawn counts."""
        return self

    @abstractmethod
    def forget(self) -> None:
        """Let go of features and sums that were kept: they may be most of the memory."""

    @abstractmethod
    def table_rows(self, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Some rows of the tables, and their weights."""

    @property
    @abstractmethod
    def table_size(self) -> int:
        """How many rows the tables have."""

    @abstractmethod
    def objective(self, model: AdditiveModel, loss: Loss, roughness: Any, pull: float) -> Any:
        """What is trained."""

    @abstractmethod
    def average_effects(self, model: AdditiveModel, scores: list[Floats]) -> list[list[float]]:
        """For every score the average of each term over all rows; NaN for lattices, and for curves
        of columns with missing cells.
        """

    @abstractmethod
    def spread(self, model: AdditiveModel, w: Floats) -> AnyExamples:
        """The same with the sizes of what a model leaves over as targets of the structure."""

    @abstractmethod
    def constant_columns(self) -> list[int]:
        """Columns without two different values."""

    @abstractmethod
    def record(
        self, columns: Columns, scores: Callable[[Floats], Floats], most: int = RECORD.rows
    ) -> TrainingRecord:
        """What a model keeps of the rows it was trained on; distributions of about `most`."""

    def some(self, most: int, rng: np.random.Generator, seldom: bool = False) -> Examples:
        """At most so many of them, drawn at random; the same ones where there are no more. Where
        they are `seldom` read, their tables need not be copied.
        """
        if self.size <= most:
            return self.whole().that_count()
        part = self.rows(np.sort(rng.choice(self.size, most, replace=False)), seldom).that_count()
        total = float(part.weights.sum())
        if total == 0.0:
            return self.whole().that_count()
        nearby = part.nearby
        return replace(
            part,
            weights=part.weights / total,
            nearby=None if nearby is None else _normalised(*nearby),
        )

    def fewer(self, share: float, searched: Examples, rng: np.random.Generator) -> Examples:
        """Those to train on where there is time for a share of them: `searched` at least. To draw
        others would read all files again.
        """
        return searched

    def judged(
        self, model: AdditiveModel, row: LossRow | None, rng: np.random.Generator
    ) -> tuple[Judged, float]:
        """What smoothing is chosen on, and which share of the examples that is."""
        part, y, weights, share = self._judged(model, True, rng)
        features, count = part.features_at_need(model), share * self.count
        return Judged(features, y, weights, row, count, self.differences), share

    def sampled_errors(self, model: AdditiveModel, rng: np.random.Generator) -> SampledErrors:
        """Squared errors of a part, for a model that is too large to factor."""
        part, y, weights, share = self._judged(model, False, rng)
        return SampledErrors(part.features(model), y, weights, self.count, share)

    def _judged(
        self, model: AdditiveModel, dense: bool, rng: np.random.Generator
    ) -> tuple[Examples, Floats, Floats, float]:
        """All examples, or so many that it takes seconds, their targets and weights, and which
        share of all that is.
        """
        entries = model.row_entries * (2 if self.differences else 1)
        most = most_judged(entries, dense)
        part = (
            self.whole()
            if self.size <= most
            else self.rows(np.sort(rng.choice(self.size, most, replace=False)), seldom=True)
        )
        if not part.squares[1].any():
            part = self.whole()
        (y, weights), share = part.squares, min(1.0, part.count / self.count)
        weights = weights if share == 1.0 else weights / weights.sum()
        return part, y, weights, share


@dataclass(frozen=True)
class Examples(AnyExamples):
    """Tables that enter the predictions with a sign: one, or better minus worse; targets in
    training units.
    """

    signed_tables: list[tuple[Floats, float]]
    y: Floats
    weights: Floats  # adding up to 1
    scale: float = 1.0  # one training unit in the user's units
    shift: float = 0.0
    independent: int | None = None  # how many of them tell something of their own; None: all
    source: tuple[Floats, list[NDArray[np.int64]]] | None = (
        None  # the rows that the signed tables repeat, and which each takes
    )
    offset: Floats | None = None  # what is added to the scores: the logarithm of the exposure
    nearby: tuple[Floats, Floats] | None = None
    """Targets and weights of squared errors that stand for the loss while the structure is chosen;
    None for y and its weights."""
    outputs: Outputs = ONE_SCORE
    _known: dict[int, tuple[AdditiveModel, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _sums: dict[str, tuple[AdditiveModel, SquaredSums]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def size(self) -> int:
        return int(self.y.size)

    @property
    def differences(self) -> bool:  # type: ignore[override]
        return len(self.signed_tables) > 1

    @property
    def stands_for_another(self) -> bool:
        return self.nearby is not None

    @property
    def count(self) -> int:
        """For deciding how much can be learnt. Rows without weight do not count, and pairs of the
        same rows are not so many examples.
        """
        weighted = int(np.count_nonzero(self.weights))
        return weighted if self.independent is None else min(weighted, self.independent)

    def features(self, model: AdditiveModel) -> sparse.csr_matrix:
        """One row per example; kept for the model asked about last."""
        if id(model) not in self._known:
            self._known.clear()
            self._known[id(model)] = (model, self._new_features(model))
        return self._known[id(model)][1]

    def features_at_need(
        self, model: AdditiveModel, squared: bool = False
    ) -> sparse.csr_matrix | Features:
        """The same, or where they would be much of the memory, made anew for every product: with
        `squared` from fewer entries on, because squared errors take few products.
        """
        many = self._many(model, squared)
        return FeaturesInParts(self, model) if many else self.features(model)

    def forget(self) -> None:
        self._known.clear()
        self._sums.clear()

    def _new_features(self, model: AdditiveModel) -> sparse.csr_matrix:
        if self.source is None:
            parts = [
                model.features(table) if sign == 1.0 else sign * model.features(table)
                for table, sign in self.signed_tables
            ]
        else:
            once = model.features(self.source[0])
            parts = [
                sign * once[rows]
                for rows, (_, sign) in zip(self.source[1], self.signed_tables, strict=True)
            ]
        total = parts[0] if len(parts) == 1 else sparse.csr_matrix(sum(parts[1:], parts[0]))
        total.sort_indices()
        return total

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """Targets and weights by which the structure is chosen."""
        return (self.y, self.weights) if self.nearby is None else self.nearby

    @property
    def table(self) -> Floats:
        if self.source is not None:
            return self.source[0]
        if len(self.signed_tables) == 1:
            return np.asarray(self.signed_tables[0][0])  # it may be most of the memory
        return self._one_below_the_other

    @cached_property
    def _one_below_the_other(self) -> Floats:
        return np.vstack([table for table, _ in self.signed_tables])

    @cached_property
    def table_weights(self) -> Floats:
        if self.source is None and len(self.signed_tables) == 1:
            return self.weights
        if self.source is None:
            return np.concatenate([self.weights] * len(self.signed_tables))
        count = self.source[0].shape[0]
        return np.asarray(
            sum(np.bincount(rows, self.weights, minlength=count) for rows in self.source[1]),
            dtype=np.float64,
        )

    def whole(self) -> Examples:
        return self

    def fewer(self, share: float, searched: Examples, rng: np.random.Generator) -> Examples:
        count = int(share * self.size)
        return self.some(count, rng) if count > searched.size else searched

    def rows(self, chosen: Indices | slice, seldom: bool = False) -> Examples:
        nearby, weights = self.nearby, self.weights[chosen]
        source = None if self.source is None else _used(*self.source, chosen)
        tables = [
            (rows_of(table, chosen) if seldom and not self.differences else table[chosen], sign)
            for table, sign in self.signed_tables
        ]
        return replace(
            self,
            signed_tables=tables,
            y=self.y[chosen],
            weights=weights,
            offset=None if self.offset is None else self.offset[chosen],
            nearby=None if nearby is None else (nearby[0][chosen], nearby[1][chosen]),
            source=source,
            independent=None if source is None else independent_of(source, weights),
            _known={},
            _sums={},
        )

    def that_count(self) -> Examples:
        counted = self.weights > 0.0
        return self if counted.all() else self.rows(np.flatnonzero(counted))

    @property
    def table_size(self) -> int:
        return int(self.table.shape[0])

    def table_rows(self, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return self.table[chosen], self.table_weights[chosen]

    def judged(
        self, model: AdditiveModel, row: LossRow | None, rng: np.random.Generator
    ) -> tuple[Judged, float]:
        if row is not None or not self._many(model, squared=True):
            return super().judged(model, row, rng)
        y, weights = self.squares
        sums, count = self.sums(model), self.count
        return Judged(None, y, weights, None, count, self.differences, sums=sums), 1.0

    def _many(self, model: AdditiveModel, squared: bool) -> bool:
        """Whether features would be much of the memory, and matrices of parameters less."""
        entries = model.row_entries * len(self.signed_tables)
        few = model.dimension < min(self.size, TRAINING.largest_gram)
        most = LIMITS.squared_entries if squared else LIMITS.whole_entries
        return few and self.size * entries > most

    def sums(self, model: AdditiveModel) -> SquaredSums:
        """Of the squared errors by which the structure is chosen; kept for the last model."""
        known = self._sums.get("last")
        if known is None or known[0] is not model:
            known = (model, SquaredSums.over(self._parts(model)))
            self._sums["last"] = known
        return known[1]

    def _parts(self, model: AdditiveModel) -> Iterator[tuple[Any, Floats, Floats]]:
        for cut in self.cut(model):
            check_deadline()
            part = cut()
            yield part.features(model), *part.squares

    def cut(self, model: AdditiveModel) -> list[PartOfTable]:
        """Parts whose features take a few megabytes."""
        entries = model.row_entries * len(self.signed_tables)
        rows = max(1, int(LIMITS.part_entries) // entries)
        return [
            PartOfTable(self, first, min(first + rows, self.size))
            for first in range(0, self.size, rows)
        ]

    def objective(
        self, model: AdditiveModel, loss: Loss, roughness: Any, pull: float
    ) -> EmpiricalRisk | ShardedRisk:
        """Of many examples the sums of squared errors, or, where the loss is smooth, the risks of
        parts, whose features are made whenever they are needed.
        """
        row, squared = loss_of(loss), loss_of(loss).name == "squared"
        many = isinstance(self.outputs, OneScore) and self._many(model, squared)
        if many and not row.kinked and not squared:
            parts = [part for part in self.cut(model) if part.has_weight]
            return ShardedRisk([RiskOfPart(part, model, loss, roughness, pull) for part in parts])
        own = type(self.outputs) is OneScore and self.offset is None and self.nearby is None
        if many and own and squared:
            return self.sums(model).objective(roughness, pull)
        return self.outputs.risk(self.score_problem(model, loss, roughness, pull))

    def score_problem(
        self, model: AdditiveModel, loss: Loss, roughness: Any = None, pull: float = 0.0
    ) -> ScoreProblem:
        """What one score would be trained on; roughness may have more columns than the model."""
        features = _as_wide_as(roughness, self.features(model))
        return ScoreProblem(features, self.y, self.weights, self.offset, loss, roughness, pull)

    def average_effects(self, model: AdditiveModel, scores: list[Floats]) -> list[list[float]]:
        sums, total, gaps = self.effect_sums(model, scores)
        return averages(model, sums, total, gaps)

    def effect_sums(
        self, model: AdditiveModel, scores: list[Floats]
    ) -> tuple[Floats, float, NDArray[np.bool_]]:
        """Weighted sums of the effect of every curve of each score, the weights' own sum, and which
        columns have missing cells.
        """
        table, weights = self.table, self.table_weights
        sums = np.zeros((len(scores), len(model.terms)))
        for place, term in enumerate(model.terms):
            if term.calibrator:
                masses = term.masses(table, weights)[0]
                sums[:, place] = [w[model.part(place)] @ masses for w in scores]
        return sums, float(weights.sum()), np.asarray(np.isnan(table).any(axis=0))

    def left_over(self, model: AdditiveModel, w: Floats) -> Floats:
        """The sizes of what a model leaves over of the targets of the structure."""
        return np.asarray(np.abs(self.squares[0] - self.features(model) @ w))

    def spread(self, model: AdditiveModel, w: Floats) -> Examples:
        sizes, weights = self.left_over(model, w), self.squares[1]
        centre, unit = centre_and_scale(sizes, weights)
        unit = unit if unit > ROUNDING else 1.0  # in units of the targets
        return replace(self, nearby=((sizes - centre) / unit, weights), _sums={})

    def constant_columns(self) -> list[int]:
        found = []
        for place in range(self.table.shape[1]):
            present = self.table[~np.isnan(self.table[:, place]), place]
            if present.size == 0 or present.min() == present.max():
                found.append(place)
        return found

    def record(
        self, columns: Columns, scores: Callable[[Floats], Floats], most: int = RECORD.rows
    ) -> TrainingRecord:
        return TrainingRecord.of(columns, self.table, self.y, scores, most)

    def searched(
        self, features: Any, row: LossRow | None, curvature: Floats | None = None
    ) -> Judged:
        """All of them, for a model whose features are known."""
        (y, weights), count = self.squares, self.count
        return Judged(features, y, weights, row, count, self.differences, curvature)

    def leftover(self, features: Any, row: LossRow | None, w: Floats) -> Leftover:
        """What a model with these features leaves over for every example."""
        residual, weights = self.searched(features, row).residual(w)
        noise = float(weights @ np.square(residual))
        if row is not None and row.name == "logistic":
            noise = min(noise, 1.0)  # less than labels drawn at random where they are determined
        return Leftover(residual, weights, max(noise, 1e-300))


def averages(
    model: AdditiveModel, sums: Floats, total: float, gaps: NDArray[np.bool_]
) -> list[list[float]]:
    """From sums over rows: what `average_effects` says."""
    known = [term.calibrator and not gaps[term.columns[0]] for term in model.terms]
    return [
        [float(each / total) if has else np.nan for each, has in zip(row, known, strict=True)]
        for row in sums
    ]


def noise_of_pairs(better: NDArray[np.int64], worse: NDArray[np.int64], weights: Floats) -> float:
    """A sum of squares over rows: each has the weight of the pairs that it wins, less that of those
    it loses. It is the variance of a composite likelihood's slope where all scores are equal, in
    units of a row's noise (Varin, Reid and Firth 2011).
    """
    rows = max(int(better.max(initial=0)), int(worse.max(initial=0))) + 1
    won, lost = (np.bincount(side, weights, rows) for side in (better, worse))
    return float(np.square(won - lost).sum())


def independent_pairs(total: float, noise: float) -> int:
    """How many pairs without a row in common tell as much as pairs of this total weight and noise:
    n equal ones have 2 / n. Of r relevant rows among n they are 2 r (n - r) / n, of n rows in a
    strict order about 1.5 n.

    Held-out queries of two tables, six splits each: where rows were counted instead, the loss was
    1.7% larger on 300 columns and grades, and 0.1% larger on 6 columns and a strict order.
    """
    return round(2.0 * total**2 / max(noise, SMALLEST_NOISE))


def independent_of(source: tuple[Floats, list[NDArray[np.int64]]], weights: Floats) -> int:
    """The same of weighted pairs of the rows of a table."""
    better, worse = source[1]
    return independent_pairs(float(weights.sum()), noise_of_pairs(better, worse, weights))


def _used(
    table: Floats, takes: list[NDArray[np.int64]], chosen: Indices | slice
) -> tuple[Floats, list[NDArray[np.int64]]]:
    """The rows that the chosen examples take, and where each finds its own."""
    taken = np.concatenate([rows[chosen] for rows in takes])
    used, places = np.unique(taken, return_inverse=True)
    return table[used], np.split(places, len(takes))


def _normalised(y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    return y, weights / max(float(weights.sum()), 1e-300)


def _as_wide_as(roughness: Any, X: Any) -> Any:
    """Features with columns of 0 for what only roughness depends on."""
    more = 0 if roughness is None else roughness.shape[1] - X.shape[1]
    if more == 0:
        return X
    shape = (X.shape[0], X.shape[1] + more)
    wide = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape)
    wide.has_canonical_format = X.has_canonical_format
    return wide


# -------------------------------------------------------------------------------------------------
# What is trained where examples come in parts: each makes its features when it is asked, so that
# those of all rows are never in memory together.


@dataclass(frozen=True)
class PartOfTable:
    """Examples in memory that follow each other."""

    examples: Examples
    first: int
    end: int

    @property
    def has_weight(self) -> bool:
        return bool(self.examples.weights[self.first : self.end].any())

    def __call__(self) -> Examples:
        return self.examples.rows(slice(self.first, self.end))  # views, no copies


class FeaturesInParts(FeaturesMadeAnew):
    """The features of examples in memory, which are never together."""

    def __init__(self, examples: Examples, model: AdditiveModel) -> None:
        self.examples, self.model = examples, model
        self.shape = (examples.size, model.dimension)

    def _each(self, use: Callable[[slice, NDArray[Any], Floats], None]) -> None:
        """`use` where each part lies, and the parameters and values of its rows: a part is gone
        before the next one is made.
        """
        for cut in self.examples.cut(self.model):
            here = slice(cut.first, cut.end)
            use(here, *self._entries(here))

    def _entries(self, here: slice) -> tuple[NDArray[Any], Floats]:
        tables = self.examples.signed_tables
        parts = [self.model.entries(table[here]) for table, _ in tables]
        if len(parts) == 1:
            return parts[0]
        places = np.hstack([places for places, _ in parts])
        signed = [sign * values for (_, values), (_, sign) in zip(parts, tables, strict=True)]
        return places, np.hstack(signed)

    def __matmul__(self, w: Floats) -> Floats:
        out = np.zeros(self.shape[0])
        self._each(lambda here, places, values: add_products(places, values, w, out[here]))
        return out

    def back(self, v: Floats) -> Floats:
        out = np.zeros(self.shape[1])
        self._each(lambda here, places, values: add_transposed(places, values, v[here], out))
        return out

    def there_and_back(
        self, w: Floats, use: Callable[[Floats, slice], Floats]
    ) -> tuple[Floats, Floats]:
        there, back = np.zeros(self.shape[0]), np.zeros(self.shape[1])

        def both(here: slice, places: NDArray[Any], values: Floats) -> None:
            add_products(places, values, w, there[here])
            add_transposed(places, values, use(there[here], here), back)

        self._each(both)
        return there, back

    def gram(self, weights: Floats) -> Floats:
        out = zeros(self.shape[1], self.shape[1])
        for cut in self.examples.cut(self.model):
            add_gram(cut().features(self.model), weights[cut.first : cut.end], out)
        mirror(out)
        return out

    def __getitem__(self, chosen: Any) -> FeaturesInParts:
        return FeaturesInParts(self.examples.rows(np.arange(self.shape[0])[chosen]), self.model)


@dataclass(frozen=True)
class RiskOfPart:
    """What is trained, on the examples of one part."""

    examples: Callable[[], Examples]
    model: AdditiveModel
    loss: Loss
    roughness: Any
    pull: float
    total: float | None = None

    def __call__(self) -> EmpiricalRisk:
        examples = self.examples()
        one = examples.score_problem(self.model, self.loss, self.roughness, self.pull)
        return examples.outputs.risk(replace(one, total=self.total))
