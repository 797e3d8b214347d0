"""Clarabel, where it is installed: an interior-point method for rows and second-order cones
(P. Goulart and Y. Chen, "Clarabel: An interior-point solver for conic programs with quadratic
objectives", 2024).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from lighttouch.arrays import Floats, Matrix
from lighttouch.projections.costs import COSTS
from lighttouch.running import deadline


@cache
def clarabel_or_none() -> Any:
    try:
        import clarabel
    except ImportError:
        return None
    return clarabel


def nearest_to_cones(
    v: Floats, rows: Matrix, right: Floats, blocks: list[tuple[Floats, Floats]]
) -> Floats | None:
    """The point nearest to v with rows @ w <= right and matrix @ (w - v) + shift in a cone, block
    by block; None on failure.
    """
    clarabel = clarabel_or_none()
    matrices = [sparse.csc_matrix(rows), *(sparse.csc_matrix(-matrix) for matrix, _ in blocks)]
    shifts = [right - np.asarray(rows @ v), *(shift for _, shift in blocks)]
    cones = [clarabel.NonnegativeConeT(right.size)] if right.size else []
    cones += [clarabel.SecondOrderConeT(shift.size) for _, shift in blocks]
    solution = run_clarabel(sparse.vstack(matrices, format="csc"), np.concatenate(shifts), cones)
    z = np.asarray(solution.x)
    return v + z if np.all(np.isfinite(z)) and "Solved" in str(solution.status) else None


def run_clarabel(matrix: sparse.csc_matrix, right: Floats, cones: list[Any]) -> Any:
    """Minimise |z|^2 / 2 subject to right - matrix @ z in the cones, at the tightest tolerances
    that usually succeed.
    """
    clarabel = clarabel_or_none()
    dimension = matrix.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "faer"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = COSTS.clarabel_tolerance
    settings.max_iter = COSTS.clarabel_steps
    settings.time_limit = deadline.seconds_left()
    identity = sparse.identity(dimension, format="csc")
    return clarabel.DefaultSolver(
        identity, np.zeros(dimension), matrix, right, cones, settings
    ).solve()
