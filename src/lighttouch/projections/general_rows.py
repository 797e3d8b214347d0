"""Nearest points under any linear rows: solve on the rows that matter, look for violated ones,
repeat; end with an exact active set.

Few violated rows go straight to the dual active-set method. Many are first sorted out by the
augmented Lagrangian, whose multipliers say which rows are active; the active-set method then starts
there and corrects what is left. An answer counts only if its violation and its duality gap are both
small; otherwise the next method is tried. Many violated sparse rows that a factorisation keeps
sparse go to an interior point at once: they may be too ill conditioned for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices, Vector
from lighttouch.projections import conflicts, interior_rows
from lighttouch.projections.newton import IllConditionedError, augmented_lagrangian
from lighttouch.projections.result import Nearest
from lighttouch.projections.rows import LinearSet
from lighttouch.projections.unit_rows import EPSILON, Centred, UnitRows, all_unit_rows, worst_rows
from lighttouch.projections.working_set import CONTRADICTION, SOLVED, WorkingSet
from lighttouch.running import deadline
from lighttouch.running.threads import one_blas_thread

Floats = NDArray[np.float64]

FEW = 120  # violated rows the active-set method takes one by one
VERY_FEW = 30  # ... where an interior point is the alternative
TINY_DIMENSION = (
    150  # up to here the active-set method is faster than an interior point in any case
)
SMALL_DIMENSION = (
    1000  # up to here the active-set method steps are cheap, so it may take over early
)
LARGEST_GRAM = 6000  # active rows whose Gram matrix is still formed
# earlier active rows that the active-set method starts from; more go to the augmented Lagrangian
WARM_ROWS = 500
ACCEPTED_EXCESS = 1e-10  # relative to the worst excess at the start
ACCEPTED_GAP = 1e-9  # relative to the squared distance


@dataclass(frozen=True)
class Answer:
    """A point, the rows that hold it in place with their multipliers, and what was verified about
    it.
    """

    ids: Indices
    weights: Floats
    z: Floats
    worst: float
    gap: float
    how: str

    def certified(self, rounding: float) -> bool:
        """Whether violation and gap are as small as was asked for, or as rounding allows."""
        return self.worst <= max(ACCEPTED_EXCESS, rounding) and self.gap <= max(
            ACCEPTED_GAP, rounding
        ) * float(self.z @ self.z)

    @property
    def close(self) -> bool:
        """Near enough for further projections, from there, to remove the violation that is left."""
        return self.worst <= 1e-3 and self.gap <= 1e-6 * float(self.z @ self.z)


@dataclass(frozen=True)
class WarmRows:
    """The active rows of an earlier answer and their multipliers."""

    ids: Indices
    weights: Floats

    @classmethod
    def none(cls) -> WarmRows:
        return cls(np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True)
class RowsEngine:
    """Any linear rows and bounds."""

    rows: LinearSet
    unit: UnitRows

    @classmethod
    def of(cls, rows: LinearSet) -> RowsEngine:
        return cls(rows, all_unit_rows(rows))

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        rounding = 64.0 * EPSILON * max(1.0, float(np.abs(v).max(initial=0.0)))
        with one_blas_thread():
            found, worst = self._once(v, warm, rounding)
            for _ in range(3):
                if worst <= rounding:
                    break
                found, worst = self._closer(v, found, worst, rounding)
            return found

    def _once(self, v: Vector, warm: Any, rounding: float) -> tuple[Nearest, float]:
        problem = Centred(self.unit, v)
        if problem.feasible or problem.scale <= rounding:
            return Nearest(
                np.clip(v, self.unit.lower, self.unit.upper), "inside already", 0.0, warm=warm
            ), 0.0
        answer = solve(problem, warm)
        w = np.clip(v + problem.scale * answer.z, self.unit.lower, self.unit.upper)
        weights = problem.scale * answer.weights
        multipliers = partial(self.unit.multipliers, self.rows.count, answer.ids, weights)
        found = Nearest(
            w, answer.how, answer.gap * problem.scale**2, multipliers, WarmRows(answer.ids, weights)
        )
        return found, answer.worst * problem.scale

    def _closer(
        self, v: Vector, found: Nearest, worst: float, rounding: float
    ) -> tuple[Nearest, float]:
        """Project the answer once more: from close by, tolerances are tighter, and a set that is
        empty by a hair is found out.

        The point does not move away from the true answer by that, and the multipliers found before
        still bound its distance.
        """
        try:
            again, left = self._once(found.w, None, rounding)
        except deadline.OutOfTimeError:
            return found, 0.0
        if left >= worst:
            return found, 0.0
        before, now = float((found.w - v) @ (found.w - v)), float((again.w - v) @ (again.w - v))
        gap = None if found.gap is None else found.gap + max(0.0, 0.5 * (now - before))
        return Nearest(again.w, found.method, gap, found.multipliers, found.warm), left


def solve(problem: Centred, warm: Any) -> Answer:
    """The first certified answer; where there is none the best one, said to be uncertified unless
    it is close.
    """
    best: Answer | None = None
    for k, method in enumerate(methods_for(problem, warm)):
        try:
            answer = method()
        except deadline.OutOfTimeError:
            if best is None:
                raise
            break
        if answer is not None and answer.certified(4.0 * problem.tolerance):
            return answer
        if answer is not None and (best is None or answer.worst < best.worst):
            best = answer
        if best is not None and best.close and k > 0:
            return best
        if k == 0 and (best is None or best.worst > 1e-2):
            refuse_if_contradictory(problem)
    if best is None:
        raise RuntimeError(
            "no method came near the feasible set; pip install clarabel for another one"
        )
    return Answer(
        best.ids, best.weights, best.z, best.worst, best.gap, f"{best.how} (not certified)"
    )


def methods_for(problem: Centred, warm: Any) -> Iterator[Callable[[], Answer | None]]:
    """What to try, in order: exact steps for few rows or small dimensions, an interior point or
    Newton for large ones.
    """
    known = (
        isinstance(warm, WarmRows)
        and warm.ids.size > 0
        and int(warm.ids.max()) < problem.right.size
    )
    start = WarmRows(warm.ids, warm.weights / problem.scale) if known else WarmRows.none()
    exact = partial(by_lagrangian_and_active_set, problem)
    few = few_rows(problem, start)
    small = (
        not few
        and problem.dimension <= SMALL_DIMENSION
        and problem.unit.operations > interior_rows.TRIFLING
    )
    if few:
        yield partial(by_active_set, problem, start.ids)
    elif small:
        yield exact
    if problem.unit.operations <= interior_rows.CHEAP:
        yield partial(by_interior, problem)
    yield partial(by_lagrangian, problem, start)
    yield partial(by_clarabel, problem)
    if not few and not small:
        yield exact


def few_rows(problem: Centred, start: WarmRows) -> bool:
    """Whether the active-set method should take the violated rows one by one."""
    violated = int(np.count_nonzero(problem.right < 0.0))
    if violated <= VERY_FEW or (violated <= FEW and problem.dimension <= TINY_DIMENSION):
        return True
    if violated <= FEW:
        return problem.unit.operations > interior_rows.TRIFLING
    return 0 < start.ids.size <= WARM_ROWS and (
        violated <= WARM_ROWS or problem.unit.operations > interior_rows.CHEAP
    )


def refuse_if_contradictory(problem: Centred) -> None:
    deadline.check()
    conflict = conflicts.find_conflict(problem)
    if conflict is not None:
        conflicts.refuse(problem, conflict)


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
    start = approach(problem, WarmRows.none(), rounds=2, goal=1e-3)
    ids = WarmRows.none().ids if start is None else start.ids
    if ids.size > LARGEST_GRAM:
        return None
    found = finish(problem, ids)
    return (
        None
        if found is None
        else measured(
            problem, *found, "augmented Lagrangian on violated rows, then dual active set"
        )
    )


def by_lagrangian(problem: Centred, start: WarmRows) -> Answer | None:
    """Newton steps to the end: large sparse problems, where a factor of all active rows would cost
    more than everything else.
    """
    found = approach(problem, start, rounds=60, goal=max(problem.tolerance, 1e-11))
    return (
        None
        if found is None
        else measured(problem, found.ids, found.weights, "augmented Lagrangian on violated rows")
    )


def by_interior(problem: Centred) -> Answer | None:
    found = interior_rows.nearest_by_interior(problem, max(ACCEPTED_EXCESS, problem.tolerance))
    if found is None:
        return None
    worst = float(np.max(problem.excess(found.z), initial=0.0))
    return Answer(found.ids, found.weights, found.z, worst, found.gap, "interior point")


def by_clarabel(problem: Centred) -> Answer | None:
    from lighttouch.projections.conic import clarabel_or_none, nearest_by_clarabel

    if clarabel_or_none() is None:
        return None
    finite = np.flatnonzero(np.isfinite(problem.right))
    rows, right = problem.unit.take(finite), problem.right[finite]
    weights, z = nearest_by_clarabel(rows, right)
    if z is None:
        return None
    pushed = np.asarray(rows.T @ weights)
    gap = abs(0.5 * float(z @ z) + 0.5 * float(pushed @ pushed) + float(weights @ right))
    kept = weights > 1e-12 * weights.max(initial=0.0)
    return Answer(
        finite[kept],
        weights[kept],
        z,
        float(np.max(problem.excess(z), initial=0.0)),
        gap,
        "Clarabel",
    )


def approach(problem: Centred, start: WarmRows, rounds: int, goal: float) -> WarmRows | None:
    """Multipliers from the augmented Lagrangian on a growing and shrinking set of rows, until no
    row is beyond the goal; None if lost.
    """
    ids, weights = start.ids, start.weights
    z = -np.asarray(problem.unit.take(ids).T @ weights)
    worst, reached = 1.0, np.inf
    batch = (50 if sparse.issparse(problem.unit.matrix) else 2) * problem.dimension
    for _ in range(rounds):
        excess = problem.excess(z)
        mine = excess[ids]
        excess[ids] = -np.inf
        fresh = worst_rows(excess, goal, batch)
        if not fresh.size and reached <= goal:
            break
        worst = min(worst, float(excess[fresh[0]])) if fresh.size else 0.0
        kept = (weights > 0.0) | (mine > -max(worst, 1e-4))
        ids, weights = (
            np.concatenate([ids[kept], fresh]),
            np.concatenate([weights[kept], np.zeros(fresh.size)]),
        )
        reached = max(goal, 1e-3 * worst)
        try:
            found = augmented_lagrangian(
                problem.unit.take(ids), problem.right[ids], weights, reached
            )
        except IllConditionedError:
            return None
        z, weights = found.z, found.u
        if not found.settled:
            break
    return WarmRows(ids[weights > 0.0], weights[weights > 0.0])


def finish(problem: Centred, start: Indices) -> tuple[Indices, Floats] | None:
    """The exact active rows: the dual active-set method from the rows given, with violated rows
    joining until none is left.
    """
    working = WorkingSet.empty(problem.unit.take(start[:0]))
    if start.size:
        working.add(problem.unit.take(start), start, problem.right[start])
        working.start_from(np.arange(start.size))
    for _ in range(500):
        deadline.check()
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
