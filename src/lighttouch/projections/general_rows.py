"""Nearest points under any linear rows: solve exactly on the rows that matter, look for violated ones, repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.interfaces import Vector
from lighttouch.projections.conflicts import refuse_contradiction
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import LinearSet, unit_rows
from lighttouch.projections.working_set import CONTRADICTION, SOLVED, WorkingSet

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TOLERANCE = 1e-12  # excess of a unit row, relative to the size of the problem, that the method aims at
ACCEPTED = 1e-10  # ... and that it settles for when rounding allows no better


@dataclass(frozen=True)
class UnitRows:
    """All rows with length one: matrix rows 0..m-1, then upper bounds m..m+d-1, then lower bounds m+d..m+2d-1."""

    matrix: Any
    right: Floats
    lower: Floats
    upper: Floats
    source: Indices  # the user's row, or -1 for the domain
    norm: Floats

    @property
    def count(self) -> int:
        return int(self.right.size + 2 * self.lower.size)

    def excess(self, z: Floats, matrix_right: Floats, lower: Floats, upper: Floats) -> Floats:
        """How far z is beyond every row, given right sides relative to the centre."""
        return np.concatenate([np.asarray(self.matrix @ z) - matrix_right, z - upper, lower - z])

    def take(self, ids: Indices) -> Any:
        """The chosen rows as a matrix of the same kind."""
        rows, dimension = self.right.size, self.lower.size
        general, bound = ids[ids < rows], ids[ids >= rows] - rows
        sign = np.where(bound < dimension, 1.0, -1.0)
        units = sparse.csr_matrix((sign, (np.arange(bound.size), bound % dimension)), shape=(bound.size, dimension))
        if sparse.issparse(self.matrix):
            stacked = sparse.vstack([self.matrix[general], units], format="csr")
        else:
            stacked = np.vstack([self.matrix[general], units.toarray()])
        order = np.empty(ids.size, dtype=np.int64)
        order[np.concatenate([np.flatnonzero(ids < rows), np.flatnonzero(ids >= rows)])] = np.arange(ids.size)
        return stacked[order]


def all_unit_rows(rows: LinearSet) -> UnitRows:
    """Orders and general rows in one matrix of unit rows, bounds apart."""
    orders = rows.orders
    matrix, right, source, norm = rows.matrix, rows.right, rows.source, rows.norm
    if orders.source.size:
        size = orders.source.size
        line = np.arange(size)
        data = np.concatenate([np.ones(size), -np.ones(size)])
        pairs = sparse.csr_matrix((data, (np.tile(line, 2), np.concatenate([orders.lower, orders.upper]))), shape=(size, rows.dimension))
        pairs, length = unit_rows(pairs, line, np.ones(size))
        matrix = sparse.vstack([sparse.csr_matrix(matrix), pairs], format="csr")
        right = np.concatenate([right, -orders.margin / length])
        source = np.concatenate([source, orders.source])
        norm = np.concatenate([norm, np.full(size, np.nan)])
    bounds = rows.bounds
    source = np.concatenate([source, bounds.upper_source, bounds.lower_source])
    return UnitRows(matrix, right, bounds.lower, bounds.upper, source, norm)


@dataclass(frozen=True)
class RowsEngine:
    """Any linear rows and bounds."""

    rows: LinearSet
    unit: UnitRows

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        problem = Centred(self.unit, v)
        working = WorkingSet.empty(self.unit.take(np.empty(0, dtype=np.int64)))
        problem.load(working, warm)
        z = problem.solve_lazily(working)
        w = np.clip(v + z, self.unit.lower, self.unit.upper)
        return Nearest(w, "dual active set on violated rows", warm=working.ids[working.active])


class Centred:
    """One projection with the point moved to the origin, so that rounding is relative to the distance, not to the point."""

    def __init__(self, unit: UnitRows, v: Vector) -> None:
        self.unit = unit
        self.right = unit.right - np.asarray(unit.matrix @ v)
        self.lower, self.upper = unit.lower - v, unit.upper - v
        start = self.excess(np.zeros(v.size))
        violated = start > 0.0
        self.size = max(float(np.max(start, initial=0.0)), float(np.abs(v).max(initial=0.0))) if violated.any() else 1.0

    def excess(self, z: Floats) -> Floats:
        return self.unit.excess(z, self.right, self.lower, self.upper)

    def right_of(self, ids: Indices) -> Floats:
        rows = self.unit.right.size
        return np.concatenate([self.right, self.upper, -self.lower])[ids] if rows or ids.size else np.empty(0)

    def load(self, working: WorkingSet, warm: Any) -> None:
        if isinstance(warm, np.ndarray) and warm.size:
            working.add(self.unit.take(warm), warm, self.right_of(warm))
            working.start_from(np.arange(warm.size))

    def solve_lazily(self, working: WorkingSet) -> Floats:
        """Exact on the working set; rows it leaves violated join, rows far from tight leave."""
        z = working.point() if working.active.size else np.zeros(self.lower.size)
        while True:
            excess = self.excess(z)
            excess[working.ids] = -np.inf
            fresh = worst_rows(excess, TOLERANCE * self.size, batch=max(64, self.lower.size // 4))
            if not fresh.size:
                return z
            working.keep(np.sort(working.active))
            working.add(self.unit.take(fresh), fresh, self.right_of(fresh))
            outcome, proof = working.solve(TOLERANCE * self.size, steps=50 * (working.ids.size + 10))
            if outcome == CONTRADICTION:
                refuse_contradiction(self.unit, working, proof)
            if outcome != SOLVED:
                raise RuntimeError("the active-set method did not settle")
            z = working.point()


def worst_rows(excess: Floats, tolerance: float, batch: int) -> Indices:
    """The rows beyond the tolerance, at most `batch` of them, worst first."""
    beyond = np.flatnonzero(excess > tolerance)
    if beyond.size > batch:
        beyond = beyond[np.argpartition(-excess[beyond], batch)[:batch]]
    return beyond[np.argsort(-excess[beyond], kind="stable")]
