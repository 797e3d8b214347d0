"""All linear rows and bounds with length one, and one projection of a point onto them moved to the
origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.projections.costs import COSTS, EPSILON
from lighttouch.projections.rows.factor_cost import factor_cost
from lighttouch.projections.rows.kinds import LinearSet, unit_rows


@dataclass(frozen=True)
class UnitRows:
    """Rows 0..m-1 of the matrix, then upper bounds m..m+d-1, then lower bounds m+d..m+2d-1; a
    source of -1 is the domain.
    """

    matrix: Matrix
    right: Floats
    lower: Floats
    upper: Floats
    source: Indices
    norm: Floats

    def take(self, ids: Indices) -> Matrix:
        """The chosen rows as a matrix of the same kind."""
        rows, dimension = self.right.size, self.lower.size
        general = np.flatnonzero(ids < rows)
        if general.size == ids.size:
            return self.matrix[ids]
        bound = np.flatnonzero(ids >= rows)
        column = ids[bound] - rows
        sign = np.where(column < dimension, 1.0, -1.0)
        units = sparse.csr_matrix(
            (sign, (np.arange(bound.size), column % dimension)), shape=(bound.size, dimension)
        )
        place = np.empty(ids.size, dtype=np.int64)
        place[np.concatenate([general, bound])] = np.arange(ids.size)
        if sparse.issparse(self.matrix):
            return sparse.vstack([self.matrix[ids[general]], units], format="csr")[place]
        return np.vstack([self.matrix[ids[general]], units.toarray()])[place]

    @cached_property
    def factor_cost(self) -> float:
        """Multiplications of factoring the rows with an identity; infinite where they are not
        sparse.
        """
        return (
            factor_cost(sparse.identity(self.lower.size, format="csr"), self.matrix)
            if sparse.issparse(self.matrix)
            else np.inf
        )

    def multipliers(self, count: int, ids: Indices, weights: Floats) -> Floats:
        """Weights of unit rows as multipliers of the rows as given; what belongs to the domain is
        left out.
        """
        result = np.zeros(count)
        mine = self.source[ids] >= 0
        np.add.at(result, self.source[ids[mine]], weights[mine] / self.norm[ids[mine]])
        return result


def all_unit_rows(rows: LinearSet) -> UnitRows:
    """Orders and general rows in one matrix of unit rows, bounds apart."""
    orders, bounds = rows.orders, rows.bounds
    matrix, right, source, norm = rows.matrix, rows.right, rows.source, rows.norm
    if orders.source.size:
        line = np.arange(orders.source.size)
        data = np.repeat([1.0, -1.0], line.size)
        entries = (data, (np.tile(line, 2), np.concatenate([orders.lower, orders.upper])))
        pairs, length = unit_rows(
            sparse.csr_matrix(entries, shape=(line.size, rows.dimension)), line, np.ones(line.size)
        )
        matrix = sparse.vstack([sparse.csr_matrix(matrix), pairs], format="csr")
        right = np.concatenate([right, -orders.margin / length])
        source = np.concatenate([source, orders.source])
        norm = np.concatenate([norm, length * orders.scale])
    source = np.concatenate([source, bounds.upper_source, bounds.lower_source])
    norm = np.concatenate([norm, bounds.upper_norm, bounds.lower_norm])
    return UnitRows(matrix, right, bounds.lower, bounds.upper, source, norm)


class Centred:
    """The projection of one point, moved to the origin and divided by its worst excess, so that
    rounding is relative to the distance.
    """

    def __init__(self, unit: UnitRows, v: Vector) -> None:
        self.unit = unit
        right = unit.right - np.asarray(unit.matrix @ v)
        self.right = np.concatenate([right, unit.upper - v, v - unit.lower])
        worst = float(np.max(-self.right, initial=0.0))
        self.feasible = worst <= 0.0
        self.scale = worst if worst > 0.0 else 1.0
        self.right /= self.scale
        self.tolerance = max(
            COSTS.tolerance, 8.0 * EPSILON * float(np.abs(v).max(initial=0.0)) / self.scale
        )

    @property
    def dimension(self) -> int:
        return int(self.unit.lower.size)

    def excess(self, z: Floats) -> Floats:
        """How far z is beyond every row."""
        return np.asarray(np.concatenate([np.asarray(self.unit.matrix @ z), z, -z]) - self.right)


def worst_rows(excess: Floats, tolerance: float, batch: int) -> Indices:
    """The rows beyond the tolerance, at most `batch` of them, worst first."""
    beyond = np.flatnonzero(excess > tolerance)
    if beyond.size > batch:
        beyond = beyond[np.argpartition(-excess[beyond], batch)[:batch]]
    return np.asarray(beyond[np.argsort(-excess[beyond], kind="stable")])
