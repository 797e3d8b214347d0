"""Norm and quadratic constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.constraints.base import RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import NormRows, QuadraticRows
from lighttouch.validation import finite_vector, refuse_non_finite, to_float


class NormConstraints(RecordConstraints):
    """||A_j w + b_j|| <= c_j.w + d_j (second-order cones).

    `A` is (m, r, d), or (r, d) for one matrix shared by all, or None for the identity; `b` is (m,
    r); `c` is (m, d) or None for zero; `d` holds m numbers. Balls ||w - center_j|| <= radius_j are
    NormConstraints(None, -centers, None, radii).
    """

    def __init__(self, A: Any, b: Any, c: Any, d: Any) -> None:
        self.b = _array(b, "b", 2)
        self.count, rows = self.b.shape
        self.d = finite_vector(d, "d", self.count, ConstraintError)
        self.A = np.zeros((0, 0, 0)) if A is None else _matrices(A, "A", self.count)
        self.dimension = int(rows if A is None else self.A.shape[2])
        if A is not None and self.A.shape[1] != rows:
            raise ConstraintError(
                f"A_j w + b_j must fit: A has {self.A.shape[1]} rows, b has {rows} columns"
            )
        self.c = np.zeros((0, self.dimension)) if c is None else _array(c, "c", 2)
        if c is not None and self.c.shape != (self.count, self.dimension):
            raise ConstraintError(
                f"c must have shape {(self.count, self.dimension)}, got {self.c.shape}"
            )
        self.record = NormRows(self.A, self.b, self.c, self.d)
        self.cost = float(max(1, rows) * (1 if A is None else self.dimension))

    @property
    def is_balls(self) -> bool:
        """Whether every constraint is ||w - center|| <= radius."""
        return bool(self.A.shape[0] == 0 and self.c.shape[0] == 0)

    def describe(self, j: int) -> str:
        return f"norm constraint {j}: ||A w + b|| <= c.w + {self.d[j]:.6g}"


class QuadraticConstraints(RecordConstraints):
    """w'P_j w / 2 + q_j.w + r_j <= 0 with P_j positive semidefinite.

    `P` is (m, d, d), or (d, d) for one matrix shared by all; `q` is (m, d); `r` holds m numbers.
    """

    def __init__(self, P: Any, q: Any, r: Any) -> None:
        self.q = _array(q, "q", 2)
        self.count, self.dimension = self.q.shape
        self.r = finite_vector(r, "r", self.count, ConstraintError)
        self.P = _matrices(P, "P", self.count)
        if self.P.shape[1:] != (self.dimension, self.dimension):
            raise ConstraintError(
                f"P must hold {self.dimension} x {self.dimension} matrices, got {self.P.shape[1:]}"
            )
        self._refuse_nonconvex()
        self.record = QuadraticRows(self.P, self.q, self.r)
        self.cost = float(self.dimension**2)

    def _refuse_nonconvex(self) -> None:
        for j, matrix in enumerate(self.P):
            scale = max(1e-300, float(np.abs(matrix).max(initial=0.0)))
            if float(np.abs(matrix - matrix.T).max(initial=0.0)) > 1e-9 * scale:
                raise ConstraintError(
                    f"P must be symmetric; matrix {j} is not: use (P + P.T) / 2, which "
                    "gives the same function"
                )
            smallest = float(np.linalg.eigvalsh(matrix)[0]) if matrix.size else 0.0
            if smallest < -1e-9 * scale:
                raise ConstraintError(
                    f"P must be positive semidefinite; matrix {j} has the eigenvalue "
                    f"{smallest:.3g}, so it is not convex"
                )

    def describe(self, j: int) -> str:
        return f"quadratic constraint {j}: w'P w / 2 + q.w + {self.r[j]:.6g} <= 0"


def _array(values: Any, name: str, dimensions: int) -> Floats:
    array = np.ascontiguousarray(to_float(values, name, ConstraintError))
    if array.ndim != dimensions:
        raise ConstraintError(f"{name} must have {dimensions} dimensions, got shape {array.shape}")
    refuse_non_finite(array, name, ConstraintError)
    return array


def _matrices(values: Any, name: str, count: int) -> Floats:
    array = to_float(values, name, ConstraintError)
    stacked = _array(array[None] if array.ndim == 2 else array, name, 3)
    if stacked.shape[0] not in (1, count):
        raise ConstraintError(
            f"{name} must hold one matrix for all or one for each of the {count} "
            f"constraints, got {stacked.shape[0]}"
        )
    return stacked
