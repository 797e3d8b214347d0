"""The rows of a problem as the interior point takes them: all at once, or those found broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import opposite_rows
from lighttouch.interior.tiles import times
from lighttouch.projections.cutting_planes import Part


@dataclass(frozen=True, eq=False)
class ProblemRows:
    """Linear constraints by their numbers; no row is stored here."""

    families: tuple[RecordConstraints, ...]  # those that are not linear have no rows here
    dimension: int
    latest: dict[int, tuple[Vector, Vector]] = field(default_factory=dict)  # w, and its excess

    @property
    def count(self) -> int:
        return sum(family.count for _, family in self._numbered())

    @property
    def all(self) -> Indices:
        """The numbers of all."""
        found = [np.arange(first, first + family.count) for first, family in self._numbered()]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def _numbered(self) -> Iterator[tuple[int, RecordConstraints]]:
        first = 0
        for family in self.families:
            if family.is_linear:
                yield first, family
            first += family.count

    def equalities(self) -> Indices:
        """The numbers of those that are equalities."""
        found = [
            first + np.flatnonzero(np.broadcast_to(family.is_equality, family.count))
            for first, family in self._numbered()
            if np.any(family.is_equality)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def sample(self) -> Indices:
        """All equalities, and some rows of each family to begin with: every parameter is then held
        by some.
        """
        rng, found = np.random.default_rng(0), [self.equalities()]
        for first, family in self._numbered():
            wanted = 0 if self._dense(family) else int(COSTS.first_rows * self.dimension)
            if family.count <= wanted:
                found.append(first + np.arange(family.count))
            else:
                found.append(first + rng.integers(0, family.count, wanted))
        return np.unique(np.concatenate(found))

    def take(self, ids: Indices) -> Taken:
        """The rows with these numbers."""
        parts = []
        for first, family in self._numbered():
            mine = np.flatnonzero((ids >= first) & (ids < first + family.count))
            if mine.size:
                local = ids[mine] - first
                equal = np.broadcast_to(family.is_equality, family.count)[local]
                parts.append((mine, *_rows(family, local), equal))
        order = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in parts)])
        right = np.concatenate([np.zeros(0), *(part[2] for part in parts)])
        equal = np.concatenate([np.zeros(0, dtype=bool), *(part[3] for part in parts)])
        return Taken(tuple(part[1] for part in parts), right, equal, ids[order], ids[order])

    def strictly_inside(self, w: Vector, ids: Indices) -> bool:
        """Whether w satisfies these rows with something to spare."""
        taken = self.take(ids)
        values = [np.asarray(block @ w) for block in taken.blocks]
        return bool(np.all(np.concatenate([np.zeros(0), *values]) < taken.right))

    def _dense(self, family: RecordConstraints) -> bool:
        """Whether each row of it is about nearly all parameters, and a pass over them is cheap
        beside a step: rows that are made when they are asked for take longer.
        """
        return family.most_entries > COSTS.dense_row * self.dimension and _is_stored(family)

    @property
    def any_dense(self) -> bool:
        return any(self._dense(family) for _, family in self._numbered())

    def is_dense(self, ids: Indices) -> Booleans:
        """Which of these rows are."""
        found = np.zeros(ids.size, dtype=bool)
        for first, family in self._numbered():
            if self._dense(family):
                found |= (ids >= first) & (ids < first + family.count)
        return found

    def broken(self, w: Vector) -> Indices:
        """The worst rows that w breaks, spread over the parameters; so many per family."""
        found = []
        for first, family in self._numbered():
            share = (
                COSTS.joining_dense_rows_per_parameter
                if self._dense(family)
                else COSTS.joining_rows_per_parameter
            )
            most = max(COSTS.least_joining_rows, int(share * self.dimension))
            if _is_stored(family):
                found.append(first + _worst(self._excess(first, family, w), most))
            else:
                found.append(first + family.worst(w, most))
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def next_dense(self, w: Vector, known: Indices) -> Indices:
        """Dense rows that are not known and that w breaks most, and some that it nearly breaks; so
        many per family.
        """
        found = [np.zeros(0, dtype=np.int64)]
        for first, family in self._numbered():
            if self._dense(family):
                excess = self._excess(first, family, w).copy()
                near = int(COSTS.dense_near * self.dimension)
                mine = known[(known >= first) & (known < first + family.count)] - first
                excess[mine] = -np.inf
                broken = int(np.count_nonzero(excess > 0.0))
                most = min(
                    int(COSTS.joining_dense_rows_per_parameter * self.dimension), broken + near
                )
                most = min(most, excess.size - mine.size)
                found.append(first + np.argpartition(-excess, most - 1)[:most])
        return np.unique(np.concatenate(found))

    def _excess(self, first: int, family: RecordConstraints, w: Vector) -> Vector:
        """Of stored dense rows, relative to their lengths. The latest is kept: it takes a pass over
        them all.
        """
        if first not in self.latest or not np.array_equal(self.latest[first][0], w):
            excess = times(family.A, w) - family.b  # type: ignore[attr-defined]
            excess = np.abs(excess) if np.any(family.is_equality) else excess
            self.latest[first] = w.copy(), np.asarray(excess / family.row_scales())
        return self.latest[first][1]

    @property
    def products(self) -> float:
        """Multiplications of adding all rows to a square matrix."""
        total = 0.0
        for _, family in self._numbered():
            total += float(family.count) * float(min(family.most_entries, self.dimension)) ** 2
        return total


@dataclass(frozen=True, eq=False)
class Taken:
    """Rows in blocks, dense or sparse; `ids` are their numbers in this order, `opposite` those of
    the opposite rows that they stand for as well (their own where there is none).
    """

    blocks: tuple[Matrix, ...]
    right: Vector
    equal: Booleans
    ids: Indices
    opposite: Indices

    def multipliers(self, slopes: Vector) -> tuple[Vector, Indices]:
        """Slopes and the rows that they belong to: a negative one to the opposite row."""
        turned = (slopes < 0.0) & (self.opposite != self.ids)
        return np.where(turned, -slopes, slopes), np.where(turned, self.opposite, self.ids)


def _is_stored(family: RecordConstraints) -> bool:
    """As a dense matrix."""
    return isinstance(getattr(family, "A", None), np.ndarray)


def _rows(family: RecordConstraints, local: Indices) -> tuple[Matrix, Vector]:
    if _is_stored(family):  # dense rows stay dense
        return family.A[local], family.b[local]  # type: ignore[attr-defined]
    matrix, right = family.rows_at(local)
    return sparse.csr_matrix(matrix), right


def _worst(excess: Vector, most: int) -> Indices:
    found = np.flatnonzero(excess > 0.0)
    if found.size > most:
        found = found[np.argpartition(-excess[found], most)[:most]]
    return np.sort(found)


def with_opposites_merged(taken: Taken) -> Taken:
    """Opposite rows a x <= b and -a x <= -b as one equality, where rows are not too many to look.

    Without it no point is strictly inside of both, and an interior point has nowhere to go.
    """
    entries = sum(block.nnz if sparse.issparse(block) else block.size for block in taken.blocks)
    if not taken.blocks or entries > COSTS.most_compared:
        return taken
    matrix = sparse.vstack([sparse.csr_matrix(block) for block in taken.blocks], format="csr")
    matrix.sort_indices()
    first, second = opposite_rows(matrix, taken.right)
    if not first.size:
        return taken
    equal, kept = taken.equal.copy(), np.ones(taken.right.size, dtype=bool)
    equal[first], kept[second] = True, False
    opposite = taken.opposite.copy()
    opposite[first] = taken.ids[second]
    ids, right = taken.ids[kept], taken.right[kept]
    return Taken((matrix[kept],), right, equal[kept], ids, opposite[kept])


@dataclass(frozen=True, eq=False)
class Cuts:
    """slopes @ w <= right, each a curved constraint linearised where it was broken: they hold on
    the whole set (Kelley 1960).
    """

    slopes: Floats
    right: Vector

    @property
    def count(self) -> int:
        return int(self.right.size)

    def with_more(self, more: Cuts) -> Cuts:
        return Cuts(np.vstack([self.slopes, more.slopes]), np.concatenate([self.right, more.right]))


def cuts_at(parts: Sequence[Part], w: Vector, most: int) -> Cuts:
    """Cuts from the constraints that w breaks most, at most so many per family."""
    slopes, right = [np.zeros((0, w.size))], [np.zeros(0)]
    for part in parts:
        values = part.family.values(w)
        broken = np.flatnonzero(values > 0.0)
        for j in broken[np.argsort(-values[broken], kind="stable")][:most]:
            slope = part.family.subgradient(int(j), w)
            slopes.append(slope[None])
            right.append(np.array([float(slope @ w) - values[j]]))
    return Cuts(np.vstack(slopes), np.concatenate(right))
