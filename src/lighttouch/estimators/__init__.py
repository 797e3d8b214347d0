"""Models with rules as scikit-learn estimators."""

from lighttouch.estimators import shapes
from lighttouch.estimators.lattice_models import LatticeClassifier, LatticeRanker, LatticeRegressor
from lighttouch.estimators.linear_models import (
    ConstrainedLinearClassifier,
    ConstrainedLinearRegressor,
)
from lighttouch.estimators.report import ConstraintReport
from lighttouch.estimators.saving import load

__all__ = [
    "ConstrainedLinearClassifier",
    "ConstrainedLinearRegressor",
    "ConstraintReport",
    "LatticeClassifier",
    "LatticeRanker",
    "LatticeRegressor",
    "load",
    "shapes",
]
