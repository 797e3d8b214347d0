"""A problem's linear constraints and box as one set of rows, for the solvers that need to see
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.constraints import Aggregated, LinearConstraints, Stacked
from lighttouch.domains import Box
from lighttouch.problem import Problem
from lighttouch.projections.rows import LinearSet, read_rows


@dataclass(frozen=True)
class LinearRows:
    """matrix @ w <= right as the user gave it, and the same with the box, sorted by kind."""

    matrix: Any
    right: Vector
    kinds: LinearSet


def linear_rows(problem: Problem) -> LinearRows | None:
    """The rows of all constraints, or None where some are not linear."""
    constraints = problem.constraints
    base = constraints.base if isinstance(constraints, Aggregated) else constraints
    parts: tuple[Any, ...] = base.parts if isinstance(base, Stacked) else (base,)
    if not all(isinstance(part, LinearConstraints) for part in parts):
        return None
    matrix = (
        parts[0].A
        if len(parts) == 1
        else sparse.vstack([sparse.csr_matrix(part.A) for part in parts], format="csr")
    )
    right = np.concatenate([part.b for part in parts])
    lower, upper = (
        (problem.domain.lower, problem.domain.upper)
        if isinstance(problem.domain, Box)
        else (-np.inf, np.inf)
    )
    return LinearRows(matrix, right, read_rows(matrix, right, lower, upper))
