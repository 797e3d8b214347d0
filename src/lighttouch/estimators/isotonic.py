"""Isotonic regression in many columns (Barlow, Bartholomew, Bremner and Brunk 1972)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lighttouch.arrays import Floats, Indices
from lighttouch.constraints import LinearConstraints
from lighttouch.estimators.parameters import (
    COMMON_ATTRIBUTES,
    COMMON_PARAMETERS,
    LINEAR_REGRESSION,
    Checkpoint,
    choices,
    documented,
)
from lighttouch.estimators.points_base import LIMITS, PointsRegressor
from lighttouch.estimators.proof import BINDING, ConstraintReport, RuleReport, checked_excess
from lighttouch.estimators.regression import regression_loss
from lighttouch.estimators.rules.base import MonotonicCst
from lighttouch.estimators.tables import Table, centre_and_scale
from lighttouch.estimators.training import on_the_clock, share_of_limit
from lighttouch.kernels.orders.graph import covers, largest_below, smallest_above
from lighttouch.losses import given_as
from lighttouch.objectives import EmpiricalRisk
from lighttouch.projections import OutOfTimeError, project
from lighttouch.running import check_deadline, within
from lighttouch.solvers import Automatic
from lighttouch.validation import one_of, positive, refuse_if_too_large

PairsOfPoints = Callable[[Floats, Floats], tuple[Indices, Indices]]
PARAMETERS = {
    "loss": (
        choices(LINEAR_REGRESSION),
        'What is minimised. The threshold of "huber" is one standard deviation of y.',
    ),
    "quantile": ("float", 'The level of loss="quantile", between 0 and 1.'),
    "monotonic_cst": (
        "dict or sequence of int",
        "Column names (or positions) with 1 for increasing, -1 for decreasing; or one such number "
        "per column. Rows are compared only where columns with 0 are equal. None: increasing in "
        "every column.",
    ),
    "interpolation": (
        '{"middle", "lower", "upper"}',
        "What is predicted between the largest fitted value of rows below and the smallest of "
        "rows above: the middle, or one of the two.",
    ),
    "tol": ("float", "The accuracy of the objective, relatively."),
    "time_limit": ("float", "Seconds after which training ends; None for no limit."),
    "checkpoint": COMMON_PARAMETERS["checkpoint"],
}
ATTRIBUTES = {
    "points_": ("array", "The different rows of the training table, in ascending order."),
    "values_": ("array", "The fitted value at each of them."),
    "signs_": ("array", "1, -1 or 0 for every column."),
} | COMMON_ATTRIBUTES


@documented(PARAMETERS, ATTRIBUTES)
class MonotoneRegressor(PointsRegressor):
    """Isotonic regression in many columns: the best fit among all monotone functions.

    Nothing else is assumed of the function. One row is below another if it is so in every column;
    the fitted values never fall from one to the other. This is one inequality per pair of rows
    with no third between them. A new row lies between the fitted values of the rows below it and
    of those above it; between them the prediction is the middle, which is monotone as well. With
    many columns few rows can be compared, and the fit follows the noise: then `LatticeRegressor`
    is the better choice.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Raises
    ------
    DataError
        From `fit`, if the table or the targets cannot be used: empty, or no numbers where
        numbers must be.
    ValueError
        From `fit`, if table and targets have different lengths.
    ConstraintError
        From `fit`, if a rule names no column of the table or does not fit its column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = lt.MonotoneRegressor().fit(X, [0.0, 2.0, 1.0, 1.0])
    >>> model.predict(X).round(6)
    array([0. , 1.5, 1. , 1.5])
    >>> model.predict([[0.5, 0.5]]).round(6)
    array([0.75])
    """

    arrays = ("points_", "values_", "signs_")

    def __init__(
        self,
        *,
        loss: object = "squared",
        quantile: float = 0.5,
        monotonic_cst: MonotonicCst = None,
        interpolation: str = "middle",
        tol: float = 1e-6,
        time_limit: float | None = None,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.monotonic_cst = monotonic_cst
        self.interpolation = interpolation
        self.tol = tol
        self.time_limit = time_limit
        self.checkpoint = checkpoint

    @on_the_clock
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MonotoneRegressor:
        """Fit a value to every different row of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Finite numbers.
        y : array of shape (n,)
            Finite numbers.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        MonotoneRegressor
            The estimator itself.

        Raises
        ------
        DataError
            If X, y or the weights cannot be read.
        ConstraintError
            If `monotonic_cst` does not fit the columns.
        """
        loss = regression_loss(self.loss, self.quantile, LINEAR_REGRESSION)
        one_of(self.interpolation, ("middle", "lower", "upper"), "interpolation")
        solver = Automatic(positive(self.tol, "tol"))
        rows, targets, weights = self._read_examples(X, y, sample_weight)
        self.signs_ = self._read_signs(default=1)
        self.points_, group = np.unique(rows, axis=0, return_inverse=True)
        shift, scale = centre_and_scale(targets, weights)
        count = self.points_.shape[0]
        belongs = sparse.csr_matrix(
            (np.ones(rows.shape[0]), group.ravel(), np.arange(rows.shape[0] + 1)),
            shape=(rows.shape[0], count),
        )
        objective = EmpiricalRisk(
            belongs, (targets - shift) / scale, given_as(loss), sample_weight=weights
        )
        mass = np.bincount(group.ravel(), weights)
        means = np.bincount(group.ravel(), weights * objective.y) / mass
        limit, late = share_of_limit(self.time_limit, 1), False
        try:
            with within(math.inf if limit is None else limit):
                rules = self._rules(comparable)
                start = project(means, rules).w  # the answer for squared errors and equal weights
        except OutOfTimeError:
            late, rules = True, self._rules(in_one_line)
            start = project(means, rules).w
        result = self._solved(objective, rules, solver, start, late)
        self.values_ = result.w * scale + shift
        self.constraint_report_ = ConstraintReport(
            (self._checked(rules),), objective.value(result.w), None
        )
        self._record(rows, targets)
        return self

    def _rules(self, pairs: PairsOfPoints) -> LinearConstraints:
        """One row per pair."""
        lower, upper = pairs(self.points_, self.signs_)
        entries = np.tile([1.0, -1.0], lower.size)
        columns = np.column_stack([lower, upper]).ravel()
        starts = np.arange(0, columns.size + 1, 2)
        A = sparse.csr_matrix((entries, columns, starts), shape=(lower.size, self.points_.shape[0]))
        A.sort_indices()
        return LinearConstraints(A, np.zeros(lower.size))

    def _checked_rules(self) -> list[RuleReport]:
        return [self._checked(self._rules(comparable))]

    def _checked(self, rules: LinearConstraints) -> RuleReport:
        label = "increasing" if (self.signs_ >= 0.0).all() else "monotone"
        names = ", ".join(
            column.name
            for column, sign in zip(self._columns.columns, self.signs_, strict=True)
            if sign
        )
        slack = BINDING * float(np.ptp(self.values_))  # losses with kinks end as near as that
        return checked_excess(f"{label} in {names}", rules.values(self.values_), slack=slack)

    def _evaluate(self, rows: Floats) -> Floats:
        points, given = oriented(self.points_, self.signs_), oriented(rows, self.signs_)
        order = np.argsort(self.values_, kind="stable")
        low, high = np.empty(rows.shape[0]), np.empty(rows.shape[0])
        down = order[::-1]
        least, most = float(self.values_[order[0]]), float(self.values_[down[0]])
        largest_below(points[down], self.values_[down], given, least, low)
        smallest_above(points[order], self.values_[order], given, most, high)
        if self.interpolation == "middle":
            return 0.5 * low + 0.5 * high
        return low if self.interpolation == "lower" else high


def oriented(points: Floats, signs: Floats) -> Floats:
    """Points of which one is below another where no coordinate is above: decreasing columns are
    negated, and columns that must be equal stand with both signs.
    """
    equal = signs == 0.0
    directed = points * np.where(equal, 1.0, signs)
    return np.ascontiguousarray(np.hstack([directed, -points[:, equal]]))


def comparable(points: Floats, signs: Floats) -> tuple[Indices, Indices]:
    """Pairs (lower, upper) of different points with none between them."""
    equal = signs == 0.0
    keys = np.hstack([points[:, equal], points[:, ~equal] * signs[~equal]])
    ascending = np.lexsort(keys.T[::-1])
    ordered, count = np.ascontiguousarray(keys[ascending]), len(points)
    room = LIMITS.comparisons + count
    lower, upper = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    first, pairs, found = 0, 0, []
    while first < count:
        check_deadline()
        first, more = covers(ordered, int(equal.sum()), first, LIMITS.comparisons, lower, upper)
        found.append((lower[:more].copy(), upper[:more].copy()))
        pairs += more
        refuse_if_too_large(
            LIMITS.bytes_per_pair * pairs,
            f"isotonic regression of {count:,} points with more than {pairs:,} pairs to compare",
            "use fewer rows, or LatticeRegressor",
        )
    below, above = (np.concatenate(side) for side in zip(*found, strict=True))
    return ascending[below], ascending[above]


def in_one_line(points: Floats, signs: Floats) -> tuple[Indices, Indices]:
    """Neighbours (lower, upper) in an order of all points that holds every order between two: by
    the sum of their ranks in every column. Points that differ where the sign is 0 are not compared.
    """
    equal = signs == 0.0
    ranks = [np.unique(each, return_inverse=True)[1].ravel() for each in (points * signs).T]
    total = np.sum(ranks, axis=0)
    apart = points[:, equal]
    line = np.lexsort((total, *apart.T))
    lower, upper = line[:-1], line[1:]
    together = (apart[lower] == apart[upper]).all(axis=1)
    return lower[together], upper[together]
