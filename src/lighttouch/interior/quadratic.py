"""The minimum of a dense quadratic under sparse rows: a program like any other, solved at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Floats, Matrix, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import falling_lift, point_near, step, worst_excess
from lighttouch.interior.program import scaled, with_rows
from lighttouch.interior.statement import quadratic_program
from lighttouch.interior.systems import DenseSystem

TINY = 1e-300  # the size of an objective of 0


@dataclass(frozen=True)
class QuadraticMinimum:
    """The point, the multipliers of the rows, and the complementarity left."""

    w: Vector
    multipliers: Vector
    gap: float


def quadratic_minimum(
    H: Floats,
    c: Vector,
    A: Matrix,
    b: Vector,
    start: Vector,
    tolerance: float,
    before_step: Callable[[], None] = lambda: None,
) -> QuadraticMinimum | None:
    """The minimum of w'Hw / 2 - c.w where A w <= b, from the unconstrained one; None where the
    steps do not get there, as where rows leave no room between them. What `before_step` raises ends
    it.
    """
    program = with_rows(quadratic_program(H, -c), (A,), b, np.zeros(b.size, dtype=bool))
    inner, units = scaled(program, COSTS.scaling_sweeps)
    system = DenseSystem(inner)

    def size_of(w: Vector) -> float:
        return max(abs(float(w @ (0.5 * (H @ w) - c))), TINY)

    product = COSTS.free_gap * size_of(start) * units.objective / max(1, b.size)
    at = point_near(system, units.inner(start), product)
    for _ in range(COSTS.steps):
        before_step()
        try:
            at = step(system, at, falling_lift(at))
        except RuntimeError:  # singular
            return None
        if not at.finite:
            return None
        here = at.times(units)
        rest = inner.P @ at.x + inner.q + inner.backward(at.s)
        excess = worst_excess(inner, inner.forward(at.x) - inner.centre)
        size = max(1.0, float(np.abs(at.x).max(initial=0.0)))
        exact = max(float(np.abs(rest).max(initial=0.0)), excess) <= COSTS.residual * size
        if exact and here.products <= tolerance * size_of(here.x):
            return QuadraticMinimum(here.x, here.s, here.products)
    return None
