"""A saved model and the columns it needs of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lighttouch as lt
from lighttouch.cli import tables
from lighttouch.cli.failures import FileProblem
from lighttouch.errors import DataError


def load(path: Path) -> Any:
    if path.is_dir():
        raise FileProblem(f"{path} is a folder, not a model")
    return lt.load(path)


def features(model: Any, part: Any, path: Path) -> Any:
    """The model's columns of a part of a table, in the model's order."""
    if not hasattr(model, "feature_names_in_"):
        if part.shape[1] != model.n_features_in_:
            raise DataError(
                f"the model was trained without column names on {model.n_features_in_} "
                f"columns; {path} has {part.shape[1]}"
            )
        return part.to_numpy()
    for name in model.feature_names_in_:
        tables.place(str(name), part, "the model needs a column that is missing:", path)
    X = part[[str(name) for name in model.feature_names_in_]]
    tables.refuse_infinite(X, path)
    for name in _number_columns(model):
        tables.require_numbers(X, name, path, "the column")
    return X


def text_columns(model: Any) -> list[str]:
    """A chunk in which a text column happens to hold numbers only must not be read as numbers."""
    columns = getattr(model, "columns_", None)
    listed = [] if columns is None else columns.columns
    return [
        column.name
        for column in listed
        if column.categories and all(isinstance(each, str) for each in column.categories)
    ]


def _number_columns(model: Any) -> list[str]:
    columns = getattr(model, "columns_", None)
    if columns is None:
        return [str(name) for name in model.feature_names_in_]
    return [column.name for column in columns.columns if not column.categorical]
