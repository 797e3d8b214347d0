"""Matrices on a device that multiply NumPy vectors, so that the core's interior point runs
unchanged: its vectors stay here, its matrices there. All products are in double precision.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Indices, Matrix, Vector
from lighttouch.torch.costs import COSTS
from lighttouch.validation import available_memory


def uploaded(values: Any, device: torch.device) -> Tensor:
    """An array as a tensor in double precision."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    return torch.from_numpy(array).to(device, non_blocking=False)


class DeviceMatrix:
    """A dense matrix, with as much of NumPy's interface as the core's programs use."""

    __array_ufunc__ = None  # NumPy leaves products with it to this class

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.tensor.shape[0]), int(self.tensor.shape[1])

    @property
    def size(self) -> int:
        return self.tensor.numel()

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

    def __mul__(self, factors: Any) -> DeviceMatrix:
        """By a number, one number per column (d,) or one per row (m, 1)."""
        return DeviceMatrix(self.tensor * uploaded(factors, self.tensor.device))

    __rmul__ = __mul__

    def max(self, axis: int | None = None, initial: float = -np.inf) -> Any:
        if not self.size:
            return initial if axis is None else np.full(self.shape[1 - axis], initial)
        largest = self.tensor.max() if axis is None else self.tensor.amax(dim=axis)
        return np.maximum(largest.cpu().numpy(), initial)

    def add_gram(self, H: Tensor, weights: Vector) -> None:
        """H += m' diag(weights) m."""
        if self.shape[0]:
            roots = uploaded(np.sqrt(weights), self.tensor.device)
            half = self.tensor * roots[:, None]
            H.addmm_(half.T, half)


class DeviceSparse:
    """A sparse matrix; what is not a product is done here, by SciPy."""

    __array_ufunc__ = None

    def __init__(self, matrix: Matrix, device: torch.device) -> None:
        self.matrix = sparse.csr_matrix(matrix, dtype=np.float64)
        self.device = device

    @cached_property
    def _there(self) -> Tensor:
        return _csr(self.matrix, self.device)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def T(self) -> DeviceSparse:
        return DeviceSparse(self.matrix.T, self.device)

    def __matmul__(self, x: Vector) -> Vector:
        there = uploaded(x, self.device)
        return np.asarray((self._there @ there[:, None])[:, 0].cpu().numpy())

    def __abs__(self) -> DeviceSparse:
        return DeviceSparse(abs(self.matrix), self.device)

    def host(self) -> Matrix:
        return self.matrix

    def host_rows(self, places: Indices) -> Matrix:
        return self.matrix[places]

    def dense_rows(self, places: Indices) -> Tensor:
        return uploaded(self.matrix[places].toarray(), self.device)

    def __mul__(self, factors: Any) -> DeviceSparse:
        return DeviceSparse(self.matrix.multiply(factors), self.device)

    __rmul__ = __mul__

    def max(self, axis: int, initial: float) -> Vector:
        if not self.shape[0] or not self.shape[1]:
            return np.full(self.shape[1 - axis], initial)
        return np.maximum(self.matrix.max(axis=axis).toarray().ravel(), initial)

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


# -------------------------------------------------------------------------------------------------
# What fits on a device, asked before anything is put there.


def free_memory(device: torch.device) -> float:
    """Bytes that are free on the device."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return float(available_memory())


def in_gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB"
