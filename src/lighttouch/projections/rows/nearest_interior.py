"""The nearest point under ill-conditioned sparse rows: what it wants from the interior point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Indices
from lighttouch.projections.costs import COSTS
from lighttouch.projections.rows.interior_point import (
    Interior,
    Measured,
    PathLimits,
    QuadraticProgram,
    System,
    follow,
    worst_excess,
)
from lighttouch.projections.rows.unit import Centred


@dataclass(frozen=True)
class NearestJudge:
    """Less excess comes first; within the accepted excess a smaller gap is better as well."""

    program: QuadraticProgram
    accepted_excess: float

    def measure(self, at: Interior) -> Measured:
        """With the proven gap: the dual value of any non-negative multipliers bounds the squared
        distance from below. The slackness is added because the first difference alone is small by
        chance off the set.
        """
        program, x = self.program, at.x
        pushed = program.backward @ at.weights + program.tie_backward @ at.tie_weights
        dual = (
            -0.5 * float(pushed @ pushed)
            - float(at.weights @ program.right)
            - float(at.tie_weights @ program.level)
        )
        gap = abs(0.5 * float(x @ x) - dual) + float(at.slack @ at.weights)
        return Measured(at, worst_excess(program, x), gap, float(x @ x))

    def feasible(self, point: Measured) -> bool:
        return point.excess <= self.accepted_excess

    settled = feasible

    def better(self, point: Measured, best: Measured) -> bool:
        less = COSTS.less_by
        closer = self.feasible(best) and self.feasible(point) and point.gap < less * best.gap
        return point.excess < less * best.excess or closer


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
    dimension = problem.dimension
    program = QuadraticProgram.of(
        sparse.identity(dimension), np.zeros(dimension), problem.unit, problem.right
    )
    limits = PathLimits(COSTS.interior_steps, COSTS.interior_patience, COSTS.interior_enough)
    try:
        best = follow(System(program), NearestJudge(program, accepted_excess), limits)
    except (RuntimeError, MemoryError):  # a singular or too large system
        return None
    if best is None:
        return None
    at = best.at
    kept = at.weights > COSTS.negligible_weight * at.weights.max(initial=0.0)
    ties = np.where(at.tie_weights >= 0.0, program.tie_ids, program.opposite_ids)
    ids = np.concatenate([program.ids[kept], ties])
    weights = np.concatenate([at.weights[kept], np.abs(at.tie_weights)])
    return Found(at.x, ids, weights, best.gap)
