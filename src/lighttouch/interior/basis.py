"""Coordinates in which the rows of a small program are orthonormal.

Where columns are nearly dependent in a way that no scaling of single columns mends, Newton's
equations lose what tells them apart: they square the condition of the rows. In the basis of the
right singular vectors of all rows, divided by their singular values, rows are orthonormal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats, dense
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program

TINY = 1e-300  # keeps quotients of zeros finite


def orthonormal_basis(program: Program) -> Floats | None:
    """A square matrix V such that the rows of B V, and of a root of V'PV, are nearly orthonormal;
    None where that would take long.
    """
    d = program.dimension
    if d > COSTS.small_dimension or program.count > COSTS.most_orthonormal:
        return None
    bends, vectors = scipy.linalg.eigh(np.array(dense(program.P)))
    root = np.sqrt(np.maximum(bends, 0.0))[:, None] * vectors.T
    parts = [root / max(float(np.abs(root).max(initial=0.0)), TINY)]
    for block in program.blocks:
        rows = np.array(dense(block))
        parts.append(rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), TINY))
    rows = np.vstack(parts)
    if not np.isfinite(rows).all():
        return None
    _, singular, right = scipy.linalg.svd(rows, full_matrices=False)
    if singular.size < d or singular[0] == 0.0:
        return None
    return np.asarray(right.T / np.maximum(singular, COSTS.dependent * singular[0]))


def in_basis(program: Program, basis: Floats) -> Program:
    """The program in z, where x = basis z."""
    return replace(
        program,
        P=basis.T @ dense(program.P) @ basis,
        q=basis.T @ program.q,
        blocks=tuple(np.asarray(block @ basis) for block in program.blocks),
    )
