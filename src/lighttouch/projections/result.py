"""What a projection hands back, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from lighttouch.arrays import Vector


@dataclass(frozen=True)
class Certificate:
    """What is proven about a point.

    `exact`: it is the nearest point, up to rounding. `certified`: feasible to the method's
    tolerance and nearest to it; `gap` bounds |w - v|^2 / 2 minus its optimum where multipliers are
    known. `not certified`: the best point known, still `excess` outside (NaN: nobody measured).
    """

    kind: Literal["exact", "certified", "not certified"]
    gap: float | None = None
    excess: float = 0.0

    @property
    def holds(self) -> bool:
        return self.kind != "not certified"

    def words(self) -> str:
        """What is appended to the name of the method."""
        if self.holds:
            return ""
        if self.excess == self.excess:
            return (
                f" (not certified: still {self.excess:.1g} outside, so the distance is a lower "
                "bound)"
            )
        return " (not certified)"


EXACT = Certificate("exact", gap=0.0)


def certified(gap: float | None = None) -> Certificate:
    return Certificate("certified", gap)


def not_certified(gap: float | None = None, excess: float = float("nan")) -> Certificate:
    return Certificate("not certified", gap, excess)


@dataclass(frozen=True)
class Nearest:
    """A method's answer, before anything about it is recomputed."""

    w: Vector
    method: str
    certificate: Certificate = EXACT
    multipliers: Callable[[], Vector] | None = None
    warm: Any = None

    @property
    def gap(self) -> float | None:
        return self.certificate.gap


@dataclass(frozen=True)
class Projected:
    """The nearest feasible point and what was verified about it.

    Parameters
    ----------
    w : array of d numbers
        The point.
    distance : float
        How far it is from the point that was projected.
    violation : float
        The largest g_j(w) over all constraints, at least 0, recomputed from w.
    method : str
        How it was found, in words.
    seconds : float
        How long that took.
    gap : float or None
        Bounds |w - v|^2 / 2 minus its optimum where multipliers are known.
    certificate : Certificate
        What is proven about the point, as data.
    warm : object
        May be passed to the next projection onto the same constraints.
    multipliers_of : callable or None
        Makes the `multipliers`, where the method finds them.

    Examples
    --------
    >>> import lighttouch as lt
    >>> found = lt.project([3.0, 1.0, 2.0], lt.ordering(3))
    >>> found.w
    array([2., 2., 2.])
    >>> found.certificate.kind
    'exact'
    """

    w: Vector
    distance: float
    violation: float
    method: str
    seconds: float
    gap: float | None = None
    certificate: Certificate = EXACT
    warm: Any = field(default=None, repr=False)
    multipliers_of: Callable[[], Vector] | None = field(default=None, repr=False)

    @property
    def multipliers(self) -> Vector | None:
        """One multiplier per constraint, where the method finds them: v - w is the sum of
        multipliers times rows (bounds apart).
        """
        return None if self.multipliers_of is None else self.multipliers_of()
