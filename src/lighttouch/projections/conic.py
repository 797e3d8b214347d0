"""Clarabel, where it is installed: a certified interior-point method for rows and second-order cones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]


@cache
def clarabel_or_none() -> Any:
    try:
        import clarabel
    except ImportError:
        return None
    return clarabel


def nearest_by_clarabel(rows: Any, right: Floats) -> Floats:
    """Multipliers of: minimise |z|^2 / 2 subject to rows @ z <= right."""
    clarabel = clarabel_or_none()
    cones = [clarabel.NonnegativeConeT(right.size)]
    solution = run_clarabel(sparse.csc_matrix(rows), right, cones)
    return np.maximum(0.0, np.asarray(solution.z))


def run_clarabel(matrix: sparse.csc_matrix, right: Floats, cones: list[Any]) -> Any:
    """Minimise |z|^2 / 2 subject to right - matrix @ z in the cones, at the tightest tolerances that usually succeed."""
    clarabel = clarabel_or_none()
    dimension = matrix.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "faer"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200
    identity = sparse.identity(dimension, format="csc")
    return clarabel.DefaultSolver(identity, np.zeros(dimension), matrix, right, cones, settings).solve()
