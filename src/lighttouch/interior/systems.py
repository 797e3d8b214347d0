"""Newton's equations of an interior point, P dx + B'ds = top and B dx - diag(delta) ds = bottom.

`SparseSystem` factors the whole matrix with rows of several entries kept apart (SuperLU), without
squaring them: long chains of second differences, whose Gram matrix no double can hold, come out
right. `DenseSystem` factors P + B'diag(1/delta)B (Cholesky): BLAS is tens of times faster where
that matrix is full anyway. Both are refined against the equations themselves.

`BlockSystem` first eliminates small blocks of parameters. `choose_system` says which is fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, Runs, entries
from lighttouch.interior.tiles import add_gram, scaled_rows
from lighttouch.kernels.numerics.matrices import factor_counts, weighted_gram


class Factor(Protocol):
    """Of the matrix for one delta; a little off, which refinement removes."""

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]: ...


class System(Protocol):
    """The equations of one program."""

    program: Program

    def factor(self, delta: Vector, lift: float = 0.0) -> Factor:
        """For P + lift I in place of P."""


def refined(
    program: Program,
    factor: Factor,
    delta: Vector,
    top: Vector,
    bottom: Vector,
    lift: float = 0.0,
    refinements: int = COSTS.refinements,
) -> tuple[Vector, Vector, bool]:
    """The solution for P + lift I, refined while that helps; and whether it needed that."""
    dx, ds = factor.solve(top, bottom)
    rest, size = _rest(program, delta, lift, top, bottom, dx, ds)
    largest = max(float(np.abs(top).max(initial=0.0)), float(np.abs(bottom).max(initial=0.0)))
    needed = size > COSTS.refined * largest
    for _ in range(refinements):
        if size <= COSTS.refined * largest or not np.isfinite(size):
            break
        more = factor.solve(*rest)
        better = dx + more[0], ds + more[1]
        rest, found = _rest(program, delta, lift, top, bottom, *better)
        if not found < size:
            break
        (dx, ds), size = better, found
    return dx, ds, needed


def _rest(
    program: Program,
    delta: Vector,
    lift: float,
    top: Vector,
    bottom: Vector,
    dx: Vector,
    ds: Vector,
) -> tuple[tuple[Vector, Vector], float]:
    first = top - program.P @ dx - lift * dx - program.backward(ds)
    second = bottom - program.forward(dx) + delta * ds
    size = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return (np.asarray(first), second), size


def all_rows(program: Program) -> Matrix:
    """The rows in one sparse matrix."""
    blocks = [sparse.csr_matrix((0, program.dimension))]
    blocks += [sparse.csr_matrix(block) for block in program.blocks]
    rows = sparse.vstack(blocks, format="csr")
    rows.eliminate_zeros()
    rows.sort_indices()
    return rows


class Lapack:
    """What a `DenseSystem` does with its large matrices, whose lower triangles count; all else is
    arithmetic on vectors. Here by BLAS and LAPACK; `torch/systems.py` has the same on a device.
    """

    def matrix(self, P: Matrix) -> Matrix:
        return np.asfortranarray(dense(P))

    def copy(self, H: Matrix) -> Matrix:
        return np.array(H, order="F")

    def rows(self, blocks: Sequence[Matrix], chosen: Sequence[Booleans], d: int) -> Matrix:
        """The chosen rows of all blocks, dense."""
        rows = [dense(block[mine]) for block, mine in zip(blocks, chosen, strict=True)]
        return np.vstack([np.zeros((0, d)), *rows])

    def add_gram(
        self, H: Matrix, diagonal: Vector, block: Matrix, runs: Runs | None, weights: Vector
    ) -> None:
        """Add block' diag(weights) block to H; rows of one entry to the diagonal."""
        if runs is None:
            _add_gram(H, diagonal, block, weights)
        else:
            runs.add_gram(weights, H)

    def add_squares(self, H: Matrix, E: Matrix, g: float) -> None:
        """Add g E'E to H."""
        scipy.linalg.blas.dsyrk(g, E.T, beta=1.0, c=H, lower=1, overwrite_c=1)

    def diagonal(self, H: Matrix) -> Vector:
        return np.array(H.diagonal())

    def set_diagonal(self, H: Matrix, values: Vector) -> None:
        H.flat[:: H.shape[0] + 1] = values

    def factor(self, H: Matrix) -> Matrix | None:
        """Cholesky's factor; None where there is none."""
        found, failed = scipy.linalg.lapack.dpotrf(H, lower=1, overwrite_a=0, clean=0)
        return None if failed else found

    def solve(self, lower: Matrix, right: Vector) -> Vector:
        return np.asarray(scipy.linalg.lapack.dpotrs(lower, right, lower=1)[0])

    def between(self, lower: Matrix, E: Matrix) -> Matrix:
        """E (lower lower')^-1 E'."""
        half = scipy.linalg.blas.dtrsm(1.0, lower, E.T, lower=1)
        return np.asfortranarray(half.T @ half)


LAPACK = Lapack()


class DenseSystem:
    """By Cholesky's factor of P + B'diag(1/delta)B, and of what equalities E make of it.

    H stands for that matrix without the equalities, plus g E'E, which changes no solution and
    makes H regular where E is needed for that; then E H^-1 E' is factored as well.
    """

    def __init__(self, program: Program, by: Lapack = LAPACK) -> None:
        self.program, self.by = program, by
        self.P = by.matrix(program.P)
        self.equal = np.flatnonzero(program.is_equality)
        chosen = [program.is_equality[rows] for rows, _, _ in program.parts]
        self.E = by.rows(program.blocks, chosen, program.dimension)

    def factor(self, delta: Vector, lift: float = 0.0) -> DenseFactor:
        by, H = self.by, self.by.copy(self.P)
        weights = 1.0 / np.maximum(delta, COSTS.least_delta)
        weights[self.equal] = 0.0
        diagonal = np.full(self.program.dimension, lift)
        for rows, block, runs in self.program.parts:
            by.add_gram(H, diagonal, block, runs, weights[rows])
        by.set_diagonal(H, by.diagonal(H) + diagonal)
        g = 0.0
        if self.equal.size:
            g = max(1.0, float(np.median(by.diagonal(H))))
            by.add_squares(H, self.E, g)
        return DenseFactor(self, weights, cholesky(H, by), g)


def _add_gram(H: Floats, diagonal: Vector, block: Matrix, weights: Vector) -> None:
    """Add block' diag(weights) block to the lower triangle of H, singletons to the diagonal."""
    if not sparse.issparse(block):
        kept = weights > COSTS.negligible_delta * weights.max(initial=0.0)
        rows = block if kept.all() else block[kept]
        add_gram(H, scaled_rows(np.sqrt(weights[kept]), rows))
        return
    if block.nnz == block.shape[0] and np.all(np.diff(block.indptr) == 1):
        np.add.at(diagonal, block.indices, weights * np.square(block.data))
        return
    weighted_gram(block.data, block.indices, block.indptr, weights, H)


def cholesky(H: Matrix, by: Lapack = LAPACK) -> Matrix:
    """The factor of H, shifted as little as it takes."""
    sizes = by.diagonal(H)
    shift = COSTS.dense_shift * sizes + COSTS.least_shift
    for _ in range(COSTS.shift_trials):
        by.set_diagonal(H, sizes + shift)
        factor = by.factor(H)
        if factor is not None:
            return factor
        shift *= COSTS.shift_growth
    raise RuntimeError("the matrix of Newton's equations is singular")


class DenseFactor:
    def __init__(self, system: DenseSystem, weights: Vector, factor: Matrix, g: float) -> None:
        self.system, self.weights, self.lower, self.g = system, weights, factor, g
        if system.equal.size:
            self.inner = cholesky(system.by.between(factor, system.E), system.by)

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        program, system, by = self.system.program, self.system, self.system.by
        right = top + program.backward(self.weights * bottom)
        if not system.equal.size:
            dx = by.solve(self.lower, right)
            return dx, self.weights * (program.forward(dx) - bottom)
        level = bottom[system.equal]
        right = right + self.g * (system.E.T @ level)
        free = by.solve(self.lower, right)
        dy = by.solve(self.inner, system.E @ free - level)
        dx = by.solve(self.lower, right - system.E.T @ dy)
        ds = self.weights * (program.forward(dx) - bottom)
        ds[system.equal] = dy
        return dx, ds


class SparseSystem:
    """By SuperLU; rows with one entry are folded into the diagonal of P.

    `shift` keeps the factor going where P or the equalities are singular; where they are not, the
    smallest leaves least to refine.
    """

    def __init__(self, program: Program, shift: float = COSTS.diagonal_shift) -> None:
        self.program, self.shift = program, shift
        B = all_rows(program)
        alone = (np.diff(B.indptr) <= 1) & ~program.is_equality
        self.alone, self.kept = np.flatnonzero(alone), np.flatnonzero(~alone)
        single = B[self.alone]
        self.single = np.zeros(self.alone.size), np.zeros(self.alone.size, dtype=np.int64)
        has_entry = np.diff(single.indptr) == 1
        self.single[0][has_entry], self.single[1][has_entry] = single.data, single.indices
        rows, self.equal = B[self.kept], program.is_equality[self.kept]
        bend = sparse.csr_matrix(program.P) + sparse.identity(program.dimension)
        lines = [[bend, rows.T], [rows, -sparse.identity(self.kept.size)]]
        matrix = sparse.bmat(lines, format="csc")
        self.order = fill_reducing(matrix)
        self.matrix = matrix[self.order][:, self.order].tocsc()
        self.matrix.sort_indices()
        columns = np.repeat(np.arange(self.order.size), np.diff(self.matrix.indptr))
        self.diagonal = np.flatnonzero(self.matrix.indices == columns)
        self.base = np.asarray(program.P.diagonal())

    @cached_property
    def seconds(self) -> float:
        """About how long a factorisation takes."""
        entries, products = factor_size(self.matrix)
        return products / COSTS.sparse_rate + (entries + self.order.size) / COSTS.entry_rate

    def factor(self, delta: Vector, lift: float = 0.0) -> SparseFactor:
        entry, column = self.single
        weights = 1.0 / np.maximum(delta[self.alone], COSTS.least_delta)
        top = self.base + lift
        np.add.at(top, column, weights * np.square(entry))
        top += self.shift * max(1.0, float(self.base.max(initial=0.0)))
        bottom = -np.where(self.equal, self.shift, delta[self.kept])
        matrix = self.matrix.copy()
        matrix.data[self.diagonal] = np.concatenate([top, bottom])[self.order]
        return SparseFactor(self, weights, _lu(matrix, "NATURAL"))


class SparseFactor:
    def __init__(self, system: SparseSystem, weights: Vector, inverse: Any) -> None:
        self.system, self.weights, self.inverse = system, weights, inverse

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        system = self.system
        if not system.alone.size:
            parts = self._whole(np.concatenate([top, bottom]))
            return parts[: top.size], parts[top.size :]
        entry, column = system.single
        folded = bottom[system.alone]
        upper = top.copy()
        np.add.at(upper, column, entry * self.weights * folded)
        parts = self._whole(np.concatenate([upper, bottom[system.kept]]))
        dx = parts[: upper.size]
        ds = np.empty(bottom.size)
        ds[system.kept] = parts[upper.size :]
        ds[system.alone] = self.weights * (entry * dx[column] - folded)
        return dx, ds

    def _whole(self, right: Vector) -> Vector:
        parts = np.empty(right.size)
        parts[self.system.order] = self.inverse.solve(right[self.system.order])
        return parts


def _lu(matrix: Matrix, order: str) -> Any:
    from scipy.sparse.linalg import splu

    return splu(matrix, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def dense_seconds(P: Matrix, blocks: Sequence[Matrix]) -> float:
    """About how long a dense factorisation takes."""
    d = P.shape[0]
    if 8.0 * d * d > COSTS.largest_matrix:
        return np.inf
    seconds = d**3 / 3.0 / COSTS.dense_rate
    return float(seconds + sum(dense_rows_seconds(block, d) for block in blocks))


def dense_rows_seconds(block: Matrix, dimension: int) -> float:
    """... for adding rows to the matrix."""
    if not sparse.issparse(block):
        return float(block.shape[0]) * dimension * dimension / COSTS.product_rate
    return float(np.square(np.diff(block.indptr), dtype=np.float64).sum()) / COSTS.gram_rate


# -------------------------------------------------------------------------------------------------
# In which order a sparse symmetric matrix is eliminated, and what its factor then costs.


def fill_reducing(matrix: Matrix) -> Indices:
    """By minimum degree (Liu 1985); a few long rows come last, among which that search takes
    minutes.
    """
    last = is_last(matrix)
    short = np.flatnonzero(~last)
    inner = matrix if short.size == last.size else matrix[short][:, short]
    return np.concatenate([short[_by_degree(inner)], np.flatnonzero(last)])


def is_last(matrix: Matrix) -> Booleans:
    """The long rows of a symmetric matrix, where they are few."""
    is_long = np.diff(matrix.indptr) > COSTS.long_row
    few = np.count_nonzero(is_long) <= COSTS.free_dense_dimension
    return is_long if few else np.zeros_like(is_long)


def _by_degree(matrix: Matrix) -> Indices:
    """The order that SuperLU finds; the incomplete factor that comes with it is cheap."""
    from scipy.sparse.linalg import spilu

    pattern = sparse.csc_matrix(
        (np.full(matrix.nnz, 1.0 / matrix.shape[0]), matrix.indices, matrix.indptr), matrix.shape
    )
    regular = sparse.csc_matrix(pattern + sparse.identity(matrix.shape[0]))
    found = spilu(regular, permc_spec="MMD_AT_PLUS_A", drop_tol=np.inf, fill_factor=1.0)
    return np.argsort(found.perm_c)


def factor_size(matrix: Matrix) -> tuple[float, float]:
    """Entries of the factor of an ordered matrix, and multiplications; infinite where it is too
    large.
    """
    counts, parent, work = np.empty((3, matrix.shape[0]), dtype=np.int64)
    pattern = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    entries = factor_counts(*pattern, COSTS.most_sparse_factor_entries, counts, parent, work)
    if entries > COSTS.most_sparse_factor_entries:
        return np.inf, np.inf
    return float(entries), float(np.square(counts, dtype=np.float64).sum())


# -------------------------------------------------------------------------------------------------
# Newton's equations where many parameters come in small blocks that no row joins.
#
# In convex regression, say, every row holds two values and one slope. Slopes of different points
# meet in no row: they are eliminated block by block, and only the values are left for a dense
# factor (the Schur complement).


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block k holds the parameters members[k], padded with -1; no row touches two blocks."""

    members: Indices

    @property
    def eliminated(self) -> Indices:
        return self.members[self.members >= 0]


def independent_blocks(P: Matrix, rows: Matrix) -> Blocks | None:
    """Blocks of parameters that occur in the same rows, such that no row touches two of them.

    Greedy, those in the fewest rows first. None where there are none.
    """
    dimension = rows.shape[1]
    columns = sparse.csc_matrix(rows)
    key = np.random.default_rng(0).integers(1, 2**62, rows.shape[0], dtype=np.int64)
    sums = np.zeros(dimension, dtype=np.int64)
    counts = np.diff(columns.indptr)
    which = np.repeat(np.arange(dimension), counts)
    np.add.at(sums, which, key[columns.indices])  # equal for parameters in the same rows
    entries = sparse.coo_matrix(P)
    joined = np.zeros(dimension, dtype=bool)
    joined[entries.row[entries.row != entries.col]] = True
    order = np.lexsort((np.arange(dimension), sums, counts))
    order = order[~joined[order] & (counts[order] > 0)]
    if not order.size:
        return None
    starts = np.flatnonzero(np.diff(sums[order], prepend=sums[order[:1]] - 1) != 0)
    taken: Booleans = np.zeros(rows.shape[0], dtype=bool)
    found = []
    for first, last in zip(starts, [*starts[1:], order.size], strict=True):
        group = order[first:last]
        touched = columns.indices[columns.indptr[group[0]] : columns.indptr[group[0] + 1]]
        if group.size <= COSTS.largest_block and not taken[touched].any():
            taken[touched] = True
            found.append(group)
    if not found:
        return None
    members = np.full((len(found), max(map(len, found))), -1, dtype=np.int64)
    for k, group in enumerate(found):
        members[k, : group.size] = group
    return Blocks(members)


class BlockSystem:
    """Blocks are eliminated, the rest goes to a dense factor; no equalities."""

    def __init__(self, program: Program, rows: Matrix, blocks: Blocks) -> None:
        self.program, members = program, blocks.members
        self.inside = members >= 0
        self.first = blocks.eliminated
        rest = np.ones(program.dimension, dtype=bool)
        rest[self.first] = False
        self.second = np.flatnonzero(rest)
        self.one, self.two = sparse.csr_matrix(rows[:, self.first]), rows[:, self.second]
        self.two = sparse.csr_matrix(self.two)
        self.two.sort_indices()
        self.one_back = sparse.csr_matrix(self.one.T)
        size = self.first.size
        block = np.broadcast_to(np.arange(members.shape[0])[:, None], members.shape)[self.inside]
        place = np.broadcast_to(np.arange(members.shape[1]), members.shape)[self.inside]
        self.place = block, place
        self.shape = (members.shape[0], members.shape[1])
        self.bend = np.asarray(program.P.diagonal())[self.first]
        pairs = self.inside[:, :, None] & self.inside[:, None, :]
        number = np.zeros(self.shape, dtype=np.int64)
        number[self.inside] = np.arange(size)
        left = np.broadcast_to(number[:, :, None], pairs.shape)[pairs]
        right = np.broadcast_to(number[:, None, :], pairs.shape)[pairs]
        self.pairs, self.ends = pairs, (left, right)

    @cached_property
    def P(self) -> Floats:
        """Of the parameters that are left."""
        return np.asfortranarray(dense(self.program.P[self.second][:, self.second]))

    @property
    def seconds(self) -> float:
        """About how long a factorisation takes."""
        pattern = self.one_back.astype(bool) @ self.two.astype(bool)
        squares = float(np.square(np.diff(pattern.indptr), dtype=np.float64).sum())
        d = self.second.size
        rows = dense_rows_seconds(self.two, d)
        return squares / COSTS.gram_rate + rows + d**3 / 3.0 / COSTS.dense_rate

    def factor(self, delta: Vector, lift: float = 0.0) -> BlockFactor:
        weights = 1.0 / np.maximum(delta, COSTS.least_delta)
        weighted = self.one_back @ sparse.diags(weights)
        own = sparse.coo_matrix(weighted @ self.one)
        block, place = self.place
        H = np.zeros((*self.shape, self.shape[1]))
        np.add.at(H, (block[own.row], place[own.row], place[own.col]), own.data)
        spare = np.where(self.inside, 0.0, 1.0)
        spare[block, place] += self.bend + lift
        diagonal = np.arange(self.shape[1])
        H[:, diagonal, diagonal] += spare
        H[:, diagonal, diagonal] *= 1.0 + COSTS.dense_shift
        H[:, diagonal, diagonal] += COSTS.least_shift
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(H))
        except np.linalg.LinAlgError:
            raise RuntimeError("a block of Newton's equations is singular") from None
        size = self.first.size
        lower = sparse.csr_matrix((inverse[self.pairs], self.ends), shape=(size, size))
        Z = sparse.csr_matrix(lower @ (weighted @ self.two))
        Z.sort_indices()
        S = np.array(self.P, order="F")
        S.flat[:: S.shape[0] + 1] += lift
        weighted_gram(self.two.data, self.two.indices, self.two.indptr, weights, S)
        weighted_gram(Z.data, Z.indices, Z.indptr, np.full(size, -1.0), S)
        return BlockFactor(self, weights, lower, Z, cholesky(S))


class BlockFactor:
    def __init__(
        self, system: BlockSystem, weights: Vector, lower: Matrix, Z: Matrix, factor: Floats
    ) -> None:
        self.system, self.weights, self.lower, self.Z, self.rest = system, weights, lower, Z, factor
        self.lower_back, self.Z_back = lower.T, Z.T

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        system, program = self.system, self.system.program
        right = top + program.backward(self.weights * bottom)
        y = self.lower @ right[system.first]
        two = right[system.second] - self.Z_back @ y
        if two.size:  # otherwise the blocks hold every parameter
            half = scipy.linalg.blas.dtrsv(self.rest, two, lower=1)
            two = scipy.linalg.blas.dtrsv(self.rest, half, lower=1, trans=1)  # faster than dpotrs
        dx = np.empty(program.dimension)
        dx[system.second] = two
        dx[system.first] = self.lower_back @ (y - self.Z @ two)
        return dx, self.weights * (program.forward(dx) - bottom)


def block_system(program: Program) -> BlockSystem | None:
    """The equations by blocks, where that is worth it."""
    if program.is_equality.any() or any(not sparse.issparse(b) for b in program.blocks):
        return None
    rows = all_rows(program)
    several = np.diff(rows.indptr) > 1
    blocks = independent_blocks(program.P, rows[several])
    if blocks is None:
        return None
    left = float(program.dimension - blocks.eliminated.size)
    return BlockSystem(program, rows, blocks) if 8.0 * left**2 <= COSTS.largest_matrix else None


# -------------------------------------------------------------------------------------------------
# Which equations to factor: all of them, by blocks, or dense.


def expected_seconds(program: Program) -> float:
    """Of a factorisation, without looking for an order where that takes longer than it is worth."""
    by_dense = dense_seconds(program.P, program.blocks)
    if np.isinf(by_dense) and is_wide(program):
        return by_dense
    return choose_system(program)[1]


def is_wide(program: Program) -> bool:
    """Whether parameters and rows are joined so closely that a sparse factor fills up, and finding
    an order for it takes minutes: many of them are equally far from the first one. A few long rows
    and columns do not count: they are eliminated last.
    """
    rows = all_rows(program)
    rows = rows[np.diff(rows.indptr) > 1]  # others join nothing
    if rows.shape[0] + program.dimension <= COSTS.ordered_at_once:
        return False
    graph = sparse.bmat([[sparse.csr_matrix(program.P), rows.T], [rows, None]], format="csr")
    graph.data[:] = 1.0
    short = np.flatnonzero(~is_last(graph))
    graph = graph[short][:, short]
    away = dijkstra(graph, directed=False, indices=0, unweighted=True)
    return bool(np.bincount(away[np.isfinite(away)].astype(int)).max() > COSTS.widest_level)


def choose_system(program: Program) -> tuple[System, float]:
    """The system that is expected to be fastest, and the seconds of a factorisation."""
    by_dense = dense_seconds(program.P, program.blocks)
    stored = sum(map(entries, program.blocks))
    full = float(program.count + program.dimension) * program.dimension
    is_dense = stored + entries(program.P) > COSTS.full_share * full
    if by_dense <= COSTS.short or stored > COSTS.most_entries or is_dense:
        return DenseSystem(program), by_dense
    by_blocks, seconds = block_system(program), by_dense
    if by_blocks is not None:
        seconds = min(by_dense, by_blocks.seconds)
        by_blocks = by_blocks if by_blocks.seconds <= by_dense else None
    if _may_be_faster(program, seconds):
        by_pieces = SparseSystem(program)
        if by_pieces.seconds < seconds:
            return by_pieces, by_pieces.seconds
    return by_blocks or DenseSystem(program), seconds


def _may_be_faster(program: Program, seconds: float) -> bool:
    """Whether a sparse factor may take less than this, and an order for it is found in less time
    than all steps take: a factor has at least the entries of its matrix.
    """
    counts = [np.diff(sparse.csr_matrix(block).indptr) for block in program.blocks]
    joined = np.concatenate([np.zeros(0, dtype=np.int64), *counts])
    joined = joined[joined > 1]  # others are folded into the diagonal
    size = joined.size + program.dimension
    bends = max(0.0, 0.5 * (entries(program.P) - program.dimension))
    if (float(joined.sum()) + bends + size) / COSTS.entry_rate >= seconds:
        return False
    if (program.count + program.dimension) / COSTS.order_rate > COSTS.typical_steps * seconds:
        return False
    return not (np.isfinite(seconds) and is_wide(program))
