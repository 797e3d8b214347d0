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
from lighttouch.solvers.gram import gram


def fit_without(
    examples: Examples,
    fitted: Smoothed,
    held: NDArray[np.bool_],
    known: tuple[Floats, Floats] | None = None,
) -> Floats:
    """Parameters with the same smoothing, by steps from the fitted ones with one matrix: exact for
    squared errors, nearly so for others. Where the matrix of all examples is `known`, with the
    curvatures at a point, that of the held-out ones is taken from it.
    """
    weights = np.where(held, 0.0, examples.weights)
    share = float(weights.sum())
    used = replace(examples, weights=weights / share, curvature=None, _kept={})
    roughness, strengths, w = fitted.roughness, fitted.strengths / share, fitted.w
    factor = factored(_matrix(examples, held, used, w, known), roughness, strengths)
    D, X = roughness.rows(strengths), examples.features
    for _ in range(1 if examples.row is None else COSTS.left_out_steps):
        slopes = _derivatives(used, np.asarray(X @ w))[0]
        slope = np.asarray(X.T @ (used.weights * slopes)) + np.asarray(D.T @ (D @ w))
        before, w = w, accepted(used, roughness, strengths, w, w - solved(factor, slope))
        if has_settled(before, w):
            break
    return w


def _matrix(
    examples: Examples,
    held: NDArray[np.bool_],
    used: Examples,
    w: Floats,
    known: tuple[Floats, Floats] | None,
) -> Floats:
    """The Gram matrix of the used examples, with the curvatures at w or near it."""
    X = examples.features
    if known is None:
        return gram(X, used.weights * _derivatives(used, np.asarray(X @ w))[1])
    share = float(examples.weights[~held].sum())
    out = replace(
        examples, features=X[np.flatnonzero(held)], y=examples.y[held], weights=np.zeros(0)
    )
    curvatures = _derivatives(out, np.asarray(out.features @ known[0]))[1]
    return (known[1] - gram(out.features, examples.weights[held] * curvatures)) / share


def _derivatives(examples: Examples, z: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the loss at predictions z."""
    if examples.row is None:
        return z - examples.y, np.ones(z.size)
    return losses.quadratic(examples.row, z, examples.y, 0.0)
