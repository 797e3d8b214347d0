"""What every estimator checks before it trains or predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from lighttouch.errors import ConstraintError, DataError
from lighttouch.estimators.columns import Columns, refuse_other_columns, refuse_same_names
from lighttouch.estimators.rules import BoundShape, check_places
from lighttouch.estimators.shapes import ShapeConstraint

Floats = NDArray[np.float64]


def learn_columns(estimator: Any, X: Any, categorical: Any) -> Columns:
    """Names and kinds of the columns of a training table; sets n_features_in_ and
    feature_names_in_.
    """
    X = as_table(X)
    validate_data(estimator, X=X, skip_check_array=True)
    rows, count = np.shape(X) if not hasattr(X, "columns") else X.shape
    if rows == 0:
        raise DataError(
            f"Found array with 0 sample(s) (shape=({rows}, {count})) while a minimum of 1 "
            "is required."
        )
    if count == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape=({rows}, {count})) while a minimum of 1 "
            "is required."
        )
    return Columns.learn(X, categorical)


def as_table(X: Any) -> Any:
    """Frames as they are, everything else as an array of two dimensions."""
    if sparse.issparse(X):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to "
            "convert to a dense numpy array."
        )
    if hasattr(X, "columns") and hasattr(X, "shape"):
        refuse_same_names([str(name) for name in X.columns])
        return X
    table = np.asarray(X)
    if table.ndim != 2:
        got = "a scalar" if table.ndim == 0 else f"{table.ndim}D array"
        hint = (
            "Reshape your data: X.reshape(-1, 1) for a single column, X.reshape(1, -1) for a "
            "single row."
        )
        raise DataError(f"Expected 2D array, got {got} instead. {hint}")
    if np.iscomplexobj(table):
        raise DataError(
            "Complex data not supported: every column must hold real numbers or categories"
        )
    return table


def read_table(estimator: Any, X: Any, columns: Columns) -> Floats:
    """A table to predict from."""
    X = as_table(X)
    refuse_other_columns(X, columns)
    validate_data(estimator, X=X, reset=False, skip_check_array=True)
    return columns.read(X)


def centre_and_scale(targets: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean of the targets, and their spread about it; 1 where they are all the
    same.
    """
    shift = float(weights @ targets)
    spread = float(np.sqrt(weights @ np.square(targets - shift)))
    return shift, spread if spread > 1e-12 * max(1.0, abs(shift)) else 1.0


def read_targets(y: Any, estimator: Any) -> Floats:
    """Numbers, finite, one a row."""
    if y is None:
        name = type(estimator).__name__
        raise DataError(f"This {name} estimator requires y to be passed, but the target y is None.")
    targets = column_or_1d(y, warn=True)
    if np.iscomplexobj(targets):
        raise DataError("Complex data not supported: y must hold real numbers")
    try:
        numbers = np.asarray(targets, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must hold numbers: {error}") from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"y must be finite (no NaN, no infinity): {int(bad.sum())} entries are not, "
            f"first at row {row} ({numbers[row]})"
        )
    return numbers


def read_weights(sample_weight: Any, X: Any, rows: int) -> Floats:
    """Weights that add up to 1."""
    if sample_weight is None:
        return np.full(rows, 1.0 / rows)
    given = np.asarray(sample_weight)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        row = int(np.argmax(~np.isfinite(given)))
        raise DataError(
            "sample_weight must be finite (no NaN, no infinity): first bad entry at row "
            f"{row} ({given.flat[row]})"
        )
    if given.size and given.dtype.kind in "iufb" and not given.any():
        raise DataError(
            "sample_weight must not be zero everywhere: give at least one example a positive weight"
        )
    weights = np.asarray(_check_sample_weight(sample_weight, np.empty((rows, 1)), dtype=np.float64))
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise DataError(f"sample_weight must not be negative, got {weights[row]} in row {row}")
    relative = weights / weights.max()
    return np.asarray(relative / relative.sum())


def same_length(*arrays: Any) -> None:
    check_consistent_length(*arrays)


def read_monotonic(monotonic_cst: Any, columns: Columns) -> dict[int, int]:
    """Column positions and signs, from a dict by name (or position) or one number a column."""
    if monotonic_cst is None:
        return {}
    if isinstance(monotonic_cst, dict):
        given = [
            (columns.place(name, "monotonic_cst names a column that"), sign, name)
            for name, sign in monotonic_cst.items()
        ]
    else:
        signs = np.asarray(monotonic_cst)
        if signs.shape != (len(columns),):
            raise ConstraintError(
                f"monotonic_cst must hold -1, 0 or 1 for each of the {len(columns)} "
                f"columns, got shape {signs.shape}"
            )
        given = [(place, sign, columns[place].name) for place, sign in enumerate(signs.tolist())]
    found = {}
    for place, sign, name in given:
        if isinstance(sign, bool) or sign not in (-1, 0, 1):
            raise ConstraintError(
                f"monotonic_cst must be -1, 0 or 1 for every column, got {sign!r} for {name!r}"
            )
        if sign and columns[place].categorical:
            first = columns[place].categories or ("?",)
            raise ConstraintError(
                f"monotonic_cst for {name!r} needs a column of numbers; it holds text such "
                f"as {first[0]!r}. Give numbers, or order its "
                "categories with CategoryOrder"
            )
        if sign:
            found[place] = int(sign)
    return found


def read_shapes(
    shape_constraints: Any, columns: Columns, monotonic: dict[int, int]
) -> list[BoundShape]:
    """Shape constraints with their columns found; those that ask for increasing columns add to
    `monotonic`.
    """
    single = isinstance(shape_constraints, ShapeConstraint)
    listed = (
        [] if shape_constraints is None else [shape_constraints] if single else shape_constraints
    )
    categorical = [column.categorical for column in columns.columns]
    bound = []
    for shape in listed:
        if not isinstance(shape, ShapeConstraint):
            raise ConstraintError(
                f"shape_constraints must hold rules such as lt.Convex('age'), got {shape!r}"
            )
        places = tuple(columns.place(name, f"{shape}: column") for name in shape.columns)
        pairs = _category_pairs(shape, columns, places) if hasattr(shape, "pairs") else ()
        bound.append(BoundShape(shape, places, pairs))
        check_places(bound[-1], categorical, columns.names)
        if shape.both_increasing:
            _make_increasing(shape, places, columns, monotonic)
    return bound


def _make_increasing(
    shape: ShapeConstraint, places: tuple[int, ...], columns: Columns, monotonic: dict[int, int]
) -> None:
    for place in places:
        if monotonic.get(place, 1) < 0:
            name = columns[place].name
            raise ConstraintError(
                f"{shape} speaks of increasing columns, but monotonic_cst makes {name!r} "
                "decreasing; negate the column"
            )
        monotonic[place] = 1


def _category_pairs(
    shape: Any, columns: Columns, places: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    column = columns[places[0]]
    codes = {category: code for code, category in enumerate(column.categories or ())}
    for pair in shape.pairs:
        for category in pair:
            if column.categorical and category not in codes:
                raise ConstraintError(
                    f"{shape}: {category!r} is not a category of column {column.name!r}; "
                    f"seen were {list(codes)[:8]}"
                )
    return (
        tuple((codes[low], codes[high]) for low, high in shape.pairs) if column.categorical else ()
    )
