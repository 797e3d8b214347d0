"""Functions that return linear constraints."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Indices, Matrix, Vector
from lighttouch.constraints.linear import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.validation import (
    finite_matrix,
    finite_vector,
    plain_array,
    positive_int,
    refuse_if_too_large,
    refuse_non_finite,
    to_float,
)

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
