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
# Every pair of points is a row: on the 200 rows of these checks the default takes 7 seconds a fit.
EASIER_CONVEX = {
    "check_regressors_train": {"alpha": 1.0, "tol": 0.1},
    "check_regressor_data_not_an_array": {"most_points": 40},
}


def expected(estimator):
    """Isotonic and convex regression are not smoothed."""
    unsmoothed = isinstance(estimator, ConvexRegressor | MonotoneRegressor)
    return {} if unsmoothed else WEIGHT_CHECKS


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
def test_contract(estimator, check):
    if isinstance(estimator, ConvexRegressor):
        estimator.set_params(**EASIER_CONVEX.get(check.func.__name__, {}))
    check(estimator)
