"""The few rows a lazy projection works with: their Gram matrix, and the dual active-set method on
it.

The method is Goldfarb and Idnani's (D. Goldfarb and A. Idnani, "A numerically stable dual method
for solving strictly convex quadratic programs", Mathematical Programming 27, 1983), written in the
Gram matrix of the rows (`kernels/numerics/dual_active_set.py`). It is written by hand because it
hands over the weights of rows that contradict each other; quadprog and daqp do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy  # scipy.optimize is slow to import: only where constraints conflict
from scipy import sparse

from lighttouch.arrays import Floats, Indices, Matrix, dense
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.numerics.dual_active_set import (
    CONTRADICTION,
    STEP_LIMIT,
    dual_active_set,
)
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.rows.kinds import Centred
from lighttouch.running import check_deadline, seconds_left


@dataclass
class WorkingSet:
    """Rows by number (`ids`), their entries, right sides, Gram matrix and multipliers; `active`
    holds positions in `ids`.
    """

    rows: Matrix
    ids: Indices
    right: Floats
    gram: Floats
    active: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weights: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def empty(cls, like: Matrix) -> WorkingSet:
        return cls(like[:0], np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0)))

    def add(self, rows: Matrix, ids: Indices, right: Floats) -> None:
        """Append rows; only the new part of the Gram matrix is computed."""
        cross = dense(self.rows @ rows.T)
        corner = dense(rows @ rows.T)
        self.gram = np.block([[self.gram, cross], [cross.T, corner]])
        self.rows = (
            sparse.vstack([self.rows, rows], format="csr")
            if sparse.issparse(rows)
            else np.vstack([self.rows, rows])
        )
        self.ids = np.concatenate([self.ids, ids])
        self.right = np.concatenate([self.right, right])

    def keep(self, kept: Indices) -> None:
        """Forget all but the given positions, which must include the active ones."""
        place = np.full(self.ids.size, -1, dtype=np.int64)
        place[kept] = np.arange(kept.size)
        self.rows, self.ids, self.right, self.gram = (
            self.rows[kept],
            self.ids[kept],
            self.right[kept],
            self.gram[np.ix_(kept, kept)],
        )
        self.active = place[self.active]

    def start_from(self, positions: Indices) -> None:
        """Make an independent part of the given rows active, dropping rows until every multiplier
        is positive.
        """
        while positions.size:
            positions = independent(self.gram, positions)
            gram = self.gram[np.ix_(positions, positions)]
            weights = np.asarray(np.linalg.solve(gram, -self.right[positions]), dtype=np.float64)
            if np.all(weights >= 0.0):
                self.active, self.weights = positions, weights
                return
            positions = positions[weights > 0.0]
        self.active, self.weights = np.empty(0, dtype=np.int64), np.empty(0)

    def solve(self, tolerance: float, steps: int) -> tuple[int, Floats]:
        """Run the active-set method; returns its outcome and, on a contradiction, the weights of
        the rows that prove it.
        """
        capacity = min(self.ids.size, self.rows.shape[1]) + 1
        factor = np.zeros((capacity, capacity))
        active = np.zeros(capacity, dtype=np.int64)
        weights = np.zeros(capacity)
        size = self.active.size
        active[:size], weights[:size] = self.active, self.weights
        if size:
            factor[:size, :size] = np.linalg.cholesky(self.gram[np.ix_(self.active, self.active)])
        excess = np.empty(self.ids.size)
        at_once = max(
            COSTS.active_set_least_steps,
            int(COSTS.active_set_operations / (capacity * self.ids.size + 1.0)),
        )
        outcome = STEP_LIMIT
        while outcome == STEP_LIMIT and steps > 0:
            check_deadline()
            outcome, size, row, direction = dual_active_set(
                self.gram,
                self.right,
                factor,
                active,
                weights,
                size,
                excess,
                tolerance,
                COSTS.dependent_row,
                min(steps, at_once),
            )
            steps -= at_once
        self.active, self.weights = active[:size], weights[:size]
        proof = np.zeros(self.ids.size)
        if outcome == CONTRADICTION:
            proof[self.active] = np.maximum(0.0, -direction[:size])
            proof[row] = 1.0
        return outcome, proof

    def point(self) -> Floats:
        """The point -rows.T @ multipliers."""
        return -np.asarray(self.rows[self.active].T @ self.weights)


def independent(gram: Floats, positions: Indices) -> Indices:
    """A part of the given rows that is linearly independent: pivoted Cholesky, best conditioned
    first.
    """
    from scipy.linalg.lapack import dpstrf

    _, pivots, rank, _ = dpstrf(
        gram[np.ix_(positions, positions)], tol=COSTS.dependent_start, lower=1
    )
    return np.sort(positions[pivots[:rank] - 1])


# -------------------------------------------------------------------------------------------------
# Contradictions: the few rows that cannot hold together, with the numbers that prove it.
#
# Non-negative weights under which the rows add up to (almost) nothing while their right sides add
# up to less than nothing leave no room: every point within `reach` of the centre breaks one of them
# (Farkas' lemma). A deletion filter (J. Chinneck and E. Dravnieks, "Locating minimal infeasible
# constraint sets in linear programs", ORSA Journal on Computing 3, 1991) makes the set small.


@dataclass(frozen=True)
class Conflict:
    """Rows (numbers of unit rows) with the weights that prove they contradict each other, out to
    `reach` from the centre.
    """

    ids: Indices
    weights: Floats
    missing: float  # by how much the weighted right sides fall short, for weights that sum to one
    reach: float


def prove(
    problem: Centred, ids: Indices, weights: Floats, far: float = COSTS.proof_reach
) -> Conflict | None:
    """Sharpen the weights on their support; None where they prove too little."""
    used = weights > COSTS.negligible_proof * weights.max(initial=0.0)
    ids, weights = ids[used], weights[used] / weights[used].sum()
    rows = dense(problem.unit.take(ids))
    best: Conflict | None = None
    for _ in range(COSTS.proof_rounds):
        missing = -float(weights @ problem.right[ids])
        rest = float(np.linalg.norm(weights @ rows))
        reach = missing / max(rest, TINY) if missing > 0.0 else 0.0
        if best is None or reach > best.reach:
            best = Conflict(ids, weights, missing, reach)
        correction = np.linalg.lstsq(rows.T, -(weights @ rows), rcond=None)[0]
        weights = np.maximum(0.0, weights + correction)
        weights = weights / max(float(weights.sum()), TINY)
    return best if best is not None and best.reach >= far else None


def conflict_among(
    problem: Centred, ids: Indices, far: float = COSTS.proof_reach
) -> Conflict | None:
    """A proven conflict inside the given rows, or None where they have a common point (or nothing
    can be proven).
    """
    working = WorkingSet.empty(problem.unit.take(ids[:0]))
    working.add(problem.unit.take(ids), ids, problem.right[ids])
    outcome, proof = working.solve(problem.tolerance, steps=COSTS.active_set_budget(ids.size))
    return prove(problem, ids, proof, far) if outcome == CONTRADICTION else None


def smallest(problem: Centred, conflict: Conflict) -> Indices:
    """The rows left after every one that the others and the domain can do without is dropped (a
    deletion filter).

    HiGHS judges each trial where it sees the conflict at all; conflicts below its tolerance are
    judged by proof.
    """
    source = problem.unit.source
    rows = conflict.ids[source[conflict.ids] >= 0]
    domain = conflict.ids[source[conflict.ids] < 0]
    if rows.size > COSTS.largest_filtered:
        return rows
    visible = empty_by_linear_programming(problem, rows)
    for row in list(rows):
        rest = rows[rows != row]
        if visible:
            dispensable = empty_by_linear_programming(problem, rest)
        else:
            dispensable = (
                conflict_among(problem, np.concatenate([rest, domain]), COSTS.sharp_proof_reach)
                is not None
            )
        rows = rest if dispensable else rows
    return rows


def empty_by_linear_programming(problem: Centred, ids: Indices) -> bool:
    """Whether HiGHS finds the given rows and the domain contradictory."""
    rows, dimension = problem.unit.right.size, problem.dimension
    bounds = np.arange(rows, rows + 2 * dimension)
    limit = np.where(
        (problem.unit.source[bounds] < 0) | np.isin(bounds, ids), problem.right[bounds], np.inf
    )
    general = ids[ids < rows]
    answer = scipy.optimize.linprog(
        np.zeros(dimension),
        A_ub=sparse.csr_matrix(problem.unit.take(general)),
        b_ub=problem.right[general],
        bounds=np.column_stack([-limit[dimension:], limit[:dimension]]),
        method="highs",
    )
    return bool(answer.status == 2)


def find_conflict(problem: Centred) -> Conflict | None:
    """A conflict anywhere, by linear programming: the least total excess over all rows, and the
    rows whose prices are positive.
    """
    unit = problem.unit
    matrix = sparse.csr_matrix(unit.matrix)
    rows, dimension = matrix.shape
    bounds = np.column_stack(
        [-problem.right[rows + dimension :], problem.right[rows : rows + dimension]]
    )
    relaxed = sparse.hstack([matrix, -sparse.identity(rows)], format="csr")
    cost = np.concatenate([np.zeros(dimension), np.ones(rows)])
    limits = [*((low, high) for low, high in bounds), *((0.0, None) for _ in range(rows))]
    time = (
        {} if seconds_left() == np.inf else {"time_limit": max(COSTS.least_seconds, seconds_left())}
    )
    answer = scipy.optimize.linprog(
        cost, A_ub=relaxed, b_ub=problem.right[:rows], bounds=limits, method="highs", options=time
    )
    check_deadline()
    if answer.status != 0 or answer.fun <= 0.0:
        return None
    priced = np.flatnonzero(-answer.ineqlin.marginals > COSTS.priced_row)
    upper = rows + np.flatnonzero(-answer.upper.marginals[:dimension] > COSTS.priced_row)
    lower = rows + dimension + np.flatnonzero(answer.lower.marginals[:dimension] > COSTS.priced_row)
    return conflict_among(problem, np.concatenate([priced, upper, lower]))


def refuse(problem: Centred, conflict: Conflict) -> None:
    """Raise with the rows of the smallest conflict found."""
    rows = sorted({int(row) for row in problem.unit.source[smallest(problem, conflict)]})
    domain = " within the domain" if np.any(problem.unit.source[conflict.ids] < 0) else ""
    who = f"rows {', '.join(map(str, rows))}" if len(rows) != 1 else f"row {rows[0]}"
    missing = conflict.missing * problem.scale
    raise InfeasibleConstraintsError(
        f"no point satisfies {who}{domain}: weighted suitably they add up to 0 <= {-missing:.3g} "
        f"(rows of length one; violations below {problem.tolerance * problem.scale:.1g} "
        "would have passed)",
        rows,
        missing,
    )
