"""Linear constraints with stored rows: A w <= b, A w = b, and functions that return them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.constraints.base import NestedRows, RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import (
    DenseEqualities,
    DenseRows,
    OrderRows,
    SparseEqualities,
    SparseRows,
)
from lighttouch.validation import (
    finite_matrix,
    finite_vector,
    plain_array,
    positive_int,
    refuse_if_too_large,
    refuse_non_finite,
    to_float,
)


class StoredRows(RecordConstraints):
    """Rows of a matrix with right sides: what inequalities and equalities share."""

    A: Matrix
    b: Vector
    sparse: bool
    is_linear = True
    sign = "<="

    def _keep(
        self, A: Matrix, b: ArrayLike, names: Sequence[str] | None, copy: bool = True
    ) -> None:
        self.A = finite_matrix(A, "A", ConstraintError, own=copy)
        self.count, self.dimension = self.A.shape
        if self.dimension == 0:
            raise ConstraintError("A must have at least one column, one for each parameter")
        self.b = finite_vector(b, "b", self.count, ConstraintError, own=copy)
        if names is not None and len(names) != self.count:
            raise ConstraintError(
                f"names must hold one name for each of the {self.count} rows, got {len(names)}"
            )
        self.names = None if names is None else tuple(names)
        self.sparse = scipy.sparse.issparse(self.A)
        self.cost = (
            max(1.0, self.A.nnz / max(1, self.count)) if self.sparse else float(self.dimension)
        )

    @property
    def most_entries(self) -> int:
        if not self.sparse:
            return self.dimension
        return int(np.diff(self.A.indptr).max(initial=0))

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        chosen = np.asarray(indices, dtype=np.int64).reshape(-1)
        return scipy.sparse.csr_matrix(self.A[chosen]), self.b[chosen]

    def worst(self, w: ArrayLike, most: int, tolerance: float = 0.0) -> Indices:
        """Dense rows are about all parameters: simply the worst of them."""
        if self.sparse:
            return super().worst(w, most, tolerance)
        relative = self.values(w) / self.row_scales()
        broken = np.flatnonzero(relative > tolerance)
        return broken[np.argsort(-relative[broken], kind="stable")[: positive_int(most, "most")]]

    def row_scales(self) -> Vector:
        """The norm of each row; 1 for a row of zeros."""
        return self._row_scales

    @cached_property
    def _row_scales(self) -> Vector:
        norms = np.sqrt(_row_squares(self.A))
        for j in np.flatnonzero(np.isinf(norms)):  # entries whose squares overflow
            row = self.A[j].toarray() if self.sparse else self.A[j]
            largest = float(np.abs(row).max())
            norms[j] = min(largest * float(np.linalg.norm(row / largest)), np.finfo(float).max)
        return np.where(norms > 0.0, norms, 1.0)

    def describe(self, j: int) -> str:
        if self.names:
            return self.names[j]
        row = self.A.getrow(j) if self.sparse else scipy.sparse.csr_matrix(self.A[j : j + 1])
        return f"row {j}: {in_terms(row)} {self.sign} {self.b[j]:.6g}"


def _row_squares(A: Matrix) -> Vector:
    with np.errstate(over="ignore"):
        if scipy.sparse.issparse(A):
            squares, some = np.zeros(A.shape[0]), np.flatnonzero(np.diff(A.indptr))
            squares[some] = np.add.reduceat(A.data * A.data, A.indptr[some])
            return squares
        return np.asarray(np.einsum("ij,ij->i", A, A))


def in_terms(row: Matrix) -> str:
    """The left side of a CSR matrix with one row, in words."""
    terms = [
        f"{value:+.6g} w[{index}]"
        for index, value in zip(row.indices[:6], row.data[:6], strict=True)
    ]
    more = " ..." if row.nnz > 6 else ""
    return f"{' '.join(terms) or '0'}{more}"


class LinearConstraints(StoredRows):
    """Linear inequalities A w <= b, one row per constraint.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (m, d)
        One row per constraint. Zero rows (no constraint at all) are allowed.
    b : array of m numbers
        The right sides.
    names : sequence of m strings, optional
        What errors and reports call the rows.
    nested : tuple of NestedRows, default ()
        Rows that builders know how to say with fewer, by auxiliary variables.
    copy : bool, default True
        Whether A and b are copied, so that changing them later changes nothing here.

    Raises
    ------
    ConstraintError
        Where A or b is not finite, or their shapes do not fit.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.LinearConstraints([[1.0, 1.0], [-1.0, 0.0]], [1.0, 0.0])
    >>> rows.values([2.0, 0.5])
    array([ 1.5, -2. ])
    """

    def __init__(
        self,
        A: Matrix,
        b: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        nested: Sequence[NestedRows] = (),
        copy: bool = True,
    ) -> None:
        self._keep(A, b, names, copy)
        self.nested = tuple(nested)

    def linear_rows(self) -> tuple[Matrix, Vector] | None:
        return self.A, self.b

    @cached_property
    def record(self) -> Any:
        if not self.sparse:
            return DenseRows(self.A, self.b)
        return self.order_rows or SparseRows(self.A.data, self.A.indices, self.A.indptr, self.b)

    @cached_property
    def order_rows(self) -> OrderRows | None:
        """The rows as scale (w[smaller] - w[larger]) <= b, if every row has that form."""
        if not self.sparse or self.count == 0 or not np.all(np.diff(self.A.indptr) == 2):
            return None
        data, indices = self.A.data.reshape(-1, 2), self.A.indices.reshape(-1, 2)
        if not np.all((data[:, 0] == -data[:, 1]) & (data[:, 0] != 0.0)):
            return None
        ends = np.where(
            data[:, :1] > 0.0, indices, indices[:, ::-1]
        )  # side by side, so that a check reads both at once
        scale = np.abs(data[:, 0])
        return OrderRows(ends[:, 0], ends[:, 1], _once_if_equal(scale), _once_if_equal(self.b))

    @cached_property
    def is_bounds(self) -> bool:
        """Whether every row bounds one parameter."""
        nonzeros = np.diff(self.A.indptr) if self.sparse else np.count_nonzero(self.A, axis=1)
        return bool(np.all(nonzeros <= 1))


def _once_if_equal(values: Vector) -> Vector:
    return values[:1].copy() if np.all(values == values[0]) else values


# -------------------------------------------------------------------------------------------------
# Linear equalities A w = b, dense or sparse.


class LinearEqualities(StoredRows):
    """Linear equalities A w = b, one constraint per row.

    The paper's algorithms see g_j(w) = |a_j.w - b_j|, whose subgradient is a_j or -a_j.
    Projections, and solvers that work with rows, meet both sides of every equality together, so
    that answers satisfy them to rounding. Rows may repeat or follow from others.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (m, d)
        One row per equality.
    b : array of m numbers
        The right sides.
    names : sequence of m strings, optional
        What errors and reports call the equalities.

    Raises
    ------
    ConstraintError
        Where A or b is not finite, or their shapes do not fit.

    Examples
    --------
    >>> import lighttouch as lt
    >>> budget = lt.LinearEqualities([[1.0, 1.0, 1.0]], [3.0])
    >>> budget.values([2.0, 0.0, 0.5])
    array([0.5])
    >>> lt.project([2.0, 0.0, 0.5], budget, lt.Box(0.5, 2.0)).w
    array([2. , 0.5, 0.5])
    """

    sign = "="

    def __init__(self, A: Matrix, b: ArrayLike, names: Sequence[str] | None = None) -> None:
        self._keep(A, b, names)

    @property
    def is_equality(self) -> bool:
        return True

    @property
    def row_count(self) -> int:
        return 2 * self.count

    def constraint_of_row(self) -> Indices:
        return np.tile(np.arange(self.count), 2)

    def row_signs(self) -> Floats:
        return np.repeat([1.0, -1.0], self.count)

    @cached_property
    def _both_sides(self) -> tuple[Matrix, Vector]:
        join: Any = partial(scipy.sparse.vstack, format="csr") if self.sparse else np.vstack
        return join([self.A, -self.A]), np.concatenate([self.b, -self.b])

    def linear_rows(self) -> tuple[Matrix, Vector]:
        """A w <= b and then -A w <= -b."""
        return self._both_sides

    @cached_property
    def record(self) -> Any:
        if not self.sparse:
            return DenseEqualities(self.A, self.b)
        return SparseEqualities(self.A.data, self.A.indices, self.A.indptr, self.b)


# -------------------------------------------------------------------------------------------------
# Functions that return linear constraints.


BYTES_PER_ROW = 60  # of a row with two entries, while it is built
LARGEST_DIMENSION = 2**40  # parameters: a point of them takes 8 TiB


def ordering(dimension: int) -> LinearConstraints:
    """w_0 <= w_1 <= ... <= w_{d-1}.

    Parameters
    ----------
    dimension : int
        The number of parameters.

    Returns
    -------
    LinearConstraints
        One row per pair of neighbours.

    Raises
    ------
    ValueError
        If the dimension is not a whole number of at least 1.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.ordering(3).values([1.0, 3.0, 2.0])
    array([-2.,  1.])
    """
    _refuse_too_many(positive_int(dimension, "dimension"), "pairs to order")
    places = np.arange(dimension)
    return order(places[:-1], places[1:], dimension=dimension)


def order(
    lower: ArrayLike, upper: ArrayLike, margin: ArrayLike = 0.0, *, dimension: int | None = None
) -> LinearConstraints:
    """w[lower_j] + margin_j <= w[upper_j] for every j.

    Parameters
    ----------
    lower, upper : arrays of m whole numbers
        Indices of parameters: the smaller and the larger of every pair.
    margin : float or array of m numbers, default 0
        By how much they differ at least.
    dimension : int, optional
        The number of parameters; the largest index plus one unless given.

    Returns
    -------
    LinearConstraints
        One row per pair.

    Raises
    ------
    ConstraintError
        Where an index is out of range, or a parameter is ordered against itself.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.project([2.0, 0.0, 1.0], lt.order([0], [1], dimension=3)).w
    array([1., 1., 1.])
    """
    smaller, larger = (
        _indices(values, name) for values, name in ((lower, "lower"), (upper, "upper"))
    )
    if smaller.size != larger.size:
        raise ConstraintError(
            f"lower and upper must have the same length, got {smaller.size} and {larger.size}"
        )
    if np.any(smaller == larger):
        place = int(np.argmax(smaller == larger))
        raise ConstraintError(
            f"a parameter cannot be ordered against itself: pair {place} is "
            f"({smaller[place]}, {larger[place]})"
        )
    largest = int(max(smaller.max(initial=-1), larger.max(initial=-1)))
    dimension = largest + 1 if dimension is None else positive_int(dimension, "dimension")
    if largest >= dimension:
        raise ConstraintError(f"indices must be below the dimension {dimension}, got {largest}")
    count = smaller.size
    _refuse_too_many(count, "pairs to order")
    margins = _one_or_each(margin, "margin", count)
    rows = np.repeat(np.arange(count), 2)
    columns = np.column_stack([smaller, larger]).ravel()
    values = np.tile([1.0, -1.0], count)
    return LinearConstraints(
        scipy.sparse.csr_matrix((values, (rows, columns)), shape=(count, dimension)),
        0.0 - margins,
        copy=False,
    )


def bounds(
    dimension: int, lower: ArrayLike | None = None, upper: ArrayLike | None = None
) -> LinearConstraints:
    """lower <= w <= upper as constraints.

    Parameters
    ----------
    dimension : int
        The number of parameters.
    lower, upper : float or array of d numbers, optional
        One number for all coordinates, or one per coordinate; None or an infinite side asks for
        nothing.

    Returns
    -------
    LinearConstraints
        One row per finite side of a coordinate, lower sides first.

    Raises
    ------
    ConstraintError
        If a bound is NaN or of the wrong length.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.bounds(2, lower=0.0, upper=[1.0, float("inf")])
    LinearConstraints(3 constraints on 2 parameters)
    """
    dimension = positive_int(dimension, "dimension")
    _refuse_too_many(2 * dimension, "bounds")
    sides = []
    for limit, sign, name in ((lower, -1.0, "lower"), (upper, 1.0, "upper")):
        if limit is None:
            continue
        values = _one_or_each(limit, name, dimension, infinite=True)
        kept = np.flatnonzero(np.isfinite(values))
        matrix = scipy.sparse.csr_matrix(
            (np.full(kept.size, sign), (np.arange(kept.size), kept)), shape=(kept.size, dimension)
        )
        sides.append((matrix, sign * values[kept]))
    if not sides:
        return LinearConstraints(scipy.sparse.csr_matrix((0, dimension)), np.zeros(0))
    return LinearConstraints(
        scipy.sparse.vstack([matrix for matrix, _ in sides], format="csr"),
        np.concatenate([b for _, b in sides]),
    )


def canonical_examples(X: Matrix, y: ArrayLike, margin: ArrayLike = 1.0) -> LinearConstraints:
    """y_i <w, x_i> >= margin for every row: these examples must always be classified right.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (m, d)
        The examples.
    y : array of m labels
        -1 or +1.
    margin : float or array of m numbers, default 1
        How far on the right side they must be.

    Returns
    -------
    LinearConstraints
        One row per example.

    Raises
    ------
    ConstraintError
        Where a label is neither -1 nor +1, or X is not finite.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.canonical_examples([[1.0, 2.0]], [1.0]).values([0.0, 1.0])
    array([-1.])
    """
    rows = finite_matrix(X, "X", ConstraintError)
    labels = finite_vector(y, "y", rows.shape[0], ConstraintError)
    if not np.all(np.abs(labels) == 1.0):
        bad = int(np.argmax(np.abs(labels) != 1.0))
        raise ConstraintError(f"y must hold only -1 and +1, got {labels[bad]} in row {bad}")
    signed = (
        scipy.sparse.diags(-labels) @ rows
        if scipy.sparse.issparse(rows)
        else -labels[:, None] * rows
    )
    return LinearConstraints(signed, 0.0 - _one_or_each(margin, "margin", rows.shape[0]))


def _refuse_too_many(count: int, what: str) -> None:
    refuse_if_too_large(
        count * BYTES_PER_ROW,
        f"{count:,} {what}",
        "use fewer, or a family without stored rows",
        ConstraintError,
    )


def _one_or_each(values: ArrayLike, name: str, count: int, infinite: bool = False) -> Vector:
    """A number for all, or one each, none of them NaN (or infinite, unless allowed)."""
    array = to_float(values, name, ConstraintError)
    if array.shape not in ((), (count,)):
        raise ConstraintError(
            f"{name} must be a number or hold {count} of them, got shape {array.shape}"
        )
    refuse_non_finite(
        np.atleast_1d(np.where(np.isinf(array), 0.0, array) if infinite else array),
        name,
        ConstraintError,
    )
    return np.broadcast_to(array, (count,))


def _indices(values: ArrayLike, name: str) -> Indices:
    array = np.atleast_1d(plain_array(values, name, ConstraintError))
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ConstraintError(
            f"{name} must hold whole numbers (indices of parameters), got {array.dtype} of "
            f"shape {array.shape}"
        )
    if array.min() < 0:
        raise ConstraintError(f"{name} must hold indices of at least 0, got {array.min()}")
    if array.max() > LARGEST_DIMENSION:
        raise ConstraintError(
            f"{name} must hold indices below {LARGEST_DIMENSION:,}, got {array.max()}: a point of "
            "that many parameters fits no memory; number the parameters from 0"
        )
    return array.astype(np.int64)
