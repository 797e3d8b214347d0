"""Nearest points under norm, quadratic and other convex constraints, alone or with linear rows, and
in a ball on top of any set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from scipy import linalg, sparse

from lighttouch.arrays import EPSILON, Floats, Indices, Matrix, Vector
from lighttouch.constraints.base import Balls
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.kernels.numerics.dual_balls import sweep_balls
from lighttouch.projections.costs import COSTS
from lighttouch.projections.cutting_planes import NearestByCuts, Part
from lighttouch.projections.rows.kinds import UnitRows
from lighttouch.result import Nearest, certified, not_certified
from lighttouch.running import check_deadline, one_blas_thread, seconds_left


@dataclass(frozen=True)
class Curved:
    """Balls by closed forms where they decide; cutting planes otherwise, with Clarabel where those
    do not end.
    """

    cuts: NearestByCuts
    balls: InAllBalls | None

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        if self.balls is not None:
            found = self.balls.nearest(v, warm)
            if found is not None and self._keeps_rows(found.w):
                return found
        found = self.cuts.nearest(v, warm)
        if (
            not found.certificate.holds
            and all(part.family.conic for part in self.cuts.parts)
            and clarabel_or_none() is not None
        ):
            return self._with_clarabel(v, found)
        return found

    def _keeps_rows(self, w: Vector) -> bool:
        """Whether a point of the balls obeys the rows and the box as well; then it is the nearest
        of all.
        """
        rows = self.cuts.base
        return bool(
            np.all(rows.matrix @ w <= rows.right)
            and np.all(w >= rows.lower)
            and np.all(w <= rows.upper)
        )

    def _with_clarabel(self, v: Vector, found: Nearest) -> Nearest:
        """Start the cuts at the conic solver's point: next to the answer one or two rounds
        suffice.
        """
        rows, right = rows_with_box(self.cuts.base)
        blocks = [
            part.family.cone(j, v)
            for part in self.cuts.parts
            for j in range(len(part.family.values(v)))
        ]
        point = nearest_to_cones(v, rows, right, blocks)
        if point is None:
            return found
        better = self.cuts.nearest(v, point)
        return replace(better, method=f"Clarabel, then {better.method}")


def rows_with_box(base: UnitRows) -> tuple[Matrix, Vector]:
    """The linear rows and the finite sides of the box as one system."""
    identity = sparse.identity(base.lower.size, format="csr")
    high, low = np.flatnonzero(np.isfinite(base.upper)), np.flatnonzero(np.isfinite(base.lower))
    rows = sparse.vstack(
        [sparse.csr_matrix(base.matrix), identity[high], -identity[low]], format="csr"
    )
    return rows, np.concatenate([base.right, base.upper[high], -base.lower[low]])


def curved_method(cuts: NearestByCuts) -> Curved:
    balls = join_balls(cuts.parts)
    return Curved(cuts, None if balls is None else InAllBalls(balls))


# -------------------------------------------------------------------------------------------------
# The nearest point of an intersection of balls: dual coordinate ascent, one ball after the other in
# closed form (`kernels/numerics/dual_balls.py`), then Newton on the balls that hold the point.


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
        tolerance = COSTS.row_tolerance * size
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


# -------------------------------------------------------------------------------------------------
# Clarabel, where it is installed: an interior-point method for rows and second-order cones (P.
# Goulart and Y. Chen, "Clarabel: An interior-point solver for conic programs with quadratic
# objectives", 2024).


@cache
def clarabel_or_none() -> Any:
    try:
        import clarabel
    except ImportError:
        return None
    return clarabel


def nearest_to_cones(
    v: Floats, rows: Matrix, right: Floats, blocks: list[tuple[Floats, Floats]]
) -> Floats | None:
    """The point nearest to v with rows @ w <= right and matrix @ (w - v) + shift in a cone, block
    by block; None on failure.
    """
    clarabel = clarabel_or_none()
    matrices = [sparse.csc_matrix(rows), *(sparse.csc_matrix(-matrix) for matrix, _ in blocks)]
    shifts = [right - np.asarray(rows @ v), *(shift for _, shift in blocks)]
    cones = [clarabel.NonnegativeConeT(right.size)] if right.size else []
    cones += [clarabel.SecondOrderConeT(shift.size) for _, shift in blocks]
    solution = run_clarabel(sparse.vstack(matrices, format="csc"), np.concatenate(shifts), cones)
    z = np.asarray(solution.x)
    return v + z if np.all(np.isfinite(z)) and "Solved" in str(solution.status) else None


def run_clarabel(matrix: sparse.csc_matrix, right: Floats, cones: list[Any]) -> Any:
    """Minimise |z|^2 / 2 subject to right - matrix @ z in the cones, at the tightest tolerances
    that usually succeed.
    """
    clarabel = clarabel_or_none()
    dimension = matrix.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "faer"
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = COSTS.clarabel_tolerance
    settings.max_iter = COSTS.clarabel_steps
    settings.time_limit = seconds_left()
    identity = sparse.identity(dimension, format="csc")
    return clarabel.DefaultSolver(
        identity, np.zeros(dimension), matrix, right, cones, settings
    ).solve()


# -------------------------------------------------------------------------------------------------
# A ball on top of any set: the answer lies on the path of nearest points from v to the ball's
# centre, where the Illinois variant of regula falsi finds it (M. Dowell and P. Jarratt, "A modified
# regula falsi method", BIT 11, 1971).


class SomeMethod(Protocol):
    """The nearest points of the set inside the ball."""

    def nearest(self, v: Vector, warm: object = None) -> Nearest: ...


@dataclass(frozen=True)
class InBall:
    """{w in the inner set: |w - center| <= radius}.

    With multiplier mu for the ball, the answer is the inner set's nearest point to (v + mu center)
    / (1 + mu); along that segment the distance to the centre never grows, so one number is searched
    for.
    """

    inner: SomeMethod
    radius: float
    center: Vector

    def nearest(self, v: Vector, warm: object = None) -> Nearest:
        center = self.center
        found = self.inner.nearest(v, warm)
        if self._outside(found.w, center) <= 0.0:
            return replace(found, method=f"{found.method}, inside the ball")
        closest = self.inner.nearest(center, found.warm)
        if self._outside(closest.w, center) > 0.0:
            self._refuse(self._outside(closest.w, center))
        found, evaluations = self._search(v, center, found, closest)
        how = f"{found.method}, {evaluations} times along the path to the ball's centre"
        sure = certified() if found.certificate.holds else not_certified()
        return Nearest(found.w, how, sure, warm=found.warm)

    def _outside(self, w: Vector, center: Vector) -> float:
        return float(np.linalg.norm(w - center)) - self.radius

    def _refuse(self, outside: float) -> None:
        raise InfeasibleConstraintsError(
            "no point of the ball satisfies the constraints: "
            f"the feasible point nearest to its centre lies {outside:.3g} outside the "
            f"radius {self.radius:g}"
        )

    def _search(
        self, v: Vector, center: Vector, out: Nearest, within: Nearest
    ) -> tuple[Nearest, int]:
        """Regula falsi (Illinois) on the fraction of the way to the centre; the answer is kept on
        the inner side of the ball.
        """
        low, high = 0.0, 1.0
        beyond, short = self._outside(out.w, center), self._outside(within.w, center)
        weight_low = weight_high = 1.0
        evaluations = 2
        for _ in range(COSTS.path_steps):
            check_deadline()
            evaluations += 1
            step = (low * weight_high * short - high * weight_low * beyond) / (
                weight_high * short - weight_low * beyond
            )
            middle = step if low < step < high else 0.5 * (low + high)
            trial = self.inner.nearest(v + middle * (center - v), out.warm)
            outside = self._outside(trial.w, center)
            if outside > 0.0:
                low, beyond, out = middle, outside, trial
                weight_high, weight_low = 0.5 * weight_high, 1.0
            else:
                high, short, within = middle, outside, trial
                weight_low, weight_high = 0.5 * weight_low, 1.0
            if -COSTS.path_tolerance * self.radius <= short or high - low <= 4.0 * EPSILON:
                break
        return within, evaluations
