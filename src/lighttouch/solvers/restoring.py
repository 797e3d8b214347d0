"""A point that breaks a few rows, moved to where it breaks none.

The move is the shortest in the metric of Newton's equations at the point, in which rows that hold
it are far away (Dikin's ellipsoid): it breaks few others, and they join until none is left.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats, Indices, Vector, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.systems import DenseFactor
from lighttouch.kernels.numerics.dual_active_set import SOLVED
from lighttouch.projections.costs import COSTS as PROJECTIONS
from lighttouch.projections.rows.active_set import WorkingSet
from lighttouch.running import check_deadline
from lighttouch.solvers.interior_rounds import Model, Round


def restored(model: Model, current: Round, x: Vector, broken: Indices) -> Vector | None:
    """A point near x, which breaks these rows, that breaks none; None where no metric is at hand,
    rows are many, or the moves do not get there.
    """
    factor, most = current.factor, COSTS.most_restored * x.size
    if not isinstance(factor, DenseFactor) or not _is_metric(model, current, factor):
        return None
    move = _ShortestMove(current.units.columns, factor.lower)
    for _ in range(COSTS.restorations):
        if move.count + broken.size > most:
            return None
        check_deadline()
        taken = model.rows.take(broken)
        if taken.equal.any():
            return None
        rows = np.vstack([np.zeros((0, x.size)), *(dense(block) for block in taken.blocks)])
        change = move.with_rows(rows, rows @ x - taken.right, taken.ids)
        if change is None:
            return None
        found = np.clip(x + change, model.lower, model.upper)
        left = model.rows.broken(found)
        if not left.size:
            return np.asarray(found)
        broken = np.setdiff1d(left, move.ids)
    return None


def _is_metric(model: Model, current: Round, factor: DenseFactor) -> bool:
    """Whether the factor, in this computer's memory, knows all that holds x but rows."""
    plain = current.units.basis is None and not model.curved and not factor.system.equal.size
    return plain and isinstance(factor.lower, np.ndarray)


class _ShortestMove:
    """The change of x, shortest in a metric H = L L' of x / columns, that makes up for excesses of
    rows, and a little more.
    """

    def __init__(self, columns: Vector, lower: Floats) -> None:
        self.columns, self.lower = columns, lower
        self.nearest = WorkingSet.empty(np.zeros((0, columns.size)))
        self.room = self.scale = 0.0

    @property
    def ids(self) -> Indices:
        return self.nearest.ids

    @property
    def count(self) -> int:
        return int(self.nearest.ids.size)

    def with_rows(self, rows: Floats, excess: Vector, ids: Indices) -> Vector | None:
        """The move once these rows have joined; None where there is none."""
        sizes = np.linalg.norm(rows, axis=1)
        turned = scipy.linalg.blas.dtrsm(1.0, self.lower, (rows * self.columns).T, lower=1).T
        lengths = np.linalg.norm(turned, axis=1)
        if not (ids.size and lengths.min() > 0.0):
            return None
        if not self.count:
            self.room = COSTS.restoring_room * float((excess / sizes).max())
        wanted = (excess + self.room * sizes) / lengths
        self.scale = self.scale or float(wanted.max())
        self.nearest.add(turned / lengths[:, None], ids, -wanted / self.scale)
        budget = PROJECTIONS.active_set_budget(self.count)
        if self.nearest.solve(PROJECTIONS.tolerance, budget)[0] != SOLVED:
            return None
        change = scipy.linalg.blas.dtrsv(self.lower, self.nearest.point(), lower=1, trans=1)
        return np.asarray(self.scale * self.columns * change)
