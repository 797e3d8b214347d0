"""Models with rules as scikit-learn estimators."""

from lighttouch.estimators.lattice_models import LatticeClassifier, LatticeRegressor
from lighttouch.estimators.linear import (
    ConstrainedLinearClassifier,
    ConstrainedLinearRegressor,
)
from lighttouch.estimators.proof import ConstraintReport
from lighttouch.estimators.ranking import LatticeRanker
from lighttouch.estimators.rules import shapes
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
