"""scikit-learn's own checks of every estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lighttouch.estimators import (
    ConstrainedLinearClassifier,
    ConstrainedLinearRegressor,
    ConvexRegressor,
    LatticeClassifier,
    LatticeRanker,
    LatticeRegressor,
    MonotoneRegressor,
)

ESTIMATORS = [
    ConstrainedLinearClassifier(),
    ConstrainedLinearRegressor(),
    ConvexRegressor(),
    LatticeClassifier(),
    LatticeClassifier(ordinal=True),
    LatticeRanker(),
    LatticeRegressor(),
    LatticeRegressor(loss="poisson", output_max=1e6),
    MonotoneRegressor(),
]
WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": "smoothing counts examples, not weights",
    "check_sample_weight_equivalence_on_sparse_data": "smoothing counts examples, not weights",
}


def expected(estimator):
    """Isotonic and convex regression are not smoothed."""
    unsmoothed = isinstance(estimator, ConvexRegressor | MonotoneRegressor)
    return {} if unsmoothed else WEIGHT_CHECKS


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_contract(estimator, check):
    check(estimator)
