"""Nearest points under any linear rows: solve on the rows that matter, look for violated ones, repeat; end with an exact active set.

Few violated rows go straight to the dual active-set method. Many are first sorted out by the augmented Lagrangian, whose multipliers
say which rows are active; the active-set method then starts there and corrects what is left. An answer counts only if its violation
and its duality gap are both small; otherwise the next method is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.interfaces import Vector
from lighttouch.projections import conflicts
from lighttouch.projections.newton import augmented_lagrangian
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import LinearSet
from lighttouch.projections.threads import one_blas_thread
from lighttouch.projections.unit_rows import EPSILON, Centred, UnitRows, all_unit_rows, worst_rows
from lighttouch.projections.working_set import CONTRADICTION, SOLVED, WorkingSet

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

FEW = 120  # violated rows the active-set method takes one by one
SMALL_DIMENSION = 1000  # up to here the active-set method steps are cheap, so it may take over early
LARGEST_GRAM = 6000  # active rows whose Gram matrix is still formed
ACCEPTED_EXCESS = 1e-10  # relative to the worst excess at the start
ACCEPTED_GAP = 1e-9  # relative to the squared distance


@dataclass(frozen=True)
class Answer:
    """Rows that hold the answer in place and their multipliers, with what was verified about them."""

    ids: Indices
    weights: Floats
    z: Floats
    worst: float
    gap: float
    how: str

    @property
    def certified(self) -> bool:
        return self.worst <= ACCEPTED_EXCESS and self.gap <= ACCEPTED_GAP * float(self.z @ self.z)


@dataclass(frozen=True)
class RowsEngine:
    """Any linear rows and bounds."""

    rows: LinearSet
    unit: UnitRows

    @classmethod
    def of(cls, rows: LinearSet) -> RowsEngine:
        return cls(rows, all_unit_rows(rows))

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        with one_blas_thread():
            found, worst = self._once(v, warm)
            if worst > 64.0 * EPSILON * max(1.0, float(np.abs(v).max(initial=0.0))):
                found = self._closer(v, found, worst)
            return found

    def _once(self, v: Vector, warm: Any) -> tuple[Nearest, float]:
        problem = Centred(self.unit, v)
        if problem.feasible:
            return Nearest(v.copy(), "inside already", 0.0, warm=warm), 0.0
        answer = solve(problem, warm)
        w = np.clip(v + problem.scale * answer.z, self.unit.lower, self.unit.upper)
        weights = problem.scale * answer.weights
        multipliers = partial(self.unit.multipliers, self.rows.count, answer.ids, weights)
        found = Nearest(w, answer.how, answer.gap * problem.scale**2, multipliers, answer.ids)
        return found, answer.worst * problem.scale

    def _closer(self, v: Vector, found: Nearest, worst: float) -> Nearest:
        """Project the answer once more: from close by, tolerances are tighter, and a set that is empty by a hair is found out."""
        again, left = self._once(found.w, None)
        if left > worst:
            return found
        gap = (found.gap or 0.0) + float(np.linalg.norm(again.w - found.w)) * float(np.linalg.norm(again.w - v))
        return Nearest(again.w, found.method, gap, found.multipliers, found.warm)


def solve(problem: Centred, warm: Any) -> Answer:
    """The first certified answer; the best one where none is, with its true violation and gap."""
    ids = warm_rows(problem, warm)
    methods: list[Callable[[], Answer | None]] = [partial(by_active_set, problem, ids)]
    if np.count_nonzero(problem.right < 0.0) > FEW and not ids.size:
        methods = [partial(by_lagrangian_and_active_set, problem)]
    methods += [partial(by_lagrangian, problem), partial(by_clarabel, problem)]
    best: Answer | None = None
    for method in methods:
        answer = method()
        if answer is not None and answer.certified:
            return answer
        if answer is not None and (best is None or answer.worst < best.worst):
            best = answer
        if method is methods[0]:
            refuse_if_contradictory(problem)
    if best is None:
        raise RuntimeError("no method came near the feasible set; install lighttouch[conic] for another one")
    return Answer(best.ids, best.weights, best.z, best.worst, best.gap, f"{best.how} (not certified)")


def refuse_if_contradictory(problem: Centred) -> None:
    conflict = conflicts.find_conflict(problem)
    if conflict is not None:
        conflicts.refuse(problem, conflict)


def warm_rows(problem: Centred, warm: Any) -> Indices:
    """The rows that held an earlier answer in place."""
    if isinstance(warm, np.ndarray) and warm.dtype == np.int64 and warm.size and int(warm.max()) < problem.right.size:
        return warm
    return np.empty(0, dtype=np.int64)


def measured(problem: Centred, ids: Indices, weights: Floats, how: str) -> Answer:
    """Violation over all rows and duality gap of z = -rows.T @ weights."""
    rows = problem.unit.take(ids)
    z = -np.asarray(rows.T @ weights)
    worst = float(np.max(problem.excess(z), initial=0.0))
    gap = abs(float(weights @ (np.asarray(rows @ z) - problem.right[ids])))
    return Answer(ids, weights, z, worst, gap, how)


def by_active_set(problem: Centred, start: Indices) -> Answer | None:
    found = finish(problem, start)
    return None if found is None else measured(problem, *found, "dual active set on violated rows")


def by_lagrangian_and_active_set(problem: Centred) -> Answer | None:
    """Approximate multipliers first, then exact ones."""
    quick = problem.dimension <= SMALL_DIMENSION
    ids, _ = approach(problem, rounds=2 if quick else 40, goal=1e-3 if quick else 1e-6)
    if ids.size > LARGEST_GRAM:
        return None
    found = finish(problem, ids)
    return None if found is None else measured(problem, *found, "augmented Lagrangian on violated rows, then dual active set")


def by_lagrangian(problem: Centred) -> Answer | None:
    """For active sets too large, or too ill conditioned, for the exact method."""
    ids, weights = approach(problem, rounds=60, goal=max(problem.tolerance, 1e-11))
    return measured(problem, ids, weights, "augmented Lagrangian on violated rows")


def by_clarabel(problem: Centred) -> Answer | None:
    from lighttouch.projections.conic import clarabel_or_none, nearest_by_clarabel

    if clarabel_or_none() is None:
        return None
    finite = np.flatnonzero(np.isfinite(problem.right))
    weights = nearest_by_clarabel(problem.unit.take(finite), problem.right[finite])
    kept = weights > 1e-12 * weights.max(initial=0.0)
    return measured(problem, finite[kept], weights[kept], "Clarabel")


def approach(problem: Centred, rounds: int, goal: float) -> tuple[Indices, Floats]:
    """Multipliers from the augmented Lagrangian on a growing and shrinking set of rows, until no row is beyond the goal."""
    z = np.zeros(problem.dimension)
    ids, weights = np.empty(0, dtype=np.int64), np.empty(0)
    worst = 1.0
    batch = (50 if sparse.issparse(problem.unit.matrix) else 2) * problem.dimension
    for _ in range(rounds):
        excess = problem.excess(z)
        mine = excess[ids]
        excess[ids] = -np.inf
        fresh = worst_rows(excess, goal, batch)
        if not fresh.size:
            break
        worst = min(worst, float(excess[fresh[0]]))
        kept = (weights > 0.0) | (mine > -max(worst, 1e-4))
        ids, weights = np.concatenate([ids[kept], fresh]), np.concatenate([weights[kept], np.zeros(fresh.size)])
        found = augmented_lagrangian(problem.unit.take(ids), problem.right[ids], weights, max(goal, 1e-3 * worst))
        z, weights = found.z, found.u
        if not found.settled:
            break
    return ids[weights > 0.0], weights[weights > 0.0]


def finish(problem: Centred, start: Indices) -> tuple[Indices, Floats] | None:
    """The exact active rows: the dual active-set method from the rows given, with violated rows joining until none is left."""
    working = WorkingSet.empty(problem.unit.take(start[:0]))
    if start.size:
        working.add(problem.unit.take(start), start, problem.right[start])
        working.start_from(np.arange(start.size))
    for _ in range(500):
        excess = problem.excess(working.point())
        excess[working.ids] = -np.inf
        fresh = worst_rows(excess, problem.tolerance, batch=max(64, problem.dimension // 4))
        if not fresh.size:
            return working.ids[working.active], working.weights
        working.keep(np.sort(working.active))
        working.add(problem.unit.take(fresh), fresh, problem.right[fresh])
        outcome, proof = working.solve(problem.tolerance, steps=50 * (working.ids.size + 10))
        if outcome == CONTRADICTION:
            conflict = conflicts.prove(problem, working.ids, proof)
            if conflict is not None:
                conflicts.refuse(problem, conflict)
        if outcome != SOLVED:
            return None
    return None
