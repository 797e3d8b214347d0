"""Nearest points under any convex constraints, by Kelley's cutting planes (J. E. Kelley, "The
cutting-plane method for solving convex programs", Journal of the SIAM 8, 1960).

A polyhedron around the set is cut down until its nearest point lies in the set. A linearised convex
constraint holds on the whole set, so the polyhedron's nearest point is never further away than the
answer. When it is feasible it is the answer; until then its distance is a certified lower bound.
Linear rows that are too many to store are found in the same way: the rows that the nearest point
breaks join, until it breaks none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
from scipy import sparse

from lighttouch.arrays import EPSILON, Floats, Indices, Matrix, Vector, dense
from lighttouch.constraints.base import Balls, RecordConstraints
from lighttouch.errors import InfeasibleConstraintsError, ProjectionError
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.rows.kinds import Centred, LinearSet, UnitRows
from lighttouch.projections.rows.portfolio import GeneralRows, WarmRows, approach
from lighttouch.result import Nearest, certified, not_certified
from lighttouch.running import check_deadline


class CurvedFamily(Protocol):
    """What the projections ask of constraints that are not linear."""

    @property
    def conic(self) -> bool: ...

    def values(self, w: Vector) -> Vector: ...
    def subgradient(self, j: int, w: Vector) -> Vector: ...
    def balls(self) -> Balls | None: ...
    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True)
class Part:
    """One family, with the number of its first constraint among all of them (-1: the domain)."""

    family: CurvedFamily
    first: int

    def numbers(self, count: int) -> Indices:
        """The numbers of its constraints; -1 for the domain."""
        return self.first + np.arange(count) if self.first >= 0 else np.full(count, -1)


@dataclass(frozen=True)
class BallDomain:
    """The domain's ball as one more constraint, |w - center| - radius <= 0."""

    center: Floats
    radius: float
    conic: bool = True

    def values(self, w: Vector) -> Vector:
        return np.array([np.linalg.norm(w - self.center) - self.radius])

    def subgradient(self, j: int, w: Vector) -> Vector:
        away = w - self.center
        return np.asarray(away / max(float(np.linalg.norm(away)), TINY))

    def balls(self) -> Balls:
        return Balls(self.center[None], np.array([self.radius]))

    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]:
        matrix = np.vstack([np.zeros(v.size), np.eye(v.size)])
        return matrix, np.concatenate([[self.radius], v - self.center])


@dataclass(frozen=True)
class RowsToFind:
    """Linear rows that are too many to store: those that a point breaks are found, the worst of
    them first, and made.
    """

    family: RecordConstraints
    first: int


CUT = 2**60  # numbers from here on are cuts, not rows


@dataclass
class UnitCuts:
    """Rows of length one that hold on the whole set: slopes @ w <= right, each from the constraint
    `number` (-1: the domain), `length` times shorter than it.
    """

    slopes: Matrix
    right: Floats = field(default_factory=lambda: np.empty(0))
    number: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    length: Floats = field(default_factory=lambda: np.empty(0))
    idle: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    active: WarmRows = field(
        default_factory=WarmRows.none
    )  # rows, cuts and bounds that held the last point in place

    @property
    def count(self) -> int:
        return int(self.right.size)

    def add(self, slopes: Matrix, right: Floats, number: Indices, length: Floats) -> None:
        self.slopes = joined(self.slopes, slopes)
        self.right = np.concatenate([self.right, right])
        self.number = np.concatenate([self.number, number])
        self.length = np.concatenate([self.length, length])
        self.idle = np.concatenate([self.idle, np.zeros(number.size, dtype=np.int64)])

    def polyhedron(self, base: UnitRows) -> UnitRows:
        """The base with the cuts after its rows and before its bounds."""
        rows = base.right.size
        source = np.concatenate(
            [base.source[:rows], CUT + np.arange(self.count), base.source[rows:]]
        )
        norm = np.concatenate([base.norm[:rows], self.length, base.norm[rows:]])
        return UnitRows(
            joined(base.matrix, self.slopes),
            np.concatenate([base.right, self.right]),
            base.lower,
            base.upper,
            source,
            norm,
        )

    def remember(self, last: WarmRows, rows: int) -> None:
        """Note which rows were active, and forget cuts that have not been for several rounds."""
        count, active = self.count, last.ids
        cuts = (active >= rows) & (active < rows + count)
        used = np.zeros(count, dtype=bool)
        used[active[cuts] - rows] = True
        self.idle = np.where(used, 0, self.idle + 1)
        kept = np.flatnonzero(self.idle <= COSTS.idle_rounds)
        place = np.cumsum(np.isin(np.arange(count), kept)) - 1
        bounds = active >= rows + count
        ids = active.copy()
        ids[cuts] = rows + place[active[cuts] - rows]
        ids[bounds] += kept.size - count
        self.active = WarmRows(ids, last.weights)
        self.keep(kept)

    def keep(self, kept: Indices) -> None:
        if kept.size < self.count:
            for name in ("slopes", "right", "number", "length", "idle"):
                setattr(self, name, getattr(self, name)[kept])

    def start(self, rows: int, fresh: int) -> WarmRows:
        """The active rows by their numbers now that `fresh` cuts have joined."""
        ids = self.active.ids
        bounds = ids >= rows + self.count - fresh
        return WarmRows(np.where(bounds, ids + fresh, ids), self.active.weights)


def joined(above: Matrix, below: Matrix) -> Matrix:
    """Two matrices one above the other, sparse where the rows that there are, are."""
    if not below.shape[0]:
        return above
    if not above.shape[0]:
        return below
    if sparse.issparse(above):
        return sparse.vstack([above, sparse.csr_matrix(below)], format="csr")
    return np.vstack([above, dense(below)])


@dataclass(frozen=True)
class NearestByCuts:
    """Linear rows, a box, curved families, and rows to find; `number` is the constraint of each
    linear row.
    """

    rows: LinearSet
    base: UnitRows
    number: Indices
    parts: list[Part]
    signs: Floats  # -1 for rows that are equalities with their signs turned
    count: int  # of all constraints
    unstored: list[RowsToFind]

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        cuts = UnitCuts(np.zeros((0, v.size)))
        if isinstance(warm, np.ndarray) and warm.shape == v.shape:
            self._cut(cuts, warm, at_least=-np.inf)
            self._find(cuts, warm)
        if self.unstored:
            self._explore(cuts, v)
        fresh = cuts.count
        excess, rounds, before, size = np.inf, 0, np.inf, 1.0
        found = Nearest(v, "")
        for rounds in range(1, COSTS.curved_rounds + 1):
            check_deadline()
            found = self._nearest_to_polyhedron(v, cuts, fresh)
            w, known = found.w, cuts.count
            size = max(1.0, float(np.abs(w).max(initial=0.0)))
            excess = self._cut(cuts, w, at_least=0.0)
            curved, missing = excess, self._find(cuts, w)
            excess = max(curved, missing)
            fresh = cuts.count - known
            near = excess <= COSTS.cutting_accepted * size
            stuck = rounds > COSTS.curved_patience and excess >= before
            settled = curved <= COSTS.cutting_tolerance * size and missing == 0.0
            if settled or (near and (stuck or not fresh)):
                break
            before = min(before, excess)
        near = excess <= COSTS.cutting_accepted * size
        gap = None if self.parts else found.gap
        sure = certified(gap) if near else not_certified(excess=excess)
        how = "cutting planes" if self.parts else f"{found.method}, on a growing set of rows"
        return Nearest(found.w, f"{how}, {rounds} rounds", sure, found.multipliers, found.w)

    def _nearest_to_polyhedron(self, v: Vector, cuts: UnitCuts, fresh: int) -> Nearest:
        rows = self.base.right.size
        polyhedron = cuts.polyhedron(self.base)
        try:
            general = GeneralRows(self.rows, polyhedron, self._interior_first)
            found = general.nearest(v, cuts.start(rows, fresh))
        except InfeasibleConstraintsError as error:
            size = max(1.0, float(np.abs(v).max(initial=0.0)))
            if self.parts and error.missing <= COSTS.cutting_accepted * size:
                raise ProjectionError(
                    "the constraints leave so little room that rounding hides it: the tangents "
                    f"contradict each other by {error.missing:.1g}; allow them that much"
                ) from None
            raise self._translated(error, cuts) from None
        last = found.warm if isinstance(found.warm, WarmRows) else WarmRows.none()
        multipliers = None
        if not self.parts and found.certificate.kind != "exact":
            multipliers = partial(self._multipliers, polyhedron, cuts.number, last)
        cuts.remember(last, rows)
        return replace(found, multipliers=multipliers)

    def _translated(
        self, error: InfeasibleConstraintsError, cuts: UnitCuts
    ) -> InfeasibleConstraintsError:
        """A conflict of cuts is one of the constraints they come from."""
        guilty = {
            int(cuts.number[row - CUT]) if row >= CUT else int(self.number[row])
            for row in error.rows
        } - {-1}
        named = ", ".join(map(str, sorted(guilty)))
        implied = "linear rows implied by them" if self.parts else "they"
        message = f"no point satisfies constraints {named}: {implied} contradict each other"
        return InfeasibleConstraintsError(message, sorted(guilty))

    def _cut(self, cuts: UnitCuts, w: Vector, at_least: float) -> float:
        """Linearise the most violated constraints at w; returns the largest excess over the length
        of its gradient.
        """
        worst = 0.0
        for part in self.parts:
            values = part.family.values(w)
            chosen = np.flatnonzero(values > at_least)
            chosen = chosen[
                np.argsort(-values[chosen], kind="stable")[: COSTS.curved_cuts_per_round]
            ]
            slopes = [part.family.subgradient(int(j), w) for j in chosen]
            length = np.array([float(np.linalg.norm(slope)) for slope in slopes])
            for j in chosen[(length == 0.0) & (values[chosen] > 0.0)]:
                number = part.first + int(j) if part.first >= 0 else -1
                self._refuse_positive_minimum(number, float(values[j]))
            kept = np.flatnonzero(length > 0.0)
            if not kept.size:
                continue
            chosen, length, rows = chosen[kept], length[kept], np.array(slopes)[kept]
            worst = max(worst, float(np.max(values[chosen] / length)))
            right = (np.array([float(row @ w) for row in rows]) - values[chosen]) / length
            numbers = part.first + chosen if part.first >= 0 else np.full(chosen.size, -1)
            cuts.add(rows / length[:, None], right, numbers, length)
        return worst

    @property
    def _interior_first(self) -> bool:
        """Rows that are found are sparse and many: the active-set method takes several times as
        long as an interior point whose normal matrix is small.
        """
        dimension = self.base.lower.size
        return bool(self.unstored) and dimension**3 / 3.0 <= COSTS.interior_for_found_rows

    def _explore(self, cuts: UnitCuts, v: Vector) -> None:
        """Find rows with approximate points of the augmented Lagrangian first: each costs a tenth
        of an exact one, and the rows that matter are nearly the same.
        """
        start, w, rows = WarmRows.none(), v, self.base.right.size
        for _ in range(COSTS.exploring_rounds):
            check_deadline()
            known = cuts.count
            self._find(cuts, w)
            fresh = cuts.count - known
            if fresh <= COSTS.exploring_share * known:
                break
            polyhedron = cuts.polyhedron(self.base)
            problem = Centred(polyhedron, v)
            ids = np.where(start.ids >= rows + known, start.ids + fresh, start.ids)
            warm = WarmRows(ids, start.weights / problem.scale)
            found = approach(problem, warm, COSTS.rough_rounds, COSTS.rough_goal)
            if found is None:
                break
            z = -np.asarray(polyhedron.take(found.ids).T @ found.weights)
            w = np.clip(v + problem.scale * z, self.base.lower, self.base.upper)
            start = WarmRows(found.ids, found.weights * problem.scale)
            used = found.ids[(found.ids >= rows) & (found.ids < rows + cuts.count)] - rows
            cuts.idle += 1
            cuts.idle[used] = 0
        cuts.keep(np.flatnonzero(cuts.idle <= COSTS.exploring_idle))

    def _find(self, cuts: UnitCuts, w: Vector) -> float:
        """Make the rows that w breaks by more than rounding, those that are known left out; returns
        the largest excess in lengths of its row.
        """
        worst = 0.0
        tolerance = COSTS.rounding_errors * EPSILON * max(1.0, float(np.abs(w).max(initial=0.0)))
        most = max(COSTS.curved_cuts_per_round, round(COSTS.found_rows_per_parameter * w.size))
        for part in self.unstored:
            chosen = part.family.worst(w, most, tolerance)
            if not chosen.size:
                continue
            rows, right = part.family.rows_at(chosen)
            length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            if length[0] == 0.0:
                self._refuse_positive_minimum(part.first + int(chosen[0]), -float(right[0]))
            worst = max(worst, float((np.asarray(rows[0] @ w)[0] - right[0]) / length[0]))
            fresh = np.flatnonzero(~np.isin(part.first + chosen, cuts.number) & (length > 0.0))
            if fresh.size:
                unit = sparse.diags(1.0 / length[fresh]) @ rows[fresh]
                number = part.first + chosen[fresh]
                cuts.add(unit.tocsr(), right[fresh] / length[fresh], number, length[fresh])
        return worst

    def _multipliers(self, polyhedron: UnitRows, cuts: Indices, last: WarmRows) -> Vector:
        """Multipliers of all constraints, where all are rows."""
        result = np.zeros(self.count)
        source = polyhedron.source[last.ids]
        each = last.weights / polyhedron.norm[last.ids]
        made, stored = source >= CUT, (source >= 0) & (source < CUT)
        np.add.at(result, cuts[source[made] - CUT], each[made])
        number = self.number[source[stored]]
        signed = self.signs[source[stored]] * each[stored]
        np.add.at(result, number[number >= 0], signed[number >= 0])
        return result

    def _refuse_positive_minimum(self, number: int, value: float) -> None:
        raise InfeasibleConstraintsError(
            f"no point satisfies constraint {number}: its smallest value is {value:.6g} > 0",
            [number],
        )
