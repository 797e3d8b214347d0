"""Sets whose nearest point can be written down: a box, one half-space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import Bounds


@dataclass(frozen=True)
class ClipEngine:
    """Bounds on single coordinates only, or nothing at all."""

    bounds: Bounds

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        if self.bounds.trivial:
            return Nearest(v.copy(), "closed form: no constraints", gap=0.0)
        return Nearest(
            np.clip(v, self.bounds.lower, self.bounds.upper),
            "closed form: clipped to bounds",
            gap=0.0,
        )


@dataclass(frozen=True)
class HalfspaceEngine:
    """One row of length one, row @ w <= right."""

    row: Vector
    right: float

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        w = v.copy()
        for _ in range(3):  # the second step, if any, only removes rounding
            excess = float(self.row @ w) - self.right
            if excess <= 0.0:
                break
            w -= excess * self.row
        return Nearest(w, "closed form: one row", gap=0.0)
