"""The simple set W the parameters live in: a box, a ball, a simplex, or all of R^d.

The type is closed. Projections treat each of the four in its own way, so that another class, or
what a subclass changes, could only be ignored; `checked_domain` refuses it instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast, final, get_args

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs.domains import (
    BALL,
    BOX,
    EVERYWHERE,
    SIMPLEX,
    DomainRecord,
    put_on_simplex,
)
from lighttouch.validation import finite_vector, positive, refuse_non_finite, to_float

__all__ = ["Ball", "Box", "Domain", "Everywhere", "Simplex", "checked_domain"]

_NONE = np.zeros(1)
_LOWEST, _HIGHEST = np.array([-math.inf]), np.array([math.inf])


@final
@dataclass(frozen=True)
class Everywhere:
    """All of R^d.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.Everywhere().project([1.0, -2.0])
    array([ 1., -2.])
    """

    def project(self, w: Vector) -> Vector:
        return np.array(w, dtype=np.float64)

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(EVERYWHERE, _LOWEST, _HIGHEST, _NONE, 0.0)

    def objection_to(self, dimension: int) -> str | None:
        return None

    def bounds(self, dimension: int) -> tuple[Vector, Vector]:
        """Limits of every coordinate, infinite where there are none."""
        return np.full(dimension, -math.inf), np.full(dimension, math.inf)

    def diameter(self, dimension: int) -> float:
        """The largest distance of two points."""
        return math.inf


@final
@dataclass(frozen=True, eq=False)
class Box:
    """lower <= w <= upper.

    Parameters
    ----------
    lower, upper : float or array of d numbers
        One number for all coordinates, or one per coordinate; infinite sides are allowed.

    Raises
    ------
    DataError
        Where a side is NaN, the lengths differ, or lower exceeds upper.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.Box(-1.0, 1.0).project([3.0, 0.5])
    array([1. , 0.5])
    """

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            values = to_float(getattr(self, name), name)
            if values.ndim > 1:
                raise DataError(
                    f"{name} must be a number or one per coordinate, got shape {values.shape}"
                )
            refuse_non_finite(np.atleast_1d(np.where(np.isinf(values), 0.0, values)), name)
            object.__setattr__(
                self,
                name,
                float(values) if values.ndim == 0 else np.array(values),  # a copy
            )
        if (
            np.ndim(self.lower)
            and np.ndim(self.upper)
            and np.size(self.lower) != np.size(self.upper)
        ):
            raise DataError(
                f"lower and upper must have the same length, got {np.size(self.lower)} and "
                f"{np.size(self.upper)}"
            )
        if np.any(np.greater(self.lower, self.upper)):
            place = int(np.argmax(np.greater(self.lower, self.upper)))
            low, high = (
                np.broadcast_to(v, max(np.size(self.lower), np.size(self.upper)))[place]
                for v in (self.lower, self.upper)
            )
            raise DataError(
                f"lower must not exceed upper: at coordinate {place} lower is {low} and "
                f"upper {high}"
            )
        if np.any(np.equal(self.lower, np.inf)) or np.any(np.equal(self.upper, -np.inf)):
            raise DataError("lower must be below infinity and upper above minus infinity")

    def project(self, w: Vector) -> Vector:
        return np.asarray(np.clip(w, self.lower, self.upper))

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(BOX, np.atleast_1d(self.lower), np.atleast_1d(self.upper), _NONE, 0.0)

    def objection_to(self, dimension: int) -> str | None:
        for name in ("lower", "upper"):
            size = np.size(getattr(self, name))
            if np.ndim(getattr(self, name)) and size != dimension:
                return f"the box's {name} must be a number or have {dimension} entries, got {size}"
        return None

    def bounds(self, dimension: int) -> tuple[Vector, Vector]:
        """Limits of every coordinate, infinite where there are none."""
        lower, upper = (np.broadcast_to(side, dimension) for side in (self.lower, self.upper))
        return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)

    def diameter(self, dimension: int) -> float:
        """The largest distance of two points."""
        return float(
            np.linalg.norm(np.broadcast_to(np.subtract(self.upper, self.lower), dimension))
        )


@final
@dataclass(frozen=True, eq=False)
class Ball:
    """||w - center|| <= radius.

    Parameters
    ----------
    radius : float
        Positive.
    center : array of d numbers, optional
        The origin unless given.

    Raises
    ------
    DataError
        Where the radius is not positive or the centre not finite.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.Ball(1.0).project([3.0, 4.0])
    array([0.6, 0.8])
    """

    radius: float
    center: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius"))
        if self.center is not None:
            object.__setattr__(self, "center", finite_vector(self.center, "center", own=True))

    def center_in(self, dimension: int) -> Vector:
        """The centre as an array."""
        return np.zeros(dimension) if self.center is None else np.asarray(self.center)

    def project(self, w: Vector) -> Vector:
        center = self.center_in(len(w))
        away = np.asarray(w, dtype=np.float64) - center
        distance = float(np.linalg.norm(away))
        return (
            np.array(w, dtype=np.float64)
            if distance <= self.radius
            else center + away * (self.radius / distance)
        )

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(BALL, _LOWEST, _HIGHEST, self.center_in(dimension), self.radius)

    def objection_to(self, dimension: int) -> str | None:
        if self.center is not None and self.center.size != dimension:
            return f"the ball's center must have {dimension} entries, got {self.center.size}"
        return None

    def bounds(self, dimension: int) -> tuple[Vector, Vector]:
        """The box around the ball."""
        center = self.center_in(dimension)
        return center - self.radius, center + self.radius

    def diameter(self, dimension: int) -> float:
        """The largest distance of two points."""
        return 2.0 * self.radius


@final
@dataclass(frozen=True)
class Simplex:
    """w >= 0 with the sum of w equal to a total: shares, probabilities, a portfolio.

    Parameters
    ----------
    total : float, default=1
        The sum; positive.

    Raises
    ------
    ValueError
        Where the total is not positive and finite.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.Simplex().project([0.75, 0.75, -1.0])
    array([0.5, 0.5, 0. ])
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", positive(self.total, "total"))

    def project(self, w: Vector) -> Vector:
        point = np.array(w, dtype=np.float64)
        put_on_simplex(point, self.total)
        return point

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(SIMPLEX, _LOWEST, _HIGHEST, _NONE, self.total)

    def objection_to(self, dimension: int) -> str | None:
        return None

    def bounds(self, dimension: int) -> tuple[Vector, Vector]:
        """The box around the simplex."""
        return np.zeros(dimension), np.full(dimension, self.total)

    def diameter(self, dimension: int) -> float:
        """The largest distance of two points: of two vertices."""
        return math.sqrt(2.0) * self.total if dimension > 1 else 0.0


Domain = Box | Ball | Simplex | Everywhere


def checked_domain(domain: object, dimension: int) -> Domain:
    """The domain, if it is one and fits the number of parameters.

    Parameters
    ----------
    domain : object
        What a user gave.
    dimension : int
        The number of parameters.

    Returns
    -------
    Domain
        The same object.

    Raises
    ------
    DataError
        Where it is of another class, subclasses included, or its arrays have another length.
    """
    if type(domain) not in get_args(Domain):
        kind = (
            f"the class {domain.__name__} instead of an instance of it"
            if isinstance(domain, type)
            else f"{type(domain).__name__}; a subclass or another class would not be projected onto"
        )
        raise DataError(f"domain must be Box, Ball, Simplex or Everywhere, got {kind}")
    known = cast(Domain, domain)
    objection = known.objection_to(dimension)
    if objection:
        raise DataError(objection)
    return known
