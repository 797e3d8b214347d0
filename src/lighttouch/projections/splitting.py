"""Convex quadratics under linear rows by ADMM, the alternating direction method of multipliers.

Boyd, Parikh, Chu, Peleato and Eckstein 2011, "Distributed optimization and statistical learning via
the alternating direction method of multipliers", with their over-relaxation (3.4.3) and residual
balancing (3.4.1). The problem

    minimise w'Hw / 2 - c.w + indicator(z)   subject to   forms @ w = z

is split so that every piece of z is easy: an order between parameters or between linear forms
(constraints/base.py) is projected onto exactly, single rows and bounds are clips, and a piece may
be the whole feasible set. With scaled multipliers u and strength rho a step is

    w = argmin w'Hw / 2 - c.w + rho / 2 |forms @ w - z + u|^2
    z = nearest feasible copies to forms @ w + u,    u = u + forms @ w - z.

The step in w takes one Cholesky factor of H + rho forms'forms where H is dense and small, and
conjugate gradients otherwise. Where steps have become almost proportional to each other, the method
jumps to where they would end (an extrapolation with a safeguard: jumps become rarer and rarer, so
that they cannot keep ADMM from converging).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import LinearOperator, cg

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.cholesky import Cholesky
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.orders import GraphOrders


class QuadraticForm(Protocol):
    """The quadratic w'Hw / 2 - c.w."""

    @property
    def c(self) -> Floats: ...

    @property
    def diagonal(self) -> Floats:
        """Of H."""

    @property
    def matrix(self) -> Floats | BlockDiagonal | None:
        """H where it is dense, or of dense blocks, and small enough to factor; None where only
        products are.
        """

    def apply(self, w: Floats) -> Floats:
        """H @ w."""


@dataclass(frozen=True)
class SquaredDistance:
    """|w - c|^2 / 2."""

    c: Floats

    @property
    def diagonal(self) -> Floats:
        return np.ones(self.c.size)

    @property
    def matrix(self) -> None:
        return None

    def apply(self, w: Floats) -> Floats:
        return w


class Piece(Protocol):
    """What some of the copies must satisfy."""

    def nearest(self, z: Floats, auxiliary: Floats, warm: object) -> tuple[Floats, Floats, Any]: ...


@dataclass(frozen=True)
class ClipPiece:
    """z <= upper."""

    upper: Floats

    def nearest(self, z: Floats, auxiliary: Floats, warm: object) -> tuple[Floats, Floats, Any]:
        return np.minimum(z, self.upper), auxiliary, None


@dataclass(frozen=True)
class BoxPiece:
    """lower <= z <= upper."""

    lower: Floats
    upper: Floats

    def nearest(self, z: Floats, auxiliary: Floats, warm: object) -> tuple[Floats, Floats, Any]:
        return np.clip(z, self.lower, self.upper), auxiliary, None


@dataclass(frozen=True)
class OrderPiece:
    """(z, auxiliary) in order. The objective does not hold the auxiliary numbers back, so that they
    go further than to the nearest place.
    """

    engine: GraphOrders

    def nearest(self, z: Floats, auxiliary: Floats, warm: object) -> tuple[Floats, Floats, Any]:
        found = self.engine.nearest(np.concatenate([z, auxiliary]), warm)
        change = found.w[z.size :] - auxiliary
        return found.w[: z.size], auxiliary + COSTS.admm_auxiliary_stride * change, found.warm


@dataclass(frozen=True)
class WholeSetPiece:
    """z in a feasible set, by its projection: (point, warm) -> (nearest point, warm)."""

    project: Callable[[Vector, Any], tuple[Vector, Any]]

    def nearest(self, z: Floats, auxiliary: Floats, warm: object) -> tuple[Floats, Floats, Any]:
        w, warm = self.project(z, warm)
        return w, auxiliary, warm


@dataclass
class SplittingState:
    """Where the method stands, so that the next quadratic goes on from there: arrays and numbers,
    and in `warm` what the pieces' projections start from.
    """

    w: Floats
    z: Floats
    multipliers: Floats  # of z = forms @ w
    auxiliary: tuple[Floats, ...]
    warm: tuple[Any, ...]
    strength: float = 0.0
    settled: bool = False
    steps: int = 0

    def copy(self) -> SplittingState:
        return replace(self)


@dataclass(frozen=True)
class Splitting:
    """The forms, one piece after the other, and what each piece must satisfy."""

    forms: Any
    transposed: Any
    squares: Floats  # of every column of the forms
    pieces: tuple[tuple[slice, Piece, int], ...]
    own: tuple[tuple[slice, Indices], ...]  # copies of parameters themselves, and which

    def begin(self, w: Floats) -> SplittingState:
        z = np.zeros(self.forms.shape[0])
        return SplittingState(
            w,
            z,
            np.zeros(z.size),
            tuple(np.zeros(nodes) for _, _, nodes in self.pieces),
            (None,) * len(self.pieces),
        )

    def ordered(self, at: SplittingState) -> Floats:
        """w, with the copies that satisfy orders and bounds exactly in place of the parameters they
        are copies of.
        """
        w = at.w.copy()
        for rows, chosen in self.own:
            w[chosen] = at.z[rows]
        return w

    def minimise(
        self,
        quadratic: QuadraticForm,
        at: SplittingState,
        tolerance: float,
        steps: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Up to so many steps, in place, until copies and forms agree and stand still, both to the
        tolerance. `stop` is asked now and then whether to end early.
        """
        if at.strength == 0.0:
            at.strength = self.first_strength(quadratic)
        u = at.multipliers / at.strength
        minimiser = self._minimiser(quadratic, at.strength)
        jumps = Extrapolation()
        for step in range(1, steps + 1):
            right = quadratic.c + at.strength * np.asarray(self.transposed @ (at.z - u))
            at.w = minimiser(right, at.w)
            formed = np.asarray(self.forms @ at.w)
            blend = COSTS.admm_relaxation * formed + (1.0 - COSTS.admm_relaxation) * at.z
            before, at.z = at.z, self._nearest(blend + u, at)
            u = u + blend - at.z
            apart, moved = self._residuals(quadratic, at, formed, before, u)
            at.settled = apart < tolerance and moved < tolerance
            at.steps += 1
            if at.settled or (step % COSTS.admm_look_every == 0 and stop()):
                break
            if step % COSTS.admm_adapt_every or step == steps:
                continue
            change = (
                _change_of_strength(apart, moved) if step <= COSTS.admm_adapt_until * steps else 1.0
            )
            if change != 1.0:
                at.strength, u = at.strength * change, u / change
                minimiser = self._minimiser(quadratic, at.strength)
                jumps.forget()
            else:
                at.z, u, *auxiliary = jumps.look(step, [at.z, u, *at.auxiliary])
                at.auxiliary = tuple(auxiliary)
        at.multipliers = u * at.strength

    def first_strength(self, quadratic: QuadraticForm) -> float:
        curvature = float(np.mean(quadratic.diagonal))
        return COSTS.admm_first_strength * curvature / max(1.0, float(np.mean(self.squares)))

    def _residuals(
        self,
        quadratic: QuadraticForm,
        at: SplittingState,
        formed: Floats,
        before: Floats,
        u: Floats,
    ) -> tuple[float, float]:
        """The primal and the dual residual, relative to what they are differences of."""
        apart = _length(formed - at.z) / max(TINY, _length(at.z), _length(formed))
        pull = at.strength * _length(np.asarray(self.transposed @ u))
        moved = at.strength * _length(np.asarray(self.transposed @ (at.z - before)))
        return apart, moved / max(_length(quadratic.c), pull, TINY)

    def _nearest(self, z: Floats, at: SplittingState) -> Floats:
        out = np.empty_like(z)
        found = []
        for k, (rows, piece, _) in enumerate(self.pieces):
            out[rows], *rest = piece.nearest(z[rows], at.auxiliary[k], at.warm[k])
            found.append(rest)
        at.auxiliary, at.warm = tuple(m for m, _ in found), tuple(warm for _, warm in found)
        return out

    def _minimiser(
        self, quadratic: QuadraticForm, strength: float
    ) -> Callable[[Floats, Floats], Floats]:
        """(right, start) -> the solution of (H + strength forms'forms) w = right."""
        matrix = quadratic.matrix
        if isinstance(matrix, BlockDiagonal):
            return matrix.plus(strength * (self.transposed @ self.forms)).solver()
        if matrix is not None:
            coupling = strength * np.asarray((self.transposed @ self.forms).todense())
            return cholesky_solver(matrix + coupling)

        def apply(x: Floats) -> Floats:
            coupling = np.asarray(self.transposed @ np.asarray(self.forms @ x))
            return quadratic.apply(x) + strength * coupling

        diagonal = quadratic.diagonal + strength * self.squares
        shrink, most = COSTS.admm_conjugate_shrink, COSTS.admm_conjugate_steps
        return lambda right, start: conjugate_gradients(apply, right, start, diagonal, shrink, most)


def _change_of_strength(apart: float, moved: float) -> float:
    """Residual balancing: a factor for rho, 1 where the residuals are within limits."""
    ratio = apart / max(moved, TINY)
    if 1.0 / COSTS.admm_balanced < ratio < COSTS.admm_balanced:
        return 1.0
    return min(COSTS.admm_largest_change, max(1.0 / COSTS.admm_largest_change, math.sqrt(ratio)))


class Extrapolation:
    """Where moves go the same way, each a constant share shorter than the last, jump to where they
    would end up: after the last move d with ratio r comes d (r + r^2 + ...) = d r / (1 - r).
    """

    def __init__(self) -> None:
        self._seen: list[list[Floats]] = []
        self._wait = 0

    def forget(self) -> None:
        self._seen.clear()

    def look(self, step: int, now: list[Floats]) -> list[Floats]:
        if step < self._wait:
            return now
        self._seen.append(now)
        if len(self._seen) < 3:
            return now
        first, second = (
            [b - a for a, b in zip(self._seen[k], self._seen[k + 1], strict=True)] for k in (-3, -2)
        )
        cross = sum(float(a @ b) for a, b in zip(first, second, strict=True))
        squares = [sum(float(a @ a) for a in each) for each in (first, second)]
        ratio = cross / max(squares[0], TINY)
        aligned = cross > 0.0 and cross**2 > COSTS.admm_aligned**2 * squares[0] * squares[1]
        if not aligned or not COSTS.admm_least_ratio < ratio < COSTS.admm_largest_ratio:
            return now
        self.forget()
        self._wait = 2 * step  # longer and longer between jumps
        reach = min(COSTS.admm_farthest, ratio / (1.0 - ratio))
        return [each + reach * change for each, change in zip(now, second, strict=True)]


def normal_at(splitting: Splitting, at: SplittingState) -> tuple[Floats, Floats, float]:
    """Copies z that satisfy the pieces, multipliers normal to the pieces at z, and by how much
    auxiliary numbers that still move may falsify that.
    """
    target = at.z + at.multipliers / at.strength
    z, slack = np.empty_like(target), 0.0
    for k, (rows, piece, _) in enumerate(splitting.pieces):
        z[rows], moved, _ = piece.nearest(target[rows], at.auxiliary[k], at.warm[k])
        if moved.size:
            far = COSTS.admm_auxiliary_reach * float(np.abs(moved).max()) + float(
                np.abs(z[rows]).max(initial=0.0)
            )
            change = float(np.abs(moved - at.auxiliary[k]).sum()) / COSTS.admm_auxiliary_stride
            slack += at.strength * change * far
    return z, at.strength * (target - z), slack


def cholesky_solver(H: Floats | BlockDiagonal) -> Callable[[Floats, Floats], Floats]:
    """(right, start) -> the solution of H w = right; `start` is not needed."""
    if isinstance(H, BlockDiagonal):
        return H.solver()
    factor = _factor(H)
    return lambda right, start: factor.solved(right)


def _factor(H: Floats) -> Cholesky:
    """In the place of a matrix; a LinAlgError where it is not definite."""
    factor = Cholesky.of(H)
    if factor is None:
        raise scipy.linalg.LinAlgError("the matrix is not positive definite")
    return factor


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    right: Floats,
    start: Floats,
    diagonal: Floats,
    shrink: float,
    steps: int,
) -> Floats:
    """The solution of apply(w) = right by SciPy's conjugate gradients, scaled by the diagonal, to a
    residual `shrink` times that of the start.
    """
    scale = 1.0 / np.maximum(
        diagonal, COSTS.admm_least_diagonal * float(diagonal.max(initial=TINY))
    )
    shape = (right.size, right.size)
    rest = right - apply(start)
    change, _ = cg(
        LinearOperator(shape, apply, dtype=np.float64),
        rest,
        rtol=shrink,
        maxiter=steps,
        M=LinearOperator(shape, lambda x: scale * x, dtype=np.float64),
    )
    return np.asarray(start + change)


def _length(x: Floats) -> float:
    return float(np.linalg.norm(x))


def whole_set_splitting(
    dimension: int, project: Callable[[Vector, Any], tuple[Vector, Any]]
) -> Splitting:
    """One copy of every parameter, in the whole feasible set."""
    same = sparse.identity(dimension, format="csr")
    everything = slice(0, dimension)
    piece = (everything, WholeSetPiece(project), 0)
    own = ((everything, np.arange(dimension)),)
    return Splitting(same, same, np.ones(dimension), (piece,), own)


# -------------------------------------------------------------------------------------------------
# Symmetric matrices of dense blocks along the diagonal: several models that share no parameter.


@dataclass(frozen=True)
class BlockDiagonal:
    """Dense blocks, each of a range of parameters; the ranges follow each other and cover all."""

    blocks: tuple[tuple[slice, Floats], ...]

    def copy(self) -> BlockDiagonal:
        return BlockDiagonal(tuple((here, block.copy()) for here, block in self.blocks))

    def diagonal(self) -> Floats:
        return np.concatenate([block.diagonal() for _, block in self.blocks])

    def toarray(self) -> Floats:
        return np.asarray(scipy.linalg.block_diag(*(block for _, block in self.blocks)))

    def plus(self, other: Any) -> BlockDiagonal:
        """The sum with a sparse matrix that has entries within the blocks only."""
        rows = sparse.csr_matrix(other)
        sums = (
            (here, np.asarray(block + rows[here, here].todense())) for here, block in self.blocks
        )
        return BlockDiagonal(tuple(sums))

    def solver(self) -> Callable[[Floats, Floats], Floats]:
        """(right, start) -> the solution; `start` is not needed, and the blocks are overwritten."""
        factors = [(here, _factor(block)) for here, block in self.blocks]
        return lambda right, start: np.concatenate(
            [factor.solved(right[here]) for here, factor in factors]
        )


def solver_by_parts(matrix: Any) -> Callable[[Floats], Floats]:
    """Solves with a sparse definite matrix by Cholesky's factors of its connected parts, such as
    the terms of a model; a LinAlgError where it is not definite. Parameters that are connected to
    none are divided all at once.
    """
    rows = sparse.csr_matrix(matrix)
    parts, part_of = csgraph.connected_components(rows, directed=False)
    sizes = np.bincount(part_of, minlength=parts)
    alone = sizes[part_of] == 1
    diagonal = rows.diagonal()[alone]
    if (diagonal <= 0.0).any():
        raise scipy.linalg.LinAlgError("a diagonal entry is not positive")
    order = np.argsort(part_of, kind="stable")
    blocks = _blocks_of_parts(rows, part_of, order, sizes)
    order = order[~alone[order]]
    cuts = [0, *np.cumsum(sizes[sizes > 1]).tolist()]
    ranges = [slice(*cut) for cut in itertools.pairwise(cuts)]
    solve = BlockDiagonal(tuple(zip(ranges, blocks, strict=True))).solver()

    def solved(right: Floats) -> Floats:
        out = np.empty(right.size)
        out[alone] = right[alone] / diagonal
        if order.size:
            out[order] = solve(right[order], right)
        return out

    return solved


def _blocks_of_parts(
    rows: sparse.csr_matrix, part_of: Indices, order: Indices, sizes: Indices
) -> list[Floats]:
    """The dense blocks of all parts of more than one parameter; `order` has part after part."""
    place = np.empty(order.size, dtype=np.int64)  # of a parameter in its part
    place[order] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ends = np.cumsum(sizes**2)
    starts, entries = ends - sizes**2, np.zeros(ends[-1])
    row = np.repeat(np.arange(order.size), np.diff(rows.indptr))
    part = part_of[row]
    np.add.at(entries, starts[part] + place[row] * sizes[part] + place[rows.indices], rows.data)
    return [
        entries[starts[k] : ends[k]].reshape(sizes[k], sizes[k]) for k in np.flatnonzero(sizes > 1)
    ]


Blocks = tuple[tuple[slice, slice], ...]
"""Ranges of rows, each with the range of columns that they have entries in."""


def row_blocks(X: Any, penalty: Any) -> Blocks:
    """Where a sparse matrix consists of blocks along the diagonal, and so does `penalty`, with the
    same columns: their rows and columns. Otherwise one block of everything.
    """
    rows, columns = X.shape
    whole = ((slice(0, rows), slice(0, columns)),)
    if not sparse.issparse(X) or rows < 2 or (np.diff(X.indptr) == 0).any():
        return whole
    low = np.minimum.reduceat(X.indices, X.indptr[:-1])
    high = np.maximum.reduceat(X.indices, X.indptr[:-1])
    still_to_come = np.minimum.accumulate(low[::-1])[::-1]
    ends = np.flatnonzero(np.maximum.accumulate(high)[:-1] < still_to_come[1:]) + 1
    if ends.size == 0:
        return whole
    row_cuts = [0, *ends.tolist(), rows]
    column_cuts = [0, *still_to_come[ends].tolist(), columns]
    entries = penalty.tocoo()
    block_of = np.searchsorted(column_cuts[1:-1], np.arange(columns), side="right")
    if (block_of[entries.row] != block_of[entries.col]).any():
        return whole
    return tuple(
        (slice(*row_cuts[k : k + 2]), slice(*column_cuts[k : k + 2]))
        for k in range(len(row_cuts) - 1)
    )
