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

from lighttouch.arrays import Floats, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program
from lighttouch.interior.tiles import add_gram
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


class DenseSystem:
    """By Cholesky's factor of P + B'diag(1/delta)B, and of what equalities E make of it.

    H stands for that matrix without the equalities, plus g E'E, which changes no solution and
    makes H regular where E is needed for that; then E H^-1 E' is factored as well.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.P = np.asfortranarray(dense(program.P))
        self.equal = np.flatnonzero(program.is_equality)
        rows = [
            dense(block[program.is_equality[first : first + block.shape[0]]])
            for first, block in zip(program.starts, program.blocks, strict=False)
        ]
        self.E = np.vstack([np.zeros((0, program.dimension)), *rows])

    def factor(self, delta: Vector, lift: float = 0.0) -> DenseFactor:
        weights = 1.0 / np.maximum(delta, COSTS.least_delta)
        weights[self.equal] = 0.0
        H = np.array(self.P, order="F")
        diagonal = np.full(self.program.dimension, lift)
        for rows, block, runs in self.program.parts:
            if runs is None:
                _add_gram(H, diagonal, block, weights[rows])
            else:
                runs.add_gram(weights[rows], H)
        H.flat[:: H.shape[0] + 1] += diagonal
        g = 0.0
        if self.equal.size:
            g = max(1.0, float(np.median(H.diagonal())))
            scipy.linalg.blas.dsyrk(g, self.E.T, beta=1.0, c=H, lower=1, overwrite_c=1)
        return DenseFactor(self, weights, cholesky(H), g)


def _add_gram(H: Floats, diagonal: Vector, block: Matrix, weights: Vector) -> None:
    """Add block' diag(weights) block to the lower triangle of H, singletons to the diagonal."""
    if not sparse.issparse(block):
        kept = weights > COSTS.negligible_delta * weights.max(initial=0.0)
        rows = block if kept.all() else block[kept]
        rows = np.sqrt(weights[kept])[:, None] * rows
        add_gram(H, rows)
        return
    if block.nnz == block.shape[0] and np.all(np.diff(block.indptr) == 1):
        np.add.at(diagonal, block.indices, weights * np.square(block.data))
        return
    weighted_gram(block.data, block.indices, block.indptr, weights, H)


def cholesky(H: Floats) -> Floats:
    """The factor of H, shifted as little as it takes."""
    d = H.shape[0]
    sizes = H.diagonal().copy()
    shift = COSTS.dense_shift * sizes + COSTS.least_shift
    for _ in range(COSTS.shift_trials):
        H.flat[:: d + 1] = sizes + shift
        factor, failed = scipy.linalg.lapack.dpotrf(H, lower=1, overwrite_a=0, clean=0)
        if not failed:
            return np.asarray(factor)
        shift *= COSTS.shift_growth
    raise RuntimeError("the matrix of Newton's equations is singular")


class DenseFactor:
    def __init__(self, system: DenseSystem, weights: Vector, factor: Floats, g: float) -> None:
        self.system, self.weights, self.lower, self.g = system, weights, factor, g
        if system.equal.size:
            self.half = scipy.linalg.blas.dtrsm(1.0, factor, system.E.T, lower=1)
            self.inner = cholesky(np.asfortranarray(self.half.T @ self.half))

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        program, system = self.system.program, self.system
        right = top + program.backward(self.weights * bottom)
        if not system.equal.size:
            dx, _ = scipy.linalg.lapack.dpotrs(self.lower, right, lower=1)
            return dx, self.weights * (program.forward(dx) - bottom)
        level = bottom[system.equal]
        right = right + self.g * (system.E.T @ level)
        free, _ = scipy.linalg.lapack.dpotrs(self.lower, right, lower=1)
        dy, _ = scipy.linalg.lapack.dpotrs(self.inner, system.E @ free - level, lower=1)
        dx, _ = scipy.linalg.lapack.dpotrs(self.lower, right - system.E.T @ dy, lower=1)
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
        self.order = np.argsort(_fill_reducing(matrix))
        self.matrix = matrix[self.order][:, self.order].tocsc()
        self.matrix.sort_indices()
        columns = np.repeat(np.arange(self.order.size), np.diff(self.matrix.indptr))
        self.diagonal = np.flatnonzero(self.matrix.indices == columns)
        self.base = np.asarray(program.P.diagonal())

    @cached_property
    def seconds(self) -> float:
        """About how long a factorisation takes."""
        size = self.order.size
        counts, parent, work = (np.empty(size, dtype=np.int64) for _ in range(3))
        pattern = self.matrix.indptr.astype(np.int64), self.matrix.indices.astype(np.int64)
        entries = factor_counts(*pattern, COSTS.most_factor_entries, counts, parent, work)
        if entries > COSTS.most_factor_entries:
            return np.inf
        products = float(np.square(counts, dtype=np.float64).sum())
        return float(products / COSTS.sparse_rate + (entries + size) / COSTS.entry_rate)

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


def _fill_reducing(matrix: Matrix) -> Any:
    """An order of minimum degree (Liu 1985); the incomplete factor that comes with it is cheap."""
    from scipy.sparse.linalg import spilu

    pattern = sparse.csc_matrix(
        (np.full(matrix.nnz, 1.0 / matrix.shape[0]), matrix.indices, matrix.indptr), matrix.shape
    )
    regular = sparse.csc_matrix(pattern + sparse.identity(matrix.shape[0]))
    return spilu(regular, permc_spec="MMD_AT_PLUS_A", drop_tol=np.inf, fill_factor=1.0).perm_c


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
