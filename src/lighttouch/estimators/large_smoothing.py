"""How strongly to smooth models that are too large to factor: one strength for curves and one for
lattices.

By generalised cross-validation (Golub, Heath and Wahba 1979) on a part of the examples, by
conjugate gradients and an estimate of the trace (Hutchinson 1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats
from lighttouch.estimators.costs import FIRST_CHOICE, PULL, SMOOTHING, STRENGTHS
from lighttouch.estimators.penalties import Pair, Roughness
from lighttouch.projections.splitting import conjugate_gradients
from lighttouch.running import check_deadline


@dataclass(frozen=True)
class SampledErrors:
    """On a part of the examples, without a matrix of all parameters.

    A strength is the ratio of noise to prior variance, divided by the number of examples. What
    strength s does to all examples is therefore judged on a part of them with s / share.
    """

    features: Any
    y: Floats
    weights: Floats  # adding up to 1
    examples: float
    share: float  # of the examples that the sample holds

    def fit(self, roughness: Roughness, pair: Pair) -> tuple[Floats, float]:
        D = roughness.rows(roughness.uniform(pair))
        D = sparse.vstack([D, math.sqrt(PULL) * sparse.identity(D.shape[1])], format="csr")
        X, transposed = self.features, self.features.T.tocsr()
        smoothing, back = D / math.sqrt(self.share), D.T.tocsr() / math.sqrt(self.share)

        def apply(w: Floats) -> Floats:
            check_deadline()
            return np.asarray(transposed @ (self.weights * (X @ w)) + back @ (smoothing @ w))

        squares = np.asarray(X.multiply(X).T @ self.weights).ravel()
        diagonal = squares + np.asarray(smoothing.multiply(smoothing).sum(axis=0)).ravel()

        def solve(right: Floats) -> Floats:
            nothing = np.zeros(right.size)
            return conjugate_gradients(
                apply, right, nothing, diagonal, SMOOTHING.trace_residual, SMOOTHING.trace_steps
            )

        w = solve(np.asarray(transposed @ (self.weights * self.y)))
        freedom = 0.0
        for probe in np.random.default_rng(0).choice([-1.0, 1.0], size=(SMOOTHING.probes, w.size)):
            image = np.asarray(transposed @ (self.weights * (X @ probe)))
            freedom += float(image @ solve(probe)) / SMOOTHING.probes
        error = float(self.weights @ np.square(self.y - X @ w))
        return w, cross_validation_error(error, freedom, self.share * self.examples)


def cross_validation_error(error: float, freedom: float, examples: float) -> float:
    return error / max(1.0 - SMOOTHING.caution * freedom / examples, SMOOTHING.least_room) ** 2


def choose_strengths(problem: SampledErrors, roughness: Roughness, lattices: bool) -> Pair:
    """Strengths for curves and lattices with the smallest error: downhill on a grid of half powers
    of ten, for curves first.
    """
    pair = FIRST_CHOICE
    for kind in range(2 if lattices else 1):
        pair = _downhill(problem, roughness, pair, kind)
    return pair


def _downhill(problem: SampledErrors, roughness: Roughness, pair: Pair, kind: int) -> Pair:
    errors: dict[int, float] = {}

    def changed(place: int) -> Pair:
        return (pair[0], STRENGTHS[place]) if kind else (STRENGTHS[place], pair[1])

    def error(place: int) -> float:
        if place not in errors:
            errors[place] = problem.fit(roughness, changed(place))[1]
        return errors[place]

    place = int(np.argmin([abs(np.log(each / pair[kind])) for each in STRENGTHS]))
    stride = 2
    while stride:
        best = min(
            (k for k in (place, place - stride, place + stride) if 0 <= k < len(STRENGTHS)),
            key=error,
        )
        stride -= best == place
        place = best
    return changed(place)
