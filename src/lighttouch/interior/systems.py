"""Newton's equations of an interior point, P dx + B'ds = top and B dx - diag(delta) ds = bottom.

`SparseSystem` factors the whole matrix with rows of several entries kept apart (SuperLU), without
squaring them: long chains of second differences, whose Gram matrix no double can hold, come out
right. `DenseSystem` factors P + B'diag(1/delta)B (Cholesky): BLAS is tens of times faster where
that matrix is full anyway. Both are refined against the equations themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, Runs
from lighttouch.interior.tiles import add_gram, scaled_rows
from lighttouch.kernels.numerics.fill import factor_counts
from lighttouch.kernels.numerics.gram import weighted_gram


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
    few = np.count_nonzero(is_long) <= COSTS.small_dimension
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
    entries = factor_counts(*pattern, COSTS.most_factor_entries, counts, parent, work)
    if entries > COSTS.most_factor_entries:
        return np.inf, np.inf
    return float(entries), float(np.square(counts, dtype=np.float64).sum())
