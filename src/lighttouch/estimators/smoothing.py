"""How strongly to smooth each term, on the loss that is trained.

Strengths of the roughness of `penalties.py` maximise the marginal likelihood; where labels are
determined, less is tried by cross-validation. Models too large to factor have two strengths
(`large_smoothing.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from lighttouch import losses
from lighttouch.arrays import EPSILON, Floats
from lighttouch.cholesky import Cholesky, Scratch
from lighttouch.estimators.costs import SMOOTHING
from lighttouch.estimators.judged import Judged, derivatives, gram_of
from lighttouch.estimators.penalties import Roughness

# -------------------------------------------------------------------------------------------------
# A strength for every term by maximum marginal likelihood (REML).
#
# The fixed point of MacKay (1992), Fellner (1986) and Schall (1991), in the general form of Wood
# and Fasiolo (2017), on the quadratic model of the loss: a term whose parameters say less than
# noise would is smoothed away, one that the data determine is left alone.


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
    minimum: bool = True  # whether w is the minimum with these strengths, as far as it was sought

    @property
    def rows(self) -> Any:
        return self.roughness.rows(self.strengths)

    @property
    def held(self) -> dict[tuple[int, ...], float]:
        """Degrees of freedom of every term, by its columns; empty where they are not known."""
        found: dict[tuple[int, ...], float] = {}
        if self.terms is not None:
            for penalty, freedom in zip(self.roughness.penalties, self.terms, strict=True):
                columns = penalty.key[0]
                found[columns] = found.get(columns, 0.0) + float(freedom)
        return found

    @property
    def typical(self) -> float:
        """The geometric mean of the strengths of bends and lattices, by the degrees of freedom that
        they hold.
        """
        if self.terms is None:
            return math.inf
        kinds = np.array([each.key[1] in ("bends", "lattice") for each in self.roughness.penalties])
        held = np.where(kinds, self.terms, 0.0)
        total = float(held.sum())
        return math.exp(float(held @ np.log(self.strengths)) / total) if total > 0.0 else math.inf

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
    examples: Judged,
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
    freedom, held, scratch = 0.0, None, Scratch()
    most_freedom, most_strength = SMOOTHING.crowded * examples.count, SMOOTHING.most_strength
    for sweep in range(sweeps if choose else 0):
        if sweep and over():
            break
        H, c = examples.quadratic(w)
        proposed, lost, freedom = _step(H, c, roughness, strengths, scratch)
        while sweep == 0 and freedom > most_freedom and (strengths < most_strength).any():
            # where parameters are many, the fixed point reached from below is the one without noise
            strengths = np.minimum(SMOOTHING.stiffer * strengths, most_strength)
            proposed, lost, freedom = _step(H, c, roughness, strengths, scratch)
        w = accepted(examples, roughness, strengths, w, proposed)
        held = np.maximum(roughness.own_traces(strengths) - lost, SMOOTHING.least_freedom)
        sizes = np.maximum(roughness.sizes(w), 1e-300)
        wanted = examples.noise(w, freedom) / examples.count * held / sizes
        most = SMOOTHING.largest_change ** (1.0 / SMOOTHING.boldness)
        change = np.clip(wanted / strengths, 1.0 / most, most) ** SMOOTHING.boldness
        strengths = np.clip(strengths * change, SMOOTHING.least_strength, most_strength)
    if not choose or (last and not over()):
        w = _settled(examples, roughness, strengths, w, scratch, over)
    squares = examples.quadratic(w)[0] if examples.row is None and last else None
    return Smoothed(
        w, roughness, strengths, freedom, held, squares, examples.near if last else None
    )


def _settled(
    examples: Judged,
    roughness: Roughness,
    strengths: Floats,
    w: Floats,
    scratch: Scratch,
    over: Callable[[], bool],
) -> Floats:
    """The minimum without rules, by steps that begin with a matrix, formed and factored anew only
    where the curvature has changed; it is nearer to the minimum under rules than any of the
    sweeps was, and steps under rules are dear.
    """
    known, D = None, roughness.rows(strengths)
    for _ in range(1 if examples.row is None else SMOOTHING.settling):
        H, c = examples.quadratic(w)
        if H is not known:
            factor = factored(partial(scratch.copied, H), roughness, strengths)
            known, steps = H, Steps(factor)
        before = w
        w = accepted(examples, roughness, strengths, w, w + steps.at(w, H @ w - c + D.T @ (D @ w)))
        if has_settled(before, w, SMOOTHING.settled) or over():
            break
    return w


class Steps:
    """Newton's steps with one factored matrix, corrected by how slopes have changed since: a
    quasi-Newton method of limited memory (Liu and Nocedal 1989) that begins with that matrix.
    """

    def __init__(self, factor: Cholesky) -> None:
        self.factor = factor
        self.known: list[tuple[Floats, Floats, float]] = []
        """Moves, what they did to the slope, and the product of both."""
        self.last: tuple[Floats, Floats] | None = None

    def at(self, w: Floats, slope: Floats) -> Floats:
        """The step from a point with this slope."""
        if self.last is not None:
            move, change = w - self.last[0], slope - self.last[1]
            curved = float(move @ change)
            # less is rounding, and would be divided by
            if curved > EPSILON * float(np.linalg.norm(move) * np.linalg.norm(change)):
                self.known.append((move, change, curved))
        self.last = w, slope
        left, shares = slope.copy(), list[float]()
        for move, change, curved in reversed(self.known):
            shares.append(float(move @ left) / curved)
            left -= shares[-1] * change
        step = self.factor.solved(left)
        for (move, change, curved), share in zip(self.known, reversed(shares), strict=True):
            step += (share - float(change @ step) / curved) * move
        return -step


def has_settled(before: Floats, w: Floats, most: float) -> bool:
    """Whether a step has changed the parameters by next to nothing."""
    change = float(np.abs(w - before).max(initial=0.0))
    return change <= most * float(np.abs(w).max(initial=0.0))


def _step(
    H: Floats, c: Floats, roughness: Roughness, strengths: Floats, scratch: Scratch
) -> tuple[Floats, Floats, float]:
    """Where Newton's step goes, degrees of freedom that each penalty takes, and those left."""
    factor = factored(partial(scratch.copied, H), roughness, strengths)
    w = factor.solved(c)
    lost, pulled = _lost(factor, roughness, strengths)
    return w, lost, w.size - float(lost.sum()) - pulled


def accepted(
    examples: Judged, roughness: Roughness, strengths: Floats, w: Floats, proposed: Floats
) -> Floats:
    """The proposed point, or part of the way to it where the objective would rise."""
    if examples.row is None:
        return proposed

    z, move = examples.predictions(w), proposed - w
    moved, slope = examples.looked_ahead(z, move)
    here, share = examples.objective(w, z, roughness, strengths), 1.0
    for _ in range(SMOOTHING.halvings):
        there, predicted = w + share * move, z + share * moved
        if examples.objective(there, predicted, roughness, strengths) <= here:
            examples.remember(there, predicted, slope if share == 1.0 else None)
            return there
        share *= 0.5
    return w


def factored(new: Callable[[], Floats], roughness: Roughness, strengths: Floats) -> Cholesky:
    """Of H + D'D; a little more of the diagonal where that is singular. H is `new` every
    time, because the factor takes its place.
    """
    lift = None
    while True:
        shifted = new()
        roughness.add_to(shifted, strengths)
        if lift is None:
            lift = 1e-10 * float(np.trace(shifted)) / shifted.shape[0]
        shifted.flat[:: shifted.shape[0] + 1] += lift
        factor = Cholesky.of(shifted)
        if factor is not None:
            return factor
        lift = max(10.0 * lift, 1e-300)


def _lost(factor: Cholesky, roughness: Roughness, strengths: Floats) -> tuple[Floats, float]:
    """Degrees of freedom that each penalty takes, and the pull; destroys the factor.

    With W = L^-1 the inverse is W'W, of which only the blocks of single terms are asked for.
    """
    root = scipy.linalg.lapack.dtrtri(factor.lower, lower=1, overwrite_c=1)[0]
    pulled = float(roughness.pull @ np.einsum("ij,ij->j", root, root))
    return strengths * roughness.traces(root), pulled


# -------------------------------------------------------------------------------------------------
# Less smoothing where labels are determined by the columns, by cross-validation.


def determined(residual: Floats, weights: Floats) -> bool:
    """Whether labels are hardly random: what is left over is much less than their variance."""
    return float(weights @ np.square(residual)) <= SMOOTHING.determined


def loosened(
    examples: Judged,
    smoothed: Smoothed,
    sweeps: int,
    over: Callable[[], bool] = lambda: False,
) -> Smoothed:
    """Smoothed less where labels are determined by the columns: a marginal likelihood that takes
    them for drawn at random keeps the log-odds too small. By how much is cross-validated; not
    at all where the time is `over` before the end, nor where few rows are of the rarer class:
    held-out ones would be too few to tell.
    """
    looser = [each for each in SMOOTHING.looser if each <= SMOOTHING.looser_by * smoothed.typical]
    if not looser or not determined(*examples.residual(smoothed.w)):
        return smoothed
    counted = examples.y[examples.weights > 0.0] > 0.0
    rarer = min(int(counted.sum()), int((~counted).sum()))
    if rarer < SMOOTHING.rarest and not examples.differences:  # pairs are all better minus worse
        return smoothed
    rows = np.random.default_rng(0).permutation(examples.y.size)
    needed = min(SMOOTHING.folds, math.ceil(SMOOTHING.enough * SMOOTHING.folds / rows.size))
    parts = [np.sort(rows[fold :: SMOOTHING.folds]) for fold in range(needed)]
    best, known = smoothed.strengths, list[Floats]()
    for strength in looser:
        tried, lost, gained = smoothed.roughness.uniform((strength, strength)), [], np.zeros(0)
        for place, part in enumerate(parts):
            others = np.setdiff1d(rows, part)
            if place == len(known) and not over():
                known.append(_held_out(examples, smoothed, best, others, part, sweeps))
            if over():
                return smoothed
            lost.append(_held_out(examples, smoothed, tried, others, part, sweeps))
            gained = np.concatenate([gained, known[place] - lost[place]])
            if abs(gained.sum()) > SMOOTHING.clearly * math.sqrt(float(gained @ gained)):
                break
        if not gained.sum() > 0.0:
            break
        best, known = tried, lost
    if best is smoothed.strengths:
        return smoothed
    return replace(
        smooth(examples, smoothed.roughness, best, smoothed.w, sweeps, choose=False),
        freedom=smoothed.freedom,
        terms=smoothed.terms,
    )


def _held_out(
    examples: Judged,
    smoothed: Smoothed,
    strengths: Floats,
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
    sweeps: int,
) -> Floats:
    """The loss on each of other rows of a fit to some of them, times its weight."""
    some = examples.part(rows)
    if some is None:
        return np.full(others.size, math.inf)
    w = smooth(some, smoothed.roughness, strengths, smoothed.w, sweeps, choose=False).w
    z = np.asarray(examples.features[others] @ w)
    assert examples.row is not None
    lost = losses.values(examples.row, z, examples.y[others], 0.0)
    return np.asarray(examples.weights[others] * lost)


# -------------------------------------------------------------------------------------------------
# The model that would have been fitted without some of its examples.


def fit_without(
    examples: Judged,
    fitted: Smoothed,
    held: NDArray[np.bool_],
    known: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Parameters with the same smoothing, by steps from the fitted ones that begin with one matrix:
    exact for squared errors, nearly so for others; and the scores of all examples, without an
    offset. Where the matrix of all examples is `known`, with the curvatures at a point (without an
    offset), that of the held-out ones is taken from it.
    """
    weights = np.where(held, 0.0, examples.weights)
    share = float(weights.sum())
    used = replace(examples, weights=weights / share, curvature=None, _kept={})
    roughness, strengths, w = fitted.roughness, fitted.strengths / share, fitted.w
    X, y, row = examples.features, examples.y, examples.row

    def matrix() -> Floats:
        if known is None:
            return gram_of(X, used.weights * derivatives(row, used.predictions(w), y)[1])
        out = np.flatnonzero(held)
        others = X[out]
        curvatures = derivatives(row, np.asarray(others @ known[0]), y[out])[1]
        left = gram_of(others, examples.weights[out] * curvatures)
        np.subtract(known[1], left, out=left)
        left /= share
        return left

    steps, D = Steps(factored(matrix, roughness, strengths)), roughness.rows(strengths)
    for _ in range(1 if row is None else SMOOTHING.left_out_steps):
        slopes = derivatives(row, used.predictions(w), y)[0]
        slope = used.slope(w, slopes) + np.asarray(D.T @ (D @ w))
        before, w = w, accepted(used, roughness, strengths, w, w + steps.at(w, slope))
        if has_settled(before, w, SMOOTHING.settled_left_out):
            break
    z = used.predictions(w)
    return w, z if used.offset is None else z - used.offset
