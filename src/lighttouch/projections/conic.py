"""Clarabel, where it is installed: a certified interior-point method for rows and second-order
cones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.constraints import NormConstraints
from lighttouch.projections.curved_sets import BallDomain
from lighttouch.running import deadline

Floats = NDArray[np.float64]


@cache
def clarabel_or_none() -> Any:
    try:
        import clarabel
    except ImportError:
        return None
    return clarabel


def nearest_by_clarabel(rows: Any, right: Floats) -> tuple[Floats, Floats | None]:
    """Multipliers and point of: minimise |z|^2 / 2 subject to rows @ z <= right; no point where
    none was found.
    """
    clarabel = clarabel_or_none()
    cones = [clarabel.NonnegativeConeT(right.size)]
    solution = run_clarabel(sparse.csc_matrix(rows), right, cones)
    point = np.asarray(solution.x)
    found = bool(np.all(np.isfinite(point))) and "Solved" in str(solution.status)
    return np.asarray(np.maximum(0.0, solution.z)), point if found else None


def nearest_to_cones(
    v: Floats, rows: Any, right: Floats, blocks: list[tuple[Floats, Floats]]
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


def cone_block(family: Any, j: int, v: Floats) -> tuple[Floats, Floats]:
    """Constraint j as matrix @ z + shift in the cone first >= |others|, for z = w - v."""
    if isinstance(family, NormConstraints):
        matrix = (
            np.eye(v.size) if family.A.shape[0] == 0 else family.A[j if len(family.A) > 1 else 0]
        )
        slope = family.c[j] if family.c.shape[0] else np.zeros(v.size)
        return np.vstack([slope, matrix]), np.concatenate(
            [[slope @ v + family.d[j]], matrix @ v + family.b[j]]
        )
    if isinstance(family, BallDomain):
        return np.vstack([np.zeros(v.size), np.eye(v.size)]), np.concatenate(
            [[family.radius], v - family.center]
        )
    return quadratic_block(
        family.P[j if len(family.P) > 1 else 0], family.q[j], float(family.r[j]), v
    )


def quadratic_block(bend: Floats, slope: Floats, level: float, v: Floats) -> tuple[Floats, Floats]:
    """The same for w'P w / 2 + q.w + r <= 0: |L z|^2 <= t with t = -2 (slope at v).z - 2 (value at
    v), so |(2 L z, t - 1)| <= t + 1.
    """
    values, vectors = np.linalg.eigh(bend)
    kept = values > 1e-14 * max(values.max(initial=0.0), 1e-300)
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    here = bend @ v + slope
    value = 0.5 * v @ bend @ v + slope @ v + level
    matrix = np.vstack([-2.0 * here, 2.0 * root, -2.0 * here])
    return matrix, np.concatenate(
        [[1.0 - 2.0 * value], np.zeros(int(kept.sum())), [-1.0 - 2.0 * value]]
    )


def run_clarabel(matrix: sparse.csc_matrix, right: Floats, cones: list[Any]) -> Any:
    """Minimise |z|^2 / 2 subject to right - matrix @ z in the cones, at the tightest tolerances
    that usually succeed.
    """
    clarabel = clarabel_or_none()
    dimension = matrix.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "faer"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200
    settings.time_limit = deadline.seconds_left()
    identity = sparse.identity(dimension, format="csc")
    return clarabel.DefaultSolver(
        identity, np.zeros(dimension), matrix, right, cones, settings
    ).solve()
