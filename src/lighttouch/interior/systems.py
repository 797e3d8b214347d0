"""Newton's equations of an interior point, P dx + B'ds = top and B dx - diag(delta) ds = bottom.

`SparseSystem` factors the whole matrix with rows of several entries kept apart (SuperLU), without
squaring them: long chains of second differences, whose Gram matrix no double can hold, come out
right. `DenseSystem` factors P + B'diag(1/delta)B (Cholesky): BLAS is tens of times faster where
that matrix is full anyway. Both are refined against the equations themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Floats, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program
from lighttouch.kernels.numerics.gram import weighted_gram
from lighttouch.projections.rows.kinds import factor_cost


class Factor(Protocol):
    """Of the matrix for one delta; a little off, which refinement removes."""

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]: ...


class System(Protocol):
    """The equations of one program."""

    program: Program

    def factor(self, delta: Vector, lift: float = 0.0) -> Factor:
        """For P + lift I in place of P."""


def refined(
    program: Program, factor: Factor, delta: Vector, top: Vector, bottom: Vector
) -> tuple[Vector, Vector]:
    """The solution, refined while that helps."""
    dx, ds = factor.solve(top, bottom)
    rest, size = _rest(program, delta, top, bottom, dx, ds)
    for _ in range(COSTS.refinements):
        if size == 0.0 or not np.isfinite(size):
            break
        more = factor.solve(*rest)
        better = dx + more[0], ds + more[1]
        rest, found = _rest(program, delta, top, bottom, *better)
        if not found < size:
            break
        (dx, ds), size = better, found
    return dx, ds


def _rest(
    program: Program, delta: Vector, top: Vector, bottom: Vector, dx: Vector, ds: Vector
) -> tuple[tuple[Vector, Vector], float]:
    first = top - program.P @ dx - program.backward(ds)
    second = bottom - program.forward(dx) + delta * ds
    size = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return (np.asarray(first), second), size


class DenseSystem:
    """By Cholesky's factor of P + B'diag(1/delta)B."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.P = np.asfortranarray(dense(program.P))

    def factor(self, delta: Vector, lift: float = 0.0) -> DenseFactor:
        weights = 1.0 / np.maximum(delta, COSTS.least_delta)
        H = np.array(self.P, order="F")
        diagonal = np.full(self.program.dimension, lift)
        for first, block in zip(self.program.starts, self.program.blocks, strict=False):
            _add_gram(H, diagonal, block, weights[first : first + block.shape[0]])
        H.flat[:: H.shape[0] + 1] += diagonal
        return DenseFactor(self.program, weights, _cholesky(H))


def _add_gram(H: Floats, diagonal: Vector, block: Matrix, weights: Vector) -> None:
    """Add block' diag(weights) block to the lower triangle of H, singletons to the diagonal."""
    if not sparse.issparse(block):
        kept = weights > COSTS.negligible_delta * weights.max(initial=0.0)
        rows = block if kept.all() else block[kept]
        rows = np.sqrt(weights[kept])[:, None] * rows
        scipy.linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=H, lower=1, overwrite_c=1)
        return
    if block.nnz == block.shape[0] and np.all(np.diff(block.indptr) == 1):
        np.add.at(diagonal, block.indices, weights * np.square(block.data))
        return
    weighted_gram(block.data, block.indices, block.indptr, weights, H)


def _cholesky(H: Floats) -> Floats:
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
    def __init__(self, program: Program, weights: Vector, factor: Floats) -> None:
        self.program, self.weights, self.lower = program, weights, factor

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        right = top + self.program.backward(self.weights * bottom)
        dx, _ = scipy.linalg.lapack.dpotrs(self.lower, right, lower=1)
        return dx, self.weights * (self.program.forward(dx) - bottom)


class SparseSystem:
    """By SuperLU; rows with one entry are folded into the diagonal of P."""

    def __init__(self, program: Program) -> None:
        self.program = program
        B = sparse.vstack([sparse.csr_matrix(block) for block in program.blocks], format="csr")
        B.sort_indices()
        B.eliminate_zeros()
        alone = np.diff(B.indptr) <= 1
        alone &= ~program.is_equality
        self.alone, self.kept = np.flatnonzero(alone), np.flatnonzero(~alone)
        single = B[self.alone]
        self.single = np.zeros(self.alone.size), np.zeros(self.alone.size, dtype=np.int64)
        has_entry = np.diff(single.indptr) == 1
        self.single[0][has_entry], self.single[1][has_entry] = single.data, single.indices
        self.rows, self.equal = B[self.kept], program.is_equality[self.kept]
        dimension, count = program.dimension, self.kept.size
        bend = program.P + sparse.identity(dimension)
        lines = [[bend, self.rows.T], [self.rows, -sparse.identity(count)]]
        matrix = sparse.bmat(lines, format="csc")
        self.order = np.argsort(_lu(matrix, "MMD_AT_PLUS_A").perm_c)
        self.matrix = matrix[self.order][:, self.order].tocsc()
        self.matrix.sort_indices()
        columns = np.repeat(np.arange(self.order.size), np.diff(self.matrix.indptr))
        self.diagonal = np.flatnonzero(self.matrix.indices == columns)
        self.base = np.asarray(program.P.diagonal())

    def factor(self, delta: Vector, lift: float = 0.0) -> SparseFactor:
        entry, column = self.single
        weights = 1.0 / np.maximum(delta[self.alone], COSTS.least_delta)
        top = self.base + lift
        np.add.at(top, column, weights * np.square(entry))
        top += COSTS.diagonal_shift * max(1.0, float(self.base.max(initial=0.0)))
        bottom = -np.where(self.equal, COSTS.diagonal_shift, delta[self.kept])
        matrix = self.matrix.copy()
        matrix.data[self.diagonal] = np.concatenate([top, bottom])[self.order]
        return SparseFactor(self, weights, _lu(matrix, "NATURAL"))


class SparseFactor:
    def __init__(self, system: SparseSystem, weights: Vector, inverse: Any) -> None:
        self.system, self.weights, self.inverse = system, weights, inverse

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        system = self.system
        entry, column = system.single
        folded = bottom[system.alone]
        upper = top.copy()
        np.add.at(upper, column, entry * self.weights * folded)
        right = np.concatenate([upper, bottom[system.kept]])
        parts = np.empty(right.size)
        parts[system.order] = self.inverse.solve(right[system.order])
        dx = parts[: upper.size]
        ds = np.empty(bottom.size)
        ds[system.kept] = parts[upper.size :]
        ds[system.alone] = self.weights * (entry * dx[column] - folded)
        return dx, ds


def _lu(matrix: Matrix, order: str) -> Any:
    from scipy.sparse.linalg import splu

    return splu(matrix, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def choose_system(program: Program) -> System:
    """Dense or sparse, whichever is expected to be faster."""
    by_dense, by_sparse = _seconds(program.P, program.blocks)
    return DenseSystem(program) if by_dense <= by_sparse else SparseSystem(program)


def seconds_per_step(P: Matrix, blocks: Sequence[Matrix]) -> float:
    """About how long a factorisation takes."""
    return min(_seconds(P, blocks))


def _seconds(P: Matrix, blocks: Sequence[Matrix]) -> tuple[float, float]:
    d = P.shape[0]
    if d <= COSTS.small_dimension:
        return 0.0, np.inf
    by_dense = d**3 / 3.0 / COSTS.dense_rate
    for block in blocks:
        if sparse.issparse(block):
            squares = float(np.square(np.diff(block.indptr), dtype=np.float64).sum())
            by_dense += squares / COSTS.gram_rate
        else:
            by_dense += float(block.shape[0]) * d * d / COSTS.product_rate
    if 8.0 * d * d > COSTS.largest_matrix:
        by_dense = np.inf
    entries = [block.size if not sparse.issparse(block) else block.nnz for block in blocks]
    if sum(entries) > COSTS.most_entries:
        return by_dense, np.inf
    rows = sparse.vstack([sparse.csr_matrix(block) for block in blocks], format="csr")
    several = np.diff(rows.indptr) > 1
    cost = factor_cost(sparse.csr_matrix(P), rows[several])
    return by_dense, cost / COSTS.sparse_rate
