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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse

from lighttouch.arrays import EPSILON, Floats, Indices, Matrix, Vector, dense
from lighttouch.errors import ProjectionError
from lighttouch.kernels.numerics.dual_active_set import CONTRADICTION, SOLVED
from lighttouch.projections.costs import COSTS
from lighttouch.projections.rows.active_set import WorkingSet, find_conflict, prove, refuse
from lighttouch.projections.rows.kinds import (
    Centred,
    LinearSet,
    UnitRows,
    all_unit_rows,
    worst_rows,
)
from lighttouch.projections.rows.nearest_interior import nearest_by_interior
from lighttouch.result import EXACT, Nearest, certified, not_certified
from lighttouch.running import OutOfTimeError, check_deadline, one_blas_thread


@dataclass(frozen=True)
class Candidate:
    """A point, the rows that hold it in place with their multipliers, and what was verified about
    it.
    """

    ids: Indices
    weights: Floats
    z: Floats
    worst: float
    gap: float
    how: str
    lost: bool = False  # whether the augmented Lagrangian was, before

    def certified(self, rounding: float) -> bool:
        """Whether violation and gap are as small as was asked for, or as rounding allows."""
        return self.worst <= max(COSTS.accepted_excess, rounding) and self.gap <= max(
            COSTS.accepted_gap, rounding
        ) * float(self.z @ self.z)

    @property
    def close(self) -> bool:
        """Near enough for further projections, from there, to remove the violation that is left."""
        square = float(self.z @ self.z)
        return self.worst <= COSTS.close_excess and self.gap <= COSTS.close_gap * square


@dataclass(frozen=True)
class WarmRows:
    """The active rows of an earlier answer and their multipliers; and whether the augmented
    Lagrangian was lost there, so that it is not tried first again.
    """

    ids: Indices
    weights: Floats
    lost: bool = False

    @classmethod
    def none(cls) -> WarmRows:
        return cls(np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True)
class GeneralRows:
    """Any linear rows and bounds."""

    rows: LinearSet
    unit: UnitRows
    interior_first: bool = False  # of many violated rows, where its factor is affordable

    @classmethod
    def of(cls, rows: LinearSet) -> GeneralRows:
        return cls(rows, all_unit_rows(rows))

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        rounding = COSTS.rounding_errors * EPSILON * max(1.0, float(np.abs(v).max(initial=0.0)))
        with one_blas_thread():
            found, worst = self._once(v, warm, rounding)
            for _ in range(COSTS.repeats):
                if worst <= rounding:
                    break
                found, worst = self._closer(v, found, worst, rounding)
            return found

    def _once(self, v: Vector, warm: object, rounding: float) -> tuple[Nearest, float]:
        check_deadline()
        problem = Centred(self.unit, v)
        if problem.feasible or problem.scale <= rounding:
            w = np.clip(v, self.unit.lower, self.unit.upper)
            return Nearest(w, "inside already", EXACT, warm=warm), 0.0
        answer, sure = solve(problem, warm, self.interior_first)
        w = np.clip(v + problem.scale * answer.z, self.unit.lower, self.unit.upper)
        weights = problem.scale * answer.weights
        multipliers = partial(self.unit.multipliers, self.rows.count, answer.ids, weights)
        gap = answer.gap * problem.scale**2
        certificate = certified(gap) if sure else not_certified(gap)
        kept = WarmRows(answer.ids, weights, answer.lost)
        found = Nearest(w, answer.how, certificate, multipliers, kept)
        return found, answer.worst * problem.scale

    def _closer(
        self, v: Vector, found: Nearest, worst: float, rounding: float
    ) -> tuple[Nearest, float]:
        """Project the answer once more: from close by, tolerances are tighter, and a set that is
        empty by little more than rounding is found out.

        The point does not move away from the true answer by that, and the multipliers found before
        still bound its distance.
        """
        try:
            again, left = self._once(found.w, None, rounding)
        except OutOfTimeError:
            return found, 0.0
        if left >= worst:
            return found, 0.0
        before, now = float((found.w - v) @ (found.w - v)), float((again.w - v) @ (again.w - v))
        gap = None if found.gap is None else found.gap + max(0.0, 0.5 * (now - before))
        return replace(found, w=again.w, certificate=replace(found.certificate, gap=gap)), left


def solve(problem: Centred, warm: object, interior_first: bool = False) -> tuple[Candidate, bool]:
    """The first certified answer; where there is none the best one, and whether it is close enough
    to be called certified.
    """
    best: Candidate | None = None
    for k, method in enumerate(methods_for(problem, warm, interior_first)):
        try:
            answer = method()
        except OutOfTimeError:
            if best is None:
                raise
            break
        if answer is not None and answer.certified(COSTS.certified_tolerances * problem.tolerance):
            return answer, True
        if answer is not None and (best is None or answer.worst < best.worst):
            best = answer
        if best is not None and best.close and k > 0:
            return best, True
        if k == 0 and (best is None or best.worst > COSTS.suspicious_excess):
            refuse_if_contradictory(problem)
    if best is None:
        raise ProjectionError("no method came near the feasible set")
    return best, False


def methods_for(
    problem: Centred, warm: Any, interior_first: bool = False
) -> Iterator[Callable[[], Candidate | None]]:
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
        and problem.dimension <= COSTS.lagrangian_dimension
        and problem.unit.factor_cost > COSTS.trifling_factor
    )
    if few:
        yield partial(by_active_set, problem, start.ids)
    elif interior_first or (known and warm.lost):
        yield partial(by_interior, problem, lost=not interior_first)
    if not few and small:
        yield exact
    if problem.unit.factor_cost <= COSTS.cheap_factor:
        yield partial(by_interior, problem)
    yield partial(by_lagrangian, problem, start)
    if not few and not small:
        yield exact


def few_rows(problem: Centred, start: WarmRows) -> bool:
    """Whether the active-set method should take the violated rows one by one."""
    violated = int(np.count_nonzero(problem.right < 0.0))
    tiny = problem.dimension <= COSTS.tiny_dimension
    if violated <= COSTS.very_few_violated or (violated <= COSTS.few_violated and tiny):
        return True
    if violated <= COSTS.few_violated:
        return problem.unit.factor_cost > COSTS.trifling_factor
    return 0 < start.ids.size <= COSTS.warm_rows and (
        violated <= COSTS.warm_rows or problem.unit.factor_cost > COSTS.cheap_factor
    )


def refuse_if_contradictory(problem: Centred) -> None:
    check_deadline()
    conflict = find_conflict(problem)
    if conflict is not None:
        refuse(problem, conflict)


def measured(problem: Centred, ids: Indices, weights: Floats, how: str) -> Candidate:
    """Violation over all rows and duality gap of z = -rows.T @ weights."""
    rows = problem.unit.take(ids)
    z = -np.asarray(rows.T @ weights)
    worst = float(np.max(problem.excess(z), initial=0.0))
    gap = abs(float(weights @ (np.asarray(rows @ z) - problem.right[ids])))
    return Candidate(ids, weights, z, worst, gap, how)


def by_active_set(problem: Centred, start: Indices) -> Candidate | None:
    found = finish(problem, start)
    return None if found is None else measured(problem, *found, "dual active set on violated rows")


def by_lagrangian_and_active_set(problem: Centred) -> Candidate | None:
    """Approximate multipliers first, then exact ones."""
    start = approach(problem, WarmRows.none(), COSTS.rough_rounds, COSTS.rough_goal)
    ids = WarmRows.none().ids if start is None else start.ids
    if ids.size > COSTS.largest_active_gram:
        return None
    found = finish(problem, ids)
    return (
        None
        if found is None
        else measured(
            problem, *found, "augmented Lagrangian on violated rows, then dual active set"
        )
    )


def by_lagrangian(problem: Centred, start: WarmRows) -> Candidate | None:
    """Newton steps to the end: large sparse problems, where a factor of all active rows would cost
    more than everything else. Where they are lost, an interior point after all, if a search for an
    order shows that its factor is cheaper than a band suggests.
    """
    found = approach(problem, start, COSTS.full_rounds, max(problem.tolerance, COSTS.full_goal))
    if found is not None:
        return measured(problem, found.ids, found.weights, "augmented Lagrangian on violated rows")
    known = problem.unit.factor_cost <= COSTS.cheap_factor  # then it was asked before
    if known or not problem.unit.is_cheap_in_order:
        return None
    return by_interior(problem, lost=True)


def by_interior(problem: Centred, lost: bool = False) -> Candidate | None:
    found = nearest_by_interior(problem, max(COSTS.accepted_excess, problem.tolerance))
    if found is None:
        return None
    worst = float(np.max(problem.excess(found.z), initial=0.0))
    return Candidate(found.ids, found.weights, found.z, worst, found.gap, "interior point", lost)


def approach(problem: Centred, start: WarmRows, rounds: int, goal: float) -> WarmRows | None:
    """Multipliers from the augmented Lagrangian on a growing and shrinking set of rows, until no
    row is beyond the goal; None if lost.
    """
    ids, weights = start.ids, start.weights
    z = -np.asarray(problem.unit.take(ids).T @ weights)
    worst, reached = 1.0, np.inf
    batch = (
        COSTS.lagrangian_sparse_batch
        if sparse.issparse(problem.unit.matrix)
        else COSTS.lagrangian_dense_batch
    )
    batch *= problem.dimension
    for _ in range(rounds):
        check_deadline()
        excess = problem.excess(z)
        mine = excess[ids]
        excess[ids] = -np.inf
        fresh = worst_rows(excess, goal, batch)
        if not fresh.size and reached <= goal:
            break
        worst = min(worst, float(excess[fresh[0]])) if fresh.size else 0.0
        kept = (weights > 0.0) | (mine > -max(worst, COSTS.kept_slack))
        ids, weights = (
            np.concatenate([ids[kept], fresh]),
            np.concatenate([weights[kept], np.zeros(fresh.size)]),
        )
        reached = max(goal, COSTS.round_shrink * worst)
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
    for _ in range(COSTS.lazy_rounds):
        check_deadline()
        excess = problem.excess(working.point())
        excess[working.ids] = -np.inf
        fresh = worst_rows(
            excess,
            problem.tolerance,
            batch=max(COSTS.lazy_least_batch, problem.dimension // COSTS.lazy_batch_divisor),
        )
        if not fresh.size:
            return working.ids[working.active], working.weights
        working.keep(np.sort(working.active))
        working.add(problem.unit.take(fresh), fresh, problem.right[fresh])
        outcome, proof = working.solve(problem.tolerance, COSTS.active_set_budget(working.ids.size))
        if outcome == CONTRADICTION:
            conflict = prove(problem, working.ids, proof)
            if conflict is not None:
                refuse(problem, conflict)
        if outcome != SOLVED:
            return None
    return None


# -------------------------------------------------------------------------------------------------
# The augmented Lagrangian with semismooth Newton steps: from any start close to the nearest point
# of a large polyhedron in a few steps.
#
# After X. Li, D. Sun and K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian
# method for solving Lasso problems", SIAM Journal on Optimization 28, 2018, for minimise |z|^2 / 2
# subject to rows @ z <= right, rows of length one. With multipliers u and a penalty rho, z
# minimises |z|^2 / 2 + rho / 2 |max(0, rows @ z - right + u / rho)|^2, whose Newton matrix is I +
# rho S'S with S the rows that count; then u = max(0, u + rho (rows @ z - right)).


class IllConditionedError(ArithmeticError):
    """Newton's equations are too large to factor and too ill conditioned for conjugate
    gradients.
    """


@dataclass
class Estimate:
    """A point, its multipliers, and whether both are within the tolerance."""

    z: Floats
    u: Floats
    settled: bool


def augmented_lagrangian(rows: Matrix, right: Floats, u: Floats, tolerance: float) -> Estimate:
    """Multipliers good enough to tell the active rows; `settled` where violation and
    complementarity are within the tolerance.
    """
    transposed = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    penalty, steps = COSTS.first_penalty, COSTS.newton_steps
    z = -np.asarray(transposed @ u)
    worst = np.inf
    for _ in range(COSTS.penalty_rounds):
        goal = max(tolerance, min(COSTS.first_goal, 0.5 * worst))
        z, excess, steps = minimise(rows, transposed, right, u, z, penalty, goal, steps)
        u = np.maximum(0.0, u + penalty * excess)
        worst = float(np.max(np.where(u > 0.0, np.abs(excess), excess), initial=0.0))
        if worst <= tolerance:
            return Estimate(z, u, True)
        penalty = min(COSTS.largest_penalty, penalty * COSTS.penalty_growth)
    return Estimate(z, u, False)


def minimise(
    rows: Matrix,
    transposed: Matrix,
    right: Floats,
    u: Floats,
    z: Floats,
    penalty: float,
    tolerance: float,
    steps: int,
) -> tuple[Floats, Floats, int]:
    """The minimiser of the augmented Lagrangian in z, to a gradient of the given length; its excess
    over every row; the steps left.
    """
    excess = np.asarray(rows @ z) - right
    while True:
        check_deadline()
        push = u + penalty * excess
        gradient = z + np.asarray(transposed @ np.maximum(push, 0.0))
        size = float(np.linalg.norm(gradient))
        if size <= tolerance:
            return z, excess, steps
        if steps == 0:
            raise IllConditionedError
        step = newton_step(
            rows[np.flatnonzero(push > 0.0)],
            gradient,
            penalty,
            max(tolerance, COSTS.newton_forcing * size),
        )
        change = np.asarray(rows @ step)
        length = exact_length(z, step, push, penalty * change, change)
        z = z + length * step
        excess = excess + length * change
        steps -= 1


def newton_step(counted: Matrix, gradient: Floats, penalty: float, tolerance: float) -> Floats:
    """Solve (I + penalty S.T S) step = -gradient by whichever is cheapest: conjugate gradients, the
    Gram matrix, or the normal matrix.
    """
    count, dimension = counted.shape
    if count == 0:
        return -gradient
    entries = counted.nnz if sparse.issparse(counted) else count * dimension
    if COSTS.conjugate_price * entries < min(count, dimension) ** 3 / 3.0:
        step = conjugate_gradients(counted, -gradient, penalty, tolerance)
        if step is not None:
            return step
    if min(count, dimension) > COSTS.largest_dense_factor and sparse.issparse(counted):
        raise IllConditionedError
    return factored_step(counted, gradient, penalty)


def factored_step(counted: Matrix, gradient: Floats, penalty: float) -> Floats:
    count, dimension = counted.shape
    if count <= dimension:
        gram = dense(counted @ counted.T)
        gram[np.diag_indices(count)] += 1.0 / penalty
        inner = linalg.cho_solve(
            linalg.cho_factor(gram, overwrite_a=True, check_finite=False),
            counted @ gradient,
            check_finite=False,
        )
        return np.asarray(counted.T @ inner) - gradient
    normal = penalty * dense(counted.T @ counted)
    normal[np.diag_indices(dimension)] += 1.0
    return -np.asarray(
        linalg.cho_solve(
            linalg.cho_factor(normal, overwrite_a=True, check_finite=False),
            gradient,
            check_finite=False,
        )
    )


def conjugate_gradients(
    counted: Matrix, right: Floats, penalty: float, tolerance: float
) -> Floats | None:
    """The solution to the tolerance, or None where that takes too long."""
    from scipy.sparse.linalg import LinearOperator, cg

    back = counted.T.tocsr() if sparse.issparse(counted) else counted.T

    def image(x: Floats) -> Floats:
        check_deadline()
        return x + penalty * np.asarray(back @ np.asarray(counted @ x))

    matrix = LinearOperator((right.size, right.size), matvec=image, dtype=np.float64)
    x, unsettled = cg(matrix, right, rtol=0.0, atol=tolerance, maxiter=COSTS.conjugate_steps)
    return None if unsettled else np.asarray(x)


def exact_length(
    z: Floats, step: Floats, push: Floats, push_change: Floats, change: Floats
) -> float:
    """The step length at which the (convex, piecewise quadratic) function is least along the step:
    safeguarded Newton on its slope.
    """
    base, square = float(z @ step), float(step @ step)
    low, high, length = 0.0, np.inf, 1.0
    start = abs(base + float(np.maximum(push, 0.0) @ change))
    for _ in range(COSTS.line_search_steps):
        pushed = push + length * push_change
        counted = pushed > 0.0
        slope = base + length * square + float(pushed[counted] @ change[counted])
        if abs(slope) <= COSTS.line_search_slope * start:
            break
        low, high = (length, high) if slope < 0.0 else (low, length)
        bend = square + float(push_change[counted] @ change[counted])
        trial = length - slope / bend
        length = (
            trial
            if low < trial < high
            else (0.5 * (low + high) if np.isfinite(high) else 2.0 * length)
        )
    return length
