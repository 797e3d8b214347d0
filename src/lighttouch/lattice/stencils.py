"""Constraint rows that repeat one pattern over a block of vertices; every builder is a list of such
stencils.

What the user hands to lattices and builders is checked here too, once, before any work.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import NestedRows
from lighttouch.errors import ConstraintError, DataError
from lighttouch.validation import one_of, plain_array, refuse_if_too_large, told

_LARGEST_INT32 = 2**31 - 1
Block = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Stencil:
    """sum_k coefficients[k] * theta[v + offsets[k]] >= least, for every vertex v of a block;
    offsets are parameter numbers.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    offsets: tuple[int, ...]
    coefficients: tuple[float, ...]
    least: float

    @property
    def count(self) -> int:
        """Rows."""
        return math.prod(stop - start for start, stop in zip(self.start, self.stop, strict=True))


def stencil(
    sizes: tuple[int, ...], block: Block, terms: Sequence[tuple[int, float]], least: float = 0.0
) -> Stencil:
    """A stencil over all vertices v with start <= v[feature] < stop for the features in `block`;
    equal offsets are added up.
    """
    start = tuple(block.get(feature, (0, size))[0] for feature, size in enumerate(sizes))
    stop = tuple(block.get(feature, (0, size))[1] for feature, size in enumerate(sizes))
    merged: dict[int, float] = {}
    for offset, coefficient in terms:
        merged[offset] = merged.get(offset, 0.0) + coefficient
    kept = sorted(
        (offset, coefficient) for offset, coefficient in merged.items() if coefficient != 0.0
    )
    return Stencil(
        start,
        stop,
        tuple(offset for offset, _ in kept),
        tuple(coefficient for _, coefficient in kept),
        least,
    )


def steps(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """By how much the parameter number grows with one step along each feature."""
    return tuple(math.prod(sizes[feature + 1 :]) for feature in range(len(sizes)))


def constraints_from(
    name: str,
    sizes: tuple[int, ...],
    stencils: Sequence[Stencil],
    nested: Sequence[NestedRows] = (),
) -> LinearConstraints:
    """All rows, stencil after stencil and within one in C order of v, turned around to A w <= b."""
    rows = sum(each.count for each in stencils)
    nonzeros = sum(each.count * len(each.offsets) for each in stencils)
    require_room(name, sizes, rows, nonzeros)
    index_type = _index_type(sizes, nonzeros)
    indptr = np.zeros(rows + 1, dtype=index_type)
    indices = np.empty(nonzeros, dtype=index_type)
    data = np.empty(nonzeros)
    b = np.zeros(rows)
    _fill(sizes, [each for each in stencils if each.count], indptr, indices, data, b)
    A = sparse.csr_matrix((data, indices, indptr), shape=(rows, math.prod(sizes)))
    A.has_canonical_format = True
    return LinearConstraints(A, b, nested=nested, copy=False)


def require_room(
    name: str, sizes: tuple[int, ...], rows: int, nonzeros: int, more_advice: str = ""
) -> None:
    """Refuse, before any is taken, rows that would not fit into memory."""
    index_bytes = _index_type(sizes, nonzeros).itemsize
    needed = nonzeros * (8 + index_bytes) + (rows + 1) * index_bytes + 16 * rows
    what = f"{name} on a lattice of sizes {short(sizes)}, {rows:,} rows,"
    advice = f"name fewer features, use smaller sizes or several small lattices{more_advice}"
    refuse_if_too_large(needed, what, advice, ConstraintError)


def _index_type(sizes: tuple[int, ...], nonzeros: int) -> np.dtype[Any]:
    return np.dtype(np.int32 if max(nonzeros, math.prod(sizes)) <= _LARGEST_INT32 else np.int64)


def _fill(
    sizes: tuple[int, ...],
    stencils: Sequence[Stencil],
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    data: Floats,
    b: Floats,
) -> None:
    row, entry = 0, 0
    for each in stencils:
        width = len(each.offsets)
        last_row, last_entry = row + each.count, entry + each.count * width
        vertices = _vertices(each, sizes, indices.dtype)
        np.add(
            vertices[:, None],
            np.array(each.offsets, dtype=indices.dtype),
            out=indices[entry:last_entry].reshape(-1, width),
        )
        data[entry:last_entry].reshape(-1, width)[:] = [
            -coefficient for coefficient in each.coefficients
        ]
        indptr[row + 1 : last_row + 1] = np.arange(entry + width, last_entry + 1, width)
        if each.least:
            b[row:last_row] = -each.least
        row, entry = last_row, last_entry


def _vertices(each: Stencil, sizes: tuple[int, ...], index_type: np.dtype[Any]) -> npt.NDArray[Any]:
    vertices = np.zeros(1, dtype=index_type)
    for start, stop, step in zip(each.start, each.stop, steps(sizes), strict=True):
        vertices = (vertices[:, None] + step * np.arange(start, stop, dtype=index_type)).ravel()
    return vertices


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
