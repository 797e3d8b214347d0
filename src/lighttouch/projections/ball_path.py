"""A ball on top of any set: the answer lies on the path of nearest points from v to the ball's
centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections.result import Nearest
from lighttouch.running import deadline


@dataclass(frozen=True)
class BallEngine:
    """{w in the inner set: |w - center| <= radius}.

    With multiplier mu for the ball, the answer is the inner set's nearest point to (v + mu center)
    / (1 + mu); along that segment the distance to the centre never grows, so one number is searched
    for.
    """

    inner: Any
    radius: float
    center: Any

    def nearest(self, v: Vector, warm: Any = None) -> Nearest:
        center = np.zeros(v.size) if self.center is None else self.center
        found = self.inner.nearest(v, warm)
        if self._outside(found.w, center) <= 0.0:
            return Nearest(
                found.w,
                f"{found.method}, inside the ball",
                found.gap,
                found.multipliers,
                found.warm,
            )
        closest = self.inner.nearest(center, found.warm)
        if self._outside(closest.w, center) > 0.0:
            self._refuse(self._outside(closest.w, center))
        found, evaluations = self._search(v, center, found, closest)
        return Nearest(
            found.w,
            f"{found.method}, {evaluations} times along the path to the ball's centre",
            warm=found.warm,
        )

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
        for _ in range(200):
            deadline.check()
            evaluations += 1
            step = (low * weight_high * short - high * weight_low * beyond) / (
                weight_high * short - weight_low * beyond
            )
            middle = step if low < step < high else 0.5 * (low + high)
            trial = self.inner.nearest(v + middle * (center - v), out.warm)
            outside = self._outside(trial.w, center)
            if outside > 0.0:
                low, beyond, weight_high, weight_low, out = (
                    middle,
                    outside,
                    0.5 * weight_high,
                    1.0,
                    trial,
                )
            else:
                high, short, weight_low, weight_high, within = (
                    middle,
                    outside,
                    0.5 * weight_low,
                    1.0,
                    trial,
                )
            if -1e-13 * self.radius <= short or high - low <= 1e-15:
                break
        return within, evaluations
