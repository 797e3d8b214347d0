"""The minimum of a dense quadratic under sparse rows, by a primal-dual interior point.

Mehrotra 1992, "On the implementation of a primal-dual interior point method". With slacks s and
multipliers v of A w + s = b, a step solves

    (H + A' diag(v / s) A) dw = -(H w - c + A'v) - A'((v rp - rc) / s)

twice with one Cholesky factor: towards the boundary first, then towards the path of equal products
s v. Unlike ADMM it does not mind parameters of very different curvature, such as those of a curve
and of a corner of a lattice that few examples reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.solvers.costs import COSTS


@dataclass(frozen=True)
class InteriorMinimum:
    """The point, and the multipliers of the rows."""

    w: Vector
    multipliers: Vector
    gap: float


def interior_minimum(
    H: Vector, c: Vector, A: Any, b: Vector, start: Vector, tolerance: float
) -> InteriorMinimum | None:
    """The minimum of w'Hw / 2 - c.w where A w <= b, from the unconstrained one; None where the
    steps do not get there, as where rows leave no room between them.
    """
    w = start
    transposed = A.T.tocsr()
    pattern = _Pattern(A, transposed)
    reach = max(float(np.abs(w).max(initial=0.0)), COSTS.interior_least)
    s = b - np.asarray(A @ w)
    s = np.maximum(s, 0.0) + COSTS.interior_lift * reach
    curvature = float(np.mean(H.diagonal()))
    v = np.full(b.size, COSTS.interior_lift * curvature * reach)
    for _ in range(COSTS.interior_steps):
        Hw = H @ w
        dual = Hw - c + np.asarray(transposed @ v)
        primal = np.asarray(A @ w) + s - b
        gap = float(s @ v)
        value = abs(float(w @ (0.5 * Hw - c)))
        near = gap <= tolerance * max(value, COSTS.least_objective)
        sizes = max(float(np.abs(c).max()), COSTS.least_objective)
        settled = float(np.abs(dual).max()) <= COSTS.interior_residual * sizes
        inside = float(np.abs(primal).max()) <= COSTS.interior_residual * reach
        if near and settled and inside:
            return InteriorMinimum(w, v, gap)
        try:
            factor = scipy.linalg.cho_factor(
                pattern.added(H, v / s), lower=True, overwrite_a=True, check_finite=False
            )
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        products = s * v
        move = _move(factor, A, transposed, dual, primal, products, s, v)
        length = _reach(s, move[1], v, move[2])
        ahead = float((s + length * move[1]) @ (v + length * move[2]))
        centre = (ahead / gap) ** 3 * gap / b.size
        move = _move(
            factor, A, transposed, dual, primal, products + move[1] * move[2] - centre, s, v
        )
        length = min(1.0, COSTS.interior_share * _reach(s, move[1], v, move[2]))
        if not length > COSTS.interior_shortest:
            return None
        w, s, v = w + length * move[0], s + length * move[1], v + length * move[2]
    return None


class _Pattern:
    """Where the entries of A' diag(d) A lie, and how they come from d."""

    def __init__(self, A: Any, transposed: Any) -> None:
        self.A, self.transposed = A, transposed

    def added(self, H: Vector, d: Vector) -> Vector:
        total = np.array(H, order="F")
        rows = sparse.csr_matrix(
            (self.A.data * np.repeat(d, np.diff(self.A.indptr)), self.A.indices, self.A.indptr),
            shape=self.A.shape,
        )
        more = (self.transposed @ rows).tocoo()
        total[more.row, more.col] += more.data
        return total


def _move(
    factor: Any,
    A: Any,
    transposed: Any,
    dual: Vector,
    primal: Vector,
    products: Vector,
    s: Vector,
    v: Vector,
) -> tuple[Vector, Vector, Vector]:
    """Newton's step of w, s and v that would bring the products s v down by `products`."""
    right = -dual - np.asarray(transposed @ ((v * primal - products) / s))
    dw = scipy.linalg.cho_solve(factor, right, check_finite=False)
    ds = -primal - np.asarray(A @ dw)
    return dw, ds, -(products + v * ds) / s


def _reach(s: Vector, ds: Vector, v: Vector, dv: Vector) -> float:
    """How much of a step keeps all slacks and multipliers positive; at most 1."""
    length = 1.0
    for values, moves in ((s, ds), (v, dv)):
        falling = moves < 0.0
        if falling.any():
            length = min(length, float(np.min(-values[falling] / moves[falling])))
    return length
