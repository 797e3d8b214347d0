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
    near: tuple[Floats, Floats] | None = None
    """For other losses a point, and the Gram matrix with the curvatures there."""
    share: float = 1.0  # of the examples that it was fitted to

    @property
    def rows(self) -> Any:
        return self.roughness.rows(self.strengths)

    @property
    def matrix(self) -> tuple[Floats, Floats] | None:
        """The Gram matrix of all examples, after the point whose curvatures it has; None if
        unknown.
        """
        if self.share != 1.0:
            return None
        return self.near if self.squares is None else (self.w, self.squares)

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
    """Newton steps without rules, each followed by a step of the strengths; with `last`, or where
    strengths are not chosen, up to the minimum with the last strengths. Once the time is `over`, it
    ends after a step.
    """
    w, strengths = start, strengths.copy()
    freedom, held = 0.0, None
    if choose and w.size > COSTS.crowded * examples.count:
        strengths = _stiffened(examples, roughness, strengths, w)
    for sweep in range(sweeps if choose else 0):
        if sweep and over():
            break
        H, c = examples.quadratic(w)
        factor = factored(H, roughness, strengths)
        w = accepted(examples, roughness, strengths, w, solved(factor, c))
        lost, pulled = _lost(factor, roughness, strengths)
        freedom = w.size - float(lost.sum()) - pulled
        held = np.maximum(roughness.own_traces(strengths) - lost, COSTS.least_freedom)
        sizes = np.maximum(roughness.sizes(w), 1e-300)
        wanted = examples.noise(w, freedom) / examples.count * held / sizes
        change = np.clip(
            (wanted / strengths) ** COSTS.boldness, 1.0 / COSTS.largest_change, COSTS.largest_change
        )
        strengths = np.clip(strengths * change, COSTS.least_strength, COSTS.most_strength)
    if not choose or (last and not over()):
        w = _settled(examples, roughness, strengths, w, over)
    squares = examples.quadratic(w)[0] if examples.row is None and last else None
    return Smoothed(
        w, roughness, strengths, freedom, held, squares, examples.near if last else None
    )


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
    known, factor = None, np.zeros((0, 0))
    for _ in range(1 if examples.row is None else COSTS.settling):
        H, c = examples.quadratic(w)
        if H is not known:
            known, factor = H, factored(H, roughness, strengths)
        before = w
        w = accepted(examples, roughness, strengths, before, solved(factor, c))
        if has_settled(before, w) or over():
            break
    return w


def has_settled(before: Floats, w: Floats) -> bool:
    """Whether a step has changed the parameters by next to nothing."""
    change = float(np.abs(w - before).max(initial=0.0))
    return change <= COSTS.settled * float(np.abs(w).max(initial=0.0))


def _stiffened(examples: Examples, roughness: Roughness, strengths: Floats, w: Floats) -> Floats:
    """Strengths under which the model cannot follow every example: where parameters are many, the
    fixed point that is reached from below is the one without noise.
    """
    squares = examples.quadratic(w)[0]
    while strengths.min(initial=COSTS.most_strength) < COSTS.most_strength:
        lost, pulled = _lost(factored(squares, roughness, strengths), roughness, strengths)
        if w.size - float(lost.sum()) - pulled <= COSTS.crowded * examples.count:
            break
        strengths = np.minimum(COSTS.stiffer * strengths, COSTS.most_strength)
    return strengths


def accepted(
    examples: Examples, roughness: Roughness, strengths: Floats, w: Floats, proposed: Floats
) -> Floats:
    """The proposed point, or part of the way to it where the objective would rise."""
    if examples.row is None:
        return proposed

    z, move = examples.predictions(w), proposed - w
    moved = np.asarray(examples.features @ move)
    here, share = examples.value(z) + roughness.value(w, strengths), 1.0
    for _ in range(COSTS.halvings):
        there, predicted = w + share * move, z + share * moved
        if examples.value(predicted) + roughness.value(there, strengths) <= here:
            examples.remember(there, predicted)
            return there
        share *= 0.5
    return w


def factored(H: Floats, roughness: Roughness, strengths: Floats) -> Floats:
    """L with L L' = H + D'D; a little more of the diagonal where that is singular."""
    lift = None
    while True:
        shifted = H.copy()
        roughness.add_to(shifted, strengths)
        if lift is None:
            lift = 1e-10 * float(np.trace(shifted)) / H.shape[0]
        shifted.flat[:: H.shape[0] + 1] += lift
        # symmetric: its transpose is the same matrix in the order of LAPACK, not copied again
        factor, failed = scipy.linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
        lift = max(10.0 * lift, 1e-300)


def solved(factor: Floats, c: Floats) -> Floats:
    return np.asarray(scipy.linalg.lapack.dpotrs(factor, c, lower=1)[0])


def _lost(factor: Floats, roughness: Roughness, strengths: Floats) -> tuple[Floats, float]:
    """Degrees of freedom that each penalty takes, and the pull; destroys the factor.

    With W = L^-1 the inverse is W'W, of which only the blocks of single terms are asked for.
    """
    root = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)[0]
    pulled = float(roughness.pull @ np.einsum("ij,ij->j", root, root))
    return strengths * roughness.traces(root), pulled
