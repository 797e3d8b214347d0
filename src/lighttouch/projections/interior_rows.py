"""The nearest point under ill-conditioned sparse rows, by the interior point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.projections import deadline
from lighttouch.projections.interior_point import Interior, System, finite, first_interior, step, worst_excess
from lighttouch.projections.quadratic_program import QuadraticProgram, factor_operations
from lighttouch.projections.unit_rows import Centred

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

STEPS = 150
PATIENCE = 6  # steps without progress once the point is as good as feasible
CHEAP = 3e8  # multiplications of a factorisation


@dataclass(frozen=True)
class Found:
    """A point, the rows that hold it with their multipliers, and the duality gap."""

    z: Floats
    ids: Indices
    weights: Floats
    worst: float
    gap: float


def fits(problem: Centred) -> bool:
    """Whether the rows are sparse in a way that a factorisation keeps."""
    rows = problem.unit.matrix
    if not sparse.issparse(rows):
        return False
    return factor_operations(sparse.identity(problem.dimension, format="csr"), rows) <= CHEAP


def nearest_by_interior(problem: Centred, accepted_excess: float, accepted_gap: float) -> Found | None:
    """The best point of the path, which ends early once excess and gap (relative to the squared distance) are accepted."""
    dimension = problem.dimension
    program = QuadraticProgram.of(sparse.identity(dimension), np.zeros(dimension), problem.unit, problem.right)
    try:
        return follow(System(program), accepted_excess, accepted_gap)
    except (RuntimeError, MemoryError) as error:  # a singular or too large system
        if isinstance(error, deadline.OutOfTimeError):
            raise
        return None


def follow(system: System, accepted_excess: float, accepted_gap: float) -> Found | None:
    at, best, waited = first_interior(system), None, 0
    for _ in range(STEPS):
        deadline.check()
        at = step(system, at)
        if not finite(at):
            break
        now = found_at(system.program, at)
        if now.worst <= accepted_excess and now.gap <= accepted_gap * float(now.z @ now.z):
            return now
        near = best is not None and best.worst <= accepted_excess
        if best is None or now.worst < 0.9 * best.worst or (near and now.worst <= accepted_excess and now.gap < 0.9 * best.gap):
            best, waited = now, 0
        elif near:
            waited += 1
        if waited > PATIENCE:
            break
    return best


def found_at(program: QuadraticProgram, at: Interior) -> Found:
    """With the proven gap: the dual value of any non-negative multipliers bounds the squared distance from below."""
    pushed = program.backward @ at.weights + program.tie_backward @ at.tie_weights
    dual = -0.5 * float(pushed @ pushed) - float(at.weights @ program.right) - float(at.tie_weights @ program.level)
    kept = at.weights > 1e-13 * at.weights.max(initial=0.0)
    ties = np.where(at.tie_weights >= 0.0, program.tie_ids, program.opposite_ids)
    ids = np.concatenate([program.ids[kept], ties])
    weights = np.concatenate([at.weights[kept], np.abs(at.tie_weights)])
    gap = abs(0.5 * float(at.x @ at.x) - dual) + float(at.slack @ at.weights)  # the first alone is small by chance off the set
    return Found(at.x, ids, weights, worst_excess(program, at.x), gap)
