"""What is trained on one structure of terms: a score, one score per quantile, or a score with
ordered thresholds.

Each takes the problem of a single score (`ScoreProblem`) and makes of it the problem that is
trained, rules included. All of them are mean losses of a linear model under linear rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix
from lighttouch.constraints.base import one_after_another
from lighttouch.estimators.rules import RuleRows
from lighttouch.estimators.rules.rows import with_more_columns
from lighttouch.kernels.verbs.loss_functions import LARGEST_EXPONENT
from lighttouch.losses import CustomLoss, Loss, Quantile
from lighttouch.objectives import EmpiricalRisk

LARGEST_START = 3.0  # predictions of a first guess on a logarithmic scale: e^3 is 20 times the mean
LEAST_GAP = 1e-3  # between the thresholds that training starts from
LEVELS_IN_ORDER = "quantiles in order"
THRESHOLDS_IN_ORDER = "thresholds in order"
GAP = 0.0  # the target that stands for a gap of thresholds, beside the labels -1 and +1
STEEPEST = 1e12  # slope of the loss of a gap that has closed: the loss there is infinite


@dataclass(frozen=True)
class ScoreProblem:
    """What one score would be trained on, in training units."""

    X: Matrix
    y: Floats
    weights: Floats  # adding up to 1
    offset: Floats | None
    loss: Loss
    roughness: Any = None  # rows D: the penalty is ||D w||^2 / 2
    pull: float = 0.0  # towards 0 on every parameter
    total: float | None = None  # of the weights of what is trained; None where they are all here


class Outputs(ABC):
    """How the parameters of a model of terms are arranged for training, and its rules with them."""

    single: ClassVar[bool] = True
    """Whether there is one score."""
    in_order: ClassVar[tuple[str, float] | None] = None
    """The rule that columns of predictions are in order, and 1 where they ascend, -1 where they
    descend; None where there is no such rule."""

    @abstractmethod
    def size(self, dimension: int) -> int:
        """How many parameters are trained where one score has so many."""

    @abstractmethod
    def state(self) -> list[Any]:
        """Its name and fields, for `outputs_from`."""

    @abstractmethod
    def risk(self, one: ScoreProblem) -> EmpiricalRisk:
        """The objective."""

    def start(self, one: Callable[[], ScoreProblem], w: Floats) -> Floats:
        """Parameters to start from, given those of a single score; `one` makes the problem of some
        examples, where they are needed.
        """
        return w

    @abstractmethod
    def rules(self, rules: list[RuleRows], dimension: int) -> list[RuleRows]:
        """Rules about one score, of so many parameters, as rules about all that is trained; and
        what the outputs themselves ask for.
        """

    @abstractmethod
    def intercepts(self, dimension: int) -> Indices:
        """The parameters that move with the targets' origin."""

    @abstractmethod
    def scores(self, w: Floats, dimension: int) -> list[Floats]:
        """The part of the trained parameters of each score (views, not copies)."""


@dataclass(frozen=True)
class OneScore(Outputs):
    """A single score, as it is."""

    def risk(self, one: ScoreProblem) -> EmpiricalRisk:
        return EmpiricalRisk(
            one.X,
            one.y,
            one.loss,
            sample_weight=one.weights,
            l2=one.pull,
            roughness=one.roughness,
            offset=one.offset,
            copy=False,
        )

    def rules(self, rules: list[RuleRows], dimension: int) -> list[RuleRows]:
        return rules

    def intercepts(self, dimension: int) -> Indices:
        return np.zeros(1, dtype=np.int64)

    def scores(self, w: Floats, dimension: int) -> list[Floats]:
        return [w]

    def size(self, dimension: int) -> int:
        return dimension

    def state(self) -> list[Any]:
        return [type(self).__name__]


ONE_SCORE = OneScore()


@dataclass(frozen=True)
class Means(OneScore):
    """A single score that is the logarithm of a mean."""

    def start(self, one: Callable[[], ScoreProblem], w: Floats) -> Floats:
        farthest = float(np.abs(one().X @ w).max(initial=0.0))
        return w * min(1.0, LARGEST_START / max(farthest, LARGEST_START))


@dataclass(frozen=True)
class Levels(Outputs):
    """One score per quantile level, ordered everywhere.

    The scores share their terms, so that each is w -> features(x).w with the same features, which
    are interpolation weights and never negative. If no parameter of a level is above the same
    parameter of the next level, features(x).(next - this) is a sum of products of numbers that
    are not negative: the levels are in order at every x, whatever the terms.

    Without lattices nothing is lost by asking this of every parameter. If the levels of a sum of
    curves are in order everywhere, they are so where each curve's difference is smallest, because
    columns move independently. Moving those smallest differences into the intercept changes no
    prediction, and leaves every difference of parameters at least 0.
    """

    levels: tuple[float, ...]

    single: ClassVar[bool] = False
    in_order: ClassVar[tuple[str, float] | None] = (LEVELS_IN_ORDER, 1.0)

    def size(self, dimension: int) -> int:
        return len(self.levels) * dimension

    def state(self) -> list[Any]:
        return ["Levels", list(self.levels)]

    def start(self, one: Callable[[], ScoreProblem], w: Floats) -> Floats:
        start, some = np.tile(w, len(self.levels)), one()
        start[self.intercepts(w.size)] += weighted_quantiles(
            some.y - some.X @ w, some.weights, self.levels
        )
        return start

    def risk(self, one: ScoreProblem) -> EmpiricalRisk:
        count, rows = len(self.levels), one.y.size
        each = np.repeat(self.levels, rows)
        return EmpiricalRisk(
            _repeated(one.X, count),
            np.tile(one.y, count),
            Quantile(each),
            sample_weight=np.tile(one.weights, count),
            l2=one.pull / count,
            roughness=_repeated(one.roughness, count) / math.sqrt(count),
        )

    def rules(self, rules: list[RuleRows], dimension: int) -> list[RuleRows]:
        count = len(self.levels)
        lower = np.arange((count - 1) * dimension)
        ends = np.column_stack([lower, lower + dimension]).ravel()
        entries = np.tile([1.0, -1.0], lower.size)
        starts = np.arange(0, ends.size + 1, 2)
        A = sparse.csr_matrix((entries, ends, starts), shape=(lower.size, count * dimension))
        ordered = RuleRows(LEVELS_IN_ORDER, A, np.zeros(A.shape[0]), about_order=True)
        return [_of_copies(rule, count, dimension) for rule in rules] + [ordered]

    def intercepts(self, dimension: int) -> Indices:
        return np.arange(len(self.levels)) * dimension

    def scores(self, w: Floats, dimension: int) -> list[Floats]:
        return list(w.reshape(len(self.levels), dimension))


@dataclass(frozen=True)
class OrderedClasses(Outputs):
    """The proportional-odds model (McCullagh 1980): P(y > k) = 1 / (1 + e^(t_k - score)), with
    thresholds t_0 <= t_1 <= ... after the score's parameters.

    With a = t_k - score and b = t_(k-1) - score the likelihood of class k is s(a) - s(b), s the
    logistic function. Because s(a) - s(b) = s(a) s(-b) (1 - e^(b - a)), minus its logarithm is

        log(1 + e^-a) + log(1 + e^b) - log(1 - e^-(t_k - t_(k-1))):

    two logistic losses and a function of the thresholds' gap, all convex.
    """

    classes: int

    in_order: ClassVar[tuple[str, float] | None] = (THRESHOLDS_IN_ORDER, -1.0)

    def size(self, dimension: int) -> int:
        return dimension + self.classes - 1

    def state(self) -> list[Any]:
        return ["OrderedClasses", self.classes]

    def start(self, one: Callable[[], ScoreProblem], w: Floats) -> Floats:
        some = one()
        return np.concatenate([w, self._first_thresholds(some.y.astype(np.int64), some.weights)])

    def total(self, y: Floats, weights: Floats) -> float:
        """The weights of what is trained, gaps of thresholds included."""
        ends = (y == 0) | (y == self.classes - 1)
        return float(np.sum(np.where(ends, 1.0, 3.0) * weights))

    def risk(self, one: ScoreProblem) -> EmpiricalRisk:
        """`y` of the single score numbers the classes."""
        known, last = one.y.astype(np.int64), self.classes - 1
        parts, labels, weights = [], [], []
        for label, chosen in ((-1.0, known < last), (1.0, known > 0)):
            rows = np.flatnonzero(chosen)
            threshold = known[rows] - (label > 0)
            thresholds = sparse.csr_matrix(
                (np.full(rows.size, -1.0), (np.arange(rows.size), threshold)),
                shape=(rows.size, last),
            )
            parts.append(sparse.hstack([one.X[rows], thresholds], format="csr"))
            labels.append(np.full(rows.size, label))
            weights.append(one.weights[rows])
        middle = np.bincount(known, one.weights, minlength=self.classes)[1:-1]
        A = self._gaps(one.X.shape[1])[middle > 0.0]  # a part of the rows may lack a class
        middle = middle[middle > 0.0]
        X = sparse.vstack([*parts, A], format="csr")
        X.sort_indices()
        everything = np.concatenate([*weights, middle])
        total = float(everything.sum()) if one.total is None else one.total
        none = sparse.csr_matrix((one.roughness.shape[0], last))
        roughness = sparse.hstack([one.roughness, none], format="csr")
        return EmpiricalRisk(
            X,
            np.concatenate([*labels, np.full(middle.size, GAP)]),
            ordinal_loss(),
            sample_weight=everything,
            l2=one.pull / total,
            roughness=roughness / math.sqrt(total),
        )

    def _first_thresholds(self, known: Indices, weights: Floats) -> Floats:
        """The log-odds of the shares of the classes, a little apart."""
        share = np.cumsum(np.bincount(known, weights, minlength=self.classes))[:-1]
        share = np.clip(share, LEAST_GAP, 1.0 - LEAST_GAP)
        raw = np.log(share / (1.0 - share))
        least = LEAST_GAP * np.arange(raw.size)
        return np.asarray(np.maximum.accumulate(raw - least) + least)

    def _gaps(self, dimension: int) -> Matrix:
        """t_k - t_(k-1) for every class between the ends."""
        count = self.classes - 1
        gaps = sparse.diags([-1.0, 1.0], [0, 1], shape=(count - 1, count))
        return sparse.hstack([sparse.csr_matrix((count - 1, dimension)), gaps], format="csr")

    def rules(self, rules: list[RuleRows], dimension: int) -> list[RuleRows]:
        count = self.classes - 1
        found = [with_more_columns(rule, count) for rule in rules]
        A = -self._gaps(dimension)
        return [*found, RuleRows(THRESHOLDS_IN_ORDER, A, np.zeros(count - 1), about_order=True)]

    def intercepts(self, dimension: int) -> Indices:
        return np.zeros(1, dtype=np.int64)

    def scores(self, w: Floats, dimension: int) -> list[Floats]:
        return [w[:dimension]]


def outputs_from(state: list[Any] | None) -> Outputs:
    """What `Outputs.state` was asked of; the first files of version 1 have one score."""
    kind, *fields = state or ["OneScore"]
    if kind == "Levels":
        return Levels(tuple(float(level) for level in fields[0]))
    if kind == "OrderedClasses":
        return OrderedClasses(int(fields[0]))
    return {"OneScore": OneScore, "Means": Means}[kind]()


def _repeated(rows: Matrix, count: int) -> Matrix:
    """The rows for each of so many copies of the parameters, one after the other."""
    return sparse.csr_matrix(sparse.kron(sparse.identity(count, format="csr"), rows, format="csr"))


def _of_copies(rule: RuleRows, count: int, dimension: int) -> RuleRows:
    wide = [
        RuleRows(
            rule.label,
            rule.A,
            rule.b,
            tuple(block.wide(copy * dimension, count * dimension) for block in rule.nested),
        )
        for copy in range(count)
    ]
    return RuleRows(
        rule.label,
        _repeated(rule.A, count),
        np.tile(rule.b, count),
        one_after_another(wide),
        rule.about_order,
        rule.exponential,
    )


def weighted_quantiles(values: Floats, weights: Floats, levels: tuple[float, ...]) -> Floats:
    by_size = np.argsort(values, kind="stable")
    share = np.cumsum(weights[by_size])
    places = np.searchsorted(share, np.asarray(levels) * share[-1])
    return np.asarray(values[by_size][np.clip(places, 0, values.size - 1)])


@cache
def ordinal_loss() -> CustomLoss:
    """The logistic loss for labels -1 and +1; for the target `GAP`, -log(1 - e^-z) of a gap z."""
    functions = (_ordinal_value, _ordinal_slope, _ordinal_curvature)
    return CustomLoss(*functions, conjugate=_ordinal_conjugate)


def _ordinal_value(z: float, y: float) -> float:
    if y == GAP:
        return -math.log(-math.expm1(-z)) if z > 0.0 else math.inf
    margin = y * z
    return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)


def _ordinal_slope(z: float, y: float) -> float:
    if y == GAP:
        return -1.0 / max(math.expm1(min(z, LARGEST_EXPONENT)), 1.0 / STEEPEST)
    return -y / (1.0 + math.exp(min(y * z, LARGEST_EXPONENT)))


def _ordinal_curvature(z: float, y: float) -> float:
    if y == GAP:
        slope = -1.0 / max(math.expm1(min(z, LARGEST_EXPONENT)), 1.0 / STEEPEST)
        return slope * slope - slope
    chance = 1.0 / (1.0 + math.exp(min(abs(z), LARGEST_EXPONENT)))
    return chance * (1.0 - chance)


def _ordinal_conjugate(slope: float, y: float) -> float:
    """The largest slope z - loss(z): minus the entropy of a chance, or for a gap, with v = -slope,
    v log v - (1 + v) log(1 + v), at z = log((1 + v) / v).
    """
    part = -slope if y == GAP else -slope * y
    if part < 0.0 or (y != GAP and part > 1.0):
        return math.inf
    own = part * math.log(part) if part > 0.0 else 0.0
    if y == GAP:
        return own - (1.0 + part) * math.log1p(part)
    return own + ((1.0 - part) * math.log1p(-part) if part < 1.0 else 0.0)
