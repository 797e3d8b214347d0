"""Newton's equations of the core's interior point on a device (`interior/systems.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Booleans, Floats, Matrix, Vector, dense
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.program import Program, Runs, with_only
from lighttouch.interior.systems import DenseSystem, Lapack, System
from lighttouch.solvers.interior_rounds import Arithmetic
from lighttouch.solvers.working_set import Taken, with_opposites_merged
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, on_device, uploaded


class DeviceArithmetic(Arithmetic):
    """Factors and products on a device; `DeviceMatrix` brings the core's scaling there."""

    margin = COSTS.margin
    dense_steps = INTERIOR.path_steps_per_round  # a step takes no longer than looking for rows

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def merged(self, taken: Taken) -> Taken:
        if sum(float(block.shape[0]) * block.shape[1] for block in taken.blocks) > (
            INTERIOR.most_compared
        ):
            return taken
        host = tuple(sparse.csr_matrix(block.host()) for block in taken.blocks)
        here = replace(taken, blocks=host)
        found = with_opposites_merged(here)
        if found is here:
            return taken
        there = tuple(DeviceMatrix(uploaded(b.toarray(), self.device)) for b in found.blocks)
        return replace(found, blocks=there)

    def basis(self, program: Program) -> Floats | None:
        return None

    def lifted(self, P: Matrix, lift: float) -> Matrix:
        tensor = P.tensor.clone()
        tensor.diagonal().add_(lift)
        return DeviceMatrix(tensor)

    def system(self, program: Program) -> tuple[System, float]:
        return DenseSystem(program, DeviceAlgebra(self.device)), 0.0  # an instant


def program_on_device(program: Program, device: torch.device) -> Program:
    """The program with its matrices on the device, squared losses folded into P."""
    d = program.dimension
    P = torch.zeros(d, d, dtype=torch.float64, device=device)
    part = sparse.coo_matrix(program.P)
    if part.nnz:
        places = torch.from_numpy(part.row.astype(np.int64) * d + part.col).to(device)
        P.view(-1).index_add_(0, places, uploaded(part.data, device))
    q, constant, blocks = program.q.copy(), program.constant, []
    kept = np.ones(program.count, dtype=bool)
    for at, block, _ in program.parts:
        there = on_device(block, device)
        rounded = (program.roundness[at] > 0.0) & ~program.below[at] & ~program.above[at]
        if block.shape[0] and rounded.all() and not sparse.issparse(there):
            weights, centre = 1.0 / program.roundness[at], program.centre[at]
            there.add_gram(P, weights)
            q -= there.T @ (weights * centre)
            constant += 0.5 * float(weights @ np.square(centre))
            kept[at] = False
        else:
            blocks.append(there)
    return with_only(replace(program, P=DeviceMatrix(P), q=q, constant=constant), kept, blocks)


class DeviceAlgebra(Lapack):
    """The large matrices of a `DenseSystem` on a device: tensors."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def matrix(self, P: Matrix) -> Tensor:
        return P.tensor

    def copy(self, H: Tensor) -> Tensor:
        return H.clone()

    def rows(self, blocks: Sequence[Matrix], chosen: Sequence[Booleans], d: int) -> Matrix:
        none = torch.zeros(0, d, dtype=torch.float64, device=self.device)
        rows = [
            uploaded(dense(block[mine]), self.device)
            if sparse.issparse(block)
            else block.dense_rows(np.flatnonzero(mine))
            for block, mine in zip(blocks, chosen, strict=True)
        ]
        return DeviceMatrix(torch.cat([none, *rows]))

    def add_gram(
        self, H: Tensor, diagonal: Vector, block: Matrix, runs: Runs | None, weights: Vector
    ) -> None:
        if sparse.issparse(block):  # one entry per row
            entries = np.repeat(weights, np.diff(block.indptr)) * np.square(block.data)
            np.add.at(diagonal, block.indices, entries)
        else:
            block.add_gram(H, weights)

    def add_squares(self, H: Tensor, E: Matrix, g: float) -> None:
        H.addmm_(E.tensor.T, E.tensor, alpha=g)

    def diagonal(self, H: Tensor) -> Vector:
        return np.array(H.diagonal().cpu().numpy())

    def set_diagonal(self, H: Tensor, values: Vector) -> None:
        H.diagonal().copy_(uploaded(values, self.device))

    def factor(self, H: Tensor) -> Tensor | None:
        found, failed = torch.linalg.cholesky_ex(H)
        return None if int(failed) else found

    def solve(self, lower: Tensor, right: Vector) -> Vector:
        there = uploaded(right, self.device)
        return np.asarray(torch.cholesky_solve(there[:, None], lower)[:, 0].cpu().numpy())

    def between(self, lower: Tensor, E: Matrix) -> Tensor:
        half = torch.linalg.solve_triangular(lower, E.tensor.T, upper=False)
        return half.T @ half
