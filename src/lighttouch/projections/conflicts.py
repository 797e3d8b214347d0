"""Contradictions: the few rows that cannot hold together, with the numbers that prove it.

Non-negative weights under which the rows add up to (almost) nothing while their right sides add up
to less than nothing leave no room: every point within `reach` of the centre breaks one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # scipy.optimize is slow to import: only where constraints conflict
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices, dense
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections.unit_rows import Centred
from lighttouch.projections.working_set import CONTRADICTION, SOLVED, WorkingSet
from lighttouch.running import deadline

Floats = NDArray[np.float64]

FAR = 1e9  # a proof must cover points this many times further away than the worst row is
VERY_FAR = 1e12  # ... and this many times to replace a proof with more rows
LARGEST_FILTERED = 400  # rows of a conflict that are tried one by one for being dispensable


@dataclass(frozen=True)
class Conflict:
    """Rows (numbers of unit rows) with the weights that prove they contradict each other, out to
    `reach` from the centre.
    """

    ids: Indices
    weights: Floats
    missing: float  # by how much the weighted right sides fall short, for weights that sum to one
    reach: float


def prove(problem: Centred, ids: Indices, weights: Floats, far: float = FAR) -> Conflict | None:
    """Sharpen the weights on their support; None where they prove nothing worth having."""
    used = weights > 1e-10 * weights.max(initial=0.0)
    ids, weights = ids[used], weights[used] / weights[used].sum()
    rows = dense(problem.unit.take(ids))
    best: Conflict | None = None
    for _ in range(2):
        missing = -float(weights @ problem.right[ids])
        rest = float(np.linalg.norm(weights @ rows))
        reach = missing / max(rest, 1e-300) if missing > 0.0 else 0.0
        if best is None or reach > best.reach:
            best = Conflict(ids, weights, missing, reach)
        correction = np.linalg.lstsq(rows.T, -(weights @ rows), rcond=None)[0]
        weights = np.maximum(0.0, weights + correction)
        weights = weights / max(float(weights.sum()), 1e-300)
    return best if best is not None and best.reach >= far else None


def conflict_among(problem: Centred, ids: Indices, far: float = FAR) -> Conflict | None:
    """A proven conflict inside the given rows, or None where they have a common point (or nothing
    can be proven).
    """
    working = WorkingSet.empty(problem.unit.take(ids[:0]))
    working.add(problem.unit.take(ids), ids, problem.right[ids])
    outcome, proof = working.solve(problem.tolerance, steps=50 * (ids.size + 10))
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
    if rows.size > LARGEST_FILTERED:
        return rows
    visible = empty_by_linear_programming(problem, rows)
    for row in list(rows):
        rest = rows[rows != row]
        if visible:
            dispensable = empty_by_linear_programming(problem, rest)
        else:
            dispensable = (
                conflict_among(problem, np.concatenate([rest, domain]), VERY_FAR) is not None
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
        {}
        if deadline.seconds_left() == np.inf
        else {"time_limit": max(0.01, deadline.seconds_left())}
    )
    answer = scipy.optimize.linprog(
        cost, A_ub=relaxed, b_ub=problem.right[:rows], bounds=limits, method="highs", options=time
    )
    deadline.check()
    if answer.status != 0 or answer.fun <= 0.0:
        return None
    priced = np.flatnonzero(-answer.ineqlin.marginals > 1e-9)
    upper = rows + np.flatnonzero(-answer.upper.marginals[:dimension] > 1e-9)
    lower = rows + dimension + np.flatnonzero(answer.lower.marginals[:dimension] > 1e-9)
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
    )


__all__ = ["SOLVED", "Conflict", "conflict_among", "find_conflict", "prove", "refuse", "smallest"]
