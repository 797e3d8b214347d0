"""Curved families in one shape: numbered functions with values and gradients, or balls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lighttouch.arrays import Floats, Indices, Vector
from lighttouch.constraints.base import Balls
from lighttouch.projections.costs import TINY


class CurvedFamily(Protocol):
    """What the projections ask of constraints that are not linear."""

    @property
    def conic(self) -> bool: ...

    def values(self, w: Vector) -> Vector: ...
    def subgradient(self, j: int, w: Vector) -> Vector: ...
    def balls(self) -> Balls | None: ...
    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]: ...


@dataclass(frozen=True)
class Part:
    """One family, with the number of its first constraint among all of them (-1: the domain)."""

    family: CurvedFamily
    first: int

    def numbers(self, count: int) -> Indices:
        """The numbers of its constraints; -1 for the domain."""
        return self.first + np.arange(count) if self.first >= 0 else np.full(count, -1)


@dataclass(frozen=True)
class BallDomain:
    """The domain's ball as one more constraint, |w - center| - radius <= 0."""

    center: Floats
    radius: float
    conic: bool = True

    def values(self, w: Vector) -> Vector:
        return np.array([np.linalg.norm(w - self.center) - self.radius])

    def subgradient(self, j: int, w: Vector) -> Vector:
        away = w - self.center
        return np.asarray(away / max(float(np.linalg.norm(away)), TINY))

    def balls(self) -> Balls:
        return Balls(self.center[None], np.array([self.radius]))

    def cone(self, j: int, v: Vector) -> tuple[Floats, Floats]:
        matrix = np.vstack([np.zeros(v.size), np.eye(v.size)])
        return matrix, np.concatenate([[self.radius], v - self.center])
