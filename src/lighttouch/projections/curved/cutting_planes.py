"""Nearest points under any convex constraints, by Kelley's cutting planes (J. E. Kelley, "The
cutting-plane method for solving convex programs", Journal of the SIAM 8, 1960).

A polyhedron around the set is cut down until its nearest point lies in the set. A linearised convex
constraint holds on the whole set, so the polyhedron's nearest point is never further away than the
answer. When it is feasible it is the answer; until then its distance is a certified lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections.costs import COSTS
from lighttouch.projections.curved.parts import Part
from lighttouch.projections.result import Nearest, certified, not_certified
from lighttouch.projections.rows.kinds import LinearSet
from lighttouch.projections.rows.portfolio import GeneralRows, WarmRows
from lighttouch.projections.rows.unit import UnitRows
from lighttouch.running import deadline

CUT = 2**60  # numbers from here on are cuts, not rows


@dataclass
class Cuts:
    """Rows of length one that hold on the whole set: slopes @ w <= right, each from the constraint
    `number` (-1: the domain).
    """

    slopes: list[Floats] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    active: WarmRows = field(
        default_factory=WarmRows.none
    )  # rows, cuts and bounds that held the last point in place

    def add(self, slope: Floats, right: float, number: int) -> None:
        self.slopes.append(slope)
        self.right.append(right)
        self.number.append(number)
        self.idle.append(0)

    def polyhedron(self, base: UnitRows) -> UnitRows:
        """The base with the cuts after its rows and before its bounds."""
        rows = base.right.size
        slopes = np.array(self.slopes).reshape(len(self.slopes), base.lower.size)
        stack = partial(sparse.vstack, format="csr") if sparse.issparse(base.matrix) else np.vstack
        source = np.concatenate(
            [base.source[:rows], CUT + np.arange(len(self.slopes)), base.source[rows:]]
        )
        norm = np.concatenate([base.norm[:rows], np.ones(len(self.slopes)), base.norm[rows:]])
        return UnitRows(
            stack([base.matrix, slopes]),
            np.concatenate([base.right, self.right]),
            base.lower,
            base.upper,
            source,
            norm,
        )

    def remember(self, last: WarmRows, rows: int) -> None:
        """Note which rows were active, and forget cuts that have not been for several rounds."""
        count, active = len(self.slopes), last.ids
        used = np.zeros(count, dtype=bool)
        used[active[(active >= rows) & (active < rows + count)] - rows] = True
        self.idle = [
            0 if in_use else idle + 1 for in_use, idle in zip(used, self.idle, strict=True)
        ]
        kept = np.flatnonzero(np.array(self.idle, dtype=np.int64) <= COSTS.idle_rounds)
        place = np.cumsum(np.isin(np.arange(count), kept)) - 1
        cuts = (active >= rows) & (active < rows + count)
        bounds = active >= rows + count
        ids = active.copy()
        ids[cuts] = rows + place[active[cuts] - rows]
        ids[bounds] += kept.size - count
        self.active = WarmRows(ids, last.weights)
        for name in ("slopes", "right", "number", "idle"):
            values = getattr(self, name)
            setattr(self, name, [values[k] for k in kept])

    def start(self, rows: int, fresh: int) -> WarmRows:
        """The active rows by their numbers now that `fresh` cuts have joined."""
        ids = self.active.ids
        bounds = ids >= rows + len(self.slopes) - fresh
        return WarmRows(np.where(bounds, ids + fresh, ids), self.active.weights)


@dataclass(frozen=True)
class CuttingPlanes:
    """Linear rows, a box, and curved families; `number` is the constraint of each linear row."""

    rows: LinearSet
    base: UnitRows
    number: Indices
    parts: list[Part]

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        cuts = Cuts()
        if isinstance(warm, np.ndarray) and warm.shape == v.shape:
            self._cut(cuts, warm, at_least=-np.inf)
        fresh = len(cuts.slopes)
        w, excess, rounds, before, size = v, np.inf, 0, np.inf, 1.0
        for rounds in range(1, COSTS.cutting_rounds + 1):
            deadline.check()
            w = self._nearest_to_polyhedron(v, cuts, fresh)
            known = len(cuts.slopes)
            excess = self._cut(cuts, w, at_least=0.0)
            fresh = len(cuts.slopes) - known
            size = max(1.0, float(np.abs(w).max(initial=0.0)))
            near = excess <= COSTS.cutting_accepted * size
            stuck = rounds > COSTS.cutting_patience and excess >= before
            if excess <= COSTS.cutting_tolerance * size or (near and stuck):
                break
            before = min(before, excess)
        near = excess <= COSTS.cutting_accepted * size
        sure = certified() if near else not_certified(excess=excess)
        return Nearest(w, f"cutting planes, {rounds} rounds", sure, warm=w)

    def _nearest_to_polyhedron(self, v: Vector, cuts: Cuts, fresh: int) -> Vector:
        rows = self.base.right.size
        try:
            found = GeneralRows(self.rows, cuts.polyhedron(self.base)).nearest(
                v, cuts.start(rows, fresh)
            )
        except InfeasibleConstraintsError as error:
            raise self._translated(error, cuts) from None
        cuts.remember(found.warm if isinstance(found.warm, WarmRows) else WarmRows.none(), rows)
        return found.w

    def _translated(
        self, error: InfeasibleConstraintsError, cuts: Cuts
    ) -> InfeasibleConstraintsError:
        """A conflict of cuts is one of the constraints they come from."""
        guilty = {
            cuts.number[row - CUT] if row >= CUT else int(self.number[row]) for row in error.rows
        } - {-1}
        named = ", ".join(map(str, sorted(guilty)))
        message = (
            f"no point satisfies constraints {named}: linear rows implied by them contradict "
            "each other"
        )
        return InfeasibleConstraintsError(message, sorted(guilty))

    def _cut(self, cuts: Cuts, w: Vector, at_least: float) -> float:
        """Linearise the most violated constraints at w; returns the largest excess over the length
        of its gradient.
        """
        worst = 0.0
        for part in self.parts:
            values = part.family.values(w)
            chosen = np.flatnonzero(values > at_least)
            chosen = chosen[np.argsort(-values[chosen], kind="stable")[: COSTS.cuts_per_round]]
            for j in chosen:
                slope = part.family.subgradient(int(j), w)
                length = float(np.linalg.norm(slope))
                number = part.first + int(j) if part.first >= 0 else -1
                if length == 0.0:
                    if values[j] > 0.0:
                        self._refuse_positive_minimum(number, float(values[j]))
                    continue
                worst = max(worst, float(values[j]) / length)
                cuts.add(slope / length, (float(slope @ w) - float(values[j])) / length, number)
        return worst

    def _refuse_positive_minimum(self, number: int, value: float) -> None:
        raise InfeasibleConstraintsError(
            f"no point satisfies constraint {number}: its smallest value is {value:.6g} > 0",
            [number],
        )
