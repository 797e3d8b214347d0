"""Extended linear-quadratic programs (Rockafellar and Wets 1986): one form for losses and rules.

Minimise x'Px/2 + q.x + sum_k rho_k(b_k.x - c_k), where each row k has the penalty

    rho(u) = sup { s u - r s^2 / 2 : l <= s <= h }.

An inequality b.x <= c has slopes s from 0 to infinity (its multiplier), an equality any slope; with
share a of an example, the hinge and the absolute loss have slopes between -a and a, and r = 0; the
squared loss any slope and r = 1 / a; Huber's loss both. Rows of smooth losses that are none of
these (logistic, Poisson) have s = a phi'(u) instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector, dense, in_parts
from lighttouch.interior.costs import COSTS
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import conjugate_values, derivatives


@dataclass(frozen=True)
class Smooth:
    """Rows start..stop-1 carry share phi(u; y), with phi from the table of losses."""

    start: int
    stop: int
    share: Vector
    y: Vector
    loss: LossRow


@dataclass(frozen=True, eq=False)
class Program:
    """The data of a program; `blocks` are the rows of B, dense or sparse, one below the other."""

    P: Matrix
    q: Vector
    blocks: tuple[Matrix, ...]
    centre: Vector
    least: Vector
    most: Vector
    roundness: Vector
    smooth: tuple[Smooth, ...] = ()
    constant: float = 0.0

    @property
    def dimension(self) -> int:
        return int(self.q.size)

    @property
    def count(self) -> int:
        return int(self.centre.size)

    @cached_property
    def backwards(self) -> tuple[Matrix, ...]:
        return tuple(
            block.T.tocsr() if sparse.issparse(block) else block.T for block in self.blocks
        )

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of every block, and after the last the count of all."""
        return tuple(np.cumsum([0, *(block.shape[0] for block in self.blocks)]).tolist())

    @cached_property
    def parts(self) -> tuple[tuple[slice, Matrix, Runs | None], ...]:
        """The places of each block's rows, the block, and its runs where they are long."""
        return tuple(
            (slice(first, first + b.shape[0]), b, runs_of(b) if sparse.issparse(b) else None)
            for first, b in zip(self.starts, self.blocks, strict=False)
        )

    @cached_property
    def rows(self) -> Matrix:
        """B, sparse and by columns."""
        blocks = [sparse.csr_matrix((0, self.dimension)), *map(sparse.csr_matrix, self.blocks)]
        return sparse.vstack(blocks, format="csc")

    def forward(self, x: Vector) -> Vector:
        """B x."""
        found = [np.asarray(b @ x) if r is None else r.forward(x) for _, b, r in self.parts]
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0), *found])

    def backward(self, s: Vector) -> Vector:
        """B's."""
        out = np.zeros(self.dimension)
        for (rows, _, runs), back in zip(self.parts, self.backwards, strict=True):
            if runs is None:
                out += back @ s[rows]
            else:
                runs.add_backward(s[rows], out)
        return out

    @cached_property
    def sizes(self) -> Program:
        """The same with absolute values: how large the terms of sums are."""
        return replace(
            self, P=abs(self.P), q=np.abs(self.q), blocks=tuple(abs(b) for b in self.blocks)
        )

    @cached_property
    def below(self) -> Booleans:
        """Rows whose slope has a finite least value; they have a slack on that side."""
        return np.isfinite(self.least)

    @cached_property
    def above(self) -> Booleans:
        return np.isfinite(self.most)

    @cached_property
    def is_smooth(self) -> Booleans:
        found = np.zeros(self.count, dtype=bool)
        for each in self.smooth:
            found[each.start : each.stop] = True
        return found

    @cached_property
    def is_equality(self) -> Booleans:
        straight = ~self.is_smooth & (self.roundness == 0.0)
        return np.asarray(straight & ~self.below & ~self.above)

    def smooth_terms(self, u: Vector) -> tuple[float, Vector, Vector]:
        """The sum of the smooth losses, and the slope and curvature of every row (0 elsewhere)."""
        total, slopes, curvatures = 0.0, np.zeros(self.count), np.zeros(self.count)
        for each in self.smooth:
            at = slice(each.start, each.stop)
            values, first, second = derivatives(each.loss, u[at], each.y)
            total += float(each.share @ values)
            slopes[at], curvatures[at] = each.share * first, each.share * second
        return total, slopes, curvatures

    def conjugates(self, s: Vector) -> tuple[Vector, float]:
        """Slopes moved into their bounds, and sum_k (s_k c_k + rho_k*(s_k)) there."""
        allowed = np.clip(s, self.least, self.most)
        total = float(allowed @ self.centre) + 0.5 * float(self.roundness @ np.square(allowed))
        for each in self.smooth:
            at = slice(each.start, each.stop)
            slopes, values = conjugate_values(each.loss, allowed[at] / each.share, each.y)
            moved = each.share * slopes
            total += float((moved - allowed[at]) @ self.centre[at]) + float(each.share @ values)
            allowed[at] = moved
        return allowed, total

    def conjugate_size(self, s: Vector) -> float:
        """The sum of the sizes of the terms of `conjugates`, for what adding them up rounds."""
        straight = np.abs(s) @ np.abs(self.centre) + 0.5 * self.roundness @ np.square(s)
        total = float(straight)
        for each in self.smooth:
            at = slice(each.start, each.stop)
            values = conjugate_values(each.loss, s[at] / each.share, each.y)[1]
            total += float(each.share @ np.abs(values))
        return total

    def penalty(self, u: Vector) -> Vector:
        """rho of every row that is not smooth; infinite beyond an inequality."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steep = np.where(
                self.roundness > 0.0, u / self.roundness, np.where(u == 0.0, 0.0, np.inf * u)
            )
            s = np.clip(steep, self.least, self.most)
            value = np.where(u == 0.0, 0.0, s * u) - 0.5 * self.roundness * np.square(s)
        return np.where(self.is_smooth, 0.0, np.where(np.isnan(value), np.inf, value))

    def value(self, x: Vector) -> float:
        """The objective; infinite beyond an inequality."""
        u = self.forward(x) - self.centre
        return (
            self.constant
            + 0.5 * float(x @ (self.P @ x))
            + float(self.q @ x)
            + float(self.penalty(u).sum())
            + self.smooth_terms(u)[0]
        )


def with_rows(
    program: Program, blocks: Sequence[Matrix], right: Vector, equal: Booleans
) -> Program:
    """The program with inequalities blocks x <= right added, equalities where `equal`."""
    if not right.size:
        return program
    least = np.where(equal, -np.inf, 0.0)
    return replace(
        program,
        blocks=(*program.blocks, *blocks),
        centre=np.concatenate([program.centre, right]),
        least=np.concatenate([program.least, least]),
        most=np.concatenate([program.most, np.full(right.size, np.inf)]),
        roundness=np.concatenate([program.roundness, np.zeros(right.size)]),
    )


def with_only(program: Program, kept: Booleans, blocks: Sequence[Matrix]) -> Program:
    """The program with some of its rows, which `blocks` hold; smooth losses keep all of theirs."""
    before = np.concatenate([[0], np.cumsum(kept)]).tolist()
    return replace(
        program,
        blocks=tuple(blocks),
        centre=program.centre[kept],
        least=program.least[kept],
        most=program.most[kept],
        roundness=program.roundness[kept],
        smooth=tuple(
            replace(each, start=before[each.start], stop=before[each.stop])
            for each in program.smooth
        ),
    )


def bound_rows(lower: Vector, upper: Vector) -> tuple[Matrix, Vector]:
    """lower <= x <= upper as rows with one entry each; infinite bounds have none."""
    up, down = np.flatnonzero(np.isfinite(upper)), np.flatnonzero(np.isfinite(lower))
    columns = np.concatenate([up, down])
    signs = np.repeat([1.0, -1.0], [up.size, down.size])
    shape = (columns.size, lower.size)
    rows = sparse.csr_matrix((signs, (np.arange(columns.size), columns)), shape=shape)
    return rows, np.concatenate([upper[up], -lower[down]])


@dataclass(frozen=True)
class Units:
    """x = columns * x', s = rows * s' / objective: how a scaled program is read back; with a basis,
    x = basis (columns * x').
    """

    columns: Vector
    rows: Vector
    objective: float
    basis: Floats | None = None

    def parameters(self, x: Vector) -> Vector:
        """Read back."""
        moved = x * self.columns
        return moved if self.basis is None else np.asarray(self.basis @ moved)

    def inner(self, x: Vector) -> Vector:
        """The opposite way."""
        moved = x if self.basis is None else np.linalg.solve(self.basis, x)
        return np.asarray(moved / self.columns)


def scaled(program: Program, sweeps: int) -> tuple[Program, Units]:
    """The program in units in which rows and columns have entries of about 1 (Ruiz 2001)."""
    columns, rows = np.ones(program.dimension), np.ones(program.count)
    P, blocks, backwards = program.sizes.P, program.sizes.blocks, program.sizes.backwards
    for _ in range(sweeps):
        row_size = _row_sizes(program, blocks, rows, columns)
        rows /= np.sqrt(row_size)
        column_size = row_maxima(P, columns, columns)
        for first, block in zip(program.starts, backwards, strict=False):
            found = row_maxima(block, columns, rows[first : first + block.shape[1]])
            column_size = np.maximum(column_size, found)
        column_size[column_size == 0.0] = 1.0
        columns /= np.sqrt(column_size)
        if max(np.abs(np.log2(size)).max(initial=0.0) for size in (row_size, column_size)) <= 0.5:
            break  # nothing changes by more than half a power of two
    columns, rows = power_of_two(columns), power_of_two(rows)
    size = typical_size(program, columns, rows)
    return in_units(program, Units(columns * size, rows / size, 1.0))


def typical_size(program: Program, columns: Vector, rows: Vector) -> float:
    """How large x may be in these units, a power of two: as far as the linear part of a quadratic
    pulls it, or the largest right side if that is less (rows may be far away); at least 1. In units
    of this size, what is added to diagonals stays small beside what bends (QSHELL, QGFRDXPN).
    """
    side = float(np.abs(program.centre * rows).max(initial=1.0))
    slope = float(np.abs(columns * program.q).max(initial=0.0))
    bend = float(row_maxima(program.sizes.P, columns, columns).max(initial=0.0))
    size = max(1.0, min(side, slope / bend)) if bend > 0.0 else 1.0
    return float(power_of_two(np.array([size]))[0])


def with_rows_scaled(
    program: Program, columns: Vector, P: Matrix | None = None
) -> tuple[Program, Units]:
    """The program in given units of x, powers of two, and units of its rows in which their largest
    entry is about 1; `P`, if given, is its P in these units.
    """
    blocks = (b if isinstance(b, np.ndarray) else abs(b) for b in program.blocks)
    sizes = _row_sizes(program, blocks, np.ones(program.count), columns)
    return in_units(program, Units(columns, power_of_two(1.0 / sizes), 1.0), P)


def _row_sizes(program: Program, blocks: Iterable[Matrix], rows: Vector, columns: Vector) -> Vector:
    """The largest entry of every row of these blocks, 1 where there is none or a loss is smooth."""
    sizes = np.ones(program.count)
    for first, block in zip(program.starts, blocks, strict=False):
        mine = slice(first, first + block.shape[0])
        sizes[mine] = row_maxima(block, rows[mine], columns)
    sizes[program.is_smooth | (sizes <= 0.0)] = 1.0
    return sizes


def power_of_two(sizes: Vector) -> Vector:
    """The nearest ones: multiplying by them is exact, so that a path resumes to the same bits."""
    return np.asarray(np.exp2(np.round(np.log2(sizes))))


def in_units(program: Program, units: Units, P: Matrix | None = None) -> tuple[Program, Units]:
    """The program in units of columns and rows, and of an objective of about 1."""
    columns, rows = units.columns, units.rows
    P = _times(columns, program.P, columns) if P is None else P
    blocks = [
        _times(rows[first : first + block.shape[0]], block, columns)
        for first, block in zip(program.starts, program.blocks, strict=False)
    ]
    q = columns * program.q
    size = max(float(np.abs(q).max(initial=0.0)), _largest(P) if entries(P) else 0.0)
    finite = np.concatenate([program.least / rows, program.most / rows])
    finite = np.abs(finite[np.isfinite(finite)])
    size = max(size, float(finite.max(initial=0.0)))
    size = max([size, *(float(each.share.max()) for each in program.smooth)])
    factor = float(power_of_two(np.array([1.0 / size]))[0]) if size > 0.0 else 1.0
    changed = Program(
        P * factor,
        q * factor,
        tuple(blocks),
        program.centre * rows,
        factor * program.least / rows,
        factor * program.most / rows,
        program.roundness * np.square(rows) / factor,
        tuple(replace(each, share=factor * each.share) for each in program.smooth),
        factor * program.constant,
    )
    return changed, Units(columns, rows, factor)


def _largest(matrix: Matrix) -> float:
    """The largest absolute entry."""
    if isinstance(matrix, np.ndarray):
        return max(float(matrix.max()), -float(matrix.min()))  # without a copy
    return float(abs(matrix).max())


def square_in_units(P: Matrix, columns: Vector) -> Matrix:
    """The P of a program in units of x."""
    return _times(columns, P, columns)


def _times(rows: Vector, matrix: Matrix, columns: Vector) -> Matrix:
    """diag(rows) matrix diag(columns)."""
    if isinstance(matrix, np.ndarray):
        out = matrix * columns
        out *= rows[:, None]
        return out
    if not sparse.issparse(matrix):
        return rows[:, None] * matrix * columns
    data = np.repeat(rows, np.diff(matrix.indptr)) * matrix.data * columns[matrix.indices]
    return sparse.csr_matrix((data, matrix.indices, matrix.indptr), matrix.shape)


def entries(matrix: Matrix) -> int:
    """That are stored."""
    return int(matrix.nnz if sparse.issparse(matrix) else matrix.size)


def row_maxima(matrix: Matrix, rows: Vector, columns: Vector) -> Floats:
    """max_j rows_i |m_ij| columns_j, for entries that are not negative or in an array."""
    if isinstance(matrix, np.ndarray):
        found = np.empty(matrix.shape[0])
        for part in in_parts(matrix, COSTS.cached_entries):
            found[part] = np.abs(matrix[part] * columns).max(axis=1, initial=0.0)
        return rows * found
    if not sparse.issparse(matrix):  # on a device
        return np.asarray(rows * (matrix * columns).max(axis=1, initial=0.0))
    largest, filled = np.zeros(matrix.shape[0]), np.flatnonzero(np.diff(matrix.indptr))
    if filled.size:
        entries = matrix.data * columns[matrix.indices]
        largest[filled] = np.maximum.reduceat(entries, matrix.indptr[filled])
    return rows * largest


def stacked(parts: Sequence[Program]) -> Program:
    """The sum of programs in the same parameters."""
    offset, smooth = 0, []
    for part in parts:
        smooth += [
            replace(each, start=each.start + offset, stop=each.stop + offset)
            for each in part.smooth
        ]
        offset += part.count
    return Program(
        P=_sum([part.P for part in parts]),
        q=np.sum([part.q for part in parts], axis=0),
        blocks=tuple(block for part in parts for block in part.blocks),
        centre=np.concatenate([part.centre for part in parts]),
        least=np.concatenate([part.least for part in parts]),
        most=np.concatenate([part.most for part in parts]),
        roundness=np.concatenate([part.roundness for part in parts]),
        smooth=tuple(smooth),
        constant=sum(part.constant for part in parts),
    )


def _sum(matrices: Sequence[Matrix]) -> Matrix:
    """Dense where it has few zeros, by rows where it has many."""
    total = matrices[0]
    for each in matrices[1:]:
        alike = sparse.issparse(each) == sparse.issparse(total)
        total = total + each if alike else dense(total) + dense(each)
    kept = total.nnz if sparse.issparse(total) else np.count_nonzero(total)
    few = kept <= COSTS.dense_share * total.shape[0] * total.shape[1]
    return sparse.csr_matrix(total) if few else dense(total)


def times(weight: float, program: Program) -> Program:
    """The program with its objective multiplied."""
    return replace(
        program,
        P=weight * program.P,
        q=weight * program.q,
        least=weight * program.least,
        most=weight * program.most,
        roundness=program.roundness / weight,
        smooth=tuple(replace(each, share=weight * each.share) for each in program.smooth),
        constant=weight * program.constant,
    )


# -------------------------------------------------------------------------------------------------
# Sparse rows that hold the same parameters, one below the other, as dense matrices.
#
# Examples of several outputs (quantiles, classes) come as such runs. BLAS takes them several times
# faster than one entry at a time.


@dataclass(frozen=True, eq=False)
class Run:
    """Rows first..last-1 hold the parameters `columns`, and nothing else."""

    first: int
    last: int
    columns: Indices
    entries: Floats


@dataclass(frozen=True, eq=False)
class Runs:
    """All rows of a matrix, run by run."""

    shape: tuple[int, int]
    each: Sequence[Run]

    def forward(self, x: Vector) -> Vector:
        out = np.zeros(self.shape[0])
        for run in self.each:
            np.dot(run.entries, x[run.columns], out=out[run.first : run.last])
        return out

    def add_backward(self, s: Vector, out: Vector) -> None:
        for run in self.each:
            out[run.columns] += s[run.first : run.last] @ run.entries

    def add_gram(self, weights: Vector, out: Floats) -> None:
        """Add the sum of weights[i] x_i x_i' to `out`."""
        for run in self.each:
            rows = np.sqrt(weights[run.first : run.last])[:, None] * run.entries
            out[np.ix_(run.columns, run.columns)] += rows.T @ rows


def runs_of(matrix: Matrix) -> Runs | None:
    """The runs of a CSR matrix; None where they are short or rows hold parameters twice."""
    if not matrix.has_canonical_format:
        return None
    most, counts = int(matrix.nnz / COSTS.shortest_dense_run), np.diff(matrix.indptr)
    if len(_edges(matrix[: 2 * most])) - 1 > most:
        return None  # known from a few rows
    edges = _edges(matrix)
    if len(edges) - 1 > most:
        return None
    found = []
    for first, last in pairwise(edges):
        at, shape = slice(matrix.indptr[first], matrix.indptr[last]), (last - first, counts[first])
        places = matrix.indices[at].reshape(shape)
        if not np.all(places == places[0]):
            return None
        found.append(Run(first, last, places[0].copy(), matrix.data[at].reshape(shape)))
    return Runs(matrix.shape, found)


def _edges(matrix: Matrix) -> list[int]:
    """Where the runs begin, as far as sums of random numbers, one per parameter, tell rows apart,
    and the number of rows.
    """
    m, counts = matrix.shape[0], np.diff(matrix.indptr)
    key = np.random.default_rng(0).integers(1, 2**62, matrix.shape[1], dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(key[matrix.indices])])  # wraps around, which is no harm
    of_row = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
    new = (np.diff(of_row) != 0) | (np.diff(counts) != 0)
    return [0, *(np.flatnonzero(new) + 1).tolist(), m]


# -------------------------------------------------------------------------------------------------
# Coordinates in which the rows of a small program are orthonormal.
#
# Where columns are nearly dependent in a way that no scaling of single columns mends, Newton's
# equations lose what tells them apart: they square the condition of the rows. In the basis of the
# right singular vectors of all rows, divided by their singular values, rows are orthonormal.


TINY = 1e-300  # keeps quotients of zeros finite


def orthonormal_basis(program: Program) -> Floats | None:
    """A square matrix V such that the rows of B V, and of a root of V'PV, are nearly orthonormal;
    None where that would take long.
    """
    d = program.dimension
    if d > COSTS.free_dense_dimension or program.count > COSTS.most_orthonormal:
        return None
    bends, vectors = scipy.linalg.eigh(np.array(dense(program.P)))
    root = np.sqrt(np.maximum(bends, 0.0))[:, None] * vectors.T
    parts = [root / max(float(np.abs(root).max(initial=0.0)), TINY)]
    for block in program.blocks:
        rows = np.array(dense(block))
        parts.append(rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), TINY))
    rows = np.vstack(parts)
    if not np.isfinite(rows).all():
        return None
    _, singular, right = scipy.linalg.svd(rows, full_matrices=False)
    if singular.size < d or singular[0] == 0.0:
        return None
    return np.asarray(right.T / np.maximum(singular, COSTS.dependent * singular[0]))


def in_basis(program: Program, basis: Floats) -> Program:
    """The program in z, where x = basis z."""
    return replace(
        program,
        P=basis.T @ dense(program.P) @ basis,
        q=basis.T @ program.q,
        blocks=tuple(np.asarray(block @ basis) for block in program.blocks),
    )


# -------------------------------------------------------------------------------------------------
# Pairs of inequalities that are one equality: no point is strictly inside of both.


def opposite_rows(rows: Matrix, right: Vector) -> tuple[Indices, Indices]:
    """Pairs of rows a x <= b and -a x <= -b: they share a key but for its sign, and are compared
    entry by entry.
    """
    key = np.asarray(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))
    order = np.lexsort((np.sign(key), np.sign(key) * right, np.abs(key)))
    one, two = order[:-1], order[1:]
    alike = (key[one] == -key[two]) & (key[one] != 0.0) & (right[one] == -right[two])
    alike[1:] &= ~alike[:-1]  # a row has one partner
    one, two = one[alike], two[alike]
    different = abs(rows[one] + rows[two]).sum(axis=1) if one.size else np.zeros(0)
    same = np.asarray(different).ravel() == 0.0
    return one[same], two[same]
