"""The nearest point under ill-conditioned sparse rows: what it wants from the interior point.

The path is followed by hand because no library reaches its accuracy. Clarabel at tolerance 1e-11,
on 5,000 second differences of a concave sequence, ends "AlmostSolved" with a violation of 1e-6 and
a point off by 0.34; here the violation is 1e-14 and the error 1e-7 (tests/unit/
test_projection_interior.py). On noise instead of a concave sequence both are fine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices
from lighttouch.interior.path import Judged, Point, first_point, follow, worst_excess
from lighttouch.interior.program import Program, opposite_rows, with_rows
from lighttouch.interior.systems import SparseSystem
from lighttouch.projections.costs import COSTS
from lighttouch.projections.rows.kinds import Centred


@dataclass(frozen=True, eq=False)
class NearestProgram:
    """Minimise |x|^2 / 2 under all rows with finite right sides; opposite rows with opposite right
    sides are one equality.

    `ids` numbers the unit rows of the program; `opposite_ids` is the other one of an equality.
    """

    program: Program
    ids: Indices
    opposite_ids: Indices

    @classmethod
    def of(cls, problem: Centred) -> NearestProgram:
        ids = np.flatnonzero(np.isfinite(problem.right))
        rows = sparse.csr_matrix(problem.unit.take(ids))
        rows.sort_indices()
        first, second = opposite_rows(rows, problem.right[ids])
        equal, kept, opposite_ids = (
            np.zeros(ids.size, dtype=bool),
            np.ones(ids.size, dtype=bool),
            ids.copy(),
        )
        equal[first], kept[second], opposite_ids[first] = True, False, ids[second]
        dimension, none = problem.dimension, np.zeros(0)
        identity = sparse.identity(dimension, format="csr")
        free = Program(identity, np.zeros(dimension), (), none, none, none, none)
        right = problem.right[ids[kept]]
        program = with_rows(free, (rows[kept],), right, equal[kept])
        return cls(program, ids[kept], opposite_ids[kept])


@dataclass(frozen=True)
class Found:
    """A point, the rows that hold it with their multipliers, and the duality gap."""

    z: Floats
    ids: Indices
    weights: Floats
    gap: float


def nearest_by_interior(problem: Centred, accepted_excess: float) -> Found | None:
    """The best point of the path: of those within the accepted excess the one with the smallest
    gap; None where the system is singular or too large to factor.
    """
    stated = NearestProgram.of(problem)
    try:
        best = best_of_path(stated.program, accepted_excess)
    except (RuntimeError, MemoryError):  # a singular or too large system
        return None
    if best is None:
        return None
    s, equal = best.s, stated.program.is_equality
    largest = float(s[~equal].max(initial=0.0))
    kept = equal | (s > COSTS.negligible_weight * largest)
    ids = np.where(s >= 0.0, stated.ids, stated.opposite_ids)
    return Found(best.x, ids[kept], np.abs(s[kept]), proven_gap(stated.program, best))


def best_of_path(program: Program, accepted_excess: float) -> Point | None:
    """Less excess comes first; within the accepted one a smaller gap is better."""

    def judge(at: Point) -> Judged:
        excess = worst_excess(program, program.forward(at.x) - program.centre)
        if excess > accepted_excess:
            return Judged(excess)
        gap = proven_gap(program, at)
        return Judged(accepted_excess, gap, gap <= COSTS.interior_enough * float(at.x @ at.x))

    system = SparseSystem(program, COSTS.interior_shift)
    first = first_point(system, COSTS.interior_start, lift=0.0)
    found = follow(system, first, judge, lambda at: 0.0, COSTS.interior_refinements)
    return None if found is None else found[0]


def proven_gap(program: Program, at: Point) -> float:
    """The dual value of any non-negative multipliers bounds the squared distance from below. The
    slackness is added because the difference alone is small by chance off the set.
    """
    pushed = program.backward(at.s)
    dual = -0.5 * float(pushed @ pushed) - float(at.s @ program.centre)
    return abs(0.5 * float(at.x @ at.x) - dual) + at.products
