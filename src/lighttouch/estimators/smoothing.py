"""How strongly to smooth, chosen by generalised cross-validation (Golub, Heath and Wahba 1979) on
squared errors: no data are held out.

Roughness is a sum of squares ||D w||^2 / 2; its rows D are differences of neighbouring parameters.
Models that are small enough are judged by a factor of the Gram matrix. Larger ones are judged on a
part of the examples by conjugate gradients, with an estimate of the trace (Hutchinson 1989).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import lattice
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.projections.splitting import conjugate_gradients

Floats = NDArray[np.float64]
STRENGTHS = tuple(10.0 ** (power / 2.0) for power in range(-11, 3))
FIRST_CHOICE = (1e-3, 1e-2)
CAUTION = 1.2  # factor of the degrees of freedom: above 1, against too little smoothing
FIRST_DIFFERENCES = 0.1  # weight of a curve's first differences beside its second ones
SLOPE_SHARE = 0.03  # squared weight of a lattice's slopes beside its bends and twists
RIDGE = 2.0  # examples' worth of pull towards 0 for parameters without neighbours
CORNER = 1e-9  # pull on the intercept, which keeps the matrix definite
LEAST_ROOM = 0.02  # of 1 - freedom / examples
PROBES = 2  # random vectors of the trace estimate; its error is about sqrt(2 / (probes * freedom))
TRACE_RESIDUAL = 0.01  # of conjugate gradients, relative
TRACE_STEPS = 100
JUDGED_ENTRIES = 2e6  # of the feature matrix by which a large model's smoothing is chosen
JUDGED_PRODUCTS = 2e9  # of entries of the same row in a Gram matrix: about 15 seconds
LEAST_JUDGED = 1000  # rows


@dataclass(frozen=True)
class Roughness:
    """Rows of differences: of calibrators, of lattices, and the ridge that is always there."""

    calibrators: Any
    lattices: Any
    ridge: Any

    def rows(self, strengths: tuple[float, float]) -> Any:
        """D: the penalty is ||D w||^2 / 2."""
        parts = (
            math.sqrt(strengths[0]) * self.calibrators,
            math.sqrt(strengths[1]) * self.lattices,
            self.ridge,
        )
        return sparse.vstack(parts, format="csr")

    def total(self, strengths: tuple[float, float]) -> Any:
        """D'D."""
        curves, lattices, ridge = self._squares
        return sparse.csr_matrix(strengths[0] * curves + strengths[1] * lattices + ridge)

    @cached_property
    def _squares(self) -> list[Any]:
        return [sparse.csr_matrix(D.T @ D) for D in (self.calibrators, self.lattices, self.ridge)]


def roughness_of(model: AdditiveModel, categorical: list[bool], examples: float) -> Roughness:
    blank = sparse.csr_matrix((0, 1))
    corner = sparse.csr_matrix([[math.sqrt(CORNER)]])
    curves, lattices, ridge = [blank], [blank], [corner]
    for piece in model.terms:
        nothing = sparse.csr_matrix((0, piece.size))
        loose = piece.calibrator and categorical[piece.columns[0]]
        curves.append(_curve_rows(piece) if piece.calibrator and not loose else nothing)
        lattices.append(nothing if piece.calibrator else _lattice_rows(piece))
        pull = np.full(piece.size, RIDGE / examples if loose else 0.1 * RIDGE / examples)
        if piece.calibrator:
            pull[-1] = RIDGE / examples
        ridge.append(sparse.diags(np.sqrt(pull), format="csr"))
    return Roughness(
        *(sparse.block_diag(parts, format="csr") for parts in (curves, lattices, ridge))
    )


def _curve_rows(piece: Term) -> Any:
    """Second differences, and a little of the first, over the vertices that are not for missing
    cells.
    """
    count = piece.grid[0]
    rows = np.zeros((2 * count - 3 if count > 1 else 0, piece.size))
    rows[: count - 1, :count] = FIRST_DIFFERENCES * np.diff(np.eye(count), axis=0)
    rows[count - 1 :, :count] = np.diff(np.eye(count), n=2, axis=0)
    return sparse.csr_matrix(rows)


def _lattice_rows(piece: Term) -> Any:
    """How far the lattice is from a sum of straight lines: its bends along each axis, its twists
    over each pair of axes, a little of its slopes.
    """
    grid = piece.grid
    little = math.sqrt(SLOPE_SHARE)
    parts = [
        lattice.supermodular(grid).A,
        little * lattice.increasing(grid).A,
        little * sparse.identity(piece.size, format="csr"),
    ]
    parts += [
        lattice.convex(grid, axis, interpolation="hypercube").A
        for axis, size in enumerate(grid)
        if size > 2
    ]
    return sparse.vstack(parts, format="csr")


class SquaredErrors(Protocol):
    """Least squares whose smoothing can be judged."""

    def fit(self, roughness: Roughness, strengths: tuple[float, float]) -> tuple[Floats, float]:
        """Parameters without rules, and their generalised cross-validation error."""


@dataclass(frozen=True)
class GramErrors:
    """In Gram form: the weighted means of x x', x y and y^2."""

    gram: Floats
    moment: Floats
    energy: float
    examples: float
    share: float = 1.0  # of the examples that the means are over: see `SampledErrors`

    def fit(self, roughness: Roughness, strengths: tuple[float, float]) -> tuple[Floats, float]:
        penalty = roughness.total(strengths) / self.share
        total = self.gram + np.asarray(penalty.todense())
        factor = _factor(total)
        w = scipy.linalg.cho_solve(factor, self.moment, check_finite=False)
        error = max(
            self.energy - 2.0 * float(w @ self.moment) + float(w @ (self.gram @ w)),
            1e-12 * self.energy,
        )
        inverse = scipy.linalg.lapack.dpotri(factor[0], lower=1)[0]
        entries = penalty.tocoo()
        low, high = np.maximum(entries.row, entries.col), np.minimum(entries.row, entries.col)
        freedom = w.size - float(inverse[low, high] @ entries.data)  # tr(gram total^-1)
        return w, cross_validation_error(error, freedom, self.share * self.examples)


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

    def fit(self, roughness: Roughness, strengths: tuple[float, float]) -> tuple[Floats, float]:
        D = roughness.rows(strengths)
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


def judged_rows(features: Any, weights: Floats, dense: bool, rng: np.random.Generator) -> Any:
    """The rows by which smoothing is chosen: all of them, or so many that it takes seconds."""
    rows = features.shape[0]
    per_row = max(1.0, features.nnz / rows)
    affordable = JUDGED_PRODUCTS / per_row**2 if dense else JUDGED_ENTRIES / per_row
    if rows <= max(LEAST_JUDGED, affordable):
        return slice(None)
    chosen = np.sort(rng.choice(rows, int(max(LEAST_JUDGED, affordable)), replace=False))
    return chosen if weights[chosen].any() else slice(None)


def _factor(H: Floats) -> Any:
    lift = 1e-10 * float(np.trace(H)) / H.shape[0]
    while True:
        try:
            shifted = H.copy()
            shifted.flat[:: H.shape[0] + 1] += lift
            return scipy.linalg.cho_factor(shifted, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            lift = max(10.0 * lift, 1e-300)


def read_strengths(wanted: Any) -> tuple[float, float] | None:
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


def choose(
    problem: SquaredErrors, roughness: Roughness, known: float | None = None
) -> tuple[float, float]:
    """Strengths for calibrators and lattices with the smallest error: downhill on a grid of half
    powers of ten.

    With `known`, the strength for calibrators, only the one for lattices is looked for; without it,
    only the one for calibrators.
    """
    errors: dict[int, float] = {}

    def pair(place: int) -> tuple[float, float]:
        return (STRENGTHS[place], FIRST_CHOICE[1]) if known is None else (known, STRENGTHS[place])

    def error(place: int) -> float:
        if place not in errors:
            errors[place] = problem.fit(roughness, pair(place))[1]
        return errors[place]

    first = FIRST_CHOICE[0] if known is None else FIRST_CHOICE[1]
    place = int(np.argmin([abs(np.log(each / first)) for each in STRENGTHS]))
    stride = 2
    while stride:
        best = min(
            (k for k in (place, place - stride, place + stride) if 0 <= k < len(STRENGTHS)),
            key=error,
        )
        stride -= best == place
        place = best
    return pair(place)
