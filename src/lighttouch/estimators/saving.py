"""Estimators to and from model files."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ModelFileError
from lighttouch.estimators.proof import ConstraintReport, RuleReport
from lighttouch.estimators.record import RecordedEstimator, Tally, TrainingRecord
from lighttouch.estimators.rules import BoundShape, RuleRows, ShapeConstraint
from lighttouch.estimators.rules.shapes import KINDS
from lighttouch.estimators.tables import (
    Column,
    Columns,
    missing_cell,
    split,
)
from lighttouch.objectives import Huber, Quantile, Tweedie
from lighttouch.persistence import read_state, write_state

_SAVEABLE: dict[str, type[Any]] = {}


class SavedEstimator(RecordedEstimator):
    """Adds `save`; a class offers `_fitted_state` and `_restore_fitted`."""

    n_features_in_: int
    constraint_report_: ConstraintReport

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _SAVEABLE[cls.__name__] = cls

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a plain file: JSON, arrays, checksum; no pickle.

        Parameters
        ----------
        path : str or path
            The file to write; `lt.load` reads it.
        """
        check_is_fitted(self)
        given = self.get_params(deep=False)
        params = {name: _parameter(name, value) for name, value in given.items()}
        common = {
            "params": params,
            "n_features_in": int(self.n_features_in_),
            "names": [str(name) for name in self.feature_names_in_]
            if hasattr(self, "feature_names_in_")
            else None,
            "classes": _classes(getattr(self, "classes_", None)),
            "n_iter": int(getattr(self, "n_iter_", 0)),
            "status": str(getattr(self, "status_", "")),
            "report": report_state(self.constraint_report_),
            "record": None if self.training_record_ is None else self.training_record_.state(),
        }
        write_state(path, type(self).__name__, common | {"fitted": self._fitted_state()})

    def _fitted_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file that its method `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        An estimator of the class that was saved. It predicts the same bits.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is damaged, or holds something that this version does not
        know.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.linspace(0.0, 1.0, 30)[:, None]
    >>> model = lt.ConstrainedLinearRegressor(monotonic_cst=[1]).fit(X, 2.0 * X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lt")
    ...     model.save(path)
    ...     again = lt.load(path)
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    kind, state = read_state(path)
    if kind not in _SAVEABLE:
        raise ModelFileError(f"{path} holds a {kind!r}, which this lighttouch does not know")
    try:
        return _rebuilt(_SAVEABLE[kind], state)
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} is not a whole model: {type(error).__name__}: {error}"
        ) from None


def _rebuilt(kind: type[Any], state: dict[str, Any]) -> Any:
    estimator = kind(**{name: _living(value) for name, value in state["params"].items()})
    estimator.n_features_in_ = int(state["n_features_in"])
    if state["names"] is not None:
        estimator.feature_names_in_ = np.asarray(state["names"], dtype=object)
    if state["classes"] is not None:
        kept = state["classes"]
        estimator.classes_ = np.array(kept["values"], dtype=np.dtype(kept["type"]))
    estimator.n_iter_, estimator.status_ = int(state["n_iter"]), str(state["status"])
    estimator.constraint_report_ = report_from(state["report"])
    record = state.get("record")  # files of lighttouch 0.1 have none
    estimator.training_record_ = None if record is None else TrainingRecord.from_state(record)
    estimator._restore_fitted(state["fitted"])
    check_loaded(estimator)
    return estimator


def _classes(classes: Any) -> Any:
    if classes is None:
        return None
    kind = classes.dtype.str if classes.dtype.kind in "iufbUS" else "O"
    return {"values": [c.item() if isinstance(c, np.generic) else c for c in classes], "type": kind}


@dataclass(frozen=True)
class _Tables:
    """Tables that are one parameter: canonical examples, or rows (A, b)."""

    parts: tuple[Any, ...]


class _Codec(NamedTuple):
    """How values of a class are written as a plain dict with a tag, and read from it."""

    tag: str
    to_state: Callable[[Any], dict[str, Any]]
    from_state: Callable[[dict[str, Any]], Any]


def _parameter(name: str, value: object) -> Any:
    """A parameter as plain values. Of a random generator only the fact that it was none is kept: it
    has moved on since.
    """
    if name == "random_state":
        return int(value) if isinstance(value, int | np.integer) else None
    if name == "checkpoint":  # a path of the machine that trained
        return None
    if name in ("canonical_examples", "constraints") and isinstance(value, tuple | list):
        return _plain(_Tables(tuple(value)))
    return _plain(value)


def _table_state(table: Any) -> dict[str, Any]:
    """A frame by its columns, anything else as an array."""
    if hasattr(table, "columns"):
        names, cells = split(table)
        return {"names": names, "columns": [_plain(_without_nan(column)) for column in cells]}
    array = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return {"shape": list(array.shape), "cells": _plain(_without_nan(array.ravel()))}


def _without_nan(cells: Any) -> list[Any]:
    return [None if missing_cell(cell) else cell for cell in np.asarray(cells).tolist()]


def _table_from(state: dict[str, Any]) -> Any:
    if "names" not in state:
        cells = [np.nan if cell is None else cell for cell in state["cells"]]
        text = any(isinstance(cell, str) for cell in cells)
        return np.array(cells, dtype=object if text else None).reshape(state["shape"])
    import pandas as pd

    return pd.DataFrame(dict(zip(state["names"], state["columns"], strict=True)))


def _plain(value: object) -> Any:
    """A parameter as plain values; classes in the registry as dicts with a tag."""
    for kind, codec in _CODECS.items():
        if isinstance(value, kind):
            return codec.to_state(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _living(value: object) -> Any:
    """What `_plain` was given."""
    if isinstance(value, list):
        return [_living(part) for part in value]
    if isinstance(value, dict):
        return next(c for c in _CODECS.values() if c.tag in value).from_state(value)
    return value


def shape_state(shape: ShapeConstraint) -> dict[str, Any]:
    """A shape constraint as its name and fields."""
    return {"__shape__": type(shape).__name__} | {
        f.name: _plain(getattr(shape, f.name)) for f in dataclasses.fields(shape)
    }


def shape_from(state: dict[str, Any]) -> ShapeConstraint:
    """What `shape_state` was given."""
    return KINDS[state["__shape__"]](
        **{name: value for name, value in state.items() if name != "__shape__"}
    )


def bound_state(bound: BoundShape) -> dict[str, Any]:
    return {
        "shape": shape_state(bound.shape),
        "places": list(bound.places),
        "pairs": [list(pair) for pair in bound.pairs],
    }


def bound_from(state: dict[str, Any]) -> BoundShape:
    pairs = tuple((int(low), int(high)) for low, high in state["pairs"])
    return BoundShape(
        shape_from(state["shape"]), tuple(int(place) for place in state["places"]), pairs
    )


def columns_state(columns: Columns) -> dict[str, Any]:
    listed = [
        [column.name, None if column.categories is None else list(column.categories)]
        for column in columns.columns
    ]
    return {"columns": listed, "named": columns.named}


def columns_from(state: dict[str, Any]) -> Columns:
    listed = (
        Column(str(name), None if categories is None else tuple(categories))
        for name, categories in state["columns"]
    )
    return Columns(tuple(listed), bool(state["named"]))


def rows_state(rule: RuleRows) -> dict[str, Any]:
    A = sparse.csr_matrix(rule.A)
    return {
        "label": rule.label,
        "data": A.data,
        "indices": A.indices,
        "indptr": A.indptr,
        "width": A.shape[1],
        "b": rule.b,
        "about_order": rule.about_order,
    }


def rows_from(state: dict[str, Any]) -> RuleRows:
    shape = (state["b"].size, int(state["width"]))
    A = sparse.csr_matrix((state["data"], state["indices"], state["indptr"]), shape=shape)
    A.check_format(full_check=True)
    about_order = bool(state.get("about_order", False))
    return RuleRows(str(state["label"]), A, state["b"], about_order=about_order)


def report_state(report: ConstraintReport) -> dict[str, Any]:
    rules = [
        {
            "rule": r.rule,
            "rows": r.rows,
            "violation": r.violation,
            "binding": r.binding,
            "without": [r.broken_without, r.violation_without],
            "about_order": r.about_order,
            "exponential": r.exponential,
        }
        for r in report.rules
    ]
    return {
        "rules": rules,
        "objective": report.objective,
        "without": report.objective_without_rules,
        "proven": report.proven,
    }


def report_from(state: dict[str, Any]) -> ConstraintReport:
    without = state["without"]
    return ConstraintReport(
        tuple(_rule_from(each) for each in state["rules"]),
        float(state["objective"]),
        None if without is None else float(without),
        bool(state.get("proven", True)),
    )


def _rule_from(state: dict[str, Any]) -> RuleReport:
    """A rule of a report; the first files of version 1 lack what has a default here."""
    broken, violation = state.get("without", (None, None))
    return RuleReport(
        rule=str(state["rule"]),
        rows=int(state["rows"]),
        violation=float(state["violation"]),
        binding=state["binding"],
        broken_without=broken,
        violation_without=violation,
        about_order=bool(state.get("about_order", False)),
        exponential=bool(state.get("exponential", False)),
    )


def _rows_of(constraints: LinearConstraints) -> dict[str, Any]:
    return rows_state(RuleRows("", constraints.A, constraints.b))


def _constraints_from(state: dict[str, Any]) -> LinearConstraints:
    rows = rows_from(state)
    return LinearConstraints(rows.A, rows.b)


def _tagged(
    tag: str, to_content: Callable[[Any], Any], from_content: Callable[[Any], Any]
) -> _Codec:
    """A codec that writes {tag: content}."""
    return _Codec(
        tag, lambda value: {tag: to_content(value)}, lambda state: from_content(state[tag])
    )


_CODECS: dict[type, _Codec] = {
    ShapeConstraint: _Codec("__shape__", shape_state, shape_from),
    Quantile: _tagged("__quantile__", lambda loss: loss.level, Quantile),
    Huber: _tagged("__huber__", lambda loss: loss.threshold, Huber),
    Tweedie: _tagged("__tweedie__", lambda loss: loss.power, Tweedie),
    LinearConstraints: _tagged("__rows__", _rows_of, _constraints_from),
    _Tables: _tagged(
        "__tables__",
        lambda tables: [_table_state(part) for part in tables.parts],
        lambda states: tuple(_table_from(part) for part in states),
    ),
    dict: _tagged(
        "__pairs__",
        lambda given: [[_plain(key), _plain(part)] for key, part in given.items()],
        lambda pairs: {key: _living(part) for key, part in pairs},
    ),
}


# -------------------------------------------------------------------------------------------------
# Whether a model that was read from a file agrees with itself, before anyone predicts with it.
#
# A checksum finds damage, not what somebody has changed and summed up again. So names, columns,
# curves and numbers are compared with each other, and then the model answers once for rows of its
# own: what could fail later fails here.


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
        inside = math.isfinite(each.missing) and 0.0 <= low and high <= size - 1
        _must(inside, "a curve leads out of its lattice")


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
