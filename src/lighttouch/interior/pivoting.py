"""The minimum of a dense quadratic under sparse rows, by the rows that hold with equality.

Block principal pivoting (Judice and Pires 1994; Kim and Park 2011) on the dual. With H = L L' and
the minimum x of w'Hw / 2 - c.w without rows, the multipliers v >= 0 of the rows A w <= b minimise

    v'Gv / 2 - r.v,   G = A H^-1 A',   r = A x - b.

Rows are guessed to hold with equality or not; each guess takes a small factor, and all rows that
contradict it change sides at once, until none does. Where that goes in circles, as among rows that
depend on each other, a method that always goes downhill takes over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.interior.quadratic import QuadraticMinimum


def pivoted_minimum(
    lower: Floats,
    c: Vector,
    A: Matrix,
    b: Vector,
    start: Vector,
    tolerance: float,
    before_step: Callable[[], None] = lambda: None,
) -> QuadraticMinimum | None:
    """The minimum of w'Hw / 2 - c.w where A w <= b, from the factor L of H and the unconstrained
    minimum `start`; None where the guesses do not settle, or rows contradict each other. What
    `before_step` raises ends it.
    """
    rows = sparse.csr_matrix(A)
    broken = np.asarray(rows @ start) - b
    dual = _Dual(lower, rows, broken, before_step)
    try:
        v = _downhill(dual, *_all_at_once(dual))
    except _NothingFoundError:
        return None
    return _checked(lower, c, rows, b, v, tolerance)


class _NothingFoundError(Exception):
    """Within a budget, or because a matrix has no factor."""


def _all_at_once(dual: _Dual) -> tuple[Booleans, Vector]:
    """The rows that hold with equality and their multipliers, as far as guesses get better."""
    held, fewest, patience = dual.broken > 0.0, dual.broken.size + 1, COSTS.pivot_patience
    while True:
        v = dual.multipliers(held)
        wrong = np.where(held, v < 0.0, dual.excess(v) > dual.rounding)
        count = int(np.count_nonzero(wrong))
        patience = COSTS.pivot_patience if count < fewest else patience - 1
        fewest = min(fewest, count)
        if count == 0 or patience < 0:
            return held, v
        held = held ^ wrong


def _downhill(dual: _Dual, held: Booleans, v: Vector) -> Vector:
    """The multipliers of the minimum, by steps that never raise the dual's objective: towards the
    guess until a multiplier would turn negative, whose row is let go; once none does, rows that are
    broken are held (after Lawson and Hanson 1974, chapter 23, who hold one at a time).
    """
    kept = held & (v >= 0.0)
    found = v if np.array_equal(kept, held) else dual.multipliers(kept)
    held, v = kept, np.where(kept, v, 0.0)
    while True:
        if (found[held] < 0.0).any():
            low = np.flatnonzero(held & (found < 0.0))
            shares = v[low] / (v[low] - found[low])
            share = float(shares.min())
            v = np.maximum(v + share * (found - v), 0.0)
            held = held.copy()
            held[low[shares <= share]] = False
            v[~held] = 0.0
        else:
            v, broken = found, ~held & (dual.excess(found) > dual.rounding)
            if not broken.any():
                return dual.refined(v)
            held = held | broken
        found = dual.multipliers(held)


class _Dual:
    """G, of rows that were held once, and what it says about the others."""

    def __init__(
        self,
        lower: Floats,
        A: sparse.csr_matrix,
        broken: Vector,
        before_step: Callable[[], None],
    ) -> None:
        self.lower, self.A, self.broken, self.before_step = lower, A, broken, before_step
        self.rounding = COSTS.pivot_rounding * float(np.abs(broken).max(initial=0.0))
        self.left = COSTS.pivots
        self.place = np.full(A.shape[0], -1)  # of a row in V and G
        self.V = np.zeros((lower.shape[0], 0), order="F")  # L^-1 A'
        self.G = np.zeros((0, 0))

    def multipliers(self, held: Booleans) -> Vector:
        """Those that make the held rows equalities."""
        self.before_step()
        rows, self.left = np.flatnonzero(held), self.left - 1
        if self.left < 0 or rows.size > 2 * self.lower.shape[0]:  # factors would take too long
            raise _NothingFoundError
        self._learn(rows[self.place[rows] < 0])
        here = self.place[rows]
        self.held, self.inside = rows, self.G[np.ix_(here, here)]
        shifted = self.inside.copy()
        shifted.flat[:: rows.size + 1] *= 1.0 + COSTS.pivot_shift  # rows may depend on each other
        self.factor, failed = scipy.linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=1)
        if failed:
            raise _NothingFoundError
        return self._solved(np.zeros(held.size))

    def refined(self, v: Vector) -> Vector:
        """The last multipliers without what the shift has changed."""
        for _ in range(COSTS.pivot_refinements):
            v = v + self._solved(v)
        return v

    def _solved(self, v: Vector) -> Vector:
        more, rest = np.zeros(v.size), self.broken[self.held] - self.inside @ v[self.held]
        more[self.held] = scipy.linalg.lapack.dpotrs(self.factor, rest, lower=1)[0]
        return more

    def excess(self, v: Vector) -> Vector:
        """By how much each row is broken under the last multipliers."""
        force = np.zeros(self.V.shape[1])
        force[self.place[self.held]] = v[self.held]
        move = scipy.linalg.blas.dtrsv(self.lower, self.V @ force, lower=1, trans=1)
        excess: Vector = self.broken - np.asarray(self.A @ move)
        return excess

    def _learn(self, rows: Indices) -> None:
        """Extend V and G."""
        if rows.size == 0:
            return
        known = self.V.shape[1]
        self.place[rows] = known + np.arange(rows.size)
        right = np.asfortranarray(self.A[rows].toarray().T)
        more = scipy.linalg.blas.dtrsm(1.0, self.lower, right, lower=1, overwrite_b=1)
        self.V = np.asfortranarray(np.hstack([self.V, more]))
        G = np.empty((self.V.shape[1], self.V.shape[1]))
        G[:known, :known] = self.G
        G[known:] = more.T @ self.V
        G[:known, known:] = G[known:, :known].T
        self.G = G


def _checked(
    lower: Floats, c: Vector, A: sparse.csr_matrix, b: Vector, v: Vector, tolerance: float
) -> QuadraticMinimum | None:
    """The point that these multipliers force, where it is the minimum to rounding."""
    v = np.maximum(v, 0.0)
    w = np.asarray(scipy.linalg.lapack.dpotrs(lower, c - A.T @ v, lower=1)[0])
    slack = b - np.asarray(A @ w)
    size = max(1.0, float(np.abs(w).max(initial=0.0)))
    gap, worth = float(v @ slack), abs(0.5 * float(w @ (c + A.T @ v)))
    exact = float(-slack.min(initial=0.0)) <= COSTS.residual * size
    return QuadraticMinimum(w, v, gap) if exact and abs(gap) <= tolerance * worth else None
