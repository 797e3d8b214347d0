"""All rows of a problem on a device: which are broken, and some of them as a dense matrix."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints.base import LatticeAxes, RecordConstraints
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.solvers.working_set import ProblemRows, Taken
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, free_memory, uploaded
from lighttouch.torch.rows import TensorRows


class Held(Protocol):
    """One linear family, with its rows where the device can look at all of them."""

    def broken(self, w: Vector, most: int) -> Indices: ...

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]: ...


class LatticeHeld:
    """Orders along the axes of a lattice: differences of a reshaped tensor, no rows."""

    def __init__(self, family: RecordConstraints, axes: LatticeAxes, device: torch.device) -> None:
        self.family, self.axes, self.device = family, axes, device

    def excess(self, w: Vector) -> Tensor:
        theta, parts = uploaded(w, self.device), []
        for feature, sign, stride in zip(
            self.axes.features, self.axes.signs, self.axes.strides, strict=True
        ):
            cube = theta.view(-1, self.axes.sizes[feature], int(stride))
            parts.append((cube[:, :-1] - cube[:, 1:]).reshape(-1) * float(sign))
        return torch.cat(parts)

    def broken(self, w: Vector, most: int) -> Indices:
        return _worst(self.excess(w), most)

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]:
        return _densified(*self.family.rows_at(places), self.device)


class SparseHeld:
    """Stored sparse rows, or generated ones that were made once."""

    def __init__(self, family: RecordConstraints, device: torch.device) -> None:
        self.matrix, right = family.rows_at(np.arange(family.count))
        self.matrix = sparse.csr_matrix(self.matrix)
        self.device, self.right_here = device, right
        self.columns = torch.from_numpy(self.matrix.indices.astype(np.int64)).to(device)
        lengths = np.diff(self.matrix.indptr)
        lines = np.repeat(np.arange(family.count), lengths)
        self.lines = torch.from_numpy(lines).to(device)
        self.entries, self.right = uploaded(self.matrix.data, device), uploaded(right, device)
        squares = self.right.new_zeros(family.count)
        squares.index_add_(0, self.lines, self.entries.square())
        self.scales = torch.where(squares > 0.0, squares.sqrt(), 1.0)
        equal = np.broadcast_to(family.is_equality, family.count)
        self.equal = torch.from_numpy(np.array(equal)).to(device)

    def excess(self, w: Vector) -> Tensor:
        """(A w - b) / |a|, its size for equalities."""
        products = self.entries * uploaded(w, self.device)[self.columns]
        sums = torch.zeros_like(self.right).index_add_(0, self.lines, products)
        found = (sums - self.right) / self.scales
        return torch.where(self.equal, found.abs(), found)

    def broken(self, w: Vector, most: int) -> Indices:
        """The worst rows, and of every column the worst that has it."""
        excess = self.excess(w)
        each = excess[self.lines]
        worst = torch.full((w.size,), 0.0, dtype=excess.dtype, device=self.device)
        worst.scatter_reduce_(0, self.columns, each, "amax")
        spread = self.lines[(each > 0.0) & (each == worst[self.columns])]
        found = torch.unique(spread).cpu().numpy()[:most]
        return np.union1d(found, _worst(excess, most - found.size))

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]:
        return _densified(self.matrix[places], self.right_here[places], self.device)


class Elsewhere:
    """Rows that do not fit: looked at by the core, here."""

    def __init__(self, family: RecordConstraints, device: torch.device) -> None:
        self.family, self.device = family, device

    def broken(self, w: Vector, most: int) -> Indices:
        return np.sort(self.family.worst(w, most))

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]:
        return _densified(*self.family.rows_at(places), self.device)


class Streamed:
    """Dense rows that do not fit: they pass through the device chunk by chunk."""

    def __init__(self, A: Any, b: Vector, equal: Any, device: torch.device) -> None:
        self.A, self.b, self.device = A, b, device
        self.equal = np.broadcast_to(equal, b.size)

    def broken(self, w: Vector, most: int) -> Indices:
        there, size = uploaded(w, self.device), max(1, COSTS.chunk_entries // w.size)
        found, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for first in range(0, self.b.size, size):
            rows = uploaded(self.A[first : first + size], self.device)
            excess = rows @ there - uploaded(self.b[first : first + size], self.device)
            equal = torch.from_numpy(np.array(self.equal[first : first + size])).to(self.device)
            excess = torch.where(equal, excess.abs(), excess)
            lengths = torch.linalg.vector_norm(rows, dim=1)
            excess = excess / torch.where(lengths > 0.0, lengths, 1.0)
            places = _worst(excess, most)
            found.append(first + places)
            scores.append(excess.cpu().numpy()[places])
        places, worst = np.concatenate(found), np.concatenate(scores)
        return np.sort(places[np.argsort(-worst, kind="stable")[:most]])

    def dense_rows(self, places: Indices) -> tuple[Tensor, Vector]:
        return uploaded(self.A[places], self.device), self.b[places]


def _worst(excess: Tensor, most: int) -> Indices:
    places = torch.nonzero(excess > 0.0)[:, 0]
    if places.numel() > most:
        places = places[torch.topk(excess[places], most, sorted=False).indices]
    return np.sort(places.cpu().numpy())


def _densified(matrix: Any, right: Vector, device: torch.device) -> tuple[Tensor, Vector]:
    return uploaded(sparse.csr_matrix(matrix).toarray(), device), right


def held(family: RecordConstraints, device: torch.device) -> Held:
    """The family as the device looks at it, by what fits into its memory."""
    if isinstance(family, TensorRows):
        return family
    axes = family.lattice_axes()
    if axes is not None:
        return LatticeHeld(family, axes, device)
    free = COSTS.share_of_memory * free_memory(device)
    A = getattr(family, "A", None)
    if isinstance(A, np.ndarray):
        if A.nbytes > free or np.any(family.is_equality):
            return Streamed(A, family.b, family.is_equality, device)  # type: ignore[attr-defined]
        return TensorRows(uploaded(A, device), uploaded(family.b, device))  # type: ignore[attr-defined]
    if COSTS.bytes_per_entry * family.count * family.most_entries > free:
        return Elsewhere(family, device)
    return SparseHeld(family, device)


class DeviceRows(ProblemRows):
    """The rows of all families, with dense working sets on the device."""

    def __init__(
        self, families: tuple[RecordConstraints, ...], dimension: int, device: torch.device
    ) -> None:
        super().__init__(families, dimension)
        object.__setattr__(self, "device", device)
        kept = {first: held(family, device) for first, family in self._numbered()}
        object.__setattr__(self, "held", kept)

    device: torch.device
    held: dict[int, Held]

    def take(self, ids: Indices) -> Taken:
        blocks, order, rights, equals = [], [], [np.zeros(0)], [np.zeros(0, dtype=bool)]
        for first, family in self._numbered():
            mine = np.flatnonzero((ids >= first) & (ids < first + family.count))
            if mine.size:
                rows, right = self.held[first].dense_rows(ids[mine] - first)
                blocks.append(DeviceMatrix(rows.to(self.device)))
                order.append(mine)
                rights.append(right)
                equals.append(np.broadcast_to(family.is_equality, family.count)[ids[mine] - first])
        places = np.concatenate([np.zeros(0, dtype=np.int64), *order])
        taken = ids[places]
        return Taken(tuple(blocks), np.concatenate(rights), np.concatenate(equals), taken, taken)

    def _dense(self, family: RecordConstraints) -> bool:
        """Whether each row of it is about nearly all parameters, wherever it is stored."""
        return family.most_entries > INTERIOR.dense_row * self.dimension

    def broken(self, w: Vector) -> Indices:
        found = [np.zeros(0, dtype=np.int64)]
        for first, family in self._numbered():
            share = COSTS.device_dense_batch if self._dense(family) else COSTS.device_sparse_batch
            most = max(INTERIOR.least_joining_rows, int(share * self.dimension))
            found.append(first + self.held[first].broken(w, most))
        return np.concatenate(found)

    def next_dense(self, w: Vector, known: Indices) -> Indices:
        """None beyond those that are broken: rounds take many steps here."""
        return np.zeros(0, dtype=np.int64)

    @property
    def few(self) -> bool:
        """Whether all rows may be used from the beginning."""
        return (
            self.count <= COSTS.device_all_rows_per_parameter * self.dimension
            and not self.any_dense
        )
