"""Linear inequalities A w <= b, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from lighttouch.arrays import Indices, Matrix, Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.constraints.nested import NestedRows
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import DenseRows, OrderRows, SparseRows
from lighttouch.validation import finite_matrix, finite_vector, positive_int


class StoredRows(RecordConstraints):
    """Rows of a matrix with right sides: what inequalities and equalities share."""

    A: Matrix
    b: Vector
    sparse: bool
    is_linear = True
    sign = "<="

    def _keep(
        self, A: Matrix, b: ArrayLike, names: Sequence[str] | None, copy: bool = True
    ) -> None:
        self.A = finite_matrix(A, "A", ConstraintError, own=copy)
        self.count, self.dimension = self.A.shape
        if self.dimension == 0:
            raise ConstraintError("A must have at least one column, one for each parameter")
        self.b = finite_vector(b, "b", self.count, ConstraintError, own=copy)
        if names is not None and len(names) != self.count:
            raise ConstraintError(
                f"names must hold one name for each of the {self.count} rows, got {len(names)}"
            )
        self.names = None if names is None else tuple(names)
        self.sparse = scipy.sparse.issparse(self.A)
        self.cost = (
            max(1.0, self.A.nnz / max(1, self.count)) if self.sparse else float(self.dimension)
        )

    @property
    def most_entries(self) -> int:
        if not self.sparse:
            return self.dimension
        return int(np.diff(self.A.indptr).max(initial=0))

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        chosen = np.asarray(indices, dtype=np.int64).reshape(-1)
        return scipy.sparse.csr_matrix(self.A[chosen]), self.b[chosen]

    def worst(self, w: ArrayLike, most: int, tolerance: float = 0.0) -> Indices:
        """Dense rows are about all parameters: simply the worst of them."""
        if self.sparse:
            return super().worst(w, most, tolerance)
        relative = self.values(w) / self.row_scales()
        broken = np.flatnonzero(relative > tolerance)
        return broken[np.argsort(-relative[broken], kind="stable")[: positive_int(most, "most")]]

    def row_scales(self) -> Vector:
        """The norm of each row; 1 for a row of zeros."""
        return self._row_scales

    @cached_property
    def _row_scales(self) -> Vector:
        squares = (
            np.asarray(self.A.multiply(self.A).sum(axis=1)).ravel()
            if self.sparse
            else np.einsum("ij,ij->i", self.A, self.A)
        )
        return np.where(squares > 0.0, np.sqrt(squares), 1.0)

    def describe(self, j: int) -> str:
        if self.names:
            return self.names[j]
        row = self.A.getrow(j) if self.sparse else scipy.sparse.csr_matrix(self.A[j : j + 1])
        return f"row {j}: {in_terms(row)} {self.sign} {self.b[j]:.6g}"


def in_terms(row: Matrix) -> str:
    """The left side of a CSR matrix with one row, in words."""
    terms = [
        f"{value:+.6g} w[{index}]"
        for index, value in zip(row.indices[:6], row.data[:6], strict=True)
    ]
    more = " ..." if row.nnz > 6 else ""
    return f"{' '.join(terms) or '0'}{more}"


class LinearConstraints(StoredRows):
    """Linear inequalities A w <= b, one row per constraint.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (m, d)
        One row per constraint. Zero rows (no constraint at all) are allowed.
    b : array of m numbers
        The right sides.
    names : sequence of m strings, optional
        What errors and reports call the rows.
    nested : tuple of NestedRows, default ()
        Rows that builders know how to say with fewer, by auxiliary variables.
    copy : bool, default True
        Whether A and b are copied, so that changing them later changes nothing here.

    Raises
    ------
    ConstraintError
        Where A or b is not finite, or their shapes do not fit.

    Examples
    --------
    >>> import lighttouch as lt
    >>> rows = lt.LinearConstraints([[1.0, 1.0], [-1.0, 0.0]], [1.0, 0.0])
    >>> rows.values([2.0, 0.5])
    array([ 1.5, -2. ])
    """

    def __init__(
        self,
        A: Matrix,
        b: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        nested: Sequence[NestedRows] = (),
        copy: bool = True,
    ) -> None:
        self._keep(A, b, names, copy)
        self.nested = tuple(nested)

    def linear_rows(self) -> tuple[Matrix, Vector] | None:
        return self.A, self.b

    @cached_property
    def record(self) -> Any:
        if not self.sparse:
            return DenseRows(self.A, self.b)
        return self.order_rows or SparseRows(self.A.data, self.A.indices, self.A.indptr, self.b)

    @cached_property
    def order_rows(self) -> OrderRows | None:
        """The rows as scale (w[smaller] - w[larger]) <= b, if every row has that form."""
        if not self.sparse or self.count == 0 or not np.all(np.diff(self.A.indptr) == 2):
            return None
        data, indices = self.A.data.reshape(-1, 2), self.A.indices.reshape(-1, 2)
        if not np.all((data[:, 0] == -data[:, 1]) & (data[:, 0] != 0.0)):
            return None
        ends = np.where(
            data[:, :1] > 0.0, indices, indices[:, ::-1]
        )  # side by side, so that a check reads both at once
        scale = np.abs(data[:, 0])
        return OrderRows(ends[:, 0], ends[:, 1], _once_if_equal(scale), _once_if_equal(self.b))

    @cached_property
    def is_bounds(self) -> bool:
        """Whether every row bounds one parameter."""
        nonzeros = np.diff(self.A.indptr) if self.sparse else np.count_nonzero(self.A, axis=1)
        return bool(np.all(nonzeros <= 1))


def _once_if_equal(values: Vector) -> Vector:
    return values[:1].copy() if np.all(values == values[0]) else values
