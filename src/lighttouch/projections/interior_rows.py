"""The nearest point under ill-conditioned sparse rows, by the interior point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.arrays import Indices
from lighttouch.projections.interior_point import (
    Interior,
    System,
    finite,
    first_interior,
    step,
    worst_excess,
)
from lighttouch.projections.quadratic_program import QuadraticProgram
from lighttouch.projections.unit_rows import Centred
from lighttouch.running import deadline

Floats = NDArray[np.float64]

STEPS = 150
PATIENCE = 3  # steps without progress once the point is as good as feasible
ENOUGH = 1e-13  # gap, relative to the squared distance, at which no further step is taken
CHEAP = 3e8  # multiplications of a factorisation
TRIFLING = 2e6  # ... that cost less than a few steps of any other method


@dataclass(frozen=True)
class Found:
    """A point, the rows that hold it with their multipliers, and the duality gap."""

    z: Floats
    ids: Indices
    weights: Floats
    worst: float
    gap: float


def nearest_by_interior(problem: Centred, accepted_excess: float) -> Found | None:
    """The best point of the path: of those within the accepted excess the one with the smallest
    gap; None where factors are costly.
    """
    if problem.unit.operations > CHEAP:
        return None
    dimension = problem.dimension
    program = QuadraticProgram.of(
        sparse.identity(dimension), np.zeros(dimension), problem.unit, problem.right
    )
    try:
        return follow(System(program), accepted_excess)
    except (RuntimeError, MemoryError) as error:  # a singular or too large system
        if isinstance(error, deadline.OutOfTimeError):
            raise
        return None


def follow(system: System, accepted_excess: float) -> Found | None:
    at, best, waited = first_interior(system), None, 0
    for _ in range(STEPS):
        deadline.check()
        try:
            at = step(system, at)
        except RuntimeError:  # the factor is singular: as far as doubles go
            break
        if not finite(at):
            break
        now = found_at(system.program, at)
        if now.worst <= accepted_excess and now.gap <= ENOUGH * float(now.z @ now.z):
            return now
        near = best is not None and best.worst <= accepted_excess
        if (
            best is None
            or now.worst < 0.9 * best.worst
            or (near and now.worst <= accepted_excess and now.gap < 0.9 * best.gap)
        ):
            best, waited = now, 0
        elif near:
            waited += 1
        if waited > PATIENCE:
            break
    return best


def found_at(program: QuadraticProgram, at: Interior) -> Found:
    """With the proven gap: the dual value of any non-negative multipliers bounds the squared
    distance from below.
    """
    pushed = program.backward @ at.weights + program.tie_backward @ at.tie_weights
    dual = (
        -0.5 * float(pushed @ pushed)
        - float(at.weights @ program.right)
        - float(at.tie_weights @ program.level)
    )
    kept = at.weights > 1e-13 * at.weights.max(initial=0.0)
    ties = np.where(at.tie_weights >= 0.0, program.tie_ids, program.opposite_ids)
    ids = np.concatenate([program.ids[kept], ties])
    weights = np.concatenate([at.weights[kept], np.abs(at.tie_weights)])
    gap = abs(0.5 * float(at.x @ at.x) - dual) + float(
        at.slack @ at.weights
    )  # the first alone is small by chance off the set
    return Found(at.x, ids, weights, worst_excess(program, at.x), gap)
