"""Linear inequalities whose rows are a tensor, on a card or not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Indices, Matrix, Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.constraints.linear import in_terms
from lighttouch.errors import ConstraintError
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import uploaded
from lighttouch.validation import finite_vector, refuse_if_too_large


class TensorRows(RecordConstraints):
    """Dense linear inequalities A w <= b whose rows are a tensor, for solving on its device.

    Rows in single precision are exact numbers like all others: the largest violation is found in
    single precision with a bound on its error, and recomputed in double precision for all rows that
    may have it.

    Parameters
    ----------
    A : Tensor of shape (m, d)
        One row per constraint, in single or double precision, on any device.
    b : Tensor of shape (m,)
        The right sides.

    Raises
    ------
    ConstraintError
        Where shapes do not fit, or numbers are not finite.

    Examples
    --------
    >>> import torch
    >>> from lighttouch.torch import TensorRows
    >>> rows = TensorRows(torch.tensor([[1.0, 1.0], [-1.0, 0.0]]), torch.tensor([1.0, 0.0]))
    >>> rows.values([2.0, 0.5])
    array([ 1.5, -2. ])
    """

    is_linear = True
    generated = True  # nobody stores them a second time

    def __init__(self, A: Tensor, b: Tensor) -> None:
        if not isinstance(A, Tensor) or A.ndim != 2 or not A.is_floating_point():
            got = tuple(A.shape) if isinstance(A, Tensor) else type(A).__name__
            raise ConstraintError(f"A must be a tensor of floats with two dimensions, got {got}")
        if not isinstance(b, Tensor) or b.shape != A.shape[:1]:
            got = tuple(b.shape) if isinstance(b, Tensor) else type(b).__name__
            raise ConstraintError(f"b must be a tensor of {A.shape[0]} numbers, got {got}")
        self.A, self.right = A.detach(), b.detach().to(A.device)
        self.count, self.dimension = int(A.shape[0]), int(A.shape[1])
        self.cost, self.record = float(self.dimension), None
        if not bool(torch.isfinite(self.norms).all() & torch.isfinite(self.right).all()):
            wrong = ~(torch.isfinite(self.norms) & torch.isfinite(self.right))
            row = int(wrong.int().argmax())
            raise ConstraintError(f"A and b must be finite, got other numbers in row {row}")

    @property
    def device(self) -> Any:
        """Where the rows are, and where problems with them are solved."""
        return self.A.device

    @property
    def is_single(self) -> bool:
        """Whether the rows are not in double precision."""
        return bool(self.A.dtype != torch.float64)

    @cached_property
    def norms(self) -> Tensor:
        """The length of every row."""
        parts = [torch.linalg.vector_norm(self.A[at], dim=1) for at in self._chunks()]
        return torch.cat([self.right.new_zeros(0, dtype=self.A.dtype), *parts])

    def _chunks(self) -> Iterator[slice]:
        size = max(1, COSTS.chunk_entries // max(1, self.dimension))
        for first in range(0, self.count, size):
            yield slice(first, min(self.count, first + size))

    def _excess(self, w: Vector) -> Tensor:
        """A w - b in the precision of A."""
        there = uploaded(w, self.A.device).to(self.A.dtype)
        return torch.mv(self.A, there).sub_(self.right.to(self.A.dtype))

    def _error(self, w: Vector) -> Tensor:
        """How far `_excess` may be off (Higham 2002, equation 3.5), and a little more."""
        unit = torch.finfo(self.A.dtype).eps
        rounding = (self.dimension + 4) * unit * float(np.linalg.norm(w))
        return self.norms * rounding + self.right.abs().to(self.A.dtype) * (2.0 * unit)

    def _exact(self, places: Tensor, w: Vector) -> Tensor:
        """A w - b of some rows in double precision."""
        there = uploaded(w, self.A.device)
        size = max(1, COSTS.chunk_entries // max(1, self.dimension))
        parts = [
            torch.mv(self.A[part].double(), there) - self.right[part].double()
            for part in torch.split(places, size)
        ]
        return torch.cat([there.new_zeros(0), *parts])

    def _scales(self, places: Tensor) -> Tensor:
        norms = self.norms[places].double()
        return torch.where(norms > 0.0, norms, 1.0)

    def broken(self, w: Vector, most: int) -> Indices:
        """At most `most` of the worst rows that w breaks in double precision, ascending."""
        excess = self._excess(w)
        if not self.is_single:
            places = torch.nonzero(excess > 0.0)[:, 0]
            relative = excess[places] / self._scales(places)
        else:
            error = self._error(w)
            clear = torch.nonzero(excess > error)[:, 0]
            if clear.numel() >= most:
                places, relative = clear, excess[clear].double() / self._scales(clear)
            else:
                places = torch.nonzero(excess >= -error)[:, 0]
                exact = self._exact(places, w)
                places, exact = places[exact > 0.0], exact[exact > 0.0]
                relative = exact / self._scales(places)
        if places.numel() > most:
            places = places[torch.topk(relative, most, sorted=False).indices]
        return np.sort(places.cpu().numpy())

    def values(self, w: ArrayLike) -> Vector:
        point = finite_vector(w, "w", self.dimension)
        parts = [
            self._exact(torch.arange(at.start, at.stop, device=self.A.device), point)
            for at in self._chunks()
        ]
        return np.concatenate([np.zeros(0), *(part.cpu().numpy() for part in parts)])

    def _largest(self, w: Vector, relative: bool) -> float:
        excess = self._excess(finite_vector(w, "w", self.dimension))
        error = self._error(w)
        if relative:
            scales = torch.where(self.norms > 0.0, self.norms, 1.0)
            excess, error = excess / scales, error / scales * 2.0
        least = (excess - error).max()
        places = torch.nonzero(excess + error >= least)[:, 0]
        exact = self._exact(places, w)
        return float((exact / self._scales(places) if relative else exact).max())

    def largest(self, w: Vector) -> float:
        return self._largest(w, relative=False)

    def largest_relative(self, w: Vector) -> float:
        return self._largest(w, relative=True)

    def row_scales(self) -> Vector:
        norms = np.asarray(self.norms.double().cpu().numpy())
        return np.where(norms > 0.0, norms, 1.0)

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]:
        """Some rows in double precision, where they are, and their right sides."""
        there = torch.from_numpy(np.asarray(places, dtype=np.int64)).to(self.A.device)
        return self.A[there].double(), np.asarray(self.right[there].double().cpu().numpy())

    def rows_at(self, indices: ArrayLike) -> tuple[Matrix, Vector]:
        rows, right = self.dense_rows(np.asarray(indices, dtype=np.int64).reshape(-1))
        return sparse.csr_matrix(rows.cpu().numpy()), right

    def worst(self, w: ArrayLike, most: int, tolerance: float = 0.0) -> Indices:
        return self.broken(finite_vector(w, "w", self.dimension), most)

    def linear_rows(self) -> tuple[Matrix, Vector]:
        refuse_if_too_large(
            self.count * self.dimension * 8,
            f"{self.count:,} dense rows of {self.dimension:,} numbers in double precision",
            "use solve(problem, device=...), which leaves them where they are",
            ConstraintError,
        )
        rows = self.A.double().cpu().numpy(), self.right.double().cpu().numpy()
        return rows

    def describe(self, j: int) -> str:
        matrix, right = self.rows_at([j])
        return f"row {j}: {in_terms(matrix)} <= {right[0]:.6g}"
