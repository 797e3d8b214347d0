"""The augmented Lagrangian with semismooth Newton steps: from any start close to the nearest point
of a large polyhedron in a few steps.

After X. Li, D. Sun and K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method
for solving Lasso problems", SIAM Journal on Optimization 28, 2018, for
minimise |z|^2 / 2 subject to rows @ z <= right, rows of length one. With multipliers u and a
penalty rho, z minimises |z|^2 / 2 + rho / 2 |max(0, rows @ z - right + u / rho)|^2, whose Newton
matrix is I + rho S'S with S the rows that count; then u = max(0, u + rho (rows @ z - right)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from lighttouch.arrays import Floats, Matrix, dense
from lighttouch.projections.costs import COSTS
from lighttouch.running import check_deadline


class IllConditionedError(ArithmeticError):
    """Newton's equations are too large to factor and too ill conditioned for conjugate
    gradients.
    """


@dataclass
class Estimate:
    """A point, its multipliers, and whether both are within the tolerance."""

    z: Floats
    u: Floats
    settled: bool


def augmented_lagrangian(rows: Matrix, right: Floats, u: Floats, tolerance: float) -> Estimate:
    """Multipliers good enough to tell the active rows; `settled` where violation and
    complementarity are within the tolerance.
    """
    transposed = rows.T.tocsr() if sparse.issparse(rows) else rows.T
    penalty, steps = COSTS.first_penalty, COSTS.newton_steps
    z = -np.asarray(transposed @ u)
    worst = np.inf
    for _ in range(COSTS.penalty_rounds):
        goal = max(tolerance, min(COSTS.first_goal, 0.5 * worst))
        z, excess, steps = minimise(rows, transposed, right, u, z, penalty, goal, steps)
        u = np.maximum(0.0, u + penalty * excess)
        worst = float(np.max(np.where(u > 0.0, np.abs(excess), excess), initial=0.0))
        if worst <= tolerance:
            return Estimate(z, u, True)
        penalty = min(COSTS.largest_penalty, penalty * COSTS.penalty_growth)
    return Estimate(z, u, False)


def minimise(
    rows: Matrix,
    transposed: Matrix,
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
        check_deadline()
        push = u + penalty * excess
        gradient = z + np.asarray(transposed @ np.maximum(push, 0.0))
        size = float(np.linalg.norm(gradient))
        if size <= tolerance:
            return z, excess, steps
        if steps == 0:
            raise IllConditionedError
        step = newton_step(
            rows[np.flatnonzero(push > 0.0)],
            gradient,
            penalty,
            max(tolerance, COSTS.newton_forcing * size),
        )
        change = np.asarray(rows @ step)
        length = exact_length(z, step, push, penalty * change, change)
        z = z + length * step
        excess = excess + length * change
        steps -= 1


def newton_step(counted: Matrix, gradient: Floats, penalty: float, tolerance: float) -> Floats:
    """Solve (I + penalty S.T S) step = -gradient by whichever is cheapest: conjugate gradients, the
    Gram matrix, or the normal matrix.
    """
    count, dimension = counted.shape
    if count == 0:
        return -gradient
    entries = counted.nnz if sparse.issparse(counted) else count * dimension
    if COSTS.conjugate_price * entries < min(count, dimension) ** 3 / 3.0:
        step = conjugate_gradients(counted, -gradient, penalty, tolerance)
        if step is not None:
            return step
    if min(count, dimension) > COSTS.largest_dense_factor and sparse.issparse(counted):
        raise IllConditionedError
    return factored_step(counted, gradient, penalty)


def factored_step(counted: Matrix, gradient: Floats, penalty: float) -> Floats:
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
    counted: Matrix, right: Floats, penalty: float, tolerance: float
) -> Floats | None:
    """The solution to the tolerance, or None where that takes too long."""
    from scipy.sparse.linalg import LinearOperator, cg

    back = counted.T.tocsr() if sparse.issparse(counted) else counted.T

    def image(x: Floats) -> Floats:
        check_deadline()
        return x + penalty * np.asarray(back @ np.asarray(counted @ x))

    matrix = LinearOperator((right.size, right.size), matvec=image, dtype=np.float64)
    x, unsettled = cg(matrix, right, rtol=0.0, atol=tolerance, maxiter=COSTS.conjugate_steps)
    return None if unsettled else np.asarray(x)


def exact_length(
    z: Floats, step: Floats, push: Floats, push_change: Floats, change: Floats
) -> float:
    """The step length at which the (convex, piecewise quadratic) function is least along the step:
    safeguarded Newton on its slope.
    """
    base, square = float(z @ step), float(step @ step)
    low, high, length = 0.0, np.inf, 1.0
    start = abs(base + float(np.maximum(push, 0.0) @ change))
    for _ in range(COSTS.line_search_steps):
        pushed = push + length * push_change
        counted = pushed > 0.0
        slope = base + length * square + float(pushed[counted] @ change[counted])
        if abs(slope) <= COSTS.line_search_slope * start:
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
