"""Newton's equations where many parameters come in small blocks that no row joins.

In convex regression, say, every row holds two values and one slope. Slopes of different points meet
in no row: they are eliminated block by block, and only the values are left for a dense factor (the
Schur complement).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program
from lighttouch.interior.systems import all_rows, cholesky, dense_rows_seconds
from lighttouch.kernels.numerics.gram import weighted_gram


@dataclass(frozen=True, eq=False)
class Blocks:
    """Block k holds the parameters members[k], padded with -1; no row touches two blocks."""

    members: Indices

    @property
    def eliminated(self) -> Indices:
        return self.members[self.members >= 0]


def independent_blocks(P: Matrix, rows: Matrix) -> Blocks | None:
    """Blocks of parameters that occur in the same rows, such that no row touches two of them.

    Greedy, those in the fewest rows first. None where they are too few to be worth it.
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
    if sum(map(len, found)) < COSTS.eliminated_share * dimension:
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
        half = scipy.linalg.blas.dtrsv(self.rest, right[system.second] - self.Z_back @ y, lower=1)
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
