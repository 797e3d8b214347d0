"""How strongly to smooth each term, on the loss that is trained: no data are held out.

Roughness is a sum of squares ||D w||^2 / 2; its rows D are differences of neighbouring parameters,
and every term has a strength of its own. Strengths maximise the marginal likelihood (REML) of the
quadratic model of the loss by the fixed point of MacKay (1992), Fellner (1986) and Schall (1991),
in the general form of Wood and Fasiolo (2017): a term whose parameters say less than noise would is
smoothed away, one that the data determine is left alone.

Models too large to factor have one strength for curves and one for lattices, by generalised
cross-validation (Golub, Heath and Wahba 1979) on a part of the examples, by conjugate gradients and
an estimate of the trace (Hutchinson 1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import lattice, losses
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.term_features import TermFeatures
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.projections.splitting import conjugate_gradients
from lighttouch.running import prepared
from lighttouch.solvers.quadratic_steps import gram

Floats = NDArray[np.float64]
Pair = tuple[float, float]
Key = tuple[tuple[int, ...], str]  # a term's columns, and which of its penalties

STRENGTHS = tuple(10.0 ** (power / 2.0) for power in range(-11, 3))
FIRST_CHOICE = (1e-3, 1e-2)
CAUTION = 1.2  # factor of the degrees of freedom: above 1, against too little smoothing
FIRST_DIFFERENCES = 0.1  # weight of a curve's first differences beside its second ones
SLOPE_SHARE = 0.03  # squared weight of a lattice's slopes beside its bends and twists
RIDGE = 2.0  # examples' worth of pull towards 0 for parameters without neighbours
PULL = 1e-7  # on every parameter, which keeps the matrix definite
LEAST_ROOM = 0.02  # of 1 - freedom / examples
LEAST_STRENGTH, MOST_STRENGTH = 1e-10, 10.0
BOLDNESS = 1.5  # power of the factor by which a strength changes: fixed points are slow
LARGEST_CHANGE = 100.0  # of a strength at once
LEAST_FREEDOM = 1e-3  # of a term, in parameters: below, it counts as smoothed away
HALVINGS = 20  # of a step that does not lower the objective
CROWDED = 0.5  # degrees of freedom per example, above which strengths begin larger
STIFFER = 10.0  # the factor by which they do
DETERMINED = 0.3  # mean squared residual in standard deviations, below which labels are not random
FOLDS = 3  # of cross-validation
LOOSER = (1e-4, 1e-5)  # strengths of all terms that are tried one after the other
STALE = 0.2  # change of the weights, relative, from which a Gram matrix is formed anew
PROBES = 2  # random vectors of the trace estimate; its error is about sqrt(2 / (probes * freedom))
TRACE_RESIDUAL = 0.01  # of conjugate gradients, relative
TRACE_STEPS = 100
JUDGED_ENTRIES = 2e6  # of the feature matrix by which a large model's smoothing is chosen
JUDGED_DENSE_ENTRIES = 1e7  # of the same by a Gram matrix: 120 MB
JUDGED_PRODUCTS = 4e8  # of entries of the same row in a Gram matrix: about a second
LEAST_JUDGED = 1000  # rows


@dataclass(frozen=True)
class Penalty:
    """Rows of differences of one term's parameters, whose strength is chosen."""

    key: Key
    start: int  # of the term's parameters
    rows: Any
    first: float  # the strength to begin with
    lattice: bool = False
    categories: bool = False

    @property
    def square(self) -> Any:
        """D'D."""
        return prepared(self.rows, "square", lambda: sparse.coo_matrix(self.rows.T @ self.rows))

    def size_of(self, w: Floats) -> float:
        """||D w||^2."""
        part = self.rows @ w[self.start : self.start + self.rows.shape[1]]
        return float(part @ part)


@dataclass(frozen=True)
class Roughness:
    """The penalties of all terms, and the small pull that is always there."""

    penalties: list[Penalty]
    dimension: int
    pull: Floats

    def rows(self, strengths: Floats) -> Any:
        """D: the penalty is ||D w||^2 / 2, and PULL / 2 ||w||^2 besides."""
        parts = [
            _wide(math.sqrt(strength) * each.rows, each.start, self.dimension)
            for each, strength in zip(self.penalties, strengths, strict=True)
        ]
        return sparse.vstack([*parts, sparse.diags(np.sqrt(self.pull - PULL))], format="csr")

    @cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
        """Rows, columns and values of D'D of every penalty, and where each penalty begins."""
        squares = [each.square for each in self.penalties]
        starts = [each.start for each in self.penalties]
        rows = [square.row + start for square, start in zip(squares, starts, strict=True)]
        columns = [square.col + start for square, start in zip(squares, starts, strict=True)]
        begins = np.cumsum([0] + [square.nnz for square in squares])[:-1]
        return (
            np.concatenate(rows).astype(np.int64),
            np.concatenate(columns).astype(np.int64),
            np.concatenate([square.data for square in squares]),
            begins.astype(np.int64),
        )

    def value(self, w: Floats, strengths: Floats) -> float:
        """||D w||^2 / 2."""
        sizes = [each.size_of(w) for each in self.penalties]
        return 0.5 * (float(strengths @ np.array(sizes)) + float(self.pull @ np.square(w)))

    def add_to(self, matrix: Floats, strengths: Floats) -> None:
        """Add D'D."""
        matrix.flat[:: self.dimension + 1] += self.pull
        if self.penalties:
            rows, columns, values, _ = self._entries
            counts = [each.square.nnz for each in self.penalties]
            np.add.at(matrix, (rows, columns), np.repeat(strengths, counts) * values)

    def traces(self, inverse: Floats) -> Floats:
        """tr(inverse D'D) for every penalty; of `inverse` the lower triangle is read."""
        if not self.penalties:
            return np.zeros(0)
        rows, columns, values, begins = self._entries
        found = inverse[np.maximum(rows, columns), np.minimum(rows, columns)] * values
        return np.asarray(np.add.reduceat(found, begins))

    def own_traces(self, strengths: Floats) -> Floats:
        """strength * tr((the term's whole penalty)^-1 D'D): how many parameters each penalty would
        hold if there were no data.

        Slopes and bends of a curve of n vertices share n - 1 directions; in terms of its slopes,
        bends are first differences, whose squares have the eigenvalues below.
        """
        out = np.empty(len(self.penalties))
        for place, each in enumerate(self.penalties):
            if each.key[1] == "bends":
                count = each.rows.shape[0] + 1  # slopes
                values = 4.0 * np.square(np.sin(np.pi * np.arange(count) / (2.0 * count)))
                bends, slopes = strengths[place] * values, strengths[place + 1]
                out[place] = np.sum(bends / (bends + slopes))
                out[place + 1] = np.sum(slopes / (bends + slopes))
            elif each.key[1] != "slopes":
                out[place] = each.rows.shape[1]
        return out

    def begin(self, known: dict[Key, float]) -> Floats:
        """Strengths to begin with: those known already, first choices for others."""
        return np.array([known.get(each.key, each.first) for each in self.penalties])

    def known(self, strengths: Floats) -> dict[Key, float]:
        return {each.key: float(s) for each, s in zip(self.penalties, strengths, strict=True)}

    def uniform(self, pair: Pair) -> Floats:
        """One strength for all curves and one for all lattices; categories keep their own."""
        return np.array(
            [
                each.first
                if each.categories
                else pair[1]
                if each.lattice
                else pair[0] * (FIRST_DIFFERENCES**2 if each.key[1] == "slopes" else 1.0)
                for each in self.penalties
            ]
        )

    def typical(self, strengths: Floats) -> Pair:
        """The geometric mean of the strengths of curves' bends, and of lattices."""
        found = []
        for kind, none in zip(("bends", "lattice"), FIRST_CHOICE, strict=True):
            chosen = [
                s for each, s in zip(self.penalties, strengths, strict=True) if each.key[1] == kind
            ]
            logs = np.log(np.maximum(chosen, LEAST_STRENGTH))
            found.append(float(np.exp(np.mean(logs))) if chosen else none)
        return found[0], found[1]


def _wide(rows: Any, start: int, dimension: int) -> Any:
    rows = sparse.csr_matrix(rows)
    shape = (rows.shape[0], dimension)
    return sparse.csr_matrix((rows.data, rows.indices + start, rows.indptr), shape=shape)


def roughness_of(model: AdditiveModel, categorical: list[bool], examples: float) -> Roughness:
    pull = np.full(model.dimension, PULL)
    penalties = []
    for place, term in enumerate(model.terms):
        start = int(model.starts[place])
        if term.calibrator:
            pull[start + term.size - 1] = RIDGE / examples  # the vertex of missing cells
        if term.calibrator and categorical[term.columns[0]]:
            rows = sparse.eye(term.size - 1, term.size, format="csr")
            key = (term.columns, "levels")
            penalties.append(Penalty(key, start, rows, RIDGE / examples, categories=True))
        elif term.calibrator:
            penalties += _curve_penalties(term, start)
        else:
            key = (term.columns, "lattice")
            first = FIRST_CHOICE[1]
            penalties.append(Penalty(key, start, _lattice_rows(term.grid), first, lattice=True))
    return Roughness(penalties, model.dimension, pull)


def _curve_penalties(term: Term, start: int) -> list[Penalty]:
    """Second and first differences over the vertices that are not for missing cells."""
    count = term.grid[0]
    slopes = FIRST_CHOICE[0] * FIRST_DIFFERENCES**2
    if count < 2:
        return []
    if count == 2:
        return [Penalty((term.columns, "line"), start, _differences(2, 1), slopes)]
    return [
        Penalty((term.columns, "bends"), start, _differences(count, 2), FIRST_CHOICE[0]),
        Penalty((term.columns, "slopes"), start, _differences(count, 1), slopes),
    ]


@lru_cache(maxsize=256)
def _differences(count: int, order: int) -> Any:
    """Of neighbours among the first `count` of one more parameters."""
    rows = np.zeros((count - order, count + 1))
    rows[:, :count] = np.diff(np.eye(count), n=order, axis=0)
    return sparse.csr_matrix(rows)


@lru_cache(maxsize=256)
def _lattice_rows(grid: tuple[int, ...]) -> Any:
    """How far the lattice is from a sum of straight lines: its bends along each axis, its twists
    over each pair of axes, a little of its slopes.
    """
    little = math.sqrt(SLOPE_SHARE)
    parts = [
        lattice.supermodular(grid).A,
        little * lattice.increasing(grid).A,
        little * sparse.identity(math.prod(grid), format="csr"),
    ]
    parts += [
        lattice.convex(grid, axis, interpolation="hypercube").A
        for axis, size in enumerate(grid)
        if size > 2
    ]
    return sparse.vstack(parts, format="csr")


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
    _kept: dict[str, Floats] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _squared(self) -> tuple[Floats, Floats, float]:
        moment = np.asarray(self.features.T @ (self.weights * self.y))
        return self._gram(self.weights), moment, float(self.weights @ np.square(self.y))

    def _gram(self, weights: Floats) -> Floats:
        stored = isinstance(self.features, TermFeatures)
        found = self.features.gram(weights) if stored else gram(self.features, weights)
        if self.differences:
            found[0, 0] = 1.0  # the intercept of differences is nothing; keep the matrix definite
        return found

    def quadratic(self, w: Floats) -> tuple[Floats, Floats]:
        """H and c of the quadratic model w'Hw / 2 - c.w of the mean loss at w."""
        if self.row is None:
            return self._squared[:2]
        z = np.asarray(self.features @ w)
        slopes, curvatures = losses.quadratic(self.row, z, self.y, 0.0)
        H = self._gram_near(self.weights * curvatures)
        return H, H @ w - np.asarray(self.features.T @ (self.weights * slopes))

    def _gram_near(self, curved: Floats) -> Floats:
        """The Gram matrix for these weights, or for earlier ones that are near: steps with it still
        go downhill, because the slopes are exact (a chord method).
        """
        known = self._kept.get("weights", self.curvature)
        if known is None or np.abs(curved - known).sum() > STALE * known.sum():
            known = curved
        if self._kept.get("weights") is not known:
            self._kept.update(weights=known, gram=self._gram(known))
        return self._kept["gram"]

    @property
    def last_curvature(self) -> Floats | None:
        """The weights of the last Gram matrix."""
        return self._kept.get("weights", self.curvature)

    def value(self, w: Floats) -> float:
        """The mean loss, of losses other than squared errors."""
        assert self.row is not None
        z = np.asarray(self.features @ w)
        return float(self.weights @ losses.values(self.row, z, self.y, 0.0))

    def noise(self, w: Floats, freedom: float) -> float:
        """The variance of an example's noise, in units of the loss; 1 for the logistic loss, whose
        variance is known.
        """
        room = max(1.0 - freedom / self.count, LEAST_ROOM)
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
            count=self.count * rows.size / self.y.size,
            curvature=None,
            _kept={},
        )

    def residual(self, w: Floats) -> tuple[Floats, Floats]:
        """What the quadratic model at w leaves over for every example, and its weight there."""
        z = np.asarray(self.features @ w)
        if self.row is None:
            return self.y - z, self.weights
        slopes, curvatures = losses.quadratic(self.row, z, self.y, 0.0)
        return -slopes / curvatures, self.weights * curvatures


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
) -> Smoothed:
    """Newton steps without rules, each followed by a step of the strengths, where they are chosen;
    with `last` one more with the last strengths.
    """
    w, strengths = start, strengths.copy()
    freedom, held = 0.0, None
    if choose and w.size > CROWDED * examples.count:
        strengths = _stiffened(examples, roughness, strengths, w)
    for _ in range(sweeps):
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
        held = np.maximum(roughness.own_traces(strengths) - lost, LEAST_FREEDOM)
        sizes = np.array([each.size_of(w) for each in roughness.penalties])
        wanted = examples.noise(w, freedom) / examples.count * held / np.maximum(sizes, 1e-300)
        change = np.clip((wanted / strengths) ** BOLDNESS, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)
        strengths = np.clip(strengths * change, LEAST_STRENGTH, MOST_STRENGTH)
    if choose and last:
        H, c = examples.quadratic(w)
        H = H.copy()
        roughness.add_to(H, strengths)
        proposed = scipy.linalg.cho_solve(_factor(H), c, check_finite=False)
        w = _accepted(examples, roughness, strengths, w, proposed)
    squares = examples.quadratic(w)[0] if examples.row is None and last else None
    return Smoothed(w, roughness, strengths, freedom, held, squares)


def _stiffened(examples: Examples, roughness: Roughness, strengths: Floats, w: Floats) -> Floats:
    """Strengths under which the model cannot follow every example: where parameters are many, the
    fixed point that is reached from below is the one without noise.
    """
    squares = examples.quadratic(w)[0]
    while strengths.min(initial=MOST_STRENGTH) < MOST_STRENGTH:
        H = squares.copy()
        roughness.add_to(H, strengths)
        inverse = scipy.linalg.lapack.dpotri(_factor(H)[0], lower=1)[0]
        lost = float(strengths @ roughness.traces(inverse))
        lost += float(roughness.pull @ inverse.diagonal())
        if w.size - lost <= CROWDED * examples.count:
            break
        strengths = np.minimum(STIFFER * strengths, MOST_STRENGTH)
    return strengths


def determined(residual: Floats, weights: Floats) -> bool:
    """Whether labels are hardly random: what is left over is much less than their variance."""
    return float(weights @ np.square(residual)) <= DETERMINED


def loosened(examples: Examples, smoothed: Smoothed, sweeps: int) -> Smoothed:
    """Smoothed less where labels are determined by the columns: a marginal likelihood that takes
    them for drawn at random keeps the log-odds too small. By how much is cross-validated.
    """
    if not determined(*examples.residual(smoothed.w)):
        return smoothed
    rows = np.random.default_rng(0).permutation(examples.y.size)
    parts = [np.sort(rows[fold::FOLDS]) for fold in range(FOLDS)]

    def error(strengths: Floats) -> float:
        return sum(
            _held_out(examples, smoothed, strengths, np.setdiff1d(rows, part), part, sweeps)
            for part in parts
        )

    best, least = smoothed.strengths, error(smoothed.strengths)
    for strength in LOOSER:
        tried = smoothed.roughness.uniform((strength, strength))
        found = error(tried)
        if found >= least:
            break
        best, least = tried, found
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
) -> float:
    """The loss on other rows of a fit to some of them."""
    some = examples.part(rows)
    if some is None:
        return math.inf
    w = smooth(some, smoothed.roughness, strengths, smoothed.w, sweeps, choose=False).w
    z = np.asarray(examples.features[others] @ w)
    assert examples.row is not None
    lost = losses.values(examples.row, z, examples.y[others], 0.0)
    return float(examples.weights[others] @ lost)


def _accepted(
    examples: Examples, roughness: Roughness, strengths: Floats, w: Floats, proposed: Floats
) -> Floats:
    """The proposed point, or part of the way to it where the objective would rise."""
    if examples.row is None:
        return proposed

    def value(at: Floats) -> float:
        return examples.value(at) + roughness.value(at, strengths)

    here, share = value(w), 1.0
    for _ in range(HALVINGS):
        there = w + share * (proposed - w)
        if value(there) <= here:
            return there
        share *= 0.5
    return w


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
            return np.asarray(transposed @ (self.weights * (X @ w)) + back @ (smoothing @ w))

        squares = np.asarray(X.multiply(X).T @ self.weights).ravel()
        diagonal = squares + np.asarray(smoothing.multiply(smoothing).sum(axis=0)).ravel()

        def solve(right: Floats) -> Floats:
            nothing = np.zeros(right.size)
            return conjugate_gradients(apply, right, nothing, diagonal, TRACE_RESIDUAL, TRACE_STEPS)

        w = solve(np.asarray(transposed @ (self.weights * self.y)))
        freedom = 0.0
        for probe in np.random.default_rng(0).choice([-1.0, 1.0], size=(PROBES, w.size)):
            image = np.asarray(transposed @ (self.weights * (X @ probe)))
            freedom += float(image @ solve(probe)) / PROBES
        error = float(self.weights @ np.square(self.y - X @ w))
        return w, cross_validation_error(error, freedom, self.share * self.examples)


def cross_validation_error(error: float, freedom: float, examples: float) -> float:
    return error / max(1.0 - CAUTION * freedom / examples, LEAST_ROOM) ** 2


def most_judged(entries: int, dense: bool) -> int:
    """The most rows by which smoothing is chosen, of so many entries each: so many that it takes
    seconds, and that they are held in memory at once.
    """
    affordable = JUDGED_ENTRIES / entries
    if dense:
        affordable = min(JUDGED_PRODUCTS / entries**2, JUDGED_DENSE_ENTRIES / entries)
    return int(max(LEAST_JUDGED, affordable))


def _factor(H: Floats) -> Any:
    lift = 1e-10 * float(np.trace(H)) / H.shape[0]
    while True:
        try:
            shifted = H.copy()
            shifted.flat[:: H.shape[0] + 1] += lift
            return scipy.linalg.cho_factor(shifted, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            lift = max(10.0 * lift, 1e-300)


def read_strengths(wanted: Any) -> Pair | None:
    """The pair of strengths that the user gave; None for "auto"."""
    if isinstance(wanted, str):
        if wanted != "auto":
            raise ValueError(
                "smoothing must be 'auto', a number or a pair of numbers (calibrators, "
                f"lattices), got {wanted!r}"
            )
        return None
    pair = np.broadcast_to(np.asarray(wanted, dtype=np.float64), 2)
    if not (np.isfinite(pair).all() and (pair >= 0.0).all()):
        raise ValueError(f"smoothing must not be negative, got {wanted!r}")
    return float(pair[0]), float(pair[1])


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
