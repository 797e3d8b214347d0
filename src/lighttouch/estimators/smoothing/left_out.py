"""The model that would have been fitted without some of its examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.estimators.smoothing.marginal_likelihood import Smoothed, factored, solved
from lighttouch.estimators.smoothing.problem import Examples
from lighttouch.solvers.quadratic_steps import gram


def fit_without(examples: Examples, fitted: Smoothed, held: NDArray[np.bool_]) -> Floats:
    """Parameters by a Newton step from the fitted ones, with the same smoothing: all of the way for
    squared errors, most of it for others.
    """
    w, used = fitted.w, np.flatnonzero(~held)
    X, y = examples.features[used], examples.y[used]
    share = float(examples.weights[used].sum())
    weights, strengths = examples.weights[used] / share, fitted.strengths / share
    z = np.asarray(X @ w)
    if examples.row is None:
        slopes, curvatures = z - y, np.ones(y.size)
    else:
        slopes, curvatures = losses.quadratic(examples.row, z, y, 0.0)
    D = fitted.roughness.rows(strengths)
    slope = np.asarray(X.T @ (weights * slopes)) + np.asarray(D.T @ (D @ w))
    factor = factored(gram(X, weights * curvatures), fitted.roughness, strengths)
    return np.asarray(w - solved(factor, slope))
