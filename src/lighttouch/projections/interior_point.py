"""A primal-dual interior point (predictor and corrector) for quadratic programs with sparse rows.

Each step factors [P rows.T ties.T; rows -slack/weights 0; ties 0 0] without squaring the rows: long
chains of second differences, whose Gram matrix no double can hold, come out feasible to rounding.
No step is trusted: `proven_gap` follows from the point and its multipliers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.projections.quadratic_program import QuadraticProgram

Floats = NDArray[np.float64]

# slack and multipliers begin this many times larger than the rows are broken: ill-conditioned rows
# end with large ones
START = 1e4
NEARLY = 0.995  # of the way to where a slack or multiplier would turn negative
REFINEMENTS = 4
# keeps the factorisation going where P or the equalities are singular; refinement removes its
# effect
SHIFT = 1e-14


@dataclass(frozen=True)
class Interior:
    """A point with positive slack and multipliers (`weights`) for every row, and multipliers of
    either sign for every equality.
    """

    x: Floats
    slack: Floats
    weights: Floats
    tie_weights: Floats

    def copy(self) -> Interior:
        return Interior(
            self.x.copy(), self.slack.copy(), self.weights.copy(), self.tie_weights.copy()
        )


class System:
    """The matrix of Newton's equations: laid out once in the order that fills least; every step
    changes one part of its diagonal.
    """

    def __init__(self, program: QuadraticProgram) -> None:
        self.program = program
        count, ties, dimension = program.right.size, program.level.size, program.dimension
        rows = sparse.vstack([program.rows, program.ties], format="csr")
        bend = program.P + sparse.identity(dimension)
        matrix = sparse.bmat([[bend, rows.T], [rows, -sparse.identity(count + ties)]], format="csc")
        self.order = np.argsort(factored(matrix, "MMD_AT_PLUS_A").perm_c)
        self.matrix = matrix[self.order][:, self.order].tocsc()
        self.matrix.sort_indices()
        columns = np.repeat(np.arange(self.order.size), np.diff(self.matrix.indptr))
        self.diagonal = np.flatnonzero(self.matrix.indices == columns)
        self.base = np.concatenate([program.P.diagonal(), np.zeros(count + ties)])
        self.shift = SHIFT * np.concatenate(
            [np.full(dimension, max(1.0, float(self.base.max()))), np.zeros(count), -np.ones(ties)]
        )

    def factor(self, ratio: Floats) -> Factor:
        """For the given slack / weights."""
        values = self.base.copy()
        dimension = self.program.dimension
        values[dimension : dimension + ratio.size] = -ratio
        exact, shifted = self.matrix.copy(), self.matrix.copy()
        exact.data[self.diagonal] = values[self.order]
        shifted.data[self.diagonal] = (values + self.shift)[self.order]
        return Factor(self, exact, factored(shifted, "NATURAL"))


@dataclass(frozen=True)
class Factor:
    """One factorisation: of the matrix with a tiny shift, whose effect is refined away."""

    system: System
    matrix: Any
    inverse: Any

    def solve(self, top: Floats, middle: Floats, bottom: Floats) -> tuple[Floats, Floats, Floats]:
        order, program = self.system.order, self.system.program
        right = np.concatenate([top, middle, bottom])[order]
        solution = self.inverse.solve(right)
        left = right - self.matrix @ solution
        size = float(np.abs(left).max())
        for _ in range(REFINEMENTS):
            better = solution + self.inverse.solve(left)
            left = right - self.matrix @ better
            before, size = size, float(np.abs(left).max())
            if not size < before:
                break
            solution = better
        parts = np.empty(solution.size)
        parts[order] = solution
        dimension, count = program.dimension, program.right.size
        return parts[:dimension], parts[dimension : dimension + count], parts[dimension + count :]


def factored(matrix: Any, order: str) -> Any:
    from scipy.sparse.linalg import splu

    return splu(matrix, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def first_interior(system: System) -> Interior:
    """The point that a squared penalty on the rows would choose, with slack and multipliers well
    away from zero.
    """
    program = system.program
    factor = system.factor(np.ones(program.right.size))
    x, _, tie_weights = factor.solve(-program.q, program.right, program.level)
    rest = program.right - program.rows @ x
    far = START * max(1e-3, float(np.abs(rest).max(initial=0.0)))
    return Interior(x, np.maximum(rest, 0.0) + far, np.maximum(-rest, 0.0) + far, tie_weights)


def slope_left(program: QuadraticProgram, at: Interior) -> Floats:
    """The gradient of the Lagrangian: zero at the optimum."""
    return np.asarray(
        program.P @ at.x
        + program.q
        + program.backward @ at.weights
        + program.tie_backward @ at.tie_weights
    )


def step(system: System, at: Interior) -> Interior:
    """A predictor towards zero complementarity, then a corrector that aims where the predictor says
    is reachable.
    """
    program = system.program
    slope = slope_left(program, at)
    missing = program.rows @ at.x + at.slack - program.right
    untied = program.ties @ at.x - program.level
    factor = system.factor(at.slack / at.weights)

    def towards(complementarity: Floats) -> Interior:
        dx, du, dy = factor.solve(-slope, complementarity / at.weights - missing, -untied)
        return Interior(dx, -missing - program.rows @ dx, du, dy)

    product = at.slack * at.weights
    trial = towards(product)
    length = reach(at, trial)
    predicted = (at.slack + length * trial.slack) @ (at.weights + length * trial.weights)
    centre = (predicted / product.sum()) ** 3 * product.mean() if product.size else 0.0
    move = towards(product + trial.slack * trial.weights - centre)
    length = min(1.0, NEARLY * reach(at, move))
    return Interior(
        at.x + length * move.x,
        at.slack + length * move.slack,
        at.weights + length * move.weights,
        at.tie_weights + length * move.tie_weights,
    )


def reach(at: Interior, move: Interior) -> float:
    """How far the move may go until a slack or a multiplier is zero."""
    longest = 1.0 / NEARLY
    for value, change in ((at.slack, move.slack), (at.weights, move.weights)):
        shrinking = change < 0.0
        longest = min(longest, float(np.min(-value[shrinking] / change[shrinking], initial=np.inf)))
    return longest


def proven_gap(program: QuadraticProgram, at: Interior, radius: Floats) -> float:
    """How much smaller than f(x) the objective of a feasible point within the radius of x,
    coordinate by coordinate, can be at most.

    With r the slope of the Lagrangian at x, grad f(x) = r - rows.T u - ties.T y, so every feasible
    v = x + d has f(v) >= f(x) - u.(right - rows x) - y.(level - ties x) + r.d + d'P d / 2. Excess
    over rows counts as well: to remove it costs about as much.
    """
    slack, untied = program.right - program.rows @ at.x, program.level - program.ties @ at.x
    rest = np.abs(slope_left(program, at))
    bend = program.separate_bends
    curved = np.divide(0.5 * rest * rest, bend, out=np.full(rest.size, np.inf), where=bend > 0.0)
    slope = float(np.minimum(curved, np.where(rest > 0.0, rest * radius, 0.0)).sum())
    return (
        float(at.weights @ np.abs(slack)) + float(np.abs(at.tie_weights) @ np.abs(untied)) + slope
    )


def worst_excess(program: QuadraticProgram, x: Floats) -> float:
    """How far x is beyond the worst row or equality."""
    beyond = float(np.max(program.rows @ x - program.right, initial=0.0))
    return max(beyond, float(np.max(np.abs(program.ties @ x - program.level), initial=0.0)))


def finite(at: Interior) -> bool:
    return bool(
        np.isfinite(at.x).all() and np.isfinite(at.weights).all() and np.isfinite(at.slack).all()
    )
