"""The augmented Lagrangian with semismooth Newton steps: from any start close to the nearest point
of a large polyhedron in a few steps.

minimise |z|^2 / 2 subject to rows @ z <= right, rows of length one. With multipliers u and a
penalty rho, z minimises
|z|^2 / 2 + rho / 2 |max(0, rows @ z - right + u / rho)|^2, whose Newton matrix is I + rho S.T S
with S the rows that count; then
u = max(0, u + rho (rows @ z - right)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from lighttouch.arrays import dense
from lighttouch.running import deadline

Floats = NDArray[np.float64]

PENALTY = 1.0
GROWTH = 3.0
LARGEST_PENALTY = 1e5
CONJUGATE_STEPS = 300  # more than that and a factorisation is due
LARGEST_FACTOR = 2500  # rows or columns
NEWTON_STEPS = 400  # of one run; well-posed problems need a quarter of that


class IllConditionedError(ArithmeticError):
    """Newton's equations are too large to factor and too ill conditioned for conjugate
    gradients.
    """


@dataclass
class Estimate:
    """A point, its multipliers, and how far it is beyond the worst row."""

    z: Floats
    u: Floats
    worst: float
    outer: int
    settled: bool


def augmented_lagrangian(
    rows: Any, right: Floats, u: Floats, tolerance: float, outer: int = 30
) -> Estimate:
    """Multipliers good enough to tell the active rows; `settled` where violation and
    complementarity are within the tolerance.
    """
    transposed = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    penalty, steps = PENALTY, NEWTON_STEPS
    z = -np.asarray(transposed @ u)
    worst = np.inf
    for k in range(outer):
        goal = max(tolerance, min(0.1, 0.5 * worst))
        z, excess, steps = minimise(rows, transposed, right, u, z, penalty, goal, steps)
        u = np.maximum(0.0, u + penalty * excess)
        worst = float(np.max(np.where(u > 0.0, np.abs(excess), excess), initial=0.0))
        if worst <= tolerance:
            return Estimate(z, u, worst, k + 1, True)
        penalty = min(LARGEST_PENALTY, penalty * GROWTH)
    return Estimate(z, u, worst, outer, False)


def minimise(
    rows: Any,
    transposed: Any,
    right: Floats,
    u: Floats,
    z: Floats,
    penalty: float,
    tolerance: float,
    steps: int,
) -> tuple[Floats, Floats, int]:
    """The minimiser of the augmented Lagrangian in z, to a gradient of the given length; its excess
    over every row; the steps left.
    """
    excess = np.asarray(rows @ z) - right
    while True:
        deadline.check()
        push = u + penalty * excess
        gradient = z + np.asarray(transposed @ np.maximum(push, 0.0))
        size = float(np.linalg.norm(gradient))
        if size <= tolerance:
            return z, excess, steps
        if steps == 0:
            raise IllConditionedError
        step = newton_step(
            rows[np.flatnonzero(push > 0.0)], gradient, penalty, max(tolerance, 0.1 * size)
        )
        change = np.asarray(rows @ step)
        length = exact_length(z, step, push, penalty * change, change)
        z = z + length * step
        excess = excess + length * change
        steps -= 1


def newton_step(counted: Any, gradient: Floats, penalty: float, tolerance: float) -> Floats:
    """Solve (I + penalty S.T S) step = -gradient by whichever is cheapest: conjugate gradients, the
    Gram matrix, or the normal matrix.
    """
    count, dimension = counted.shape
    if count == 0:
        return -gradient
    entries = counted.nnz if sparse.issparse(counted) else count * dimension
    if 400.0 * entries < min(count, dimension) ** 3 / 3.0:
        step = conjugate_gradients(counted, -gradient, penalty, tolerance)
        if step is not None:
            return step
    if min(count, dimension) > LARGEST_FACTOR and sparse.issparse(counted):
        raise IllConditionedError
    return factored_step(counted, gradient, penalty)


def factored_step(counted: Any, gradient: Floats, penalty: float) -> Floats:
    count, dimension = counted.shape
    if count <= dimension:
        gram = dense(counted @ counted.T)
        gram[np.diag_indices(count)] += 1.0 / penalty
        inner = linalg.cho_solve(
            linalg.cho_factor(gram, overwrite_a=True, check_finite=False),
            counted @ gradient,
            check_finite=False,
        )
        return np.asarray(counted.T @ inner) - gradient
    normal = penalty * dense(counted.T @ counted)
    normal[np.diag_indices(dimension)] += 1.0
    return -np.asarray(
        linalg.cho_solve(
            linalg.cho_factor(normal, overwrite_a=True, check_finite=False),
            gradient,
            check_finite=False,
        )
    )


def conjugate_gradients(
    counted: Any, right: Floats, penalty: float, tolerance: float
) -> Floats | None:
    """The solution to the tolerance, or None where that takes too long."""
    back = counted.T.tocsr() if sparse.issparse(counted) else counted.T
    x = np.zeros(right.size)
    rest = right.copy()
    direction = rest.copy()
    square = float(rest @ rest)
    for _ in range(CONJUGATE_STEPS):
        if square <= tolerance * tolerance:
            return x
        image = direction + penalty * np.asarray(back @ np.asarray(counted @ direction))
        length = square / float(direction @ image)
        x += length * direction
        rest -= length * image
        previous, square = square, float(rest @ rest)
        direction = rest + (square / previous) * direction
    return None


def exact_length(
    z: Floats, step: Floats, push: Floats, push_change: Floats, change: Floats
) -> float:
    """The step length at which the (convex, piecewise quadratic) function is least along the step:
    safeguarded Newton on its slope.
    """
    base, square = float(z @ step), float(step @ step)
    low, high, length = 0.0, np.inf, 1.0
    start = abs(base + float(np.maximum(push, 0.0) @ change))
    for _ in range(30):
        pushed = push + length * push_change
        counted = pushed > 0.0
        slope = base + length * square + float(pushed[counted] @ change[counted])
        if abs(slope) <= 1e-3 * start:
            break
        low, high = (length, high) if slope < 0.0 else (low, length)
        bend = square + float(push_change[counted] @ change[counted])
        trial = length - slope / bend
        length = (
            trial
            if low < trial < high
            else (0.5 * (low + high) if np.isfinite(high) else 2.0 * length)
        )
    return length
