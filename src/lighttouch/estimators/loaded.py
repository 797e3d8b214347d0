"""Whether a model that was read from a file agrees with itself, before anyone predicts with it.

A checksum finds damage, not what somebody has changed and summed up again. So names, columns,
curves and numbers are compared with each other, and then the model answers once for rows of its
own: what could fail later fails here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lighttouch.arrays import Floats
from lighttouch.errors import ModelFileError
from lighttouch.estimators.record import Tally

FAR = 1e9  # a value that lies outside most columns


def check_loaded(model: Any) -> None:
    """Raise a ModelFileError, or whatever the rehearsal raises, where something contradicts."""
    columns = model.fitted_columns
    count = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    _must(len(columns) == count and count > 0, "its columns are not as many as it says")
    _must(len(set(columns.names)) == count, "two of its columns have the same name")
    _must(
        (names is not None) == columns.named
        and (names is None or [str(name) for name in names] == columns.names),
        "its names are not those of its columns",
    )
    for column in columns.columns:
        _must(
            column.categories is None or len(set(column.categories)) == len(column.categories),
            f"the categories of {column.name!r} repeat",
        )
    for each in getattr(model, "estimators_", [model]):
        for term in getattr(getattr(each, "model_", None), "terms", ()):
            _check_term(term, count)
    _check_report(model)
    _check_classes(model)
    _rehearse(model, count)


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ModelFileError(f"the model contradicts itself: {otherwise}; save it again")


def _check_term(term: Any, count: int) -> None:
    _must(
        len(term.columns) == len(term.maps) == len(term.lattice.sizes)
        and all(isinstance(c, int) and not isinstance(c, bool) for c in term.columns)
        and all(0 <= column < count for column in term.columns),
        "a term is about columns that do not exist",
    )
    for each, size in zip(term.maps, term.lattice.sizes, strict=True):
        arrays = each.keypoints, each.positions
        _must(
            all(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in arrays)
            and each.keypoints.ndim == 1
            and each.keypoints.size > 0
            and each.keypoints.shape == each.positions.shape
            and bool(np.isfinite(np.concatenate(arrays)).all())
            and bool((np.diff(each.keypoints) > 0.0).all()),
            "the keypoints of a curve are not in order",
        )
        low, high = min(each.positions.min(), each.missing), max(each.positions.max(), each.missing)
        _must(0.0 <= low and high <= size - 1, "a curve leads out of its lattice")


def _check_report(model: Any) -> None:
    for rule in model.constraint_report_.rules:
        _must(
            isinstance(rule.binding, np.ndarray)
            and rule.binding.ndim == 1
            and rule.binding.dtype.kind == "i"
            and rule.rows >= rule.binding.size
            and rule.violation >= 0.0,
            f"what it reports of the rule {rule.rule!r} cannot be",
        )


def _check_classes(model: Any) -> None:
    classes = getattr(model, "classes_", None)
    _must((classes is not None) == is_classifier(model), "its classes are not what its kind needs")
    if classes is not None:
        _must(
            classes.ndim == 1 and classes.size == len(set(classes.tolist())) > 1,
            "its classes repeat, or there are fewer than two",
        )
        thresholds = getattr(model, "thresholds_", None)
        several = thresholds is not None or hasattr(model, "estimators_")
        _must((classes.size > 2) == several, "it has other than two classes")
        if thresholds is not None:
            _must(thresholds.size == classes.size - 1, "its thresholds are not between its classes")


def _rehearse(model: Any, count: int) -> None:
    """Predict, check and compare rows that the model's own columns suggest."""
    table = _own_rows(model, count)
    scores = np.asarray(model.scores_of(table if _takes_gaps(model) else table[:-1]))
    _must(scores.dtype == np.float64 and scores.ndim in (1, 2), "its scores are no numbers")
    _must(bool(np.isfinite(scores).all()), "it predicts numbers that are not finite")
    report = model.check_constraints()
    told = {rule.rule: rule.rows for rule in report.rules}
    _must(
        told == {rule.rule: rule.rows for rule in model.constraint_report_.rules},
        "its rules are not those of its report",
    )
    str(model.constraint_report_), repr(model)
    record = model.training_record_
    if record is None:
        return
    _must(bool(record.columns) == (record.scores is not None), "its record is half empty")
    if record.columns:
        recorded = [_named(column) for column in record.columns]
        own = [_named(column) for column in model.fitted_columns.columns]
        _must(recorded == own, "its record is about other columns")
        whole = np.zeros((1, count))
        Tally(record).add(whole, [0] * count, np.zeros(1))


def _named(column: Any) -> tuple[str, int | None]:
    return column.name, None if column.categories is None else len(column.categories)


def _takes_gaps(model: Any) -> bool:
    return hasattr(model, "model_") or hasattr(model, "estimators_")


def _own_rows(model: Any, count: int) -> Floats:
    """The ends of every column's range, values far outside it, and a row of missing cells."""
    table = np.zeros((5, count))
    table[2], table[3], table[4] = FAR, -FAR, np.nan
    for term in getattr(getattr(model, "model_", None), "terms", ()):
        for column, each in zip(term.columns, term.maps, strict=True):
            table[0, column], table[1, column] = each.keypoints[0], each.keypoints[-1]
    return table
