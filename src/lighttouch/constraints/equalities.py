"""Linear equalities A w = b, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.constraints.linear import StoredRows
from lighttouch.kernels.verbs.equalities import DenseEqualities, SparseEqualities


class LinearEqualities(StoredRows):
    """Linear equalities A w = b, one constraint per row.

    The paper's algorithms see g_j(w) = |a_j.w - b_j|, whose subgradient is a_j or -a_j.
    Projections, and solvers that work with rows, meet both sides of every equality together, so
    that answers satisfy them to rounding. Rows may repeat or follow from others.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (m, d)
        One row per equality.
    b : array of m numbers
        The right sides.
    names : sequence of m strings, optional
        What errors and reports call the equalities.

    Raises
    ------
    ConstraintError
        Where A or b is not finite, or their shapes do not fit.

    Examples
    --------
    >>> import lighttouch as lt
    >>> budget = lt.LinearEqualities([[1.0, 1.0, 1.0]], [3.0])
    >>> budget.values([2.0, 0.0, 0.5])
    array([0.5])
    >>> lt.project([2.0, 0.0, 0.5], budget, lt.Box(0.5, 2.0)).w
    array([2. , 0.5, 0.5])
    """

    sign = "="

    def __init__(self, A: Matrix, b: ArrayLike, names: Sequence[str] | None = None) -> None:
        self._keep(A, b, names)

    @property
    def is_equality(self) -> bool:
        return True

    @property
    def row_count(self) -> int:
        return 2 * self.count

    def constraint_of_row(self) -> Indices:
        return np.tile(np.arange(self.count), 2)

    def row_signs(self) -> Floats:
        return np.repeat([1.0, -1.0], self.count)

    @cached_property
    def _both_sides(self) -> tuple[Matrix, Vector]:
        join: Any = partial(scipy.sparse.vstack, format="csr") if self.sparse else np.vstack
        return join([self.A, -self.A]), np.concatenate([self.b, -self.b])

    def linear_rows(self) -> tuple[Matrix, Vector]:
        """A w <= b and then -A w <= -b."""
        return self._both_sides

    @cached_property
    def record(self) -> Any:
        if not self.sparse:
            return DenseEqualities(self.A, self.b)
        return SparseEqualities(self.A.data, self.A.indices, self.A.indptr, self.b)
