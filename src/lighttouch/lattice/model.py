"""A lattice: values at the vertices of a grid, interpolated between them.

What the user hands to lattices and to builders of their rules is checked here, once, before any
work.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError, DataError
from lighttouch.kernels.numerics.lattice_features import evaluate_rows, fill_features
from lighttouch.validation import one_of, plain_array, refuse_if_too_large, to_float, told

_LARGEST_INT32 = 2**31 - 1
_LARGEST_PARAMETER = 1e290  # beyond it the exact products of `evaluate` overflow


@dataclass(frozen=True)
class Lattice:
    """A table of values at the vertices of a grid, interpolated between them.

    Feature d lies in 0 .. sizes[d] - 1, with vertices at the whole numbers, so in [0, 1] for size
    2. Values outside are clamped exactly. There is one parameter per vertex; they are numbered in
    C order, the last feature fastest.

    Parameters
    ----------
    sizes : sequence of int
        Vertices along each feature, at least 2.
    interpolation : {"simplex", "hypercube"}, default "simplex"
        How values between vertices are found: from the d + 1 corners of a simplex, or from all 2^d
        corners of a cell.

    Raises
    ------
    ValueError
        If a size is below 2 or the interpolation is unknown.

    Examples
    --------
    >>> import lighttouch as lt
    >>> grid = lt.Lattice([2, 2])
    >>> grid.evaluate([[0.5, 0.5], [0.0, 1.0]], theta=[0.0, 1.0, 2.0, 4.0])
    array([2., 1.])
    """

    sizes: tuple[int, ...]
    interpolation: str = "simplex"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes(self.sizes))
        checked_interpolation(self.interpolation)

    @property
    def parameter_count(self) -> int:
        """Vertices, that is parameters and columns of `features`."""
        return math.prod(self.sizes)

    @property
    def row_width(self) -> int:
        """The most nonzeros a row of `features` can have: D + 1 (simplex) or 2^D (hypercube)."""
        return len(self.sizes) + 1 if self.simplex else 2 ** len(self.sizes)

    @property
    def simplex(self) -> bool:
        """Whether interpolation is by simplices, as the kernels ask."""
        return self.interpolation == "simplex"

    @property
    def strides(self) -> tuple[int, ...]:
        """How far apart in parameter numbers two vertices are that are neighbours along each
        feature.
        """
        return tuple(math.prod(self.sizes[feature + 1 :]) for feature in range(len(self.sizes)))

    def predicted_bytes(self, examples: int) -> int:
        """Predict how much memory `features` takes.

        Parameters
        ----------
        examples : int
            The number of rows.

        Returns
        -------
        int
            The most bytes that they take.
        """
        index_bytes = self._index_type(examples).itemsize
        return examples * self.row_width * (8 + index_bytes) + (examples + 1) * index_bytes

    def features(self, X: Any) -> sparse.csr_matrix:
        """Make the matrix of interpolation weights, so that `features(X) @ theta` interpolates.

        Parameters
        ----------
        X : array of shape (n, features)
            Positions along the features.

        Returns
        -------
        csr_matrix
            One row per example and one column per vertex; weights are positive and add up to 1.

        Raises
        ------
        DataError
            If X is not a table of finite numbers with one column per feature, or the matrix would
            not fit into memory.
        """
        table = checked_inputs(X, len(self.sizes))
        examples = table.shape[0]
        self._refuse_if_too_big(examples)
        index_type = self._index_type(examples)
        indptr = np.empty(examples + 1, dtype=index_type)
        indices = np.empty(examples * self.row_width, dtype=index_type)
        weights = np.empty(examples * self.row_width)
        filled = fill_features(table, *self._geometry(), self.simplex, indptr, indices, weights)
        matrix = sparse.csr_matrix(
            (weights[:filled], indices[:filled], indptr), shape=(examples, self.parameter_count)
        )
        matrix.has_canonical_format = True
        return matrix

    def evaluate(self, X: Any, theta: npt.ArrayLike) -> Floats:
        """Interpolate, without making features.

        Where theta is monotone, unimodal or bounded, so are these values, to the last bit (why:
        the page "Lattices" of the documentation).

        Parameters
        ----------
        X : array of shape (n, features)
            Positions along the features.
        theta : array
            The values at the vertices, flat or of the lattice's shape.

        Returns
        -------
        array of shape (n,)
            The interpolated values.

        Raises
        ------
        DataError
            If X or theta is of the wrong shape or not finite.
        """
        table = checked_inputs(X, len(self.sizes))
        parameters = checked_parameters(theta, self.sizes)
        values = np.empty(table.shape[0])
        evaluate_rows(table, *self._geometry(), self.simplex, parameters, values)
        return values

    def _geometry(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return np.array(self.sizes, dtype=np.int64), np.array(self.strides, dtype=np.int64)

    def _index_type(self, examples: int) -> np.dtype[Any]:
        fits = max(examples * self.row_width, self.parameter_count) <= _LARGEST_INT32
        return np.dtype(np.int32 if fits else np.int64)

    def _refuse_if_too_big(self, examples: int) -> None:
        refuse_if_too_large(
            8 * self.parameter_count,
            f"a lattice of sizes {short(self.sizes)}, {self.parameter_count:,} parameters,",
            "use fewer features, smaller sizes or several small lattices",
        )
        refuse_if_too_large(
            self.predicted_bytes(examples),
            f"a feature matrix of {examples:,} rows with up to {self.row_width:,} nonzeros each",
            "give the rows in parts"
            if self.simplex
            else "give the rows in parts or use interpolation='simplex'",
        )


# -------------------------------------------------------------------------------------------------
# Checks of what the user hands to lattices and builders, made once, before any work.


Sizes = Sequence[int]
INTERPOLATIONS = ("simplex", "hypercube")


def checked_sizes(sizes: Sizes) -> tuple[int, ...]:
    """The sizes as whole numbers of at least 2."""
    try:
        whole = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ValueError(
            f"lattice sizes must be a sequence of whole numbers, one per feature, got {sizes!r}"
        ) from None
    if not whole:
        raise ValueError("a lattice needs at least one feature: sizes is empty")
    for feature, size in enumerate(whole):
        if size < 2:
            raise ValueError(
                f"every lattice size must be at least 2, got {size} for feature {feature}; "
                "leave that feature out"
            )
    return whole


def checked_interpolation(interpolation: str) -> str:
    """One of the two interpolations."""
    return one_of(interpolation, INTERPOLATIONS, "interpolation")


def short(sizes: tuple[int, ...]) -> str:
    """Sizes as a user would write them."""
    return (
        f"[{sizes[0]}] * {len(sizes)}"
        if len(sizes) > 2 and len(set(sizes)) == 1
        else str(list(sizes))
    )


def checked_feature(sizes: tuple[int, ...], feature: int, name: str = "feature") -> int:
    """A feature's position."""
    try:
        position = operator.index(feature)
    except TypeError:
        raise ConstraintError(f"{name} must be a feature's position, got {feature!r}") from None
    if not 0 <= position < len(sizes):
        raise ConstraintError(
            f"{name} must lie in 0 .. {len(sizes) - 1} for a lattice of {len(sizes)} "
            f"features, got {position}"
        )
    return position


def checked_features(
    sizes: tuple[int, ...], features: int | Iterable[int] | None
) -> tuple[int, ...]:
    """The positions of several features; None: all."""
    if features is None:
        return tuple(range(len(sizes)))
    listed = features if isinstance(features, Iterable) else [features]
    positions = tuple(checked_feature(sizes, feature) for feature in listed)
    if len(set(positions)) < len(positions):
        raise ConstraintError(f"every feature may be named once, got {list(positions)}")
    return positions


def checked_pair(
    sizes: tuple[int, ...], first: int, second: int, names: tuple[str, str]
) -> tuple[int, int]:
    """Two different features."""
    pair = checked_feature(sizes, first, names[0]), checked_feature(sizes, second, names[1])
    if pair[0] == pair[1]:
        raise ConstraintError(
            f"{names[0]} and {names[1]} must be two different features, got {pair[0]} for both"
        )
    return pair


def checked_sign(sign: int) -> int:
    """+1 or -1."""
    if sign not in (1, -1):
        raise ConstraintError(f"sign must be 1 or -1, got {sign!r}")
    return int(sign)


def checked_number(value: float, name: str) -> float:
    """A finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ConstraintError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number):
        raise ConstraintError(f"{name} must be finite, got {number}")
    return number


def checked_inputs(X: Any, features: int) -> Floats:
    """X as a C-ordered table of finite doubles with the right number of columns."""
    if hasattr(X, "toarray"):
        raise DataError(
            "lattice inputs must be a dense table, got a sparse matrix; give X.toarray()"
        )
    given = plain_array(X, "lattice inputs")
    if given.ndim != 2 or given.shape[1] != features:
        shape = " x ".join(map(str, given.shape)) or "a single number"
        raise DataError(
            f"lattice inputs must be n x {features} (one column per feature of the lattice), "
            f"got {shape}"
        )
    names = list(X.columns) if hasattr(X, "columns") else list(range(features))
    table = _as_doubles(given, names)
    if not np.isfinite(table).all():
        raise DataError(_first_not_finite(given, table, names))
    return table


def _as_doubles(given: npt.NDArray[Any], names: list[Any]) -> Floats:
    if given.dtype.kind not in "biufO":
        first = f", first {given.flat[0]!r}" if given.size else ""
        raise DataError(
            f"column {names[0]!r} must hold real numbers, got {given.dtype} data{first} in row 0"
        )
    try:
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(_first_not_number(given, names)) from None


def _first_not_number(given: npt.NDArray[Any], names: list[Any]) -> str:
    for column, name in enumerate(names):
        for row, cell in enumerate(given[:, column]):
            try:
                float(cell)
            except (TypeError, ValueError, OverflowError):
                return (
                    f"column {name!r} must hold numbers that a float holds, got {told(cell)} in "
                    f"row {row}"
                )
    return f"lattice inputs must be numbers, got {given.dtype} data"


def _first_not_finite(given: npt.NDArray[Any], table: Floats, names: list[Any]) -> str:
    wrong = ~np.isfinite(table)
    column = int(wrong.any(axis=0).argmax())
    row = int(wrong[:, column].argmax())
    cast = (
        " once cast to float64"
        if given.dtype.kind == "f" and np.isfinite(given[row, column])
        else ""
    )
    missing, rows = int(np.isnan(table[:, column]).sum()), int(wrong[:, column].sum())
    what = (
        "infinite values"
        if missing == 0
        else "NaN"
        if missing == rows
        else "NaN and infinite values"
    )
    plural = "row" if rows == 1 else "rows"
    return (
        f"column {names[column]!r} holds {what}{cast} in {rows} {plural}, first at row {row}; "
        "drop or impute them"
    )


def checked_parameters(theta: npt.ArrayLike, sizes: tuple[int, ...]) -> Floats:
    """The values at the vertices of a lattice of these sizes, flat, and such that exact products
    with them do not overflow.
    """
    parameters = np.ascontiguousarray(to_float(theta, "theta"))
    count = math.prod(sizes)
    if parameters.shape not in ((count,), sizes):
        raise DataError(
            f"theta must hold {count} numbers, one per vertex, got shape {parameters.shape}"
        )
    parameters = parameters.ravel()
    wrong = ~(np.abs(parameters) <= _LARGEST_PARAMETER)
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"theta must be finite and at most {_LARGEST_PARAMETER:g} in magnitude, "
            f"got {parameters[first]} at vertex {first} "
            f"and {int(wrong.sum())} such values in all"
        )
    return parameters
