"""Which method finds the nearest points of which set: one table, in order of preference.

A line of the table says which sets a method takes, from the facts of the set alone, and makes the
method, which has `nearest(v, warm)`. A ball as domain is put around whichever method the linear
rows alone would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Vector
from lighttouch.domains import Simplex
from lighttouch.projections.costs import COSTS
from lighttouch.projections.curved.ball_path import InBall
from lighttouch.projections.curved.cutting_planes import CuttingPlanes
from lighttouch.projections.curved.portfolio import curved_method
from lighttouch.projections.exchange.rounds import ByBlocks
from lighttouch.projections.result import EXACT, Nearest
from lighttouch.projections.rows.affine import Affine
from lighttouch.projections.rows.kinds import Bounds
from lighttouch.projections.rows.portfolio import GeneralRows

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
    cuts = CuttingPlanes(
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
