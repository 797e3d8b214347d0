"""Models with rules as scikit-learn estimators."""

from lighttouch.estimators.convex import ConvexRegressor
from lighttouch.estimators.isotonic import MonotoneRegressor
from lighttouch.estimators.lattice_classifier import LatticeClassifier
from lighttouch.estimators.lattice_models import LatticeRegressor
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
    "ConvexRegressor",
    "LatticeClassifier",
    "LatticeRanker",
    "LatticeRegressor",
    "MonotoneRegressor",
    "load",
    "shapes",
]
