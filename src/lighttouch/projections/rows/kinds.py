"""Linear constraints by kind (bounds, orders, general rows), scaled to rows of length one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import EPSILON, Booleans, Floats, Indices, Matrix, Vector, in_parts
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.systems import factor_size, fill_reducing
from lighttouch.kernels.numerics.matrices import sizes_and_entries
from lighttouch.projections.costs import COSTS


def factor_cost(P: Matrix, rows: Matrix) -> float:
    """About how many multiplications one factorisation takes: the few long rows set aside, the
    others in a band (reverse Cuthill-McKee order, George 1971).

    An upper estimate for what a fill-reducing order makes of it; random sparse rows come out as
    expensive as they are. Infinite where there are too many entries to ask.
    """
    count, dimension = rows.shape
    if P.nnz + rows.nnz > COSTS.most_analysed_entries:
        return np.inf
    pattern = sparse.bmat([[abs(P), abs(rows.T)], [abs(rows), None]], format="csr")
    degree = np.diff(pattern.indptr)
    dense = degree > COSTS.dense_line * np.sqrt(count + dimension)
    dense[:dimension] = False
    rest = pattern[~dense][:, ~dense]
    place = csgraph.reverse_cuthill_mckee(rest.tocsr(), symmetric_mode=True)
    banded = rest[place][:, place].tocoo()
    width = np.zeros(place.size)
    np.maximum.at(width, banded.row, np.abs(banded.row - banded.col))
    beside = np.asarray(pattern[~dense][:, dense].getnnz(axis=1))[place]
    return float(np.square(width + beside).sum() + np.count_nonzero(dense) ** 3)


Side = float | Floats  # of a box: one number for all coordinates, or one per coordinate


@dataclass(frozen=True)
class Bounds:
    """lower <= w <= upper; a source is the row that says so, or -1 for the domain."""

    lower: Floats
    upper: Floats
    lower_source: Indices
    upper_source: Indices
    lower_norm: Floats  # the absolute coefficient of that row
    upper_norm: Floats

    @cached_property
    def trivial(self) -> bool:
        return bool(np.all(np.isneginf(self.lower)) and np.all(np.isposinf(self.upper)))


@dataclass(frozen=True)
class Orders:
    """Row source[k] reads scale[k] (w[lower[k]] + margin[k] - w[upper[k]]) <= 0."""

    lower: Indices
    upper: Indices
    margin: Floats
    scale: Floats
    source: Indices


@dataclass(frozen=True)
class ScaledRows:
    """Dense rows divided by their lengths as they are used: a divided copy of large ones would cost
    more than many projections.
    """

    rows: Floats
    length: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.rows.shape[1]

    def __matmul__(self, w: Floats) -> Floats:
        return np.asarray(self.rows @ w) / self.length

    def __getitem__(self, ids: Any) -> Floats:
        return np.asarray(self.rows[ids] / self.length[ids][..., None])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return self.rows / self.length[:, None]


@dataclass(frozen=True)
class LinearSet:
    """Everything the linear constraints and a box say, by kind; multipliers refer to the `count`
    rows as they were given.
    """

    dimension: int
    count: int
    bounds: Bounds
    orders: Orders
    given: tuple[Matrix, Floats]  # all rows and their right sides
    scale: Floats  # the largest entries of the rows
    source: Indices  # the rows that are neither bound nor order

    @cached_property
    def _unit(self) -> tuple[Matrix | ScaledRows, Floats]:
        return unit_rows(self.given[0], self.source, self.scale)

    @property
    def matrix(self) -> Matrix | ScaledRows:
        """The rows that are neither bound nor order, of length one: CSR or ScaledRows. They are
        made when they are first asked for: of a gigabyte of dense rows that takes as long as ten
        products.
        """
        return self._unit[0]

    @property
    def norm(self) -> Floats:
        """Their lengths."""
        return self._unit[1]

    @cached_property
    def right(self) -> Floats:
        """Their right sides, divided by their lengths."""
        return np.asarray(self.given[1][self.source] / self.norm)


def read_rows(matrix: Matrix, right: Floats, lower: Side, upper: Side) -> LinearSet:
    """Sort the rows of matrix @ w <= right and the box lower <= w <= upper by kind."""
    count, dimension = matrix.shape
    scale, nonzeros = _scales_and_nonzeros(matrix)
    refuse_impossible_zero_rows(scale, right)
    if sparse.issparse(matrix) and np.any(matrix.data == 0.0):
        matrix = matrix.copy()
        matrix.eliminate_zeros()
        nonzeros = np.diff(matrix.indptr)
    bounds = read_bounds(matrix, right, np.flatnonzero(nonzeros == 1), scale, lower, upper)
    pairs = np.flatnonzero(nonzeros == 2)
    orders, rest = read_orders(matrix, right, pairs)
    general = np.sort(np.concatenate([rest, np.flatnonzero(nonzeros > 2)]))
    return LinearSet(dimension, count, bounds, orders, (matrix, right), scale, general)


def row_scale(matrix: Matrix) -> Floats:
    """The largest absolute entry of every row."""
    return _scales_and_nonzeros(matrix)[0]


def _scales_and_nonzeros(matrix: Matrix) -> tuple[Floats, Indices]:
    """... and its entries that are not 0, or that are stored."""
    if sparse.issparse(matrix):
        scale, nonzeros = np.zeros(matrix.shape[0]), np.diff(matrix.indptr)
        some = np.flatnonzero(nonzeros)
        scale[some] = np.maximum.reduceat(np.abs(matrix.data), matrix.indptr[some])
        return scale, nonzeros
    scale, nonzeros = np.empty(matrix.shape[0]), np.empty(matrix.shape[0], dtype=np.int64)
    sizes_and_entries(matrix, scale, nonzeros)
    return scale, nonzeros


def refuse_impossible_zero_rows(scale: Floats, right: Floats) -> None:
    bad = np.flatnonzero((scale == 0.0) & (right < 0.0))
    if bad.size:
        row = int(bad[0])
        message = (
            f"no point satisfies row {row}: all its coefficients are zero and its right side "
            f"is {right[row]:g}"
        )
        raise InfeasibleConstraintsError(message, [row])


def unit_rows(matrix: Matrix, chosen: Indices, scale: Floats) -> tuple[Any, Floats]:
    """The chosen rows divided by their lengths, and the lengths, taken of scaled rows so that no
    square over- or underflows.
    """
    part = matrix if chosen.size == matrix.shape[0] else matrix[chosen]
    if sparse.issparse(part):
        part = sparse.csr_matrix(part)
        owner = np.repeat(np.arange(chosen.size), np.diff(part.indptr))
        data = part.data / scale[chosen][owner]
        length = np.sqrt(np.bincount(owner, data * data, minlength=chosen.size))
        rows = sparse.csr_matrix(
            (data / length[owner], part.indices, part.indptr), shape=part.shape
        )
        return rows, length * scale[chosen]
    length = scale[chosen].copy()
    for block in in_parts(part, INTERIOR.cached_entries):
        length[block] *= np.linalg.norm(part[block] / length[block, None], axis=1)
    return ScaledRows(part, length), length


def entries(matrix: Matrix, rows: Indices, each: int) -> tuple[Indices, Floats]:
    """Columns and values of rows with exactly `each` nonzeros, one row per line."""
    if sparse.issparse(matrix):
        place = matrix.indptr[rows][:, None] + np.arange(each)
        return matrix.indices[place].astype(np.int64), matrix.data[place]
    part = matrix[rows]
    columns = np.nonzero(part)[1].reshape(rows.size, each)
    return columns, np.take_along_axis(part, columns, axis=1)


def read_bounds(
    matrix: Matrix, right: Floats, rows: Indices, scale: Floats, lower: Side, upper: Side
) -> Bounds:
    """The box narrowed by every row with a single nonzero; a coordinate left no room is
    infeasible.
    """
    dimension = matrix.shape[1]
    low = np.array(np.broadcast_to(np.asarray(lower, dtype=np.float64), dimension))
    high = np.array(np.broadcast_to(np.asarray(upper, dtype=np.float64), dimension))
    low_source = np.full(dimension, -1, dtype=np.int64)
    high_source = np.full(dimension, -1, dtype=np.int64)
    if rows.size:
        columns, values = entries(matrix, rows, 1)
        limit = right[rows] / values[:, 0]
        tighten(high, high_source, rows, columns[:, 0], limit, values[:, 0] > 0, 1.0)
        tighten(low, low_source, rows, columns[:, 0], limit, values[:, 0] < 0, -1.0)
    meet_within_rounding(low, high)
    bounds = Bounds(
        low,
        high,
        low_source,
        high_source,
        scale_of(low_source, scale),
        scale_of(high_source, scale),
    )
    refuse_empty_bounds(bounds)
    return bounds


def meet_within_rounding(low: Floats, high: Floats) -> None:
    """Bounds that cross by the last bits only are one value: equalities written as two rows come
    out like that.
    """
    with np.errstate(invalid="ignore"):
        crossed = (low > high) & (low - high <= 8 * EPSILON * np.abs(low))
    low[crossed] = high[crossed] = 0.5 * (low[crossed] + high[crossed])


def scale_of(source: Indices, scale: Floats) -> Floats:
    """The scale of each source row; 1 for the domain."""
    return np.where(source >= 0, scale[source], 1.0) if scale.size else np.ones(source.size)


def tighten(
    bound: Floats,
    source: Indices,
    rows: Indices,
    columns: Indices,
    limit: Floats,
    chosen: Booleans,
    sign: float,
) -> None:
    """Keep the tightest limit of each coordinate; sign 1 for upper bounds, -1 for lower ones."""
    rows, columns, limit = rows[chosen], columns[chosen], sign * limit[chosen]
    tightest = np.lexsort((rows, limit, columns))
    columns, first = np.unique(columns[tightest], return_index=True)
    rows, limit = rows[tightest][first], limit[tightest][first]
    better = limit < sign * bound[columns]
    bound[columns[better]] = sign * limit[better]
    source[columns[better]] = rows[better]


def refuse_empty_bounds(bounds: Bounds) -> None:
    bad = np.flatnonzero(bounds.lower > bounds.upper)
    if not bad.size:
        return
    i = int(bad[np.argmax(bounds.lower[bad] - bounds.upper[bad])])
    rows = [int(r) for r in (bounds.lower_source[i], bounds.upper_source[i]) if r >= 0]
    says = " and ".join([f"row {r}" for r in rows] + (["the domain"] if len(rows) < 2 else []))
    least, most = float(bounds.lower[i]), float(bounds.upper[i])
    message = (
        f"no point satisfies {says}: coordinate {i} must be at least {least!r} and at most {most!r}"
    )
    raise InfeasibleConstraintsError(message, rows)


def read_orders(matrix: Matrix, right: Floats, rows: Indices) -> tuple[Orders, Indices]:
    """Rows c w_i - c w_j <= -c margin as orders, and the rows of two nonzeros that are not of that
    form.
    """
    nothing = np.empty(0, dtype=np.int64)
    if not rows.size:
        return Orders(nothing, nothing, np.empty(0), np.empty(0), nothing), rows
    columns, values = entries(matrix, rows, 2)
    opposite = values[:, 0] == -values[:, 1]
    source, columns, values = rows[opposite], columns[opposite], values[opposite]
    first_is_lower = values[:, 0] > 0
    lower = np.where(first_is_lower, columns[:, 0], columns[:, 1])
    upper = np.where(first_is_lower, columns[:, 1], columns[:, 0])
    scale = np.abs(values[:, 0])
    return Orders(lower, upper, 0.0 - right[source] / scale, scale, source), rows[~opposite]


@dataclass(frozen=True)
class UnitRows:
    """Rows 0..m-1 of the matrix, then upper bounds m..m+d-1, then lower bounds m+d..m+2d-1; a
    source of -1 is the domain.
    """

    matrix: Matrix
    right: Floats
    lower: Floats
    upper: Floats
    source: Indices
    norm: Floats

    def take(self, ids: Indices) -> Matrix:
        """The chosen rows as a matrix of the same kind."""
        rows, dimension = self.right.size, self.lower.size
        general = np.flatnonzero(ids < rows)
        if general.size == ids.size:
            return self.matrix[ids]
        bound = np.flatnonzero(ids >= rows)
        column = ids[bound] - rows
        sign = np.where(column < dimension, 1.0, -1.0)
        units = sparse.csr_matrix(
            (sign, (np.arange(bound.size), column % dimension)), shape=(bound.size, dimension)
        )
        place = np.empty(ids.size, dtype=np.int64)
        place[np.concatenate([general, bound])] = np.arange(ids.size)
        if sparse.issparse(self.matrix):
            return sparse.vstack([self.matrix[ids[general]], units], format="csr")[place]
        return np.vstack([self.matrix[ids[general]], units.toarray()])[place]

    @cached_property
    def factor_cost(self) -> float:
        """Multiplications of factoring the rows with an identity; infinite where they are not
        sparse.
        """
        return (
            factor_cost(sparse.identity(self.lower.size, format="csr"), self.matrix)
            if sparse.issparse(self.matrix)
            else np.inf
        )

    @cached_property
    def is_cheap_in_order(self) -> bool:
        """Whether a factor in a fill-reducing order is cheap, where that order is found at once."""
        count, dimension = self.matrix.shape
        if not sparse.issparse(self.matrix) or count + dimension > INTERIOR.ordered_at_once:
            return False
        lines = [[sparse.identity(dimension), self.matrix.T], [self.matrix, sparse.identity(count)]]
        whole = sparse.bmat(lines, format="csc")
        order = fill_reducing(whole)
        return factor_size(whole[order][:, order].tocsc())[1] <= COSTS.cheap_factor

    def multipliers(self, count: int, ids: Indices, weights: Floats) -> Floats:
        """Weights of unit rows as multipliers of the rows as given; what belongs to the domain is
        left out.
        """
        result = np.zeros(count)
        mine = self.source[ids] >= 0
        np.add.at(result, self.source[ids[mine]], weights[mine] / self.norm[ids[mine]])
        return result


def all_unit_rows(rows: LinearSet) -> UnitRows:
    """Orders and general rows in one matrix of unit rows, bounds apart."""
    orders, bounds = rows.orders, rows.bounds
    matrix, right, source, norm = rows.matrix, rows.right, rows.source, rows.norm
    if orders.source.size:
        line = np.arange(orders.source.size)
        data = np.repeat([1.0, -1.0], line.size)
        entries = (data, (np.tile(line, 2), np.concatenate([orders.lower, orders.upper])))
        pairs, length = unit_rows(
            sparse.csr_matrix(entries, shape=(line.size, rows.dimension)), line, np.ones(line.size)
        )
        matrix = sparse.vstack([sparse.csr_matrix(matrix), pairs], format="csr")
        right = np.concatenate([right, -orders.margin / length])
        source = np.concatenate([source, orders.source])
        norm = np.concatenate([norm, length * orders.scale])
    source = np.concatenate([source, bounds.upper_source, bounds.lower_source])
    norm = np.concatenate([norm, bounds.upper_norm, bounds.lower_norm])
    return UnitRows(matrix, right, bounds.lower, bounds.upper, source, norm)


class Centred:
    """The projection of one point, moved to the origin and divided by its worst excess, so that
    rounding is relative to the distance.
    """

    def __init__(self, unit: UnitRows, v: Vector) -> None:
        self.unit = unit
        right = unit.right - np.asarray(unit.matrix @ v)
        self.right = np.concatenate([right, unit.upper - v, v - unit.lower])
        worst = float(np.max(-self.right, initial=0.0))
        self.feasible = worst <= 0.0
        self.scale = worst if worst > 0.0 else 1.0
        self.right /= self.scale
        self.tolerance = max(
            COSTS.row_tolerance, 8.0 * EPSILON * float(np.abs(v).max(initial=0.0)) / self.scale
        )

    @property
    def dimension(self) -> int:
        return int(self.unit.lower.size)

    def excess(self, z: Floats) -> Floats:
        """How far z is beyond every row."""
        return np.asarray(np.concatenate([np.asarray(self.unit.matrix @ z), z, -z]) - self.right)


def worst_rows(excess: Floats, tolerance: float, batch: int) -> Indices:
    """The rows beyond the tolerance, at most `batch` of them, worst first."""
    beyond = np.flatnonzero(excess > tolerance)
    if beyond.size > batch:
        beyond = beyond[np.argpartition(-excess[beyond], batch)[:batch]]
    return np.asarray(beyond[np.argsort(-excess[beyond], kind="stable")])
