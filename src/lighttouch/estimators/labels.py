"""Two kinds of labels as -1 and +1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from lighttouch.errors import DataError


def read_labels(y: Any, estimator: Any, sample_weight: Any = None) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The two classes in order, and -1 or +1 for every row."""
    name = type(estimator).__name__
    if y is None:
        raise DataError(f"This {name} estimator requires y to be passed, but the target y is None.")
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmax(~np.isfinite(labels)))
        raise DataError(f"y must not contain NaN or infinity: first at row {row} ({labels[row]})")
    check_classification_targets(labels)
    classes = np.unique(labels)
    kept = classes
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None and weights.shape == labels.shape:
        kept = np.unique(labels[weights != 0])
    if kept.size < 2:
        raise DataError(f"{name} needs samples of 2 classes; y (where its weights are not zero) holds {kept.size} class: {list(kept)}")
    if classes.size > 2:
        raise DataError(
            f"Only binary classification is supported. The type of the target is {type_of_target(labels)}: y holds {classes.size} classes. "
            f"Rules on probabilities of more classes are not convex; fit one {name} for each class against the rest"
        )
    return classes, np.where(labels == classes[1], 1.0, -1.0)
