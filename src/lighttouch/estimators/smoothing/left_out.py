"""The model that would have been fitted without some of its examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import Floats
from lighttouch.estimators.smoothing.costs import COSTS
from lighttouch.estimators.smoothing.marginal_likelihood import (
    Smoothed,
    accepted,
    factored,
    has_settled,
    solved,
)
from lighttouch.estimators.smoothing.problem import Examples
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.solvers.quadratic_model import gram


def fit_without(
    examples: Examples,
    fitted: Smoothed,
    held: NDArray[np.bool_],
    known: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Parameters with the same smoothing, by steps from the fitted ones with one matrix: exact for
    squared errors, nearly so for others. Where the matrix of all examples is `known`, with the
    curvatures at a point (without an offset), that of the held-out ones is taken from it.
    """
    weights = np.where(held, 0.0, examples.weights)
    share = float(weights.sum())
    used = replace(examples, weights=weights / share, curvature=None, _kept={})
    roughness, strengths, w = fitted.roughness, fitted.strengths / share, fitted.w
    X, y, row = examples.features, examples.y, examples.row
    if known is None:
        H = gram(X, used.weights * _derivatives(row, used.predictions(w), y)[1])
    else:
        out = np.flatnonzero(held)
        curvatures = _derivatives(row, np.asarray(X[out] @ known[0]), y[out])[1]
        H = (known[1] - gram(X[out], examples.weights[out] * curvatures)) / share
    factor, D = factored(H, roughness, strengths), roughness.rows(strengths)
    for _ in range(1 if row is None else COSTS.left_out_steps):
        slopes = _derivatives(row, used.predictions(w), y)[0]
        slope = np.asarray(X.T @ (used.weights * slopes)) + np.asarray(D.T @ (D @ w))
        before, w = w, accepted(used, roughness, strengths, w, w - solved(factor, slope))
        if has_settled(before, w):
            break
    return w


def _derivatives(row: LossRow | None, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the loss at predictions z; None for squared errors."""
    return (z - y, np.ones(y.size)) if row is None else losses.quadratic(row, z, y, 0.0)
