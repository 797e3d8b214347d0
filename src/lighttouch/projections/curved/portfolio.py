"""Nearest points under norm, quadratic and other convex constraints, alone or with linear rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from lighttouch.arrays import Matrix, Vector
from lighttouch.projections.curved.balls import InAllBalls, join_balls
from lighttouch.projections.curved.conic import clarabel_or_none, nearest_to_cones
from lighttouch.projections.curved.cutting_planes import CuttingPlanes
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows.kinds import UnitRows


@dataclass(frozen=True)
class Curved:
    """Balls by closed forms where they decide; cutting planes otherwise, with Clarabel where those
    do not end.
    """

    cuts: CuttingPlanes
    balls: InAllBalls | None

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        if self.balls is not None:
            found = self.balls.nearest(v, warm)
            if found is not None and self._keeps_rows(found.w):
                return found
        found = self.cuts.nearest(v, warm)
        if (
            not found.certificate.holds
            and all(part.family.conic for part in self.cuts.parts)
            and clarabel_or_none() is not None
        ):
            return self._with_clarabel(v, found)
        return found

    def _keeps_rows(self, w: Vector) -> bool:
        """Whether a point of the balls obeys the rows and the box as well; then it is the nearest
        of all.
        """
        rows = self.cuts.base
        return bool(
            np.all(rows.matrix @ w <= rows.right)
            and np.all(w >= rows.lower)
            and np.all(w <= rows.upper)
        )

    def _with_clarabel(self, v: Vector, found: Nearest) -> Nearest:
        """Start the cuts at the conic solver's point: next to the answer one or two rounds
        suffice.
        """
        rows, right = rows_with_box(self.cuts.base)
        blocks = [
            part.family.cone(j, v)
            for part in self.cuts.parts
            for j in range(len(part.family.values(v)))
        ]
        point = nearest_to_cones(v, rows, right, blocks)
        if point is None:
            return found
        better = self.cuts.nearest(v, point)
        return replace(better, method=f"Clarabel, then {better.method}")


def rows_with_box(base: UnitRows) -> tuple[Matrix, Vector]:
    """The linear rows and the finite sides of the box as one system."""
    identity = sparse.identity(base.lower.size, format="csr")
    high, low = np.flatnonzero(np.isfinite(base.upper)), np.flatnonzero(np.isfinite(base.lower))
    rows = sparse.vstack(
        [sparse.csr_matrix(base.matrix), identity[high], -identity[low]], format="csr"
    )
    return rows, np.concatenate([base.right, base.upper[high], -base.lower[low]])


def curved_method(cuts: CuttingPlanes) -> Curved:
    balls = join_balls(cuts.parts)
    return Curved(cuts, None if balls is None else InAllBalls(balls))
