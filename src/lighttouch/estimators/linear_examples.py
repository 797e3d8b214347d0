"""What linear models make of examples: scaled columns, and a quadratic that stands for earlier
ones; of a table, or of rows in files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.record import RECORD, TrainingRecord
from lighttouch.estimators.streaming.examples import with_facts
from lighttouch.estimators.streaming.fitting import Codes, OpenFiles, Weighting
from lighttouch.estimators.streaming.source import TEXT, Reader, Rows, Shard
from lighttouch.estimators.tables import Columns, read_targets
from lighttouch.estimators.training import Risk
from lighttouch.fingerprints import fingerprint
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import given_as
from lighttouch.objectives import EmpiricalRisk, ShardedRisk
from lighttouch.solvers.quadratic_model import gram
from lighttouch.validation import refuse_if_too_large


def worth(sample_weight: Any, rows: int) -> float:
    """What examples weigh together: their number unless they have weights."""
    return (
        float(rows)
        if sample_weight is None
        else float(np.sum(np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), rows)))
    )


def column_sizes(X: Any, weights: Floats) -> Floats:
    """The root mean square of every column about its mean (dense) or about 0 (sparse); 1 for a
    column of zeros.
    """
    squares = (
        np.asarray(X.multiply(X).T @ weights).ravel()
        if sparse.issparse(X)
        else weights @ np.square(X - weights @ X)
    )
    size = np.sqrt(squares)
    largest = (
        np.asarray(abs(X).max(axis=0).todense()).ravel()
        if sparse.issparse(X)
        else np.abs(X).max(axis=0, initial=0.0)
    )
    return usable_sizes(size, largest)


def usable_sizes(size: Floats, largest: Floats) -> Floats:
    """A column that hardly varies is measured by its largest value, one of zeros by 1."""
    usable = size > 1e-10 * largest
    return np.where(usable, size, np.where(largest > 0.0, largest, 1.0))


LEAST_RIDGE = 1e-10  # on every training parameter: without it rounding could not be told from a gap


def scaled(X: Any, sizes: Floats) -> Any:
    ones = np.ones((X.shape[0], 1))
    if sparse.issparse(X):
        matrix = sparse.hstack(
            [sparse.csr_matrix(ones), X @ sparse.diags(1.0 / sizes)], format="csr"
        )
        matrix.sort_indices()
        return matrix
    return np.hstack([ones, X / sizes])


def ranges(X: Any) -> Floats:
    lowest, highest = ends(X)
    return highest - lowest


def ends(X: Any) -> tuple[Floats, Floats]:
    """The smallest and the largest value of every column."""
    if sparse.issparse(X):
        return np.asarray(X.min(axis=0).todense()).ravel(), np.asarray(
            X.max(axis=0).todense()
        ).ravel()
    return np.asarray(X.min(axis=0)), np.asarray(X.max(axis=0))


# -------------------------------------------------------------------------------------------------
# What is kept of the examples of earlier calls of partial_fit: a quadratic.


WIDTH = 0.1  # of a rounded kink, in mean residuals
NARROWEST = 1e-9
LEAST_EIGENVALUE = 1e-12  # relative to the largest, below which a direction was never seen


@dataclass(frozen=True)
class QuadraticSummary:
    """The sum of the quadratics p'bend p / 2 - pull.p that stand for earlier examples, in units
    fixed by the first of them. For squared errors it is exact.
    """

    sizes: Floats
    scale: float
    shift: float
    bend: Floats
    pull: Floats
    worth: float  # the sum of the examples' weights
    lowest: Floats
    highest: Floats

    @classmethod
    def nothing(cls, sizes: Floats, scale: float, shift: float) -> QuadraticSummary:
        count = sizes.size + 1
        refuse_if_too_large(
            24 * count**2,
            f"remembering examples of {sizes.size:,} columns",
            "use fit, or fewer columns",
        )
        free = np.full(sizes.size, np.inf)
        return cls(sizes, scale, shift, np.zeros((count, count)), np.zeros(count), 0.0, free, -free)

    def with_ranges(self, X: Any) -> QuadraticSummary:
        low, high = ends(X)
        return replace(
            self, lowest=np.minimum(self.lowest, low), highest=np.maximum(self.highest, high)
        )

    def with_examples(
        self, features: Any, y: Floats, weights: Floats, loss: LossRow, p: Floats
    ) -> QuadraticSummary:
        """Besides, the quadratic that touches the loss of these examples at the parameters p."""
        z = np.asarray(features @ p)
        width = WIDTH * losses.typical_residual(loss, z, y) if loss.kinked else 0.0
        slopes, curvatures = losses.quadratic(loss, z, y, max(width, NARROWEST))
        bend = gram(features, weights * curvatures)
        pull = bend @ p - np.asarray(features.T @ (weights * slopes))
        return replace(
            self,
            bend=self.bend + bend,
            pull=self.pull + pull,
            worth=self.worth + float(weights.sum()),
        )

    def __add__(self, other: QuadraticSummary) -> QuadraticSummary:
        """Of the examples of both, which are measured in the same units."""
        return replace(
            self,
            bend=self.bend + other.bend,
            pull=self.pull + other.pull,
            worth=self.worth + other.worth,
            lowest=np.minimum(self.lowest, other.lowest),
            highest=np.maximum(self.highest, other.highest),
        )

    def as_penalty(self) -> tuple[Floats, Floats]:
        """D and t with p'bend p / 2 - pull.p = ||D p - t||^2 / 2 up to a constant.

        bend = V diag(e) V' gives D = diag(sqrt e) V' and t = diag(1 / sqrt e) V' pull. Directions
        without curvature are left out: no example has touched them, so that they have no pull.
        """
        values, vectors = np.linalg.eigh(self.bend)
        seen = values > LEAST_EIGENVALUE * max(float(values[-1]), 1e-300)
        roots, directions = np.sqrt(values[seen]), vectors[:, seen].T
        return roots[:, None] * directions, (directions @ self.pull) / roots


# -------------------------------------------------------------------------------------------------
# The same of rows in files: sizes of columns, the objective and its summary, by shards.


@dataclass(frozen=True)
class LinearTargets:
    """Targets in training units, or -1 and +1 for the classes; and what rows weigh."""

    weighting: Weighting
    scale: float = 1.0
    shift: float = 0.0
    codes: Codes | None = None

    @property
    def units(self) -> tuple[float, float]:
        return self.scale, self.shift

    def __call__(self, rows: Rows) -> Floats:
        if self.codes is not None:
            return np.where(self.codes(rows) == 1, 1.0, -1.0)
        return np.asarray((read_targets(rows.y, None) - self.shift) / self.scale)

    def shares(self, rows: Rows) -> Floats:
        return self.weighting.shares(rows)


@dataclass(frozen=True)
class LinearFiles:
    """Rows of numbers in files."""

    files: OpenFiles
    targets: LinearTargets

    def _sum(self, ask: Callable[..., Any], what: str, *arguments: Any) -> Any:
        """The sum over shards of what `ask(rows, shares, *arguments)` returns."""
        task = partial(_asked, self.files.reader, self.targets, ask, arguments)
        total: Any = 0.0
        for part in self.files.passes.map(task, self.files.shards, what, self.files.names):
            total = part if isinstance(total, float) else total + part
        return total

    @property
    def lowest(self) -> Floats:
        return np.array([found.low for found in self.files.facts.columns.values()])

    @property
    def highest(self) -> Floats:
        return np.array([found.high for found in self.files.facts.columns.values()])

    def column_sizes(self) -> Floats:
        """The root mean square of every column about its mean; see `scaling.column_sizes`."""
        means = self._sum(_means, "measuring columns")
        squares = self._sum(_squares, "measuring columns", means)
        largest = np.maximum(np.abs(self.lowest), np.abs(self.highest))
        return usable_sizes(np.sqrt(squares), largest)

    def objective(self, sizes: Floats, loss: LossRow, ridge: Any) -> Risk:
        shards = [
            LinearRisk(self.files.reader, shard, self.targets, sizes, given_as(loss), ridge)
            for shard, count in zip(self.files.shards, self.files.weighted, strict=True)
            if count
        ]
        return shards[0]() if len(shards) == 1 else ShardedRisk(shards)

    def summary(self, nothing: QuadraticSummary, loss: LossRow, p: Floats) -> QuadraticSummary:
        """What partial_fit goes on from."""
        worth = self._worth()
        found = self._sum(_summary, "remembering rows", nothing, loss, p, worth)
        total: QuadraticSummary = found
        return replace(total, lowest=self.lowest, highest=self.highest)

    def _worth(self) -> float:
        """What all rows weigh together, in the user's units."""
        weighting = self.targets.weighting
        if self.files.reader.source.parts.weight is None:
            return float(weighting.rows)
        return weighting.largest * weighting.total

    def record(self, columns: Columns, scores: Callable[[Floats], Floats]) -> TrainingRecord:
        rows = self.files.facts.count
        step = max(1, rows // RECORD.rows)
        few = len(columns) <= RECORD.columns
        starts = np.concatenate([[0], np.cumsum(self.files.rows)[:-1]])
        items = list(zip(self.files.shards, (-starts % step).tolist(), strict=True))
        task = partial(_recorded, self.files.reader, self.targets, step, few)
        parts = list(self.files.passes.map(task, items, "fingerprinting the rows"))
        some = np.vstack([part[0] for part in parts if part[0] is not None]) if few else None
        data = fingerprint([columns.names, [part[1] for part in parts]])
        record = TrainingRecord.of_some(columns, rows, some, data, scores)
        return with_facts(record, columns, self.files.facts)


def _asked(
    reader: Reader, targets: LinearTargets, ask: Callable[..., Any], more: Any, shard: Shard
) -> Any:
    rows = reader(shard)
    return ask(rows.table, targets(rows), targets.shares(rows), *more)


def _means(X: Floats, y: Floats, weights: Floats) -> Floats:
    return np.asarray(weights @ X)


def _squares(X: Floats, y: Floats, weights: Floats, means: Floats) -> Floats:
    return np.asarray(weights @ np.square(X - means))


def _summary(
    X: Floats,
    y: Floats,
    weights: Floats,
    nothing: QuadraticSummary,
    loss: LossRow,
    p: Floats,
    worth: float,
) -> QuadraticSummary:
    return nothing.with_examples(scaled(X, nothing.sizes), y, worth * weights, loss, p)


def _recorded(
    reader: Reader,
    targets: LinearTargets,
    step: int,
    few: bool,
    item: tuple[Shard, int],
) -> tuple[Floats | None, str]:
    shard, first = item
    rows = reader(shard)
    some = rows.table[first::step].copy() if few else None  # a view would keep all rows
    return some, fingerprint([rows.table, targets(rows)])


@dataclass(frozen=True, eq=False)
class LinearRisk:
    """What is trained, on the rows of one shard."""

    reader: Reader
    shard: Shard
    targets: LinearTargets
    sizes: Floats
    loss: Any
    ridge: Any

    def __call__(self) -> EmpiricalRisk:
        rows = self.reader(self.shard)
        return EmpiricalRisk(
            scaled(rows.table, self.sizes),
            self.targets(rows),
            self.loss,
            sample_weight=self.targets.shares(rows),
            roughness=self.ridge,
            l2=LEAST_RIDGE,
            copy=False,
        )


def refuse_other_than_numbers(files: OpenFiles) -> None:
    """Linear models take finite numbers, and no gaps."""
    for name, found in files.facts.columns.items():
        if TEXT in found.kinds:
            raise DataError(
                f"a linear model needs numbers in every column: {name!r} holds text in "
                f"{found.kinds[TEXT]}; leave the column out (drop)"
            )
        if found.missing:
            raise DataError(
                f"a linear model needs numbers in every row: {name!r} is missing in "
                f"{found.missing:,} row(s); leave the column out (drop), or fill the cells"
            )
