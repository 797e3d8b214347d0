"""Contradictions: the few rows that cannot hold together, with the numbers that prove it.

Non-negative weights under which the rows add up to (almost) nothing while their right sides add up
to less than nothing leave no room: every point within `reach` of the centre breaks one of them
(Farkas' lemma). A deletion filter (J. Chinneck and E. Dravnieks, "Locating minimal infeasible
constraint sets in linear programs", ORSA Journal on Computing 3, 1991) makes the set small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.optimize is slow to import: only where constraints conflict
from scipy import sparse

from lighttouch.arrays import Floats, Indices, dense
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.numerics.dual_active_set import CONTRADICTION
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.rows.active_set import WorkingSet
from lighttouch.projections.rows.kinds import Centred
from lighttouch.running import check_deadline, seconds_left


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
