"""What the report asks of a fitted estimator, and how its kinds are told from each other."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from lighttouch.arrays import Floats
from lighttouch.estimators.proof import ConstraintReport
from lighttouch.estimators.tables import Columns


class Model(Protocol):
    """Any fitted estimator of this package."""

    loss: object
    monotonic_cst: Any
    shape_constraints: Any
    n_features_in_: int
    n_iter_: int
    status_: str
    constraint_report_: ConstraintReport

    @property
    def fitted_columns(self) -> Columns: ...
    def predict(self, X: object) -> Any: ...
    def check_constraints(self, X: object = None) -> ConstraintReport: ...


class Classifier(Model, Protocol):
    """A model of two classes; its score is positive for the second one."""

    classes_: NDArray[Any]

    def decision_function(self, X: object) -> Floats: ...


class ProbabilisticClassifier(Classifier, Protocol):
    """A classifier whose score is the log-odds of the second class."""

    def predict_proba(self, X: object) -> Floats: ...


class LatticeModel(Model, Protocol):
    """A model of curves and lattices."""

    columns_: Any
    model_: Any
    parameters_: Floats
    smoothing_: tuple[float, float]


class LinearModel(Model, Protocol):
    """A model of one coefficient per column."""

    coef_: Floats


def is_classifier(model: object) -> TypeGuard[Classifier]:
    return hasattr(model, "classes_")


def has_probabilities(model: object) -> TypeGuard[ProbabilisticClassifier]:
    return hasattr(model, "classes_") and hasattr(model, "predict_proba")


def is_lattice(model: object) -> TypeGuard[LatticeModel]:
    return hasattr(model, "model_")


def is_linear(model: object) -> TypeGuard[LinearModel]:
    return hasattr(model, "coef_")


def has_several_outputs(model: object) -> bool:
    """Several quantiles, or more than two classes."""
    several = len(getattr(model, "classes_", ())) > 2
    return several or getattr(model, "parameters_", np.zeros(1)).ndim > 1


def takes_gaps(model: object) -> bool:
    """Whether cells may be missing."""
    return bool(get_tags(model).input_tags.allow_nan)


def column_names(model: Model) -> list[str]:
    """The names seen in training, or x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{place}" for place in range(model.n_features_in_)] if names is None else list(names)


SCORES = {
    "log-odds": "its probability",
    "cumulative log-odds": "the cumulative probabilities",
    "log-mean": "the mean",
}
"""Scales on which some rules hold, each with what users see, where those need not hold."""


def rules_on_scores(model: Model) -> dict[str, str]:
    """The rules that hold on the model's score only, each with the score's name."""
    rules = model.constraint_report_.rules
    return {rule.rule: rule.scale for rule in rules if rule.scale in SCORES}


def scale_note(model: Model) -> str:
    """A sentence about rules that hold on a score only; empty if there are none."""
    found = rules_on_scores(model)
    if not found:
        return ""
    scale = next(iter(found.values()))
    whose = f" of {model.classes_[1]}" if scale == "log-odds" and is_classifier(model) else ""
    return (
        f"{', '.join(found)}: on the {scale}{whose}, not on {SCORES[scale]}; "
        "all other rules hold on both"
    )
