"""Which method finds the nearest points of which set: one table, in order of preference.

A line of the table says which sets a method takes, from the facts of the set alone, and makes the
method, which has `nearest(v, warm)`. A ball as domain is put around whichever method the linear
rows alone would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import linalg, sparse

from lighttouch.arrays import Floats, Matrix, Vector
from lighttouch.domains import Simplex
from lighttouch.projections.costs import COSTS
from lighttouch.projections.curved import InBall, curved_method
from lighttouch.projections.cutting_planes import NearestByCuts
from lighttouch.projections.exchange.rounds import ByBlocks
from lighttouch.projections.rows.kinds import Bounds, row_scale, unit_rows
from lighttouch.projections.rows.portfolio import GeneralRows
from lighttouch.result import EXACT, Nearest

if TYPE_CHECKING:
    from lighttouch.projections.sets import FeasibleSet


class Method(Protocol):
    """What finds the nearest points of one set."""

    def nearest(self, v: Vector, warm: object = None) -> Nearest: ...


@dataclass(frozen=True)
class Clip:
    """Bounds on single coordinates only, or nothing at all."""

    bounds: Bounds

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        if self.bounds.trivial:
            return Nearest(v.copy(), "closed form: no constraints", EXACT)
        w = np.clip(v, self.bounds.lower, self.bounds.upper)
        return Nearest(w, "closed form: clipped to bounds", EXACT)


@dataclass(frozen=True)
class Halfspace:
    """One row of length one, row @ w <= right."""

    row: Floats
    right: float

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        w = v.copy()
        for _ in range(COSTS.halfspace_steps):
            excess = float(self.row @ w) - self.right
            if excess <= 0.0:
                break
            w -= excess * self.row
        return Nearest(w, "closed form: one row", EXACT)


def _halfspace(feasible: FeasibleSet) -> Halfspace:
    unit = feasible.unit
    row = unit.matrix[0].toarray().ravel() if sparse.issparse(unit.matrix) else unit.matrix[0]
    return Halfspace(row, float(unit.right[0]))


@dataclass(frozen=True)
class Choice:
    """A line of the table: the sets that a method takes, and the method for one of them."""

    name: str
    takes: Callable[[FeasibleSet], bool]
    of: Callable[[FeasibleSet], Method]


def _on_lattice(feasible: FeasibleSet) -> Method:
    orders = feasible.lattice_orders
    assert orders is not None and orders.runs is not None  # made now, not in the first projection
    return orders


def _on_graph(feasible: FeasibleSet) -> Method:
    assert feasible.graph_orders is not None
    return feasible.graph_orders


def _by_blocks(feasible: FeasibleSet) -> ByBlocks:
    assert feasible.cut is not None
    return ByBlocks(feasible.cut)


def _curved(feasible: FeasibleSet) -> Method:
    cuts = NearestByCuts(
        feasible.rows,
        feasible.unit,
        feasible.constraint_of_row,
        feasible.curved,
        feasible.row_signs,
        int(feasible.firsts[-1]),
        feasible.unstored,
    )
    return cuts if feasible.unstored else curved_method(cuts)


def _in_ball(feasible: FeasibleSet) -> InBall:
    assert feasible.ball is not None
    center = feasible.ball.center_in(feasible.dimension)
    return InBall(choose(feasible.without_ball), feasible.ball.radius, center)


def _affine(feasible: FeasibleSet) -> Affine:
    assert feasible.matrix is not None and feasible.right is not None
    count = feasible.constraints.members

    def by_rows(v: Vector) -> Nearest:
        return GeneralRows(feasible.rows, feasible.unit).nearest(v)

    return Affine(feasible.matrix[:count], feasible.right[:count], by_rows)


@dataclass(frozen=True)
class OnSimplex:
    """A simplex and nothing else."""

    simplex: Simplex

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        return Nearest(self.simplex.project(v), "closed form: one simplex", EXACT)


def _on_simplex(feasible: FeasibleSet) -> OnSimplex:
    assert feasible.simplex is not None
    return OnSimplex(feasible.simplex)


@dataclass(frozen=True)
class OnRows:
    """Any linear rows and bounds, prepared when the first point is asked for."""

    feasible: FeasibleSet

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        return GeneralRows(self.feasible.rows, self.feasible.unit).nearest(v, warm)


METHODS: tuple[Choice, ...] = (
    Choice("one simplex", lambda s: s.is_simplex, _on_simplex),
    Choice("blocks with exchange", lambda s: s.cut is not None, _by_blocks),
    Choice("equalities", lambda s: s.is_affine, _affine),
    Choice("clipping", lambda s: s.is_box, lambda s: Clip(s.rows.bounds)),
    Choice("one half-space", lambda s: s.is_halfspace, _halfspace),
    Choice("orders on a lattice", lambda s: s.lattice_orders is not None, _on_lattice),
    Choice("orders on a graph", lambda s: s.graph_orders is not None, _on_graph),
    Choice("nested rows", lambda s: s.has_nested, lambda s: s.split),
    Choice("general rows", lambda s: s.is_general, OnRows),
    Choice("curved constraints", lambda s: s.has_curved_families, _curved),
    Choice("rows in a ball", lambda s: s.ball is not None, _in_ball),
)


def choose(feasible: FeasibleSet) -> Method:
    """The first method of the table that takes the set; the last two take what is left."""
    return next(choice.of(feasible) for choice in METHODS if choice.takes(feasible))


# -------------------------------------------------------------------------------------------------
# The nearest point of {w: A w = b}: v + A^+ (b - A v).
#
# Dense rows: a QR factorisation with column pivoting of A' (P. Businger and G. Golub, "Linear least
# squares solutions by Householder transformations", Numerische Mathematik 7, 1965), which also
# finds rows that follow from others. Sparse rows: a factor of [I A'; A -shift], whose shift is
# refined away (the method of multipliers). Both are repeated on what rounding has left.


@dataclass(frozen=True)
class Affine:
    """Equalities alone; `otherwise` takes over where they contradict each other, and says which."""

    A: Matrix
    b: Floats
    otherwise: Callable[[Vector], Nearest]

    @cached_property
    def _unit(self) -> tuple[Matrix, Floats, Floats]:
        """Rows of length one, their right sides, and the lengths; without rows of zeros."""
        scale = row_scale(self.A)
        kept = np.flatnonzero(scale > 0.0)
        rows, length = unit_rows(self.A, kept, scale)
        matrix = rows if sparse.issparse(rows) else np.asarray(rows)
        return matrix, self.b[kept] / length, length

    @cached_property
    def _step(self) -> Callable[[Floats], tuple[Floats, Floats]]:
        """The shortest step that changes rows @ w by what is given, and its multipliers."""
        rows = self._unit[0]
        return _sparse_step(rows) if sparse.issparse(rows) else _dense_step(np.asarray(rows))

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        rows, right, length = self._unit
        zeros = row_scale(self.A) == 0.0
        w, weights = v.copy(), np.zeros(right.size)
        for _ in range(COSTS.affine_steps):
            step, multipliers = self._step(right - np.asarray(rows @ w))
            w, weights = w + step, weights - multipliers
        size = max(1.0, float(np.abs(v).max(initial=0.0)), float(np.abs(w).max(initial=0.0)))
        left = float(np.abs(np.asarray(rows @ w) - right).max(initial=0.0))
        if not left <= COSTS.row_tolerance * size or np.any(self.b[zeros] != 0.0):
            return self.otherwise(v)
        full = np.zeros(self.b.size)
        full[~zeros] = weights / length
        return Nearest(w, "closed form: equalities", EXACT, partial(_both_sides, full))


def _both_sides(multipliers: Floats) -> Floats:
    """Multipliers of A w = b as those of A w <= b and -A w <= -b."""
    return np.concatenate([np.maximum(multipliers, 0.0), np.maximum(-multipliers, 0.0)])


def _dense_step(rows: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
    q, r, order = linalg.qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diagonal(r))
    rank = int(np.count_nonzero(diagonal > COSTS.dependent_equality * diagonal.max(initial=0.0)))
    basis, corner, kept = q[:, :rank], r[:rank, :rank], order[:rank]

    def step(change: Floats) -> tuple[Floats, Floats]:
        part = linalg.solve_triangular(corner, change[kept], trans="T", check_finite=False)
        multipliers = np.zeros(change.size)
        multipliers[kept] = linalg.solve_triangular(corner, part, check_finite=False)
        return np.asarray(basis @ part), multipliers

    return step


def _sparse_step(rows: Matrix) -> Callable[[Floats], tuple[Floats, Floats]]:
    from scipy.sparse.linalg import splu

    count, dimension = rows.shape
    corner = -COSTS.affine_shift * sparse.identity(count)
    system = sparse.bmat([[sparse.identity(dimension), rows.T], [rows, corner]], format="csc")
    factor = splu(
        system,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def step(change: Floats) -> tuple[Floats, Floats]:
        found = factor.solve(np.concatenate([np.zeros(dimension), change]))
        multipliers = -found[dimension:]
        return np.asarray(rows.T @ multipliers), multipliers

    return step
