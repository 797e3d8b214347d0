"""The model that would have been fitted without some of its examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.smoothing.marginal_likelihood import Smoothed, factored, solved
from lighttouch.estimators.smoothing.problem import Examples
from lighttouch.solvers.gram import gram


def fit_without(
    examples: Examples,
    fitted: Smoothed,
    held: NDArray[np.bool_],
    known: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Parameters by a Newton step from the fitted ones, with the same smoothing: all of the way for
    squared errors, most of it for others. Where the matrix of all examples is `known`, with the
    curvatures at a point, that of the held-out ones is taken from it.
    """
    X, w, out = examples.features, fitted.w, np.flatnonzero(held)
    weights = np.where(held, 0.0, examples.weights)
    share = float(weights.sum())
    slopes, curvatures = _derivatives(examples, slice(None), np.asarray(X @ w))
    strengths = fitted.strengths / share
    D = fitted.roughness.rows(strengths)
    slope = np.asarray(X.T @ (weights * slopes)) / share + np.asarray(D.T @ (D @ w))
    if known is None:
        H = gram(X, weights * curvatures)
    else:
        apart = X[out]
        curvatures = _derivatives(examples, out, np.asarray(apart @ known[0]))[1]
        H = known[1] - gram(apart, examples.weights[out] * curvatures)
    return np.asarray(w - solved(factored(H / share, fitted.roughness, strengths), slope))


def _derivatives(examples: Examples, rows: Indices | slice, z: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the loss of some examples at predictions z."""
    y = examples.y[rows]
    if examples.row is None:
        return z - y, np.ones(y.size)
    return losses.quadratic(examples.row, z, y, 0.0)
