"""The nearest point of an intersection of balls: dual coordinate sweeps, then Newton on the balls
that hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from lighttouch.arrays import Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.numerics.dual_balls import sweep_balls
from lighttouch.projections.curved_sets import Balls
from lighttouch.projections.result import Nearest
from lighttouch.running import deadline
from lighttouch.running.threads import one_blas_thread

Floats = NDArray[np.float64]

SWEEPS = (3, 6, 12, 25, 50, 100, 200)  # between attempts to finish with Newton
TOLERANCE = 1e-12  # relative to the size of the problem


def join_balls(parts: list[Balls]) -> Balls:
    """All balls of all parts in one record."""
    centers = np.ascontiguousarray(np.vstack([part.centers for part in parts]))
    return Balls(
        centers,
        np.concatenate([part.radii for part in parts]),
        np.concatenate([part.number for part in parts]),
    )


def refuse_negative_radius(balls: Balls) -> None:
    bad = np.flatnonzero(balls.radii < 0.0)
    if bad.size:
        row = int(balls.number[bad[0]])
        message = (
            f"no point satisfies constraint {row}: it asks for a distance of at most "
            f"{balls.radii[bad[0]]:.6g}"
        )
        raise InfeasibleConstraintsError(message, [row])


@dataclass(frozen=True)
class BallsEngine:
    """Balls only; `nearest` answers None where it cannot certify its point."""

    balls: Balls

    def nearest(self, v: Vector, warm: Any = None) -> Nearest | None:
        with one_blas_thread():
            return self._nearest(v, warm)

    def _nearest(self, v: Vector, warm: Any) -> Nearest | None:
        balls = self.balls
        if np.any(balls.radii == 0.0):
            return self._single_point(v)
        known = (
            isinstance(warm, np.ndarray)
            and warm.shape == balls.radii.shape
            and warm.dtype == np.float64
        )
        multiplier = np.array(warm) if known else np.zeros(balls.radii.size)
        w = v.copy()
        size = float(np.abs(v).max(initial=0.0) + np.abs(balls.centers).max(initial=0.0))
        for sweeps in SWEEPS:
            deadline.check()
            sweep_balls(v, balls.centers, balls.radii, multiplier, w, sweeps, TOLERANCE * size)
            polished, weights = self._polish(v, w, multiplier)
            gap, excess = self._measure(polished, weights)
            if (
                excess <= 10.0 * TOLERANCE * size
                and gap <= 1e-9 * float((polished - v) @ (polished - v)) + (TOLERANCE * size) ** 2
            ):
                return Nearest(
                    polished,
                    "dual sweeps over balls, closed form each, then Newton",
                    gap,
                    None,
                    weights,
                )
        return None

    def _measure(self, w: Floats, multiplier: Floats) -> tuple[float, float]:
        """Duality gap and largest excess of the point."""
        distance = np.linalg.norm(w - self.balls.centers, axis=1)
        slack = (self.balls.radii - distance) * (self.balls.radii + distance)
        return abs(0.5 * float(multiplier @ slack)), float(np.max(distance - self.balls.radii))

    def _polish(self, v: Floats, w: Floats, multiplier: Floats) -> tuple[Floats, Floats]:
        """Newton steps that put the point on every ball with a multiplier; balls whose multiplier
        turns negative are let go.
        """
        held = np.flatnonzero(multiplier > 0.0)
        weights = multiplier[held]
        error = np.inf
        for _ in range(40):
            if not 0 < held.size <= 2 * v.size:
                break
            centers, radii = self.balls.centers[held], self.balls.radii[held]
            w = (v + weights @ centers) / (1.0 + weights.sum())
            away = w - centers
            rest = 0.5 * (np.einsum("ij,ij->i", away, away) - radii**2)
            if np.abs(rest).max() >= 0.7 * error:
                break
            step = solve_gram(away @ away.T, (1.0 + weights.sum()) * rest)
            kept = weights + step > 0.0
            error = float(np.abs(rest).max()) if kept.all() else np.inf
            held, weights = held[kept], (weights + step)[kept]
        multiplier = spread(weights, held, multiplier.size)
        return (v + weights @ self.balls.centers[held]) / (1.0 + weights.sum()), multiplier

    def _single_point(self, v: Vector) -> Nearest | None:
        """A ball of radius zero leaves one candidate."""
        point = self.balls.centers[int(np.argmin(self.balls.radii))]
        inside = np.all(np.linalg.norm(point - self.balls.centers, axis=1) <= self.balls.radii)
        return (
            Nearest(point.copy(), "closed form: a ball of radius zero", gap=0.0) if inside else None
        )


def solve_gram(gram: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(gram), right))
    except linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(gram, right, rcond=1e-13)[0])


def spread(weights: Floats, held: NDArray[np.int64], size: int) -> Floats:
    full = np.zeros(size)
    full[held] = weights
    return full
