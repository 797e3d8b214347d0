"""The bound without assumptions of `interior/balance.py`, where parameters are too many for its
eigenvalues: the least one is bounded by a Cholesky factor on the device.

If the factor of H - c I exists in doubles, the least eigenvalue of H is at least c, less what
rounding can do (Rump, "Verification of positive definiteness", BIT 46, 2006).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lighttouch.arrays import EPSILON, Booleans, Vector, dense
from lighttouch.interior.balance import (
    TINY,
    Balance,
    Moves,
    Solution,
    balancing_moves,
    moves_by,
)
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.program import Program
from lighttouch.torch.costs import COSTS
from lighttouch.torch.matrices import DeviceMatrix, uploaded


def nobody(*_: object) -> None:
    """No moves: on the way nothing is proven."""


def moves_on(device: torch.device) -> Balance:
    """`balancing_moves` by dense matrices on a device, or by the core where parameters are few."""

    def moves(
        program: Program, x: Vector, room: Vector, rest: Vector, free: Booleans
    ) -> Moves | None:
        if program.dimension <= INTERIOR.free_dense_dimension and program.blocks:
            return balancing_moves(program, x, room, rest, free)
        return _moves(program, x, room, rest, free, device)

    return moves


def _moves(
    program: Program, x: Vector, room: Vector, rest: Vector, free: Booleans, device: torch.device
) -> Moves | None:
    none = torch.zeros(0, program.dimension, dtype=torch.float64, device=device)
    blocks = [uploaded(dense(block), device) for block in program.blocks if block.shape[0]]
    rows, P = torch.cat([none, *blocks]), uploaded(program.P, device)
    places = torch.from_numpy(np.flatnonzero(free)).to(device)
    mine, curved = rows[:, places], P[:, places]
    bent = curved[places]
    half = mine * uploaded(np.sqrt(room), device)[:, None]
    H = torch.addmm(bent, half.T, half)
    scale = H.diagonal().clamp_min(TINY).sqrt()
    least = least_eigenvalue(H / scale[:, None] / scale)
    if least <= 0.0:
        return None
    scales = scale.cpu().numpy()
    sizes = float(np.linalg.norm(rest[free] / scales)) / least / scales
    square = float(sizes @ (abs(DeviceMatrix(bent)) @ sizes))
    parts = DeviceMatrix(rows), DeviceMatrix(mine), DeviceMatrix(curved)
    return moves_by(Solution(sizes, square), parts, program.P @ x, room, free)


def least_eigenvalue(H: Tensor) -> float:
    """A little less than the least eigenvalue of H; 0 where none above 0 is known."""
    factor, failed = torch.linalg.cholesky_ex(H)
    if int(failed):
        return 0.0
    vector = torch.ones(H.shape[0], 1, dtype=H.dtype, device=H.device)
    guess = 0.0
    for _ in range(COSTS.device_inverse_iterations):  # inverse iteration (Wielandt 1944)
        vector = torch.cholesky_solve(vector / vector.norm(), factor)
        guess = 1.0 / float(vector.norm())
    rounding = INTERIOR.eigenvalue_rounding * EPSILON * H.shape[0] * float(H.diagonal().sum())
    for share in COSTS.eigenvalue_shares:
        shifted = H.clone()
        shifted.diagonal().sub_(share * guess)
        if not int(torch.linalg.cholesky_ex(shifted)[1]):
            return share * guess - rounding
    return 0.0
