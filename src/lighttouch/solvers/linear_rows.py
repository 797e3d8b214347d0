"""A problem's linear constraints and box as one set of rows, for the solvers that need to see
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lighttouch.arrays import Vector
from lighttouch.problem import Problem
from lighttouch.projections.rows import LinearSet
from lighttouch.projections.sets import feasible_set


@dataclass(frozen=True)
class LinearRows:
    """matrix @ w <= right as the user gave it, and the same with the box, sorted by kind."""

    matrix: Any
    right: Vector
    kinds: LinearSet


def linear_rows(problem: Problem) -> LinearRows | None:
    """The rows of all constraints, or None where some are not linear."""
    feasible = feasible_set(problem.constraints, problem.domain)
    if feasible.matrix is None or feasible.right is None:
        return None
    return LinearRows(feasible.matrix, feasible.right, feasible.rows)
