"""What a projection hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lighttouch.arrays import Vector


@dataclass(frozen=True)
class Nearest:
    """An engine's answer, before anything about it is recomputed."""

    w: Vector
    method: str
    gap: float | None = None
    multipliers: Callable[[], Vector] | None = None
    warm: Any = None


@dataclass(frozen=True)
class Projected:
    """The nearest feasible point and what was verified about it.

    `violation` is the largest g_j(w) over all constraints, at least 0, recomputed from w. `gap`
    bounds |w - v|^2 / 2 minus its optimum where multipliers are known. `warm` may be passed to the
    next projection onto the same constraints.
    """

    w: Vector
    distance: float
    violation: float
    method: str
    seconds: float
    gap: float | None = None
    warm: Any = field(default=None, repr=False)
    found: Nearest | None = field(default=None, repr=False)

    @property
    def multipliers(self) -> Vector | None:
        """One multiplier a constraint, where the method finds them: v - w is the sum of multipliers
        times rows (bounds apart).
        """
        return (
            self.found.multipliers()
            if self.found is not None and self.found.multipliers is not None
            else None
        )
