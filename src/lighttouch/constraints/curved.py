"""Norm and quadratic constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats, Vector
from lighttouch.constraints.base import Balls, RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import NormRows, QuadraticRows
from lighttouch.validation import finite_vector, refuse_non_finite, to_float

TINY = float(np.finfo(np.float64).tiny)  # keeps divisions by a length of zero finite
CONVEX_TO = 1e-9  # rounding of a matrix, relative to its largest entry, that counts as symmetric
RANK_TO = 1e-14  # eigenvalues, relative to the largest, that count as zero


class NormConstraints(RecordConstraints):
    """||A_j w + b_j|| <= c_j.w + d_j (second-order cones).

    Parameters
    ----------
    A : array of shape (m, r, d) or (r, d), or None
        One matrix per constraint, one for all, or None for the identity.
    b : array of shape (m, r)
        The shifts inside the norms.
    c : array of shape (m, d), or None
        The slopes of the right sides; None for zero.
    d : array of m numbers
        The constants of the right sides.

    Raises
    ------
    ConstraintError
        Where an array is not finite or the shapes do not fit.

    Notes
    -----
    Balls ||w - center_j|| <= radius_j are ``NormConstraints(None, -centers, None, radii)``.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> ball = lt.NormConstraints(None, np.zeros((1, 2)), None, [1.0])
    >>> lt.project([3.0, 4.0], ball).w
    array([0.6, 0.8])
    """

    conic = True

    def __init__(
        self, A: ArrayLike | None, b: ArrayLike, c: ArrayLike | None, d: ArrayLike
    ) -> None:
        self.b = _array(b, "b", 2)
        self.count, rows = self.b.shape
        self.d = finite_vector(d, "d", self.count, ConstraintError, own=True)
        self.A = np.zeros((0, 0, 0)) if A is None else _matrices(A, "A", self.count)
        self.dimension = int(rows if A is None else self.A.shape[2])
        if A is not None and self.A.shape[1] != rows:
            raise ConstraintError(
                f"A_j w + b_j must fit: A has {self.A.shape[1]} rows, b has {rows} columns"
            )
        if self.dimension == 0:
            raise ConstraintError("A must have at least one column, one for each parameter")
        self.c = np.zeros((0, self.dimension)) if c is None else _array(c, "c", 2)
        if c is not None and self.c.shape != (self.count, self.dimension):
            raise ConstraintError(
                f"c must have shape {(self.count, self.dimension)}, got {self.c.shape}"
            )
        self.record = NormRows(self.A, self.b, self.c, self.d)
        self.cost = float(max(1, rows) * (1 if A is None else self.dimension))

    def balls(self) -> Balls | None:
        identity = self.A.shape[0] == 0 and self.c.shape[0] == 0
        return Balls(-self.b, self.d.copy()) if identity else None

    def subgradient(self, j: int, w: Vector) -> Vector:
        matrix = self._matrix(j)
        inner = self.b[j] + (w if matrix is None else matrix @ w)
        unit = inner / max(float(np.linalg.norm(inner)), TINY)
        slope = unit if matrix is None else matrix.T @ unit
        return np.asarray(slope - self.c[j] if self.c.shape[0] else slope)

    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]:
        matrix = self._matrix(j)
        matrix = np.eye(v.size) if matrix is None else matrix
        slope = self.c[j] if self.c.shape[0] else np.zeros(v.size)
        shift = np.concatenate([[slope @ v + self.d[j]], matrix @ v + self.b[j]])
        return np.vstack([slope, matrix]), shift

    def _matrix(self, j: int) -> Floats | None:
        """A_j; None for the identity."""
        return None if self.A.shape[0] == 0 else self.A[j if len(self.A) > 1 else 0]

    def describe(self, j: int) -> str:
        return f"norm constraint {j}: ||A w + b|| <= c.w + {self.d[j]:.6g}"


class QuadraticConstraints(RecordConstraints):
    """w'P_j w / 2 + q_j.w + r_j <= 0 with P_j positive semidefinite.

    Parameters
    ----------
    P : array of shape (m, d, d) or (d, d)
        One matrix per constraint, or one for all.
    q : array of shape (m, d)
        The linear terms.
    r : array of m numbers
        The constants.

    Raises
    ------
    ConstraintError
        Where a matrix is not symmetric or not positive semidefinite, an array is not finite, or the
        shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> disc = lt.QuadraticConstraints(2.0 * np.eye(2), np.zeros((1, 2)), [-1.0])
    >>> disc.values([2.0, 0.0])
    array([3.])
    """

    conic = True

    def __init__(self, P: ArrayLike, q: ArrayLike, r: ArrayLike) -> None:
        self.q = _array(q, "q", 2)
        self.count, self.dimension = self.q.shape
        self.r = finite_vector(r, "r", self.count, ConstraintError, own=True)
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
            scale = max(TINY, float(np.abs(matrix).max(initial=0.0)))
            if float(np.abs(matrix - matrix.T).max(initial=0.0)) > CONVEX_TO * scale:
                raise ConstraintError(
                    f"P must be symmetric; matrix {j} is not: use (P + P.T) / 2, which "
                    "gives the same function"
                )
            smallest = float(np.linalg.eigvalsh(matrix)[0]) if matrix.size else 0.0
            if smallest < -CONVEX_TO * scale:
                raise ConstraintError(
                    f"P must be positive semidefinite; matrix {j} has the eigenvalue "
                    f"{smallest:.3g}, so it is not convex"
                )

    def balls(self) -> Balls | None:
        """P = a I: |w + q / a|^2 <= |q|^2 / a^2 - 2 r / a. A negative square becomes a negative
        radius: no point at all.
        """
        bend = self.P[:, 0, 0]
        if np.any(bend <= 0.0) or np.any(self.P != bend[:, None, None] * np.eye(self.dimension)):
            return None
        bend = np.broadcast_to(bend, self.count)
        centers = -self.q / bend[:, None]
        square = np.einsum("ij,ij->i", centers, centers) - 2.0 * self.r / bend
        return Balls(np.ascontiguousarray(centers), np.sign(square) * np.sqrt(np.abs(square)))

    def subgradient(self, j: int, w: Vector) -> Vector:
        return np.asarray(self._matrix(j) @ w + self.q[j])

    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]:
        """|L z|^2 <= t with L'L = P and t = -2 (slope at v).z - 2 (value at v), written as
        |(2 L z, t - 1)| <= t + 1.
        """
        bend = self._matrix(j)
        values, vectors = np.linalg.eigh(bend)
        kept = values > RANK_TO * max(values.max(initial=0.0), TINY)
        root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        here = bend @ v + self.q[j]
        value = 0.5 * v @ bend @ v + self.q[j] @ v + float(self.r[j])
        matrix = np.vstack([-2.0 * here, 2.0 * root, -2.0 * here])
        ends = [1.0 - 2.0 * value], [-1.0 - 2.0 * value]
        return matrix, np.concatenate([ends[0], np.zeros(int(kept.sum())), ends[1]])

    def _matrix(self, j: int) -> Floats:
        return np.asarray(self.P[j if len(self.P) > 1 else 0])

    def describe(self, j: int) -> str:
        return f"quadratic constraint {j}: w'P w / 2 + q.w + {self.r[j]:.6g} <= 0"


def _array(values: ArrayLike, name: str, dimensions: int) -> Floats:
    array = np.array(to_float(values, name, ConstraintError), order="C")
    if array.ndim != dimensions:
        raise ConstraintError(f"{name} must have {dimensions} dimensions, got shape {array.shape}")
    refuse_non_finite(array, name, ConstraintError)
    return array


def _matrices(values: ArrayLike, name: str, count: int) -> Floats:
    array = to_float(values, name, ConstraintError)
    stacked = _array(array[None] if array.ndim == 2 else array, name, 3)
    if stacked.shape[0] not in (1, count):
        raise ConstraintError(
            f"{name} must hold one matrix for all or one for each of the {count} "
            f"constraints, got {stacked.shape[0]}"
        )
    return stacked
