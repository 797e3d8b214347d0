"""Newton's equations of the core's interior point on a device (`interior/systems.py`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lighttouch.arrays import Floats, Indices, Matrix, Vector
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.program import Program, Units, power_of_two, row_maxima
from lighttouch.interior.systems import System
from lighttouch.solvers.interior_rounds import Arithmetic
from lighttouch.solvers.working_set import Taken, with_opposites_merged
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, DeviceSparse, on_device, uploaded


class DeviceArithmetic(Arithmetic):
    """Scaling, factors and products on a device."""

    margin = COSTS.margin
    dense_steps = INTERIOR.steps  # a step takes no longer than looking for rows

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

    def scaled(self, program: Program) -> tuple[Program, Units]:
        return scaled_on_device(program)

    def with_rows_scaled(self, program: Program, columns: Vector) -> tuple[Program, Units]:
        slices = _slices(program)
        found = [_rows_of(block, np.ones(block.shape[0]), columns) for _, block in slices]
        sizes = np.concatenate([np.zeros(0), *found])
        sizes[program.is_smooth | (sizes <= 0.0)] = 1.0
        return _in_units(program, Units(columns, power_of_two(1.0 / sizes), 1.0))

    def basis(self, program: Program) -> Floats | None:
        return None

    def lifted(self, P: Matrix, lift: float) -> Matrix:
        tensor = P.tensor.clone()
        tensor.diagonal().add_(lift)
        return DeviceMatrix(tensor)

    def system(self, program: Program) -> System:
        return DeviceSystem(program)


def program_on_device(program: Program, device: torch.device) -> Program:
    """The program with its matrices on the device, squared losses folded into P."""
    d = program.dimension
    P = torch.zeros(d, d, dtype=torch.float64, device=device)
    part = sparse.coo_matrix(program.P)
    if part.nnz:
        places = torch.from_numpy(part.row.astype(np.int64) * d + part.col).to(device)
        P.view(-1).index_add_(0, places, uploaded(part.data, device))
    q, constant, kept, blocks = program.q.copy(), program.constant, [], []
    for first, block in zip(program.starts, program.blocks, strict=False):
        at = slice(first, first + block.shape[0])
        there = on_device(block, device)
        rounded = (program.roundness[at] > 0.0) & ~program.below[at] & ~program.above[at]
        if block.shape[0] and rounded.all() and not sparse.issparse(there):
            weights, centre = 1.0 / program.roundness[at], program.centre[at]
            there.add_gram(P, weights)
            q -= there.T @ (weights * centre)
            constant += 0.5 * float(weights @ np.square(centre))
        else:
            kept.append(at)
            blocks.append(there)
    return _with_blocks(replace(program, P=DeviceMatrix(P), q=q, constant=constant), blocks, kept)


def _with_blocks(program: Program, blocks: list[Matrix], kept: list[slice]) -> Program:
    """The program with these blocks alone; `kept` says which rows of it they are."""

    def chosen(values: Vector) -> Vector:
        return np.concatenate([np.zeros(0), *(values[at] for at in kept)])

    starts = np.cumsum([0, *(at.stop - at.start for at in kept)])
    smooth = []
    for each in program.smooth:
        for first, at in zip(starts, kept, strict=False):
            if at.start <= each.start < at.stop:
                moved = int(first) - at.start
                smooth.append(replace(each, start=each.start + moved, stop=each.stop + moved))
    return replace(
        program,
        blocks=tuple(blocks),
        centre=chosen(program.centre),
        least=chosen(program.least),
        most=chosen(program.most),
        roundness=chosen(program.roundness),
        smooth=tuple(smooth),
    )


def scaled_on_device(program: Program) -> tuple[Program, Units]:
    """As `interior.program.scaled` (Ruiz 2001)."""
    columns, rows = np.ones(program.dimension), np.ones(program.count)
    slices = _slices(program)
    for _ in range(INTERIOR.scaling_sweeps):
        sizes = [_rows_of(block, rows[at], columns) for at, block in slices]
        row_size = np.concatenate([np.zeros(0), *sizes])
        row_size[program.is_smooth] = 1.0
        rows /= np.sqrt(np.where(row_size > 0.0, row_size, 1.0))
        column_size = program.P.row_maxima(columns, columns)
        for at, block in slices:
            column_size = np.maximum(column_size, _columns_of(block, rows[at], columns))
        columns /= np.sqrt(np.where(column_size > 0.0, column_size, 1.0))
    return _in_units(program, Units(power_of_two(columns), power_of_two(rows), 1.0))


def _slices(program: Program) -> list[tuple[slice, Matrix]]:
    return [
        (slice(first, first + block.shape[0]), block)
        for first, block in zip(program.starts, program.blocks, strict=False)
    ]


def _rows_of(block: Matrix, rows: Vector, columns: Vector) -> Vector:
    if isinstance(block, DeviceMatrix | DeviceSparse):
        return block.row_maxima(rows, columns)
    return row_maxima(abs(block), rows, columns)


def _columns_of(block: Matrix, rows: Vector, columns: Vector) -> Vector:
    if isinstance(block, DeviceMatrix | DeviceSparse):
        return block.column_maxima(rows, columns)
    return row_maxima(abs(block).T.tocsr(), columns, rows)


def _in_units(program: Program, units: Units) -> tuple[Program, Units]:
    columns, rows = units.columns, units.rows
    P = program.P.in_units(columns, columns)
    blocks: list[Matrix] = []
    for first, block in zip(program.starts, program.blocks, strict=False):
        scale = rows[first : first + block.shape[0]]
        if isinstance(block, DeviceMatrix | DeviceSparse):
            blocks.append(block.in_units(scale, columns))
        else:
            blocks.append(sparse.csr_matrix(sparse.diags(scale) @ block @ sparse.diags(columns)))
    q = columns * program.q
    finite = np.concatenate([program.least / rows, program.most / rows])
    finite = np.abs(finite[np.isfinite(finite)])
    size = max(
        float(np.abs(q).max(initial=0.0)),
        float(P.tensor.abs().max()),
        float(finite.max(initial=0.0)),
        *(float(each.share.max()) for each in program.smooth),
    )
    factor = float(power_of_two(np.array([1.0 / size]))[0]) if size > 0.0 else 1.0
    changed = Program(
        DeviceMatrix(P.tensor.mul_(factor)),
        q * factor,
        tuple(blocks),
        program.centre * rows,
        factor * program.least / rows,
        factor * program.most / rows,
        program.roundness * np.square(rows) / factor,
        tuple(replace(each, share=factor * each.share) for each in program.smooth),
        factor * program.constant,
    )
    return changed, Units(columns, rows, factor)


class DeviceSystem:
    """By Cholesky's factor of P + B'diag(1/delta)B, and of what equalities make of it: the core's
    `DenseSystem` on a device.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.P: Tensor = program.P.tensor
        self.device = self.P.device
        self.equal = np.flatnonzero(program.is_equality)
        rows = [
            _dense_rows(block, np.flatnonzero(program.is_equality[first : first + block.shape[0]]))
            for first, block in zip(program.starts, program.blocks, strict=False)
        ]
        none = np.zeros((0, program.dimension))
        self.E = torch.cat([uploaded(none, self.device), *(row.to(self.device) for row in rows)])

    def factor(self, delta: Vector, lift: float = 0.0) -> DeviceFactor:
        weights = 1.0 / np.maximum(delta, INTERIOR.least_delta)
        weights[self.equal] = 0.0
        H = self.P.clone()
        diagonal = np.full(self.program.dimension, lift)
        for first, block in zip(self.program.starts, self.program.blocks, strict=False):
            mine = weights[first : first + block.shape[0]]
            if isinstance(block, DeviceMatrix | DeviceSparse):
                block.add_gram(H, mine)
            else:  # one entry per row
                entries = np.repeat(mine, np.diff(block.indptr)) * np.square(block.data)
                np.add.at(diagonal, block.indices, entries)
        H.diagonal().add_(uploaded(diagonal, self.device))
        g = 0.0
        if self.equal.size:
            g = max(1.0, float(H.diagonal().median()))
            H.addmm_(self.E.T, self.E, alpha=g)
        return DeviceFactor(self, weights, cholesky(H), g)


def _dense_rows(block: Matrix, places: Indices) -> Tensor:
    if isinstance(block, DeviceMatrix | DeviceSparse):
        return block.dense_rows(places)
    return torch.from_numpy(block[places].toarray())


def cholesky(H: Tensor) -> Tensor:
    """The factor of H, shifted as little as it takes."""
    sizes = H.diagonal().clone()
    shift = INTERIOR.dense_shift * sizes + INTERIOR.least_shift
    for _ in range(INTERIOR.shift_trials):
        H.diagonal().copy_(sizes + shift)
        factor, failed = torch.linalg.cholesky_ex(H)
        if not int(failed):
            return factor
        shift = shift * INTERIOR.shift_growth
    raise RuntimeError("the matrix of Newton's equations is singular")


class DeviceFactor:
    def __init__(self, system: DeviceSystem, weights: Vector, factor: Tensor, g: float) -> None:
        self.system, self.weights, self.lower, self.g = system, weights, factor, g
        if system.equal.size:
            half = torch.linalg.solve_triangular(factor, system.E.T, upper=False)
            self.inner = cholesky(half.T @ half)

    def solve(self, top: Vector, bottom: Vector) -> tuple[Vector, Vector]:
        program, system = self.system.program, self.system
        right = uploaded(top + program.backward(self.weights * bottom), system.device)
        if not system.equal.size:
            dx = self._solved(self.lower, right).cpu().numpy()
            return dx, self.weights * (program.forward(dx) - bottom)
        level = uploaded(bottom[system.equal], system.device)
        right = right + self.g * (system.E.T @ level)
        free = self._solved(self.lower, right)
        dy = self._solved(self.inner, system.E @ free - level)
        dx = self._solved(self.lower, right - system.E.T @ dy).cpu().numpy()
        ds = self.weights * (program.forward(dx) - bottom)
        ds[system.equal] = dy.cpu().numpy()
        return dx, ds

    @staticmethod
    def _solved(lower: Tensor, right: Tensor) -> Tensor:
        return torch.cholesky_solve(right[:, None], lower)[:, 0]
