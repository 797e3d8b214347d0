"""How strongly to smooth each term, on the loss that is trained.

Strengths of the roughness of `penalties.py` maximise the marginal likelihood; where labels are
determined, less is tried by cross-validation. Models too large to factor have two strengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import losses
from lighttouch.arrays import EPSILON, Cholesky, Floats, Scratch, zeros
from lighttouch.estimators.costs import FIRST_CHOICE, PULL, SMOOTHING, STRENGTHS
from lighttouch.estimators.model import Features, FeaturesMadeAnew
from lighttouch.estimators.penalties import Pair, Roughness
from lighttouch.kernels.numerics.matrices import add_products, add_transposed, mirror
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.objectives import FactoredSquares
from lighttouch.projections.splitting import conjugate_gradients
from lighttouch.running import check_deadline
from lighttouch.solvers.quadratic_model import add_gram, gram


@dataclass(frozen=True)
class Examples:
    """Rows of features with targets and weights that add up to 1, for one loss.

    `row` is the loss that is trained where it is smooth; None for squared errors.
    """

    features: Any
    y: Floats
    weights: Floats
    row: LossRow | None
    count: float  # how many examples they are worth
    differences: bool = False  # of two rows each: without an intercept
    curvature: Floats | None = None  # weights to begin with: a Gram matrix near the present one
    sums: SquaredSums | None = None  # of squared errors; then there are no features
    offset: Floats | None = None  # what is added to the predictions, of losses other than squares
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _squared(self) -> tuple[Floats, Floats, float]:
        if self.sums is not None:
            return self.sums.squares, self.sums.moment, self.sums.energy
        moment = self.back(self.weights * self.y)
        return self._gram(self.weights), moment, float(self.weights @ np.square(self.y))

    def _gram(self, weights: Floats) -> Floats:
        found = _gram_of(self.features, weights)
        if self.differences:
            found[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
        return found

    def quadratic(self, w: Floats) -> tuple[Floats, Floats]:
        """H and c of the quadratic model w'Hw / 2 - c.w of the mean loss at w."""
        if self.row is None:
            return self._squared[:2]
        slopes, curvatures = losses.quadratic(self.row, self.predictions(w), self.y, 0.0)
        H = self._gram_near(self.weights * curvatures, w)
        return H, H @ w - self.slope(w, slopes)

    @cached_property
    def _rows(self) -> tuple[Any, Any] | None:
        """Parameters and values of every row, where all rows have as many: SciPy takes as long to
        find out what to do as to do it where rows are few.
        """
        X = self.features
        if not sparse.isspmatrix_csr(X) or X.nnz == 0 or (np.diff(X.indptr) != X.indptr[1]).any():
            return None
        return X.indices.reshape(X.shape[0], -1), X.data.reshape(X.shape[0], -1)

    def times(self, w: Floats) -> Floats:
        """X w."""
        if self._rows is None:
            return np.asarray(self.features @ w)
        out = np.zeros(self.features.shape[0])
        add_products(*self._rows, w, out)
        return out

    def back(self, v: Floats) -> Floats:
        """X'v."""
        if self._rows is None:
            return np.asarray(self.features.T @ v)
        out = np.zeros(self.features.shape[1])
        add_transposed(*self._rows, v, out)
        return out

    def slope(self, w: Floats, slopes: Floats) -> Floats:
        """The slope of the mean loss at a point where that of every example is `slopes`."""
        known: Floats | None = self._kept.get("slope") if self._kept.get("point") is w else None
        return self.back(self.weights * slopes) if known is None else known

    def looked_ahead(self, z: Floats, move: Floats) -> tuple[Floats, Floats | None]:
        """How a move changes the predictions z, and the slope at its end; None where that takes a
        pass of its own, which a shorter move would not need.
        """
        X = self.features
        if not isinstance(X, FeaturesMadeAnew):
            return self.times(move), None
        return X.there_and_back(move, lambda moved, here: self._pull(z[here] + moved, here))

    def _pull(self, z: Floats, here: slice) -> Floats:
        """Weighted slopes of the loss of some examples at predictions z."""
        return self.weights[here] * _derivatives(self.row, z, self.y[here])[0]

    def _gram_near(self, curved: Floats, w: Floats) -> Floats:
        """The Gram matrix for these weights, or for earlier ones that are near: steps with it still
        go downhill, because the slopes are exact (a chord method).
        """
        known = self._kept.get("weights", self.curvature)
        if known is None or np.abs(curved - known).sum() > SMOOTHING.stale * known.sum():
            known = curved
            self._kept["reference"] = w
        if self._kept.get("weights") is not known:
            self._kept.update(weights=known, gram=self._gram(known))
        found: Floats = self._kept["gram"]
        return found

    @property
    def near(self) -> tuple[Floats, Floats] | None:
        """The last Gram matrix, after the point whose curvatures it has; None if unknown."""
        if self.row is None or self.differences or "reference" not in self._kept:
            return None
        return self._kept["reference"], self._kept["gram"]

    @property
    def last_curvature(self) -> Floats | None:
        """The weights of the last Gram matrix."""
        return self._kept.get("weights", self.curvature)

    def objective(
        self, w: Floats, predictions: Floats, roughness: Roughness, strengths: Floats
    ) -> float:
        """The mean loss and the roughness at a point with these predictions, of losses other than
        squared errors; of the point that was asked for last once. Strengths belong to one
        roughness, predictions to one point.
        """
        assert self.row is not None
        point, smoothed, value = self._kept.get("objective", (None, None, 0.0))
        if point is not w or smoothed is not strengths:
            loss = float(self.weights @ losses.values(self.row, predictions, self.y, 0.0))
            value = loss + roughness.value(w, strengths)
            self._kept["objective"] = w, strengths, value
        return float(value)

    def predictions(self, w: Floats) -> Floats:
        """X w and the offset, of the point that was asked for last once; where features are made
        for it, its slope too.
        """
        if self._kept.get("point") is not w:
            nothing = np.zeros(self.y.size) if self.offset is None else self.offset
            moved, slope = self.looked_ahead(nothing, w)
            self.remember(w, moved if self.offset is None else moved + self.offset, slope)
        found: Floats = self._kept["predictions"]
        return found

    def remember(self, w: Floats, predictions: Floats, slope: Floats | None = None) -> None:
        """The predictions, and maybe the slope, of the point that will be asked for next."""
        self._kept.update(point=w, predictions=predictions, slope=slope)

    def noise(self, w: Floats, freedom: float) -> float:
        """The variance of an example's noise, in units of the loss; 1 for the logistic loss, whose
        variance is known.
        """
        room = max(1.0 - freedom / self.count, SMOOTHING.least_room)
        if self.row is None:
            H, c, energy = self._squared
            error = energy - 2.0 * float(w @ c) + float(w @ (H @ w))
            return max(error, 1e-12 * energy) / room
        if self.row.name == "logistic":
            return 1.0
        residual, weights = self.residual(w)
        return float(weights @ np.square(residual)) / room

    def part(self, rows: NDArray[np.int64]) -> Examples | None:
        """Some of the examples; None where they have no weight."""
        total = float(self.weights[rows].sum())
        if total == 0.0:
            return None
        return replace(
            self,
            features=self.features[rows],
            y=self.y[rows],
            weights=self.weights[rows] / total,
            offset=None if self.offset is None else self.offset[rows],
            count=self.count * rows.size / self.y.size,
            curvature=None,
            _kept={},
        )

    def residual(self, w: Floats) -> tuple[Floats, Floats]:
        """What the quadratic model at w leaves over for every example, and its weight there."""
        z = self.predictions(w)
        if self.row is None:
            return self.y - z, self.weights
        slopes, curvatures = losses.quadratic(self.row, z, self.y, 0.0)
        curvatures = np.maximum(curvatures, SMOOTHING.least_curvature)
        return -slopes / curvatures, self.weights * curvatures


def _gram_of(X: Any, weights: Floats) -> Floats:
    """X' diag(weights) X."""
    return X.gram(weights) if isinstance(X, Features) else gram(X, weights)


@dataclass(frozen=True)
class SquaredSums:
    """X'SX, X'Sy and y'Sy for weights S."""

    squares: Floats
    moment: Floats
    energy: float
    examples: int

    @classmethod
    def over(cls, parts: Iterable[tuple[Any, Floats, Floats]]) -> SquaredSums:
        """Of features, targets and weights that come in parts."""
        squares, moment, energy, examples = np.zeros((0, 0)), np.zeros(0), 0.0, 0
        for X, y, weights in parts:
            if not squares.size:
                squares, moment = zeros(X.shape[1], X.shape[1]), np.zeros(X.shape[1])
            add_gram(X, weights, squares)
            moment += X.T @ (weights * y)
            energy += float(weights @ np.square(y))
            examples += y.size
            del X  # before the features of the next part are made
        mirror(squares)
        return cls(squares, moment, energy, examples)

    def objective(self, D: Any, pull: float) -> FactoredSquares:
        """Half of these squares, with ||D w||^2 / 2 + pull ||w||^2 / 2."""
        return FactoredSquares(self.squares, self.moment, self.energy, self.examples, D, pull)


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
    examples: Examples,
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
    examples: Examples, roughness: Roughness, strengths: Floats, w: Floats, proposed: Floats
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
    examples: Examples,
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
    examples: Examples,
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
    examples: Examples,
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
            return _gram_of(X, used.weights * _derivatives(row, used.predictions(w), y)[1])
        out = np.flatnonzero(held)
        others = X[out]
        curvatures = _derivatives(row, np.asarray(others @ known[0]), y[out])[1]
        left = _gram_of(others, examples.weights[out] * curvatures)
        np.subtract(known[1], left, out=left)
        left /= share
        return left

    steps, D = Steps(factored(matrix, roughness, strengths)), roughness.rows(strengths)
    for _ in range(1 if row is None else SMOOTHING.left_out_steps):
        slopes = _derivatives(row, used.predictions(w), y)[0]
        slope = used.slope(w, slopes) + np.asarray(D.T @ (D @ w))
        before, w = w, accepted(used, roughness, strengths, w, w + steps.at(w, slope))
        if has_settled(before, w, SMOOTHING.settled_left_out):
            break
    z = used.predictions(w)
    return w, z if used.offset is None else z - used.offset


def _derivatives(row: LossRow | None, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Slopes and curvatures of the loss at predictions z; None for squared errors."""
    return (z - y, np.ones(y.size)) if row is None else losses.quadratic(row, z, y, 0.0)


# -------------------------------------------------------------------------------------------------
# Models too large to factor: one strength for curves and one for lattices, by generalised
# cross-validation (Golub, Heath and Wahba 1979) on a part of the examples, by conjugate gradients
# and an estimate of the trace (Hutchinson 1989).


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


def most_judged(entries: int, dense: bool) -> int:
    """The most rows by which smoothing is chosen, of so many entries each: so many that it takes
    seconds, and that they are held in memory at once.
    """
    affordable = SMOOTHING.judged_entries / entries
    if dense:
        affordable = min(
            SMOOTHING.judged_products / entries**2, SMOOTHING.judged_dense_entries / entries
        )
    return int(max(SMOOTHING.least_judged, affordable))


def choose(problem: SampledErrors, roughness: Roughness, lattices: bool) -> Pair:
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
