"""A saved model and the columns it needs of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import lighttouch as lt
from lighttouch.cli import tables
from lighttouch.errors import DataError, FileProblem
from lighttouch.report.models import Model

if TYPE_CHECKING:
    from pandas import DataFrame


def load(path: Path) -> Model:
    if path.is_dir():
        raise FileProblem(f"{path} is a folder, not a model")
    model: Model = lt.load(path)
    return model


def features(model: Model, part: DataFrame, path: Path) -> object:
    """The model's columns of a part of a table, in the model's order."""
    if not hasattr(model, "feature_names_in_"):
        if part.shape[1] != model.n_features_in_:
            raise DataError(
                f"the model was trained without column names on {model.n_features_in_} "
                f"columns; {path} has {part.shape[1]}"
            )
        return part.to_numpy()
    record = getattr(model, "training_record_", None)
    taken = [*model.feature_names_in_, None if record is None else record.notes.get("target")]
    for name in model.feature_names_in_:
        tables.place(str(name), part, "the model needs a column that is missing:", path, taken)
    X = part[[str(name) for name in model.feature_names_in_]]
    tables.refuse_infinite(X, path)
    for name in _number_columns(model):
        tables.require_numbers(X, name, path, "the column")
    return X


def text_columns(model: Model) -> list[str]:
    """A chunk in which a text column happens to hold numbers only must not be read as numbers."""
    return [
        column.name
        for column in model.fitted_columns.columns
        if column.categories and all(isinstance(each, str) for each in column.categories)
    ]


def _number_columns(model: Model) -> list[str]:
    return [column.name for column in model.fitted_columns.columns if not column.categorical]
