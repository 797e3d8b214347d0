"""The minimum of a dense quadratic under sparse rows: by the rows that hold with equality, and by
an interior point.

Block principal pivoting (Judice and Pires 1994; Kim and Park 2011) on the dual. With H = L L' and
the minimum x of w'Hw / 2 - c.w without rows, the multipliers v >= 0 of the rows A w <= b minimise

    v'Gv / 2 - r.v,   G = A H^-1 A',   r = A x - b.

Rows are guessed to hold with equality or not; each guess takes a small factor, and all rows that
contradict it change sides at once, until none does. Where that goes in circles, as among rows that
depend on each other, a method that always goes downhill takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.cholesky import Cholesky, Scratch
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import Judged, Point, follow, point_near, worst_excess
from lighttouch.interior.program import scaled, with_rows
from lighttouch.interior.statement import quadratic_program
from lighttouch.interior.systems import DenseSystem


def pivoted_minimum(
    known: KnownRows,
    c: Vector,
    b: Vector,
    start: Vector,
    tolerance: float,
    before_step: Callable[[], None] = lambda: None,
    near: Vector | None = None,
) -> QuadraticMinimum | None:
    """The minimum of w'Hw / 2 - c.w where A w <= b, from the factor L of H and the rows A that are
    `known`, and the unconstrained minimum `start`; None where the guesses do not settle, or rows
    contradict each other. What `before_step` raises ends it.

    `near` is the minimum of a quadratic like this one, whose equalities are the first guess.
    Without it, or where more rows than parameters hold with equality there, those are that the
    start breaks.
    """
    broken = np.asarray(known.A @ start) - b
    dual = _Dual(known, broken, before_step)
    held = broken > 0.0
    if near is not None:
        size = max(1.0, float(np.abs(near).max(initial=0.0)))
        equal = b - np.asarray(known.A @ near) <= COSTS.residual * size
        held = equal if np.count_nonzero(equal) <= near.size else held
    try:
        v = _downhill(dual, *_all_at_once(dual, held))
    except _NothingFoundError:
        return None
    return _checked(known.factor, c, known.A, b, dual.refined(v, c, b), tolerance)


NOTHING = Cholesky(np.empty((0, 0)))


class _NothingFoundError(Exception):
    """Within a budget, or because a matrix has no factor."""


def _all_at_once(dual: _Dual, held: Booleans) -> tuple[Booleans, Vector]:
    """The rows that hold with equality and their multipliers, as long as every guess contradicts
    fewer rows than the one before.
    """
    fewest = dual.broken.size + 1
    while True:
        v = dual.multipliers(held)
        wrong = np.where(held, v < 0.0, dual.excess(v) > dual.rounding)
        count = int(np.count_nonzero(wrong))
        if count == 0 or count >= fewest:
            return held, v
        fewest, held = count, held ^ wrong


def _downhill(dual: _Dual, held: Booleans, v: Vector) -> Vector:
    """The multipliers of the minimum, by steps that never raise the dual's objective: towards the
    guess, rows whose multiplier would turn negative are let go; once none does, rows that are
    broken are held (after Lawson and Hanson 1974, chapter 23, who do both one at a time).
    """
    kept = held & (v >= 0.0)
    found = v if np.array_equal(kept, held) else dual.multipliers(kept)
    held, v = kept, np.where(kept, v, 0.0)
    while True:
        if (found[held] < 0.0).any():
            v = _towards(dual, v, found)
            held = held & ((v > 0.0) | (found > 0.0))  # rows just held wait at 0 for their turn
        else:
            v, broken = found, ~held & (dual.excess(found) > dual.rounding)
            if not broken.any():
                return v
            held = held | broken
        found = dual.multipliers(held)


def _towards(dual: _Dual, v: Vector, found: Vector) -> Vector:
    """On the way to what was found, cut off at 0 (projected; Bertsekas 1982), as far as the dual's
    objective falls; at least to where the first multiplier is 0.
    """
    low = np.flatnonzero(found < 0.0)
    zero_at = v[low] / (v[low] - found[low])
    first = float(zero_at.min())
    here, share = dual.objective(v), 1.0
    while share > max(first, COSTS.pivot_least_share):
        there = np.maximum(v + share * (found - v), 0.0)
        if dual.objective(there) < here:
            return there
        share *= 0.5
    there = np.maximum(v + first * (found - v), 0.0)
    there[low[zero_at == first]] = 0.0  # and not what rounding leaves of it
    return there


@dataclass(frozen=True)
class _Block:
    """Rows that were learnt together: V of them, and their products with rows of this block and of
    those before it, by the number of the block.
    """

    number: int
    rows: Indices
    V: Floats
    products: dict[int, Floats]

    def joined(self, other: _Block) -> _Block:
        """With the rows of the block after it."""
        both = {
            number: np.hstack([mine, other.products[number]])
            for number, mine in self.products.items()
        }
        below = np.hstack([other.products[self.number].T, other.products[other.number]])
        both[self.number] = np.vstack([both[self.number], below])
        rows = np.concatenate([self.rows, other.rows])
        return _Block(self.number, rows, np.asfortranarray(np.hstack([self.V, other.V])), both)


class KnownRows:
    """V = L^-1 A' and the products V'V of the rows that were asked for, in blocks.

    Blocks do not depend on who asks, so that numbers are the same to the last bit however the rows
    came to be known. With `once`, for a single minimum, and where rows are many, only those that
    are asked for are learnt.
    """

    def __init__(self, factor: Cholesky, A: Matrix, once: bool = False) -> None:
        self.factor, self.A = factor, sparse.csr_matrix(A)
        self.whole_blocks = A.shape[0] <= COSTS.pivot_blocks * factor.size and not once
        self.blocks: list[_Block] = []  # in the order of their numbers
        self.place = np.full(A.shape[0], -1)  # of a row among those of all blocks
        self.scratch = Scratch()

    def learn(self, rows: Indices) -> None:
        new = rows[self.place[rows] < 0]
        if new.size == 0:
            return
        if self.whole_blocks:
            self._learn_blocks_of(new)
        else:
            self._learn_only(new)
        known = np.concatenate([block.rows for block in self.blocks])
        self.place[known] = np.arange(known.size)

    def _learn_blocks_of(self, new: Indices) -> None:
        size, last = COSTS.pivot_block, self.place.size
        for number in np.unique(new // size).tolist():
            first = number * size
            self._learn(number, np.arange(first, min(first + size, last)))
        self.blocks.sort(key=lambda block: block.number)

    def _learn_only(self, new: Indices) -> None:
        """What has room in the last block goes there: every guess passes over all blocks."""
        size = COSTS.pivot_block
        room = size - self.blocks[-1].rows.size if self.blocks else 0
        if room > 0:
            self._learn(len(self.blocks), new[:room])
            last, more = self.blocks[-2:]
            self.blocks[-2:] = [last.joined(more)]
        for first in range(room, new.size, size):
            self._learn(len(self.blocks), new[first : first + size])

    def _learn(self, number: int, rows: Indices) -> None:
        V = np.zeros((self.A.shape[1], rows.size), order="F")
        self.A[rows].T.toarray(out=V)
        new = _Block(number, rows, self.factor.half_solved(V), {})
        self.blocks.append(new)
        for other in self.blocks:
            before, after = (other, new) if other.number <= number else (new, other)
            after.products[before.number] = before.V.T @ after.V

    def in_order(self, rows: Indices) -> Indices:
        """Rows that are known, block by block."""
        return rows[np.argsort(self.place[rows])]

    def products(self, rows: Indices) -> Floats:
        """G of rows that are `in_order`, until it is asked again."""
        out, parts = self.scratch.matrix(rows.size), self._parts(rows)
        for place, (after, there, columns) in enumerate(parts):
            for before, here, among in parts[: place + 1]:
                found = after.products[before.number]
                found = found if among.size == found.shape[0] else found[among]
                found = found if columns.size == found.shape[1] else found[:, columns]
                out[here, there] = found
                if before is not after:
                    out[there, here] = found.T
        return out

    def _parts(self, rows: Indices) -> list[tuple[_Block, slice, Indices]]:
        """Blocks that have some of these rows, which of the rows those are, and of the block's."""
        places, parts, first = self.place[rows], [], 0
        for block in self.blocks:
            here = slice(*np.searchsorted(places, (first, first + block.rows.size)).tolist())
            if here.start < here.stop:
                parts.append((block, here, places[here] - first))
            first += block.rows.size
        return parts


class _Dual:
    """Multipliers of rows that are held, and what they do to the others."""

    def __init__(self, known: KnownRows, broken: Vector, before_step: Callable[[], None]) -> None:
        self.known, self.broken, self.before_step = known, broken, before_step
        self.rounding = COSTS.pivot_rounding * float(np.abs(broken).max(initial=0.0))
        self.left = COSTS.pivots
        self.inside = NOTHING

    def multipliers(self, held: Booleans) -> Vector:
        """Those that make the held rows equalities."""
        self.before_step()
        rows, self.left = np.flatnonzero(held), self.left - 1
        if self.left < 0 or rows.size > 2 * self.known.factor.size:  # factors would take long
            raise _NothingFoundError
        self.inside = NOTHING  # it may be most of the memory
        self.known.learn(rows)
        self.held = self.known.in_order(rows)
        if rows.size == 0:
            return np.zeros(held.size)
        G = self.known.products(self.held)
        self.diagonal = G.diagonal().copy()
        G.flat[:: rows.size + 1] *= 1.0 + COSTS.pivot_shift  # rows may depend on each other
        inside = Cholesky.of(G, clean=False)
        if inside is None:
            raise _NothingFoundError
        self.inside = inside
        v = self._solved(np.zeros(held.size))
        for _ in range(COSTS.pivot_refinements):  # without what the shift has changed
            v = v + self._solved(v)
        return v

    def objective(self, v: Vector) -> float:
        """v'Gv / 2 - r.v, of rows that were held last."""
        here = v[self.held]
        return float(here @ (0.5 * self._products(here) - self.broken[self.held]))

    def _products(self, v: Vector) -> Vector:
        """G v of the rows that are held: beyond the factor's diagonal it has stayed as it was."""
        if v.size == 0:
            return v
        both = self.inside.lower
        of_factor = both.diagonal().copy()
        np.fill_diagonal(both, self.diagonal)
        found = np.asarray(scipy.linalg.blas.dsymv(1.0, both, v, lower=0))
        np.fill_diagonal(both, of_factor)
        return found

    def _solved(self, v: Vector) -> Vector:
        rest = self.broken[self.held] - self._products(v[self.held])
        more = np.zeros(v.size)
        more[self.held] = self.inside.solved(rest)
        return more

    def refined(self, v: Vector, c: Vector, b: Vector) -> Vector:
        """The last multipliers, so that the point which they force meets the held rows itself: G
        knows them only as exactly as H is well-conditioned.
        """
        A = self.known.A[self.held]
        for _ in range(COSTS.pivot_refinements if self.held.size else 0):
            w = self.known.factor.solved(c - np.asarray(A.T @ v[self.held]))
            v = v.copy()
            v[self.held] += self.inside.solved(np.asarray(A @ w) - b[self.held])
        return v

    def excess(self, v: Vector) -> Vector:
        """By how much each row is broken under the last multipliers."""
        known = self.known
        force = np.zeros(known.place.size)
        force[self.held] = v[self.held]
        right = np.asarray(known.A.T @ force)
        excess: Vector = self.broken - np.asarray(known.A @ known.factor.solved(right))
        return excess


def _checked(
    factor: Cholesky, c: Vector, A: sparse.csr_matrix, b: Vector, v: Vector, tolerance: float
) -> QuadraticMinimum | None:
    """The point that these multipliers force, where it is the minimum to rounding."""
    v = np.maximum(v, 0.0)
    w = factor.solved(c - A.T @ v)
    slack = b - np.asarray(A @ w)
    size = max(1.0, float(np.abs(w).max(initial=0.0)))
    gap, worth = float(v @ slack), abs(0.5 * float(w @ (c + A.T @ v)))
    exact = float(-slack.min(initial=0.0)) <= COSTS.residual * size
    return QuadraticMinimum(w, v, gap) if exact and abs(gap) <= tolerance * worth else None


# -------------------------------------------------------------------------------------------------
# The same minimum by an interior point: a program like any other, solved at once.


TINY = 1e-300  # the size of an objective of 0


@dataclass(frozen=True)
class QuadraticMinimum:
    """The point, the multipliers of the rows, and the complementarity left."""

    w: Vector
    multipliers: Vector
    gap: float


def quadratic_minimum(
    H: Floats,
    c: Vector,
    A: Matrix,
    b: Vector,
    start: Vector,
    tolerance: float,
) -> QuadraticMinimum | None:
    """The minimum of w'Hw / 2 - c.w where A w <= b, from the unconstrained one; None where the
    steps do not get there, as where rows leave no room between them.
    """
    program = with_rows(quadratic_program(H, -c), (A,), b, np.zeros(b.size, dtype=bool))
    inner, units = scaled(program, COSTS.scaling_sweeps)
    system = DenseSystem(inner)

    def size_of(w: Vector) -> float:
        return max(abs(float(w @ (0.5 * (H @ w) - c))), TINY)

    def judge(at: Point) -> Judged:
        here = at.times(units)
        rest = inner.P @ at.x + inner.q + inner.backward(at.s)
        excess = worst_excess(inner, inner.forward(at.x) - inner.centre)
        size = max(1.0, float(np.abs(at.x).max(initial=0.0)))
        lack = max(float(np.abs(rest).max(initial=0.0)), excess) / size
        gap = here.products / size_of(here.x)
        return Judged(lack, gap, lack <= COSTS.residual and gap <= tolerance)

    product = COSTS.free_gap * size_of(start) * units.objective / max(1, b.size)
    found = follow(system, point_near(system, units.inner(start), product), judge)
    if found is None or not found[1].enough:
        return None
    here = found[0].times(units)
    return QuadraticMinimum(here.x, here.s, here.products)
