"""Nearest points under norm, quadratic and other convex constraints, alone or with linear rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.projections.balls import BallsEngine, join_balls, refuse_negative_radius
from lighttouch.projections.conic import clarabel_or_none, cone_block, nearest_to_cones
from lighttouch.projections.curved_sets import balls_of, is_conic
from lighttouch.projections.cutting_planes import NOT_CERTIFIED, CutEngine
from lighttouch.projections.result import Nearest
from lighttouch.projections.unit_rows import UnitRows


@dataclass(frozen=True)
class CurvedEngine:
    """Balls by closed forms where they decide; cutting planes otherwise, with Clarabel where those
    do not end.
    """

    cuts: CutEngine
    balls: BallsEngine | None

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        if self.balls is not None:
            found = self.balls.nearest(v, warm)
            if found is not None and self._keeps_rows(found.w):
                return found
        found = self.cuts.nearest(v, warm)
        if (
            NOT_CERTIFIED in found.method
            and all(is_conic(part) for part in self.cuts.parts)
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
            cone_block(part.family, j, v)
            for part in self.cuts.parts
            for j in range(len(part.values(v)))
        ]
        point = nearest_to_cones(v, rows, right, blocks)
        if point is None:
            return found
        better = self.cuts.nearest(v, point)
        return Nearest(
            better.w, f"Clarabel, then {better.method}", better.gap, better.multipliers, better.warm
        )


def rows_with_box(base: UnitRows) -> tuple[Any, Vector]:
    """The linear rows and the finite sides of the box as one system."""
    identity = sparse.identity(base.lower.size, format="csr")
    high, low = np.flatnonzero(np.isfinite(base.upper)), np.flatnonzero(np.isfinite(base.lower))
    rows = sparse.vstack(
        [sparse.csr_matrix(base.matrix), identity[high], -identity[low]], format="csr"
    )
    return rows, np.concatenate([base.right, base.upper[high], -base.lower[low]])


def curved_engine(cuts: CutEngine) -> CurvedEngine:
    balls = [balls_of(part) for part in cuts.parts]
    known = [part for part in balls if part is not None]
    for part in known:
        refuse_negative_radius(part)
    return CurvedEngine(cuts, BallsEngine(join_balls(known)) if len(known) == len(balls) else None)
