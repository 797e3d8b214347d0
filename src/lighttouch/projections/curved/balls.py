"""The nearest point of an intersection of balls: dual coordinate ascent, one ball after the other
in closed form (`kernels/numerics/dual_balls.py`), then Newton on the balls that hold the point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.constraints.base import Balls
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.numerics.dual_balls import sweep_balls
from lighttouch.projections.costs import COSTS
from lighttouch.projections.curved.cutting_planes import Part
from lighttouch.projections.result import Nearest, certified
from lighttouch.running import check_deadline, one_blas_thread


@dataclass(frozen=True)
class NumberedBalls:
    """|w - center_j| <= radius_j; `number[j]` is the constraint, or -1 for the domain."""

    centers: Floats
    radii: Floats
    number: Indices


def join_balls(parts: Sequence[Part]) -> NumberedBalls | None:
    """All balls of all parts in one record, none of a negative radius; None where a part is not
    made of balls.
    """
    known = [part.family.balls() for part in parts]
    balls = [each for each in known if each is not None]
    for part, each in zip(parts, known, strict=True):
        if each is not None:
            refuse_negative_radius(each, part)
    if len(balls) < len(known):
        return None
    return NumberedBalls(
        np.ascontiguousarray(np.vstack([each.centers for each in balls])),
        np.concatenate([each.radii for each in balls]),
        np.concatenate(
            [part.numbers(each.radii.size) for part, each in zip(parts, balls, strict=True)]
        ),
    )


def refuse_negative_radius(balls: Balls, part: Part) -> None:
    bad = np.flatnonzero(balls.radii < 0.0)
    if bad.size:
        row = int(part.numbers(balls.radii.size)[bad[0]])
        message = (
            f"no point satisfies constraint {row}: it asks for a distance of at most "
            f"{balls.radii[bad[0]]:.6g}"
        )
        raise InfeasibleConstraintsError(message, [row])


@dataclass(frozen=True)
class InAllBalls:
    """Balls only; `nearest` answers None where it cannot certify its point."""

    balls: NumberedBalls

    def nearest(self, v: Vector, warm: object = None) -> Nearest | None:
        with one_blas_thread():
            return self._nearest(v, warm)

    def _nearest(self, v: Vector, warm: object) -> Nearest | None:
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
        tolerance = COSTS.tolerance * size
        for sweeps in COSTS.ball_sweeps:
            check_deadline()
            sweep_balls(v, balls.centers, balls.radii, multiplier, w, sweeps, tolerance)
            polished, weights = self._polish(v, w, multiplier)
            gap, excess = self._measure(polished, weights)
            square = float((polished - v) @ (polished - v))
            if (
                excess <= COSTS.ball_excess * tolerance
                and gap <= COSTS.accepted_gap * square + tolerance**2
            ):
                how = "dual sweeps over balls, closed form each, then Newton"
                return Nearest(polished, how, certified(gap), None, weights)
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
        for _ in range(COSTS.ball_newton_steps):
            if not 0 < held.size <= 2 * v.size:
                break
            centers, radii = self.balls.centers[held], self.balls.radii[held]
            w = (v + weights @ centers) / (1.0 + weights.sum())
            away = w - centers
            rest = 0.5 * (np.einsum("ij,ij->i", away, away) - radii**2)
            if np.abs(rest).max() >= COSTS.newton_shrink * error:
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
        return Nearest(point.copy(), "closed form: a ball of radius zero") if inside else None


def solve_gram(gram: Floats, right: Floats) -> Floats:
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(gram), right))
    except linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(gram, right, rcond=COSTS.gram_rank)[0])


def spread(weights: Floats, held: Indices, size: int) -> Floats:
    full = np.zeros(size)
    full[held] = weights
    return full
