"""Matrices on a device that multiply NumPy vectors, so that the core's interior point runs
unchanged: its vectors stay here, its matrices there. All products are in double precision.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Indices, Matrix, Vector
from lighttouch.torch.costs import COSTS


def uploaded(values: Any, device: torch.device) -> Tensor:
    """An array as a tensor in double precision."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return torch.from_numpy(array).to(device, non_blocking=False)


class DeviceMatrix:
    """A dense matrix."""

    __array_ufunc__ = None  # NumPy leaves products with it to this class

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.tensor.shape[0]), int(self.tensor.shape[1])

    @property
    def T(self) -> DeviceMatrix:
        return DeviceMatrix(self.tensor.T)

    def __matmul__(self, x: Vector) -> Vector:
        there = uploaded(x, self.tensor.device)
        return np.asarray(torch.mv(self.tensor, there).cpu().numpy())

    def __abs__(self) -> DeviceMatrix:
        return DeviceMatrix(self.tensor.abs())

    def host(self) -> Matrix:
        return np.asarray(self.tensor.cpu().numpy())

    def host_rows(self, places: Indices) -> Matrix:
        return self.dense_rows(places).cpu().numpy()

    def dense_rows(self, places: Indices) -> Tensor:
        return self.tensor[torch.from_numpy(places).to(self.tensor.device)]

    def row_maxima(self, rows: Vector, columns: Vector) -> Vector:
        """max_j rows_i |m_ij| columns_j."""
        if not self.shape[0]:
            return np.zeros(0)
        sizes = self.tensor.abs().mul_(uploaded(columns, self.tensor.device))
        return np.asarray(rows * sizes.amax(dim=1).cpu().numpy())

    def column_maxima(self, rows: Vector, columns: Vector) -> Vector:
        if not self.shape[0]:
            return np.zeros(self.shape[1])
        sizes = self.tensor.abs().mul_(uploaded(rows, self.tensor.device)[:, None])
        return np.asarray(columns * sizes.amax(dim=0).cpu().numpy())

    def in_units(self, rows: Vector, columns: Vector) -> DeviceMatrix:
        device = self.tensor.device
        scaled = self.tensor * uploaded(rows, device)[:, None]
        return DeviceMatrix(scaled.mul_(uploaded(columns, device)))

    def add_gram(self, H: Tensor, weights: Vector) -> None:
        """H += m' diag(weights) m."""
        if self.shape[0]:
            roots = uploaded(np.sqrt(weights), self.tensor.device)
            half = self.tensor * roots[:, None]
            H.addmm_(half.T, half)


class DeviceSparse:
    """A sparse matrix, with its transpose beside it."""

    __array_ufunc__ = None

    def __init__(self, matrix: Matrix, device: torch.device) -> None:
        self.matrix = sparse.csr_matrix(matrix, dtype=np.float64)
        self.device = device
        self._forward, self._backward = _csr(self.matrix, device), _csr(self.matrix.T, device)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def T(self) -> DeviceSparse:
        turned = object.__new__(DeviceSparse)
        turned.matrix, turned.device = self.matrix.T.tocsr(), self.device
        turned._forward, turned._backward = self._backward, self._forward
        return turned

    def __matmul__(self, x: Vector) -> Vector:
        there = uploaded(x, self.device)
        return np.asarray((self._forward @ there[:, None])[:, 0].cpu().numpy())

    def __abs__(self) -> DeviceSparse:
        return DeviceSparse(abs(self.matrix), self.device)

    def host(self) -> Matrix:
        return self.matrix

    def host_rows(self, places: Indices) -> Matrix:
        return self.matrix[places]

    def dense_rows(self, places: Indices) -> Tensor:
        return uploaded(self.matrix[places].toarray(), self.device)

    def row_maxima(self, rows: Vector, columns: Vector) -> Vector:
        sizes = abs(self.matrix) @ sparse.diags(columns)
        return np.asarray(rows * sizes.max(axis=1).toarray().ravel())

    def column_maxima(self, rows: Vector, columns: Vector) -> Vector:
        sizes = sparse.csc_matrix(sparse.diags(rows) @ abs(self.matrix))
        return np.asarray(columns * sizes.max(axis=0).toarray().ravel())

    def in_units(self, rows: Vector, columns: Vector) -> DeviceSparse:
        scaled = sparse.diags(rows) @ self.matrix @ sparse.diags(columns)
        return DeviceSparse(scaled, self.device)

    def add_gram(self, H: Tensor, weights: Vector) -> None:
        """H += m' diag(weights) m: some rows after the other, dense."""
        at_once = max(1, COSTS.chunk_entries // max(1, self.shape[1]))
        scaled = sparse.csr_matrix(sparse.diags(np.sqrt(weights)) @ self.matrix)
        for first in range(0, self.shape[0], at_once):
            part = _csr(scaled[first : first + at_once], self.device).to_dense()
            H.addmm_(part.T, part)


def _csr(matrix: Matrix, device: torch.device) -> Tensor:
    rows = sparse.csr_matrix(matrix)
    rows.sort_indices()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            torch.from_numpy(rows.indptr.astype(np.int64)),
            torch.from_numpy(rows.indices.astype(np.int64)),
            torch.from_numpy(rows.data.astype(np.float64)),
            size=rows.shape,
            device=device,
            check_invariants=False,
        )


def on_device(block: Matrix, device: torch.device) -> Matrix:
    """A block of rows where it is fast: rows with one entry stay here."""
    if isinstance(block, DeviceMatrix | DeviceSparse):
        return block
    if not sparse.issparse(block):
        return DeviceMatrix(uploaded(block, device))
    if np.all(np.diff(block.indptr) <= 1):
        return block
    return DeviceSparse(block, device)
