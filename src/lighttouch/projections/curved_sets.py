"""Norm, quadratic and other convex constraints in one shape: numbered functions with values and
gradients, or balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints import ConvexConstraints, NormConstraints, QuadraticConstraints

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """One family, with the number of its first constraint among all of them."""

    family: Any
    first: int

    def values(self, w: Vector) -> Floats:
        return np.asarray(self.family.values(w))

    def gradient(self, j: int, w: Vector) -> Floats:
        """A subgradient of constraint j of the family."""
        family = self.family
        if isinstance(family, NormConstraints):
            return norm_gradient(family, j, w)
        if isinstance(family, QuadraticConstraints):
            return np.asarray(family.P[j if len(family.P) > 1 else 0] @ w + family.q[j])
        return np.asarray(family.subgradient(j, w))


@dataclass(frozen=True)
class BallDomain:
    """The domain's ball as one more constraint, |w - center| - radius <= 0."""

    center: Floats
    radius: float

    def values(self, w: Vector) -> Floats:
        return np.array([np.linalg.norm(w - self.center) - self.radius])

    def subgradient(self, j: int, w: Vector) -> Floats:
        away = w - self.center
        return np.asarray(away / max(float(np.linalg.norm(away)), 1e-300))


@dataclass(frozen=True)
class Balls:
    """|w - center_j| <= radius_j; `number[j]` is the constraint, or -1 for the domain."""

    centers: Floats
    radii: Floats
    number: Indices


def norm_gradient(family: NormConstraints, j: int, w: Vector) -> Floats:
    matrix = None if family.A.shape[0] == 0 else family.A[j if len(family.A) > 1 else 0]
    inner = family.b[j] + (w if matrix is None else matrix @ w)
    unit = inner / max(float(np.linalg.norm(inner)), 1e-300)
    slope = unit if matrix is None else matrix.T @ unit
    return np.asarray(slope - family.c[j] if family.c.shape[0] else slope)


def balls_of(part: Part) -> Balls | None:
    """The family as balls, or None if some member is not one."""
    family = part.family
    if isinstance(family, BallDomain):
        return Balls(family.center[None], np.array([family.radius]), np.array([-1]))
    number = part.first + np.arange(family.count)
    if isinstance(family, NormConstraints) and family.is_balls:
        return Balls(-family.b, family.d.copy(), number)
    if isinstance(family, QuadraticConstraints):
        return balls_of_quadratics(family, number)
    return None


def balls_of_quadratics(family: QuadraticConstraints, number: Indices) -> Balls | None:
    """P = a I: |w + q / a|^2 <= |q|^2 / a^2 - 2 r / a. A negative square becomes a negative radius:
    no point at all.
    """
    bend = family.P[:, 0, 0]
    if np.any(bend <= 0.0) or np.any(family.P != bend[:, None, None] * np.eye(family.dimension)):
        return None
    bend = np.broadcast_to(bend, family.count)
    centers = -family.q / bend[:, None]
    square = np.einsum("ij,ij->i", centers, centers) - 2.0 * family.r / bend
    return Balls(np.ascontiguousarray(centers), np.sign(square) * np.sqrt(np.abs(square)), number)


def is_conic(part: Part) -> bool:
    return not isinstance(part.family, ConvexConstraints)
