"""Convex regression in many columns (Hildreth 1954; Seijo and Sen 2011)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lighttouch.arrays import Floats, Matrix
from lighttouch.constraints import GeneratedRows, LinearConstraints, stack
from lighttouch.estimators.parameters import (
    COMMON_ATTRIBUTES,
    COMMON_PARAMETERS,
    Checkpoint,
    documented,
)
from lighttouch.estimators.points_base import LIMITS, PointsRegressor
from lighttouch.estimators.proof import ConstraintReport, RuleReport, checked_excess
from lighttouch.estimators.rules.base import MonotonicCst
from lighttouch.estimators.tables import Table, centre_and_scale
from lighttouch.estimators.training import on_the_clock
from lighttouch.kernels.numerics.matrices import largest_plane
from lighttouch.objectives import EmpiricalRisk
from lighttouch.solvers import InteriorPoint
from lighttouch.validation import positive, positive_int

ROUNDING = 1e-12  # of the size of predictions: a midpoint may lie so far above the chord

PARAMETERS = {
    "concave": ("bool", "Whether the function is concave instead of convex."),
    "monotonic_cst": (
        "dict or sequence of int",
        "Column names (or positions) with 1 for increasing, -1 for decreasing, 0 for neither; or "
        "one such number per column.",
    ),
    "alpha": (
        "float",
        "How strongly slopes are drawn to 0, in units of the columns' and the targets' spreads. "
        "Without it slopes at the edge of the data are steep.",
    ),
    "most_points": (
        "int",
        "The most rows that are fitted as they are. More are averaged in so many cells, by "
        "repeated halving at the median of the widest column.",
    ),
    "tol": ("float", "The accuracy of the objective, relatively."),
    "time_limit": ("float", "Seconds after which training ends; None for no limit."),
    "checkpoint": COMMON_PARAMETERS["checkpoint"],
}
ATTRIBUTES = {
    "points_": ("array", "The rows, or averages of rows, where planes touch the function."),
    "heights_": ("array", "The function there."),
    "slopes_": ("array", "The slopes of the planes."),
    "signs_": ("array", "1, -1 or 0 for every column."),
} | COMMON_ATTRIBUTES


class Points(NamedTuple):
    """What `tangent_row` reads."""

    points: Floats


@documented(PARAMETERS, ATTRIBUTES)
class ConvexRegressor(PointsRegressor):
    """Convex (or concave) regression in many columns, with monotone columns if asked.

    Every training point has a height and a slope, and no point lies below the plane of another:
    as many inequalities as there are pairs of points. The prediction is the largest of these
    planes, so it is convex everywhere, whatever the planes. Squared errors are minimised.

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
    >>> X = np.linspace(-1.0, 1.0, 21)[:, None]
    >>> model = lt.ConvexRegressor(alpha=0.0).fit(X, X[:, 0] ** 2)
    >>> model.predict([[0.5], [0.0]]).round(3)
    array([0.25, 0.  ])
    """

    arrays = ("points_", "heights_", "slopes_", "signs_")

    def __init__(
        self,
        *,
        concave: bool = False,
        monotonic_cst: MonotonicCst = None,
        alpha: float = 1e-3,
        most_points: int = 200,
        tol: float = 1e-6,
        time_limit: float | None = None,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.concave = concave
        self.monotonic_cst = monotonic_cst
        self.alpha = alpha
        self.most_points = most_points
        self.tol = tol
        self.time_limit = time_limit
        self.checkpoint = checkpoint

    @on_the_clock
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ConvexRegressor:
        """Fit a height and a slope at every point.

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
        ConvexRegressor
            The estimator itself.

        Raises
        ------
        DataError
            If X, y or the weights cannot be read.
        ConstraintError
            If `monotonic_cst` does not fit the columns.
        """
        alpha = positive(self.alpha, "alpha", zero=True)
        solver = InteriorPoint(positive(self.tol, "tol"))
        most = positive_int(self.most_points, "most_points")
        rows, targets, weights = self._read_examples(X, y, sample_weight)
        self.signs_ = self._read_signs(default=0)
        turn = -1.0 if self.concave else 1.0
        centre = weights @ rows
        spread = np.sqrt(weights @ np.square(rows - centre))
        spread = np.where(spread > 0.0, spread, 1.0)
        shift, scale = centre_and_scale(targets, weights)
        points, heights, mass = averaged((rows - centre) / spread, targets, weights, most)
        objective = squared_errors(points, turn * (heights - shift) / scale, mass, alpha)
        rules = tangents(points, turn * self.signs_)
        result = self._solved(objective, rules, solver, np.zeros(objective.dimension))
        count = len(points)
        self.points_ = points * spread + centre
        self.heights_ = result.w[:count] * scale + turn * shift
        slopes = result.w[count:].reshape(points.shape) * scale / spread
        wanted = turn * self.signs_  # the projection keeps signs to rounding; here exactly
        self.slopes_ = np.where(wanted * slopes < 0.0, 0.0, slopes)
        self.constraint_report_ = ConstraintReport(
            tuple(self._checked_rules()), objective.value(result.w), None
        )
        self._record(rows, targets)
        return self

    @property
    def _turn(self) -> float:
        return -1.0 if self.concave else 1.0

    def _evaluate(self, rows: Floats) -> Floats:
        out = np.empty(rows.shape[0])
        largest_plane(rows, self.points_, self.heights_, self.slopes_, out)
        return self._turn * out

    @property
    def _kind(self) -> str:
        return "concave" if self.concave else "convex"

    def _checked_rules(self) -> list[RuleReport]:
        """A largest plane is convex whatever the planes; its slopes must have the right signs."""
        found = [
            checked_excess(f"{self._kind}: the largest of {len(self.points_)} planes", np.zeros(1))
        ]
        for place, sign in enumerate(self.signs_):
            if sign:
                falls = -sign * self._turn * self.slopes_[:, place]
                name = self._columns[place].name
                found.append(
                    checked_excess(f"{'in' if sign > 0 else 'de'}creasing in {name}", falls)
                )
        return found

    def _checked_predictions(self, rows: Floats) -> list[RuleReport]:
        """Besides monotone columns: the midpoint of two rows lies below the middle of their
        predictions, up to rounding.
        """
        other = np.roll(rows, 1, axis=0)
        ends, middle = (self._evaluate(rows), self._evaluate(other)), 0.5 * (rows + other)
        excess = self._turn * (self._evaluate(middle) - 0.5 * (ends[0] + ends[1]))
        excess -= ROUNDING * (np.abs(ends[0]) + np.abs(ends[1]))
        return [checked_excess(f"predictions on X {self._kind}", excess), *self._swept(rows)]


def averaged(
    rows: Floats, targets: Floats, weights: Floats, most: int
) -> tuple[Floats, Floats, Floats]:
    """Different points with the averages of their targets and their weights; at most so many."""
    points, group = np.unique(rows, axis=0, return_inverse=True)
    cells = group.ravel()
    if len(points) > most:
        cells = halved(points, np.asarray(np.bincount(cells, weights), np.float64), most)[cells]
    mass = np.asarray(np.bincount(cells, weights), dtype=np.float64)
    means = np.column_stack([np.bincount(cells, weights * column) for column in rows.T])
    return means / mass[:, None], np.bincount(cells, weights * targets) / mass, mass


def halved(points: Floats, weights: Floats, most: int) -> Any:
    """The cell of every point: the heaviest cell is cut at the median of its widest column until
    there are so many.
    """
    cells = [np.arange(len(points))]
    masses = [float(weights.sum())]
    while len(cells) < most:
        heaviest = int(np.argmax(masses))
        chosen = cells.pop(heaviest)
        masses.pop(heaviest)
        widest = int(np.argmax(np.ptp(points[chosen], axis=0)))
        ordered = chosen[np.argsort(points[chosen, widest], kind="stable")]
        share = np.cumsum(weights[ordered])
        cut = int(np.clip(np.searchsorted(share, 0.5 * share[-1]), 1, ordered.size - 1))
        for part in (ordered[:cut], ordered[cut:]):
            cells.append(part)
            masses.append(float(weights[part].sum()) if part.size > 1 else -1.0)
    out = np.empty(len(points), dtype=np.int64)
    for place, part in enumerate(cells):
        out[part] = place
    return out


def squared_errors(points: Floats, y: Floats, mass: Floats, alpha: float) -> EmpiricalRisk:
    """Of heights, which come first; slopes, which follow, are drawn to 0."""
    count, size = len(points), points.size
    heights = sparse.identity(count, format="csr")
    X = sparse.hstack([heights, sparse.csr_matrix((count, size))], format="csr")
    pull = np.repeat(np.sqrt(max(alpha, LIMITS.least_pull) * mass), points.shape[1])
    D = sparse.hstack([sparse.csr_matrix((size, count)), sparse.diags(pull)], format="csr")
    return EmpiricalRisk(X, y, sample_weight=mass, roughness=D)


def tangents(points: Floats, signs: Floats) -> Any:
    """heights[i] + slopes[i].(points[k] - points[i]) <= heights[k] for every i and k, and the signs
    of slopes.
    """
    count, columns = points.shape
    dimension = count * (1 + columns)
    pairs = count * (count - 1)
    rows: Any
    if pairs * (columns + 2) <= LIMITS.stored_entries:
        rows = LinearConstraints(_stored_rows(points), np.zeros(pairs))
    else:
        rows = GeneratedRows(dimension, pairs, Points(points), tangent_row, columns + 2)
    asked = np.tile(signs, count)
    chosen = np.flatnonzero(asked)
    if chosen.size == 0:
        return rows
    places = count + chosen
    A = sparse.csr_matrix(
        (-asked[chosen], places, np.arange(chosen.size + 1)), shape=(chosen.size, dimension)
    )
    return stack(rows, LinearConstraints(A, np.zeros(chosen.size)))


def _stored_rows(points: Floats) -> Matrix:
    count, columns = points.shape
    i, k = np.divmod(np.arange(count * (count - 1)), max(1, count - 1))
    k = k + (k >= i)
    slopes = count + i[:, None] * columns + np.arange(columns)
    places = np.column_stack([i, k, slopes])
    values = np.column_stack([np.ones(i.size), -np.ones(i.size), points[k] - points[i]])
    starts = np.arange(0, places.size + 1, columns + 2)
    shape = (i.size, count * (1 + columns))
    A = sparse.csr_matrix((values.ravel(), places.ravel(), starts), shape=shape)
    A.sort_indices()
    return A


def tangent_row(record: Any, j: int, columns: Any, values: Any) -> tuple[int, float]:
    """Row j of `_stored_rows`, for `GeneratedRows`."""
    count, width = record.points.shape
    i = j // (count - 1)
    k = j % (count - 1)
    if k >= i:
        k += 1
    columns[0], values[0] = i, 1.0
    columns[1], values[1] = k, -1.0
    for c in range(width):
        columns[2 + c] = count + i * width + c
        values[2 + c] = record.points[k, c] - record.points[i, c]
    return 2 + width, 0.0
