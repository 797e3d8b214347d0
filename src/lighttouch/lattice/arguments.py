"""Checks of what the user hands to lattices and builders, made once, before any work."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError, DataError
from lighttouch.validation import one_of, plain_array, told

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
