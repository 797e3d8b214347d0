"""What users give as arrays: tables of any kind (NumPy, pandas, polars) as one table of numbers
(values as they are, categories as codes, missing cells as NaN), targets, labels and weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import ConstraintError, DataError
from lighttouch.text import one_of_the_columns
from lighttouch.validation import plain_array, told

Table = Any  # a NumPy array, a pandas or polars frame, or lists of rows
Name = str | int
ColumnNames = Name | Sequence[Name] | NDArray[np.bool_]  # or a mask
LARGEST_VALUE = 1e150  # beyond it differences and products of cells overflow
SMALLEST_SPREAD = 1e-150  # of targets: below it their squares are 0
ROUNDING = 1e-12  # spreads below this share of the size of the values are none
NOT_NUMBERS = "Mmc"  # dates, durations and complex numbers


@dataclass(frozen=True)
class Column:
    """A column's name and, if it holds categories, the categories seen in training."""

    name: str
    categories: tuple[Any, ...] | None = None

    @property
    def categorical(self) -> bool:
        return self.categories is not None


class Columns:
    """The columns of a training table, and how further tables are read."""

    def __init__(self, columns: tuple[Column, ...], named: bool) -> None:
        self.columns, self.named = columns, named

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, place: int) -> Column:
        return self.columns[place]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @classmethod
    def learn(cls, X: Table, categorical: ColumnNames | None = None) -> Columns:
        """Decide for every column of a training table whether it holds numbers or categories."""
        names, cells = split(X)
        named = is_frame(X)
        forced = (
            set()
            if categorical is None
            else {
                place_of(column, names, named, "categorical_features")
                for column in listed(categorical)
            }
        )
        columns = []
        for place, (name, values) in enumerate(zip(names, cells, strict=True)):
            if place in forced or is_text(values, name):
                columns.append(Column(name, _categories(values)))
            else:
                columns.append(Column(name))
        return cls(tuple(columns), named)

    def read(self, X: Table) -> Floats:
        """One column of doubles each: numbers, or codes of categories; NaN for a missing cell or an
        unseen category. An array that holds just these is not copied, and nobody writes to it.
        """
        _, cells = split(X)
        numeric = not any(column.categorical for column in self.columns)
        as_given = numeric and _is_plain(X)
        table = X if as_given else np.empty((len(cells[0]) if cells else 0, len(self.columns)))
        for place, (column, values) in enumerate(zip(self.columns, cells, strict=True)):
            read = (
                numbers(values, column.name)
                if column.categories is None
                else _codes(values, column.categories)
            )
            if not as_given:
                table[:, place] = read
        return table

    def place(self, column: object, where: str) -> int:
        return place_of(column, self.names, self.named, where)


def _is_plain(X: Table) -> bool:
    """Whether this is an array as `np.empty` makes it, for which kernels are compiled."""
    return type(X) is np.ndarray and X.dtype == np.float64 and bool(X.flags.carray)


@dataclass(frozen=True, eq=False)
class RowsOf:
    """Rows of a table that are copied only when they are read. A row may be there many times: pairs
    would take ten times the memory of their table.
    """

    table: Floats
    chosen: Indices

    @property
    def shape(self) -> tuple[int, int]:
        return self.chosen.size, self.table.shape[1]

    def __getitem__(self, which: Any) -> Floats:
        rows, *columns = which if isinstance(which, tuple) else (which,)
        return np.asarray(self.table[(slice(None), *columns)][self.chosen[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return self[:]


def rows_of(table: Floats, chosen: Indices | slice) -> Floats:
    """What reads like `table[chosen]`; a view of rows that follow each other."""
    if isinstance(chosen, slice):
        return table[chosen]
    return cast(Floats, RowsOf(table, chosen))


def split(X: Table) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and columns."""
    table = as_table(X)
    if is_frame(table):
        return [str(name) for name in table.columns], frame_columns(table)
    places = range(table.shape[1])
    return [f"x{place}" for place in places], [table[:, place] for place in places]


def is_frame(X: Table) -> bool:
    """Whether a table is a pandas or polars frame, with named columns."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def frame_columns(X: Table) -> list[NDArray[Any]]:
    """The cells of every column."""
    return [_cells(series) for series in _series(X)]


def _series(X: Table) -> Iterable[Any]:
    if hasattr(X, "iloc"):
        return (series for _, series in X.items())
    if hasattr(X, "to_series"):
        return (X.to_series(place) for place in range(X.shape[1]))
    return (X[:, place] for place in range(X.shape[1]))


def _cells(series: Any) -> NDArray[Any]:
    dtype = getattr(series, "dtype", "")
    if isinstance(dtype, np.dtype):
        return np.asarray(series.to_numpy() if hasattr(series, "to_numpy") else series)
    kind = str(dtype)
    if kind == "category" or kind.startswith(("Categorical", "Enum", "String", "str", "string")):
        return _objects(series)
    if hasattr(series, "to_numpy"):
        values = series.to_numpy()
        if values.dtype == object and kind[:1] in "IUFb":  # pandas' nullable numbers
            return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(values)
    return np.asarray(series)


def _objects(series: Any) -> NDArray[Any]:
    values = series.astype(object) if hasattr(series, "iloc") else series
    cells = np.empty(len(series), dtype=object)
    cells[:] = values.to_list() if hasattr(values, "to_list") else list(values)
    return cells


def refuse_same_names(names: list[str]) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in seen:
            raise DataError(
                f"column names must differ: {name!r} is the name of columns {seen[name]} "
                f"and {place}"
            )
        seen[name] = place


def missing_cell(cell: object) -> bool:
    return (
        cell is None
        or (isinstance(cell, float) and math.isnan(cell))
        or type(cell).__name__ in ("NAType", "NaTType")
    )


def is_text(values: NDArray[Any], name: str) -> bool:
    """Whether a column holds categories; text and numbers mixed are refused."""
    if values.dtype.kind in NOT_NUMBERS:
        raise DataError(
            f"column {name!r} holds {values.dtype} data, which is neither numbers nor "
            "categories; turn it into numbers, or leave the column out"
        )
    if values.dtype.kind in "US":
        return True
    if values.dtype.kind != "O":
        return False
    others = [cell for cell in values.tolist() if type(cell) is not str]
    if len(others) < values.size and all(map(missing_cell, others)):
        return True  # most columns of text, without a look at every cell
    number = text = None
    for row, cell in enumerate(values):
        if missing_cell(cell):
            continue
        if isinstance(cell, str | bytes):
            text = (row, cell) if text is None else text
        elif isinstance(cell, int | float | np.number | np.bool_):
            number = (row, cell) if number is None else number
        else:
            raise TypeError(
                f"column {name!r}, row {row}: argument must be a string or a number, got {cell!r}"
            )
    if number is not None and text is not None:
        raise DataError(
            f"column {name!r} mixes numbers and text: row {text[0]} holds {text[1]!r}, row "
            f"{number[0]} holds {number[1]!r}"
        )
    return text is not None


def _categories(values: NDArray[Any]) -> tuple[Any, ...]:
    distinct = set(values.tolist())
    return sorted_categories({plain_cell(cell) for cell in distinct if not missing_cell(cell)})


def sorted_categories(found: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(found, key=lambda cell: (type(cell).__name__, cell)))


def plain_cell(cell: object) -> Any:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _codes(values: NDArray[Any], categories: tuple[Any, ...]) -> Floats:
    codes = {category: float(code) for code, category in enumerate(categories)}
    cells = values.tolist()
    code_of = {
        cell: math.nan if missing_cell(cell) else codes.get(plain_cell(cell), math.nan)
        for cell in set(cells)
    }
    return np.array([code_of[cell] for cell in cells], dtype=np.float64)


def numbers(values: NDArray[Any], name: str) -> Floats:
    """A column of finite doubles or NaN."""
    if values.dtype.kind in NOT_NUMBERS:
        raise DataError(f"column {name!r} must hold numbers, got {values.dtype} data")
    try:
        with np.errstate(over="ignore"):
            column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        column = _cell_by_cell(values, name)
    large = np.abs(column) > LARGEST_VALUE
    if large.any():
        _refuse_infinity(column, values, name)
        row = int(large.argmax())
        raise DataError(
            f"column {name!r} must lie within ±{LARGEST_VALUE:g}, got {column[row]:g} in "
            f"row {row}; rescale the column"
        )
    return column


def _refuse_infinity(column: Floats, values: NDArray[Any], name: str) -> None:
    bad = np.isinf(column)
    if bad.any():
        row = int(bad.argmax())
        given = values[row]
        cast = (
            " once cast to float64" if isinstance(given, np.floating) and np.isfinite(given) else ""
        )
        raise DataError(
            f"column {name!r} holds infinity (inf){cast} in {int(bad.sum())} row(s), first "
            f"at row {row}; drop or cap it"
        )


def _cell_by_cell(values: NDArray[Any], name: str) -> Floats:
    column = np.empty(values.size)
    for row, cell in enumerate(values):
        try:
            column[row] = np.nan if missing_cell(cell) else float(cell)
        except (TypeError, ValueError):
            kind = TypeError if not isinstance(cell, str) else DataError
            raise kind(f"column {name!r} must hold numbers, got {cell!r} in row {row}") from None
    return column


def place_of(column: object, names: list[str], named: bool, where: str) -> int:
    """A column's position, given its name or position; `where` it was named, for messages."""
    if isinstance(column, str):
        if column in names and named:
            return names.index(column)
        if not named:
            raise ConstraintError(
                f"{where} names the column {column!r}, but X is an array without names: give "
                "positions, such as {0: 1}, or a frame (from a ColumnTransformer or scaler with "
                'set_output(transform="pandas"))'
            )
        raise ConstraintError(
            f"{where} must name columns of X, but {column!r} is not a column"
            f"{one_of_the_columns(column, names)}"
        )
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        raise ConstraintError(f"{where} must name columns of X or their positions, got {column!r}")
    if not 0 <= column < len(names):
        raise ConstraintError(
            f"{where} must name columns of X, but column {column} does not exist: "
            f"the positions are 0 .. {len(names) - 1}"
        )
    return int(column)


def listed(columns: ColumnNames) -> list[Any]:
    if isinstance(columns, str | int | np.integer):
        return [columns]
    chosen = np.asarray(columns)
    if chosen.dtype == bool:
        return [int(place) for place in np.flatnonzero(chosen)]
    return list(columns)


def refuse_other_columns(X: Table, fitted: Columns) -> None:
    """Before prediction: every name of training is there, or a message with the nearest match."""
    if not (fitted.named and is_frame(X)):
        return
    given = [str(name) for name in X.columns]
    refuse_same_names(given)
    missing = [name for name in fitted.names if name not in given]
    extra = [name for name in given if name not in fitted.names]
    if not missing:
        return
    parts = ["The feature names should match those that were passed during fit."]
    if extra:
        parts.append(
            "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in extra[:5])
        )
    if missing:
        close = [
            f"- {name}{one_of_the_columns(name, extra) if extra else ''}\n" for name in missing[:5]
        ]
        parts.append("Feature names seen at fit time, yet now missing:\n" + "".join(close))
    raise DataError("\n".join(parts))


def learn_columns(estimator: object, X: Table, categorical: ColumnNames | None) -> Columns:
    """Names and kinds of the columns of a training table; sets n_features_in_ and
    feature_names_in_.
    """
    X = as_table(X)
    validate_data(estimator, X=X, skip_check_array=True)
    for count, what in zip(X.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 "
                "is required."
            )
    return Columns.learn(X, categorical)


def numeric_table(X: Table) -> Table:
    """For models of numbers only: names are unique, and no column holds dates; otherwise as it
    is.
    """
    if is_frame(X):
        refuse_same_names([str(name) for name in X.columns])
        for name, values in zip(X.columns, frame_columns(X), strict=True):
            if values.dtype.kind in NOT_NUMBERS:
                raise DataError(
                    f"column {str(name)!r} must hold numbers, got {values.dtype} data; turn it "
                    "into numbers first, or leave it out"
                )
        return X
    if not sparse.issparse(X):
        kind = plain_array(X, "X").dtype
        if kind.kind in "Mm":
            raise DataError(f"X must hold numbers, got {kind} data; turn it into numbers first")
    return X


def as_table(X: Table) -> Any:
    """Frames as they are, everything else as an array of two dimensions."""
    if sparse.issparse(X):
        raise TypeError(
            "Sparse data was passed, but dense data is required. Use '.toarray()' to "
            "convert to a dense numpy array."
        )
    if is_frame(X):
        refuse_same_names([str(name) for name in X.columns])
        return X
    table = plain_array(X, "X")
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


def read_table(estimator: object, X: Table, columns: Columns) -> Floats:
    """A table to predict from."""
    X = known_columns(as_table(X), columns)
    validate_data(estimator, X=X, reset=False, skip_check_array=True)
    return columns.read(X)


def known_columns(X: Table, fitted: Columns) -> Table:
    """The columns of training, by name, of a frame that has more; missing ones are refused."""
    refuse_other_columns(X, fitted)
    if fitted.named and is_frame(X) and X.shape[1] > len(fitted):
        return X[[name for name in X.columns if str(name) in fitted.names]]
    return X


# -------------------------------------------------------------------------------------------------
# Targets, labels and weights of examples.


def read_labels(
    y: ArrayLike | None, estimator: object, sample_weight: ArrayLike | None = None
) -> tuple[NDArray[Any], Floats]:
    """The two classes in order, and -1 or +1 for every row."""
    name = type(estimator).__name__
    labels = _labels(y, estimator)
    check_classification_targets(labels)
    classes = np.unique(labels)
    kept = classes
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None and weights.shape == labels.shape:
        kept = np.unique(labels[weights != 0])
    if kept.size < 2:
        raise DataError(
            f"{name} needs samples of 2 classes; y (where its weights are not zero) holds "
            f"{kept.size} class: {kept.tolist()}"
        )
    refuse_many_classes(name, classes)
    return classes, np.where(labels == classes[1], 1.0, -1.0)


def refuse_many_classes(name: str, classes: NDArray[Any]) -> None:
    if classes.size > 2:
        raise DataError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(classes)}: y holds {classes.size} classes. "
            f"Rules on probabilities of more classes are not convex; fit one {name} for "
            "each class against the rest"
        )


def read_class_codes(
    y: ArrayLike | None, estimator: object, sample_weight: ArrayLike | None = None
) -> tuple[NDArray[Any], Indices]:
    """The classes in sorted order, and the number of every row's class."""
    labels = _labels(y, estimator)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    weights = None if sample_weight is None else np.asarray(sample_weight)
    kept = (
        np.unique(codes[weights != 0])
        if weights is not None and weights.shape == labels.shape
        else np.arange(classes.size)
    )
    refuse_few_classes(type(estimator).__name__, classes, classes[kept])
    return classes, np.asarray(codes, dtype=np.int64)


def refuse_few_classes(name: str, classes: NDArray[Any], kept: NDArray[Any]) -> None:
    """There must be two classes at least, and each must be `kept`: have a row with a weight."""
    if kept.size < 2:
        raise DataError(
            f"{name} needs samples of 2 classes; y (where its weights are not zero) holds "
            f"{kept.size} class: {kept.tolist()}"
        )
    if classes.size > 2 and kept.size < classes.size:
        missing = next(each for each in classes.tolist() if each not in kept)
        raise DataError(
            f"every class needs a row with a positive weight: class {missing!r} has none; "
            "leave its rows out"
        )


def _one_dimensional(y: ArrayLike | None, estimator: object) -> NDArray[Any]:
    if y is None:
        name = type(estimator).__name__
        raise DataError(f"This {name} estimator requires y to be passed, but the target y is None.")
    plain_array(y, "y")
    return np.asarray(column_or_1d(y, warn=True))


def _labels(y: ArrayLike | None, estimator: object) -> NDArray[Any]:
    """Labels as an array of one dimension without a missing cell."""
    labels = _one_dimensional(y, estimator)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmax(~np.isfinite(labels)))
        raise DataError(f"y must not contain NaN or infinity: first at row {row} ({labels[row]})")
    if labels.dtype.kind in "OT":
        missing = [row for row, cell in enumerate(labels) if missing_cell(cell)]
        if missing:
            raise DataError(
                f"y must hold a label in every row: {len(missing)} are missing (NaN, None or NA), "
                f"first at row {missing[0]}; drop those rows"
            )
    return labels


def positive_labels(y: ArrayLike | None, classes: NDArray[Any], table: Table) -> NDArray[np.bool_]:
    """Which canonical examples are of the second class."""
    labels = np.asarray(y)
    same_length(table, labels)
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        raise DataError(
            f"canonical examples: {labels[unknown][0]!r} is not one of the classes {list(classes)}"
        )
    return np.asarray(labels == classes[1])


def read_classes(
    classes: ArrayLike | None, known: ArrayLike | None, estimator: object
) -> NDArray[Any]:
    """The two classes that partial_fit is told on its first call; later calls may repeat them."""
    name = type(estimator).__name__
    if classes is None:
        if known is None:
            raise ValueError(
                "classes must be passed on the first call to partial_fit: a batch need not "
                "hold both"
            )
        return np.asarray(known)
    given = np.unique(np.asarray(classes))
    if given.size != 2:
        raise DataError(
            f"{name} needs exactly 2 classes, got {given.size}: {given.tolist()[:8]}. Only "
            "binary classification is supported"
        )
    if known is not None and not np.array_equal(given, known):
        raise ValueError(
            f"classes={given.tolist()} is not the same as on the first call to "
            f"partial_fit: {np.asarray(known).tolist()}"
        )
    return given


def signs_of(y: ArrayLike | None, classes: NDArray[Any], estimator: object) -> Floats:
    """-1 or +1 for every row of a batch."""
    labels = _labels(y, estimator)
    unknown = ~np.isin(labels, classes)
    if unknown.any():
        row = int(unknown.argmax())
        raise DataError(
            f"y holds {labels[row : row + 1].tolist()[0]!r} in row {row}, which is not one "
            f"of the classes {classes.tolist()}"
        )
    return np.where(labels == classes[1], 1.0, -1.0)


Total = Callable[[Callable[[Floats, Floats, Floats | None], float]], float]
"""The sum of a function of (targets, weights, exposure) over all parts of the rows: over all rows
at once where they are in memory."""


def mean_target(targets: Floats, weights: Floats, exposure: Floats | None = None) -> float:
    return float(weights @ targets)


@dataclass(frozen=True)
class SquaresAbout:
    """The weighted mean square about a centre; a class, so that it can be sent to workers."""

    centre: float

    def __call__(self, targets: Floats, weights: Floats, exposure: Floats | None = None) -> float:
        return float(weights @ np.square(targets - self.centre))


@dataclass(frozen=True)
class SizesAbout:
    """The weighted mean distance from a centre."""

    centre: float

    def __call__(self, targets: Floats, weights: Floats, exposure: Floats | None = None) -> float:
        return float(weights @ np.abs(targets - self.centre))


def centre_and_scale(targets: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean of the targets, and their spread about it; 1 where they are all the
    same.

    Raises
    ------
    DataError
        If they differ by so little that squares of it are 0.
    """
    return summed_centre_and_scale(lambda part: part(targets, weights, None))


def summed_centre_and_scale(total: Total) -> tuple[float, float]:
    """The same from sums over parts of the rows."""
    shift = total(mean_target)
    spread = float(np.sqrt(total(SquaresAbout(shift))))
    if spread < SMALLEST_SPREAD:
        size = total(SizesAbout(shift))
        refuse_tiny(size if size > ROUNDING * abs(shift) else 0.0)
    return shift, spread if spread > ROUNDING * abs(shift) else 1.0


def refuse_tiny(size: float) -> None:
    """Targets of a size, or with differences of a size, whose squares are 0."""
    if 0.0 < size < SMALLEST_SPREAD:
        raise DataError(
            f"y must be 0 or differ by at least {SMALLEST_SPREAD:g}, got {size:g} on average; "
            "rescale it"
        )


def read_targets(y: ArrayLike | None, estimator: object) -> Floats:
    """Numbers, finite, one per row."""
    targets = _one_dimensional(y, estimator)
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
    if np.abs(numbers).max(initial=0.0) > LARGEST_VALUE:
        row = int(np.abs(numbers).argmax())
        raise DataError(
            f"y must lie within ±{LARGEST_VALUE:g}, got {numbers[row]:g} in row {row}; rescale it"
        )
    return numbers


def read_weights(sample_weight: ArrayLike | None, X: Table, rows: int) -> Floats:
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


def pair_of_tables(given: object) -> tuple[Any, Any]:
    """What `canonical_examples` holds: rows, and their targets, labels or worse rows."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise DataError(
            "canonical_examples must be a pair, such as (X, y): rows, and what the model must say "
            f"of them; got {told(given)}"
        )
    return given[0], given[1]
