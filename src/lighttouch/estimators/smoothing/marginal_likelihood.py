"""A strength for every term by maximum marginal likelihood (REML).

The fixed point of MacKay (1992), Fellner (1986) and Schall (1991), in the general form of Wood and
Fasiolo (2017), on the quadratic model of the loss: a term whose parameters say less than noise
would is smoothed away, one that the data determine is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats
from lighttouch.estimators.smoothing.costs import COSTS
from lighttouch.estimators.smoothing.penalties import Roughness
from lighttouch.estimators.smoothing.problem import Examples


@dataclass(frozen=True)
class Smoothed:
    """Parameters without rules, their roughness, how strongly it counts, and degrees of freedom."""

    w: Floats
    roughness: Roughness
    strengths: Floats
    freedom: float = 0.0
    terms: Floats | None = None  # degrees of freedom of each penalty
    squares: Floats | None = None  # the Gram matrix of squared errors
    share: float = 1.0  # of the examples that it was fitted to

    @property
    def rows(self) -> Any:
        return self.roughness.rows(self.strengths)

    def scaled(self, factor: float) -> Smoothed:
        """With other strengths: what strength s does to all examples is judged on a part of them
        with s / share.
        """
        return replace(self, strengths=factor * self.strengths, share=factor)


def smooth(
    examples: Examples,
    roughness: Roughness,
    strengths: Floats,
    start: Floats,
    sweeps: int,
    choose: bool = True,
    last: bool = True,
    over: Callable[[], bool] = lambda: False,
) -> Smoothed:
    """Newton steps without rules, each followed by a step of the strengths, where they are chosen;
    with `last` one more with the last strengths. Once the time is `over`, it ends after a step.
    """
    w, strengths = start, strengths.copy()
    freedom, held = 0.0, None
    if choose and w.size > COSTS.crowded * examples.count:
        strengths = _stiffened(examples, roughness, strengths, w)
    for sweep in range(sweeps):
        if sweep and over():
            break
        H, c = examples.quadratic(w)
        H = H.copy()
        roughness.add_to(H, strengths)
        factor = _factor(H)
        proposed = scipy.linalg.cho_solve(factor, c, check_finite=False)
        w = _accepted(examples, roughness, strengths, w, proposed)
        if not choose:
            continue
        inverse = scipy.linalg.lapack.dpotri(factor[0], lower=1)[0]
        lost = strengths * roughness.traces(inverse)
        pulled = float(roughness.pull @ inverse.diagonal())
        freedom = w.size - float(lost.sum()) - pulled
        held = np.maximum(roughness.own_traces(strengths) - lost, COSTS.least_freedom)
        sizes = np.array([each.size_of(w) for each in roughness.penalties])
        wanted = examples.noise(w, freedom) / examples.count * held / np.maximum(sizes, 1e-300)
        change = np.clip(
            (wanted / strengths) ** COSTS.boldness, 1.0 / COSTS.largest_change, COSTS.largest_change
        )
        strengths = np.clip(strengths * change, COSTS.least_strength, COSTS.most_strength)
    if last and (choose or examples.row is not None) and not over():
        w = _settled(examples, roughness, strengths, w, over)
    squares = examples.quadratic(w)[0] if examples.row is None and last else None
    return Smoothed(w, roughness, strengths, freedom, held, squares)


def _settled(
    examples: Examples,
    roughness: Roughness,
    strengths: Floats,
    w: Floats,
    over: Callable[[], bool],
) -> Floats:
    """The minimum without rules, by Newton's steps with a matrix that is formed and factored anew
    only where the curvature has changed; it is nearer to the minimum under rules than any of the
    sweeps was, and steps under rules are dear.
    """
    known, factor = None, None
    for _ in range(1 if examples.row is None else COSTS.settling):
        H, c = examples.quadratic(w)
        if H is not known:
            known, shifted = H, H.copy()
            roughness.add_to(shifted, strengths)
            factor = _factor(shifted)
        before = w
        proposed = scipy.linalg.cho_solve(factor, c, check_finite=False)
        w = _accepted(examples, roughness, strengths, before, proposed)
        change = float(np.abs(w - before).max(initial=0.0))
        if change <= COSTS.settled * float(np.abs(w).max(initial=0.0)) or over():
            break
    return w


def _stiffened(examples: Examples, roughness: Roughness, strengths: Floats, w: Floats) -> Floats:
    """Strengths under which the model cannot follow every example: where parameters are many, the
    fixed point that is reached from below is the one without noise.
    """
    squares = examples.quadratic(w)[0]
    while strengths.min(initial=COSTS.most_strength) < COSTS.most_strength:
        H = squares.copy()
        roughness.add_to(H, strengths)
        inverse = scipy.linalg.lapack.dpotri(_factor(H)[0], lower=1)[0]
        lost = float(strengths @ roughness.traces(inverse))
        lost += float(roughness.pull @ inverse.diagonal())
        if w.size - lost <= COSTS.crowded * examples.count:
            break
        strengths = np.minimum(COSTS.stiffer * strengths, COSTS.most_strength)
    return strengths


def _accepted(
    examples: Examples, roughness: Roughness, strengths: Floats, w: Floats, proposed: Floats
) -> Floats:
    """The proposed point, or part of the way to it where the objective would rise."""
    if examples.row is None:
        return proposed

    def value(at: Floats) -> float:
        return examples.value(at) + roughness.value(at, strengths)

    here, share = value(w), 1.0
    for _ in range(COSTS.halvings):
        there = w + share * (proposed - w)
        if value(there) <= here:
            return there
        share *= 0.5
    return w


def _factor(H: Floats) -> Any:
    lift = 1e-10 * float(np.trace(H)) / H.shape[0]
    while True:
        try:
            shifted = H.copy()
            shifted.flat[:: H.shape[0] + 1] += lift
            return scipy.linalg.cho_factor(shifted, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            lift = max(10.0 * lift, 1e-300)
