"""Targets, labels and weights of examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.tables import LARGEST_VALUE, Table, missing_cell
from lighttouch.validation import plain_array, told


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
            f"{kept.size} class: {list(kept)}"
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
            f"{kept.size} class: {list(kept)}"
        )
    if classes.size > 2 and kept.size < classes.size:
        missing = next(each for each in classes if each not in kept)
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


def centre_and_scale(targets: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean of the targets, and their spread about it; 1 where they are all the
    same.
    """
    return summed_centre_and_scale(lambda part: part(targets, weights, None))


def summed_centre_and_scale(total: Total) -> tuple[float, float]:
    """The same from sums over parts of the rows."""
    shift = total(mean_target)
    spread = float(np.sqrt(total(SquaresAbout(shift))))
    return shift, spread if spread > 1e-12 * max(1.0, abs(shift)) else 1.0


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
