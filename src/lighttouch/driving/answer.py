"""The answer of a run: the best of the solver's candidates, projected, with what is true of it.

Objective and violation are computed here from the point that is returned, over all examples and all
constraints; nothing is carried over from the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError, Projected, project
from lighttouch.running.stopwatch import Stopwatch
from lighttouch.solvers.costs import COSTS


@dataclass(frozen=True)
class Answer:
    """A point `w`, the solver's `solution` that it is the projection of, and both their values."""

    w: Vector
    solution: Vector
    objective: float
    violation: float
    objective_before: float
    violation_before: float
    method: str
    seconds: float
    broken: bool
    broken_before: bool


def unprojected(problem: Problem, solution: Vector, method: str) -> Answer:
    """The solver's solution as it is."""
    return _judged(problem, solution, solution, method, 0.0)


def best_projection(problem: Problem, candidates: Sequence[Vector], limit: float) -> Answer:
    """Project every candidate and keep the best: feasible first, then the smaller objective."""
    clock = Stopwatch()
    projected = [_projected(problem, candidate, limit) for candidate in candidates]
    best = 0
    if len(projected) > 1:
        ranks = [
            (is_broken(problem, found.w), problem.objective.value(found.w)) for found in projected
        ]
        best = min(range(len(ranks)), key=lambda k: ranks[k])
    found = projected[best]
    return _judged(problem, candidates[best], found.w, found.method, clock.seconds)


def is_broken(problem: Problem, w: Vector) -> bool:
    """Whether w breaks a constraint by more than rounding explains."""
    size = 1.0 + float(np.abs(w).max())
    return problem.relative_violation(w) > COSTS.feasibility_tolerance * size


def _projected(problem: Problem, candidate: Vector, limit: float) -> Projected:
    """Where the projection fails or runs out of time, the candidate itself: no result is lost."""
    try:
        return project(
            candidate,
            problem.constraints,
            problem.domain,
            time_limit=None if limit == np.inf else limit,
        )
    except (RuntimeError, OutOfTimeError) as error:
        violation = problem.violation(candidate)
        return Projected(candidate, 0.0, violation, f"not projected: {error}", 0.0)


def _judged(problem: Problem, solution: Vector, w: Vector, method: str, seconds: float) -> Answer:
    objective, violation = problem.objective.value(w), problem.violation(w)
    same = w is solution or np.array_equal(w, solution)
    return Answer(
        w=w,
        solution=solution,
        objective=objective,
        violation=violation,
        objective_before=objective if same else problem.objective.value(solution),
        violation_before=violation if same else problem.violation(solution),
        method=method,
        seconds=seconds,
        broken=is_broken(problem, w),
        broken_before=is_broken(problem, solution),
    )
