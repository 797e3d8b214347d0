"""How strongly to smooth, chosen by generalised cross-validation on squared errors: no data are
held out, nothing is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from lighttouch import lattice
from lighttouch.estimators.model import AdditiveModel as PieceModel
from lighttouch.estimators.model import Term as Piece

Floats = NDArray[np.float64]
STRENGTHS = tuple(10.0 ** (power / 2.0) for power in range(-11, 3))
FIRST_CHOICE = (1e-3, 1e-2)
CAUTION = (
    1.2  # above 1: freedom counts more than the formula says, against choosing too little smoothing
)
SLOPE_SHARE = 0.03
RIDGE = 2.0  # examples' worth of pull towards 0 for parameters without neighbours


@dataclass(frozen=True)
class Penalties:
    """Roughness of calibrators, roughness of lattices, and the ridge that is always there."""

    calibrators: Any
    lattices: Any
    ridge: Any

    def total(self, strengths: tuple[float, float]) -> Any:
        return sparse.csr_matrix(
            strengths[0] * self.calibrators + strengths[1] * self.lattices + self.ridge
        )


def penalties(model: PieceModel, categorical: list[bool], examples: float) -> Penalties:
    blank = sparse.csr_matrix((1, 1))
    curves, lattices, ridge = [blank], [blank], [blank]
    for piece in model.terms:
        nothing = sparse.csr_matrix((piece.size, piece.size))
        loose = piece.calibrator and categorical[piece.columns[0]]
        curves.append(_curve_roughness(piece) if piece.calibrator and not loose else nothing)
        lattices.append(nothing if piece.calibrator else _lattice_roughness(piece))
        pull = np.full(piece.size, RIDGE / examples if loose else 0.1 * RIDGE / examples)
        if piece.calibrator:
            pull[-1] = RIDGE / examples
        ridge.append(sparse.diags(pull, format="csr"))
    return Penalties(
        *(sparse.block_diag(parts, format="csr") for parts in (curves, lattices, ridge))
    )


def _curve_roughness(piece: Piece) -> Any:
    """Squared second differences, and a little of the first, over the vertices that are not for
    missing cells.
    """
    count = piece.grid[0]
    first = np.diff(np.eye(count), axis=0)
    second = np.diff(np.eye(count), n=2, axis=0)
    roughness = np.zeros((piece.size, piece.size))
    roughness[:count, :count] = 0.01 * (first.T @ first) + second.T @ second
    return sparse.csr_matrix(roughness)


def _lattice_roughness(piece: Piece) -> Any:
    """How far the lattice is from a sum of straight lines: its bends along each axis, its twists
    over each pair, a little of its slopes.
    """
    grid = piece.grid
    twists, slopes = lattice.supermodular(grid).A, lattice.increasing(grid).A
    total = (
        twists.T @ twists
        + SLOPE_SHARE * (slopes.T @ slopes)
        + SLOPE_SHARE * sparse.identity(piece.size, format="csr")
    )
    for axis, size in enumerate(grid):
        if size > 2:
            bends = lattice.convex(grid, axis, interpolation="hypercube").A
            total = total + bends.T @ bends
    return total


@dataclass(frozen=True)
class SquaredProblem:
    """Least squares in Gram form: the weighted means of x x', x y and y^2."""

    gram: Floats
    moment: Floats
    energy: float
    examples: float

    def fit(self, penalty: Any) -> tuple[Floats, float]:
        """Parameters without rules, and their generalised cross-validation error."""
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
        freedom = w.size - float(
            inverse[low, high] @ entries.data
        )  # the trace of gram times inverse
        room = max(1.0 - CAUTION * freedom / self.examples, 0.02)
        return w, error / room**2


def _factor(H: Floats) -> Any:
    lift = 1e-10 * float(np.trace(H)) / H.shape[0]
    while True:
        try:
            shifted = H.copy()
            shifted.flat[:: H.shape[0] + 1] += lift
            return scipy.linalg.cho_factor(shifted, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            lift = max(10.0 * lift, 1e-300)


def choose(
    problem: SquaredProblem, roughness: Penalties, known: float | None = None
) -> tuple[float, float]:
    """Strengths for calibrators and lattices with the smallest error: down the hill on a grid of
    half powers of ten.

    With `known`, the strength for calibrators, only the one for lattices is looked for; without it,
    only the one for calibrators.
    """
    errors: dict[int, float] = {}

    def pair(place: int) -> tuple[float, float]:
        return (STRENGTHS[place], FIRST_CHOICE[1]) if known is None else (known, STRENGTHS[place])

    def error(place: int) -> float:
        if place not in errors:
            errors[place] = problem.fit(roughness.total(pair(place)))[1]
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
