"""The simple set W the parameters live in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs.domains import BALL, BOX, EVERYWHERE, DomainRecord
from lighttouch.validation import finite_vector, positive, refuse_non_finite, to_float

__all__ = ["Ball", "Box", "Everywhere"]

_NONE = np.zeros(1)
_LOWEST, _HIGHEST = np.array([-math.inf]), np.array([math.inf])


@dataclass(frozen=True)
class Everywhere:
    """All of R^d."""

    def project(self, w: Vector) -> Vector:
        return np.array(w, dtype=np.float64)

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(EVERYWHERE, _LOWEST, _HIGHEST, _NONE, 0.0)

    def objection_to(self, dimension: int) -> str | None:
        return None

    def diameter(self, dimension: int) -> float:
        return math.inf


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= w <= upper, each a number or one number a coordinate; infinite sides are allowed."""

    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            values = to_float(getattr(self, name), name)
            if values.ndim > 1:
                raise DataError(
                    f"{name} must be a number or one number a coordinate, got shape {values.shape}"
                )
            refuse_non_finite(np.atleast_1d(np.where(np.isinf(values), 0.0, values)), name)
            object.__setattr__(
                self, name, float(values) if values.ndim == 0 else np.ascontiguousarray(values)
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

    def diameter(self, dimension: int) -> float:
        return float(
            np.linalg.norm(np.broadcast_to(np.subtract(self.upper, self.lower), dimension))
        )


@dataclass(frozen=True, eq=False)
class Ball:
    """||w - center|| <= radius; the centre is the origin unless given."""

    radius: float
    center: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", positive(self.radius, "radius"))
        if self.center is not None:
            object.__setattr__(self, "center", finite_vector(self.center, "center"))

    def _center(self, dimension: int) -> Vector:
        return np.zeros(dimension) if self.center is None else self.center

    def project(self, w: Vector) -> Vector:
        center = self._center(len(w))
        away = np.asarray(w, dtype=np.float64) - center
        distance = float(np.linalg.norm(away))
        return (
            np.array(w, dtype=np.float64)
            if distance <= self.radius
            else center + away * (self.radius / distance)
        )

    def record(self, dimension: int) -> DomainRecord:
        return DomainRecord(BALL, _LOWEST, _HIGHEST, self._center(dimension), self.radius)

    def objection_to(self, dimension: int) -> str | None:
        if self.center is not None and self.center.size != dimension:
            return f"the ball's center must have {dimension} entries, got {self.center.size}"
        return None

    def diameter(self, dimension: int) -> float:
        return 2.0 * self.radius
