"""A ball on top of any set: the answer lies on the path of nearest points from v to the ball's
centre, where the Illinois variant of regula falsi finds it (M. Dowell and P. Jarratt, "A modified
regula falsi method", BIT 11, 1971).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections.costs import COSTS, EPSILON
from lighttouch.projections.result import Nearest, certified, not_certified
from lighttouch.running import check_deadline


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
