"""A quadratic form as objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Matrix
from lighttouch.errors import DataError
from lighttouch.kernels.verbs.objectives import DenseQuadratic, SparseQuadratic
from lighttouch.objectives.empirical import RecordObjective
from lighttouch.running import one_blas_thread
from lighttouch.validation import finite_matrix, finite_vector

LARGEST_DECOMPOSED = 500
"""Parameters up to which convexity is checked by the smallest eigenvalue. Budget: 0.01 s; beyond
it only the diagonal is looked at."""

ASYMMETRY = 1e-9
"""Difference of P and its transpose, relative to the largest entry, that still counts as rounding.
Rounding: of sums that a user computed in another order."""

CURVED_DOWN = 1e-9
"""Negative curvature, relative to the largest entry (and per parameter for eigenvalues), that still
counts as rounding. Rounding."""


class Quadratic(RecordObjective):
    """The quadratic form w'P w / 2 + q.w. Its gradient is exact.

    Parameters
    ----------
    P : array-like or scipy sparse matrix of shape (d, d)
        Symmetric and positive semidefinite; 0 gives a linear program.
    q : array-like of shape (d,)
        The linear term.

    Raises
    ------
    DataError
        If P is not square, not symmetric or not positive semidefinite.

    Examples
    --------
    >>> lt.Quadratic([[2.0, 0.0], [0.0, 4.0]], [1.0, 0.0]).value([1.0, 1.0])
    4.0
    """

    def __init__(self, P: Any, q: Any) -> None:
        self.P: Matrix = finite_matrix(P, "P", own=True)
        if self.P.shape[0] != self.P.shape[1] or self.P.shape[0] == 0:
            raise DataError(f"P must be square and not empty, got shape {self.P.shape}")
        self.dimension = int(self.P.shape[0])
        self.q = finite_vector(q, "q", self.dimension, own=True)
        self.examples = 1
        self._refuse_asymmetric()
        if scipy.sparse.issparse(self.P):
            self.record: Any = SparseQuadratic(self.P.data, self.P.indices, self.P.indptr, self.q)
            self.cost = float(self.P.nnz + self.dimension)
        else:
            self.record = DenseQuadratic(self.P, self.q)
            self.cost = float(self.dimension**2)

    def _refuse_asymmetric(self) -> None:
        difference = abs(self.P - self.P.T)
        scale = max(1e-300, float(abs(self.P).max()) if self.P.shape[0] else 0.0)
        if float(difference.max()) > ASYMMETRY * scale:
            raise DataError("P must be symmetric; use (P + P.T) / 2, which gives the same function")
        diagonal = self.P.diagonal() if scipy.sparse.issparse(self.P) else np.diag(self.P)
        if (diagonal < -CURVED_DOWN * scale).any():
            raise DataError(
                "P must be positive semidefinite; its diagonal holds "
                f"{float(diagonal.min())}, so the function is not convex"
            )
        self._refuse_nonconvex(scale)

    def _refuse_nonconvex(self, scale: float) -> None:
        """By the smallest eigenvalue, where that is affordable."""
        if self.dimension > LARGEST_DECOMPOSED:
            return
        P = self.P.toarray() if scipy.sparse.issparse(self.P) else self.P
        with one_blas_thread():  # several wait for each other, for seconds where cores are busy
            smallest = float(np.linalg.eigvalsh(P)[0])
        if smallest < -CURVED_DOWN * scale * self.dimension:
            raise DataError(
                f"P must be positive semidefinite; it has the eigenvalue {smallest:.3g}, "
                "so the function is not convex"
            )
