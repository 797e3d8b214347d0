"""A proven lower bound of least squares under dense rows: Newton on the augmented Lagrangian of the
whole problem, off every clock.

For every u >= 0 the least value of f(w) + u @ (A w - b) is a lower bound of the optimum, whatever
brought u about.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.optimize

import lighttouch as lt

ENOUGH = 1e-3  # relative gain of the bound, in one round, that ends the search
NEWTON_STEPS = 30


class LeastSquares:
    """f(w) = w @ H w / 2 - c @ w + constant, and rows A w <= b. The box is left out: what bounds
    more points bounds these.
    """

    def __init__(self, problem: lt.Problem) -> None:
        X, y = problem.objective.X, problem.objective.y
        self.H, self.c, self.constant = (
            X.T @ X / y.size,
            X.T @ y / y.size,
            0.5 * float(y @ y) / y.size,
        )
        self.A, self.b = problem.constraints.A, problem.constraints.b

    def bound(self, u: np.ndarray) -> float:
        active = np.flatnonzero(u)
        force = self.c - self.A[active].T @ u[active]
        least = -0.5 * float(force @ np.linalg.solve(self.H, force))
        return self.constant + least - float(self.b[active] @ u[active])

    def minimiser(self, w: np.ndarray, u: np.ndarray, penalty: float) -> np.ndarray:
        """Of f(w) + penalty / 2 |max(0, A w - b + u / penalty)|^2."""
        for _ in range(NEWTON_STEPS):
            push = self.A @ w - self.b + u / penalty
            active = np.flatnonzero(push > 0.0)
            rows = self.A[active]
            gradient = self.H @ w - self.c + penalty * (rows.T @ push[active])
            if np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(self.c):
                break
            step = scipy.linalg.solve(self.H + penalty * (rows.T @ rows), -gradient, assume_a="pos")
            w = w + self._length(w, step, push, penalty) * step
        return w

    def _length(self, w: np.ndarray, step: np.ndarray, push: np.ndarray, penalty: float) -> float:
        """At most 1; where the slope along the step turns positive before that, the root of the
        slope.
        """
        change, curvature, base = (
            self.A @ step,
            float(step @ self.H @ step),
            float((self.H @ w - self.c) @ step),
        )

        def slope(t: float) -> float:
            pushed = push + t * change
            return base + t * curvature + penalty * float(change @ np.maximum(pushed, 0.0))

        return (
            1.0 if slope(1.0) <= 0.0 else float(scipy.optimize.brentq(slope, 0.0, 1.0, xtol=1e-6))
        )


def lower_bound(problem: lt.Problem) -> float:
    squares = LeastSquares(problem)
    penalty = 10.0 / float(np.median(np.einsum("ij,ij->i", squares.A, squares.A)))
    w, u, best = np.linalg.solve(squares.H, squares.c), np.zeros(squares.b.size), -np.inf
    while True:
        w = squares.minimiser(w, u, penalty)
        u = np.maximum(0.0, u + penalty * (squares.A @ w - squares.b))
        before, best = best, max(best, squares.bound(u))
        if best - before <= ENOUGH * abs(best):
            return best
        penalty *= 4.0
