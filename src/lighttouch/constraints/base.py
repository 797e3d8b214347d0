"""What all constraint families share, their aggregation into groups, and ranges of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.errors import ConstraintError
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.iterate import clear, new_gradient
from lighttouch.kernels.verbs.constraints import Ranged, add_subgradient, group_values
from lighttouch.kernels.verbs.rows import choose_spread, collect_violated, write_rows
from lighttouch.running import check_deadline, remembered
from lighttouch.validation import finite_vector, positive_int

LONG_PASS = 1e7
"""Entries of all constraints, from which values are remembered. Budget: such a pass takes 10 ms or
more, hashing the point far less."""

NOTED_PASS = 2e6
"""Entries from which the largest value is remembered. Budget: such a pass takes 5 ms or more, and
two numbers per point are kept."""

NOTED_PER_PARAMETER = 6
"""Entries per parameter, from which a pass outweighs hashing the point: equal at 6 (measured once,
200,000 parameters); a product with sparse rows takes 0.6, 1.4 and 3.8 of the time
of the hash at 4, 8 and 16."""

MOST_REMEMBERED = 1_000_000
"""Values of one point. Memory: 8 MB."""


@dataclass(frozen=True)
class LatticeAxes:
    """Plain orders along some axes of a lattice: feature `features[k]` never falls where `signs[k]`
    is positive, and never rises where it is negative.

    Rows `starts[k]` to `starts[k + 1] - 1` of the family belong to `features[k]`, whose vertices
    are `strides[k]` apart.
    """

    sizes: tuple[int, ...]
    features: tuple[int, ...]
    signs: Floats
    starts: Indices
    strides: Indices

    @property
    def dimension(self) -> int:
        return int(np.prod(self.sizes, dtype=np.int64))

    @property
    def count(self) -> int:
        return int(self.starts[-1])


@dataclass(frozen=True)
class Balls:
    """|w - centers[j]| <= radii[j]; a negative radius is a constraint that no point satisfies."""

    centers: Floats
    radii: Floats


class RecordConstraints:
    """Constraints given by a record of arrays and the verbs for its class.

    The verbs `worst` and `add_subgradient` are all that a family needs: values, subgradients and
    projections follow from them. Where it can, it also answers what makes projections faster: its
    `parts`, its `linear_rows`, its `lattice_axes`, its `balls` and its cones.
    """

    record: Any
    count: int
    dimension: int
    interpreted: bool = False
    group_size: int = 1
    cost: float = 1.0
    names: tuple[str, ...] | None = None
    is_linear: bool = False  # whether `linear_rows`, `rows_at` and `worst` answer
    generated: bool = False  # whether rows are made from their numbers and better not stored
    nested: tuple[NestedRows, ...] = ()  # rows that builders know how to say with fewer
    device: Any = None  # where rows are that only PyTorch can read (`lighttouch.torch`)
    conic: bool = False  # whether `cone` writes every constraint as a second-order cone

    @property
    def members(self) -> int:
        return self.count

    @property
    def parts(self) -> tuple[RecordConstraints, ...]:
        """The families of one kind that this one consists of, in order: itself, unless stacked."""
        return (self,)

    def linear_rows(self) -> tuple[Matrix, Vector] | None:
        """All constraints as rows (A, b) of A w <= b; None where some are not linear. Equalities
        are two opposite rows each (`constraint_of_row` says whose).
        """
        return None

    @property
    def is_equality(self) -> bool | Booleans:
        """Whether the constraints are equalities: one answer for all, or one for each."""
        return False

    @property
    def most_entries(self) -> int:
        """The largest number of entries of a row, or a little more; only where it is linear."""
        return self.dimension

    @property
    def row_count(self) -> int:
        """How many rows `linear_rows` has: an equality is two."""
        return self.count

    def constraint_of_row(self) -> Indices:
        """The constraint that each row of `linear_rows` belongs to."""
        return np.arange(self.count)

    def row_signs(self) -> Floats:
        """-1 for a row of `linear_rows` that is an equality with its sign turned, else 1."""
        return np.ones(self.count)

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        """The chosen constraints as rows: a CSR matrix and the right sides; of an equality the row
        itself, once. Nothing else is made or stored. Only where the family is linear.
        """
        self._refuse_curved("rows_at")
        return rows_of(self, np.asarray(indices, dtype=np.int64).reshape(-1))

    def worst(self, w: ArrayLike, most: int, tolerance: float = 0.0) -> Indices:
        """At most `most` constraints that w breaks by more than `tolerance` row lengths, the worst
        first, spread over the parameters: each has a parameter that few of those before it have.

        Memory grows with the dimension and with `most`, not with the number of constraints. Only
        where the family is linear.
        """
        self._refuse_curved("worst")
        point = finite_vector(w, "w", self.dimension)
        return worst_spread(self, point, positive_int(most, "most"), tolerance)

    def _refuse_curved(self, method: str) -> None:
        if not self.is_linear:
            raise ConstraintError(
                f"constraints must be linear rows for `{method}`, got {type(self).__name__}; "
                "`values(w)` has every g_j(w), and those of `parts` that are linear have rows"
            )

    def lattice_axes(self) -> LatticeAxes | None:
        """The orders along the axes of a lattice that this family is; None for all others."""
        return None

    def balls(self) -> Balls | None:
        """All constraints as balls; None where some are not."""
        return None

    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]:
        """Constraint j as matrix @ z + shift in the cone {first >= |others|}, for z = w - v; only
        where the family is `conic`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no cones")

    def subgradient(self, j: int, w: Vector) -> Vector:
        """A subgradient of g_j at w, by the verb of the record's class."""
        gradient = new_gradient(self.dimension)
        clear(gradient)
        one = interpreted(_one_subgradient)
        one(self.record, j, finite_vector(w, "w", self.dimension), gradient)
        return np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)

    def values(self, w: ArrayLike) -> Vector:
        """g_j(w) for every j (for every group, when aggregated); of the last few points they are
        remembered, where a pass over all takes long: an answer is looked at several times.
        """
        point = finite_vector(w, "w", self.dimension)
        slow = self.interpreted or self.cost * self.members > LONG_PASS
        if not slow or self.count > MOST_REMEMBERED:
            return self._values(point)
        return remembered(self, "values", point, lambda: self._values(point)).copy()

    def _values(self, point: Vector) -> Vector:
        out = np.empty(self.count)
        run = interpreted(group_values) if self.interpreted else group_values
        run(self.record, self.members, self.group_size, point, out)
        if np.isnan(out).any():
            self.refuse_nan(int(np.argmax(np.isnan(out))), point)
        return out

    def refuse_nan(self, j: int, w: Vector) -> None:
        """Raise the error for a value of constraint j (group j, when aggregated) that is NaN."""
        raise ConstraintError(
            f"g_j(w) must be a number at every w of the domain, got nan for {self.describe(j)}"
        )

    def largest(self, w: Vector) -> float:
        """The largest g_j(w)."""
        return self._both_largest(w)[0] if self._is_long else float(self.values(w).max())

    def violation(self, w: Vector) -> float:
        """max(0, max_j g_j(w)), recomputed over all constraints, in the kernels' order of sums."""
        return max(0.0, self.largest(w)) if self.count else 0.0

    def largest_relative(self, w: Vector) -> float:
        """The largest g_j(w) in units of its row's scale."""
        if self._is_long:
            return self._both_largest(w)[1]
        return float((self.values(w) / self.row_scales()).max())

    @property
    def _is_long(self) -> bool:
        """Whether a pass over all constraints takes longer than finding a point among the last."""
        return self.cost * self.members > max(NOTED_PASS, NOTED_PER_PARAMETER * self.dimension)

    def _both_largest(self, w: Vector) -> tuple[float, float]:
        """The largest g_j(w), and the largest in units of its row's scale, from one pass."""

        def look() -> tuple[float, float]:
            values = self.values(w)
            return float(values.max()), float((values / self.row_scales()).max())

        return remembered(self, "largest", finite_vector(w, "w", self.dimension), look)

    def aggregated(self, size: int) -> Aggregated:
        """The maxima over consecutive groups of `size` constraints (Section 5.1): fewer, but more
        expensive constraints for the same set.
        """
        return Aggregated(self, positive_int(size, "size"))

    def row_scales(self) -> Vector:
        """How large a unit of violation of each constraint is: 1 unless the family knows better."""
        return np.ones(self.count)

    def describe(self, j: int) -> str:
        """Constraint j in words, for messages."""
        return self.names[j] if self.names else f"constraint {j}"

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count} constraints on {self.dimension} parameters)"


class Aggregated(RecordConstraints):
    """The maximum over each group of `size` consecutive constraints of another family.

    The set is the same as that of the single constraints, so that the questions of the projections
    are answered by them.
    """

    def __init__(self, base: RecordConstraints, size: int) -> None:
        self.base: RecordConstraints = base.base if isinstance(base, Aggregated) else base
        self.group_size = size * base.group_size
        self.record = base.record
        self.dimension = base.dimension
        self.interpreted = base.interpreted
        self.count = -(-self.base.count // self.group_size)
        self.cost = self.base.cost * min(self.group_size, max(1, self.base.count))
        self.generated = base.generated

    @property
    def members(self) -> int:
        return self.base.count

    def largest(self, w: Vector) -> float:
        """The largest g_j(w): the same for groups as for the single constraints."""
        return self.base.largest(w)

    def largest_relative(self, w: Vector) -> float:
        return self.base.largest_relative(w) if self.generated else super().largest_relative(w)

    @property
    def parts(self) -> tuple[RecordConstraints, ...]:
        return self.base.parts

    def linear_rows(self) -> tuple[Matrix, Vector] | None:
        return self.base.linear_rows()

    def lattice_axes(self) -> LatticeAxes | None:
        return self.base.lattice_axes()

    def refuse_nan(self, j: int, w: Vector) -> None:
        self.base.values(w)  # names the single constraint
        super().refuse_nan(j, w)

    def row_scales(self) -> Vector:
        scales = self.base.row_scales()
        starts = np.arange(0, scales.size, self.group_size)
        return np.minimum.reduceat(scales, starts) if scales.size else scales

    def describe(self, j: int) -> str:
        return (
            f"the worst of constraints {j * self.group_size} to "
            f"{min((j + 1) * self.group_size, self.members) - 1}"
        )


def _one_subgradient(record: object, j: int, w: Vector, gradient: Any) -> None:
    add_subgradient(record, j, w, 1.0, gradient)


class ConstraintRange(RecordConstraints):
    """Constraints `first` to `stop - 1` of another family (groups of them, where it is aggregated),
    for a worker that visits these only.

    Nothing is copied or stored: the family's own record answers, with its numbers moved.
    """

    def __init__(self, base: RecordConstraints, first: int, stop: int) -> None:
        self.base, self.first = base, first
        self.count, self.group_size = stop - first, base.group_size
        self.dimension, self.interpreted = base.dimension, base.interpreted
        self.cost, self.generated = base.cost, base.generated
        self.record = Ranged(base.record, first * base.group_size)
        last = min(stop * base.group_size, base.members)
        self._members = max(0, last - first * base.group_size)

    @property
    def members(self) -> int:
        return self._members

    def refuse_nan(self, j: int, w: Vector) -> None:
        self.base.refuse_nan(self.first + j, w)

    def describe(self, j: int) -> str:
        return self.base.describe(self.first + j)


# -------------------------------------------------------------------------------------------------
# Linear rows by their numbers, and the worst of very many, without keeping all of them.


ROWS_PER_COLUMN = 4
"""Chosen rows that may share all their columns with others: a working set that knows a few rows of
every parameter moves all of them, one that knows the worst rows may know only one parameter.
Tuning: not measured."""

DENSE_SHARE = 0.5
"""Entries of a row, as a share of the parameters, from which rows are about all of them: simply the
worst are chosen. Convention: more than half."""

ENTRIES_AT_ONCE = 2**22
"""Entries of rows between two looks at the clock. Budget: about 10 ms."""

CANDIDATES = 4
"""Candidates kept per row that is wanted: the worst are often about the same parameters.
Tuning: not measured."""

PASSES = 4
"""Passes over all rows in search of enough candidates; each looks only at parameters that have too
few rows so far. Budget."""


class LinearFamily(Protocol):
    """What is asked of constraints that are rows."""

    record: Any
    count: int
    dimension: int
    interpreted: bool

    @property
    def most_entries(self) -> int: ...


def scratch_for(family: LinearFamily) -> tuple[Indices, Floats]:
    """Two arrays that hold any one row."""
    entries = max(1, family.most_entries)
    return np.zeros(entries, dtype=np.int64), np.zeros(entries)


def runnable(family: LinearFamily, kernel: Callable[..., Any]) -> Callable[..., Any]:
    return interpreted(kernel) if family.interpreted else kernel


def blocks(family: LinearFamily) -> Iterator[tuple[int, int]]:
    """All constraints in ranges; the deadline is looked at before each."""
    size = max(1, ENTRIES_AT_ONCE // max(1, family.most_entries))
    for start in range(0, family.count, size):
        check_deadline()
        yield start, min(family.count, start + size)


def rows_of(family: LinearFamily, chosen: Indices) -> tuple[Matrix, Vector]:
    """The chosen rows as a CSR matrix, and their right sides."""
    room = chosen.size * max(1, family.most_entries)
    indptr, indices = np.zeros(chosen.size + 1, dtype=np.int64), np.empty(room, dtype=np.int64)
    data, right = np.empty(room), np.empty(chosen.size)
    write = runnable(family, write_rows)
    used = write(family.record, chosen, scratch_for(family), indptr, indices, data, right)
    shape = (chosen.size, family.dimension)
    matrix = scipy.sparse.csr_matrix((data[:used], indices[:used], indptr), shape=shape)
    matrix.sum_duplicates()
    return matrix, right


def stacked_rows(parts: Sequence[RecordConstraints]) -> tuple[Matrix, Vector] | None:
    """The rows of all families, one after the other (sparse where one of them is); None where a
    family is not linear.
    """
    if not parts or not all(part.is_linear for part in parts):
        return None
    known = [part.linear_rows() for part in parts]
    rows = [each for each in known if each is not None]
    if len(rows) == 1:
        return rows[0]
    sparse = any(scipy.sparse.issparse(A) for A, _ in rows)
    A = (
        scipy.sparse.vstack([A for A, _ in rows], format="csr")
        if sparse
        else np.vstack([A for A, _ in rows])
    )
    return A, np.concatenate([b for _, b in rows])


def worst_spread(family: LinearFamily, w: Vector, wanted: int, tolerance: float) -> Indices:
    """The worst rows, worst first; one counts only if one of its columns occurs in fewer than
    `ROWS_PER_COLUMN` of those before it, or rows are dense.

    Rows that are chosen or passed over are never looked at again, as the counts of the columns only
    grow: later passes find exactly what a list of all violated rows would have given.
    """
    used, chosen = np.zeros(family.dimension, dtype=np.int64), np.empty(wanted, dtype=np.int64)
    choose = runnable(family, choose_spread)
    dense = family.most_entries > DENSE_SHARE * family.dimension
    each = wanted if dense else ROWS_PER_COLUMN
    scratch, many = scratch_for(family), 0
    below, after = np.inf, -1
    for _ in range(PASSES):
        found, scores, complete = _candidates(
            family, w, tolerance, below, after, used, each, wanted
        )
        many = choose(family.record, found, used, each, wanted, scratch, chosen, many)
        if complete or many == wanted or int(used.min()) >= each:
            break
        below, after = float(scores[-1]), int(found[-1])
    return chosen[:many]


def _candidates(
    family: LinearFamily,
    w: Vector,
    above: float,
    below: float,
    after: int,
    used: Indices,
    each: int,
    wanted: int,
) -> tuple[Indices, Floats, bool]:
    """The worst rows that may still be chosen, worst first, and whether these are all."""
    kept = CANDIDATES * wanted
    found, scores = np.empty(2 * kept, dtype=np.int64), np.empty(2 * kept)
    collect = runnable(family, collect_violated)
    scratch, many, complete = scratch_for(family), 0, True
    for start, stop in blocks(family):
        place = start
        while place < stop:
            place, many = collect(
                family.record, place, stop, w, above, below, after, used, each,
                scratch, found, scores, many,
            )  # fmt: skip
            if many == found.size:  # later rows must be worse than all that are kept
                order = _ranked(found, scores)[:kept]
                found[:kept], scores[:kept] = found[order], scores[order]
                many, above, complete = kept, float(scores[kept - 1]), False
    order = _ranked(found[:many], scores[:many])
    return found[order], scores[order], complete


def _ranked(found: Indices, scores: Floats) -> Indices:
    return np.lexsort((found, -scores))


# -------------------------------------------------------------------------------------------------
# Families of rows that compare every member of one set with every larger or smaller member of
# another, said with few rows.
#
# Rows below[s](w) - above[t](w) <= right for every s and t that a path of an order joins are as
# many as the order has pairs. Numbers M, one per node of the order, say the same with as many rows
# as the order has nodes and edges: below - right <= M <= above, M rising along the edges. (M = the
# largest `below` so far is such a choice wherever the rows hold.)


@dataclass(frozen=True)
class NestedForms:
    """below[s](w) - right <= M[below_at[s]], M[above_at[t]] <= above[t](w), and M[lower] <=
    M[upper] for every edge.
    """

    below: Matrix  # CSR, one form per row
    above: Matrix
    below_at: Indices
    above_at: Indices
    nodes: int
    lower: Indices
    upper: Indices

    @property
    def scale(self) -> float:
        """The length of a typical form."""
        squares = [
            part.multiply(part).sum() / max(1, part.shape[0]) for part in (self.below, self.above)
        ]
        return float(np.sqrt(max(np.mean(squares), np.finfo(np.float64).tiny)))

    def wide(self, start: int, dimension: int) -> NestedForms:
        """The same about parameters start, start + 1, ... of more."""
        return replace(
            self, below=wide(self.below, start, dimension), above=wide(self.above, start, dimension)
        )


@dataclass(frozen=True)
class NestedRows:
    """Rows first .. first + count - 1 of a family, all with the same right side, and the forms that
    say the same.
    """

    first: int
    count: int
    families: tuple[NestedForms, ...]

    def moved(self, rows: int) -> NestedRows:
        return replace(self, first=self.first + rows)

    def wide(self, start: int, dimension: int) -> NestedRows:
        return replace(
            self, families=tuple(forms.wide(start, dimension) for forms in self.families)
        )

    def right(self, b: Floats) -> float | None:
        """The right side that all rows share; None where they do not."""
        mine = b[self.first : self.first + self.count]
        return float(mine[0]) if mine.size and np.all(mine == mine[0]) else None


def wide(rows: Matrix, start: int, dimension: int) -> Matrix:
    """Rows about the first parameters as rows about parameters start, start + 1, ... of more."""
    rows = sparse.csr_matrix(rows)
    return sparse.csr_matrix(
        (rows.data, rows.indices + start, rows.indptr), shape=(rows.shape[0], dimension)
    )


class WithNested(Protocol):
    """A family that knows which of its rows are nested."""

    @property
    def nested(self) -> Sequence[NestedRows]: ...
    @property
    def count(self) -> int: ...


def one_after_another(parts: Sequence[WithNested]) -> tuple[NestedRows, ...]:
    """The nested rows of several families stacked in order."""
    found: list[NestedRows] = []
    rows = 0
    for part in parts:
        found += [block.moved(rows) for block in part.nested]
        rows += part.count
    return tuple(found)
