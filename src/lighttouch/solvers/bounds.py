"""Lower bounds on the optimum that are theorems: valid for every feasible point.

Let x be any point, f convex, g a (sub)gradient of f or of a convex function below f with value c at
x, and p the projection of x - L g onto the feasible set C. Then q = x - L g - p is normal to C at
p, so that every v in C has <q, v - p> <= 0, and with rho = (x - p) / L

    f(v) >= c + <g, v - x> = c + <g, p - x> + <rho, v - p> - <q, v - p> / L
         >= c + <g, p - x> + <rho, v - p>.

What is left, <rho, v - p>, tends to 0 at an optimum and must be bounded over C: by the box or ball
that C lies in, or by the curvature of f (an l2 term, a quadratic form, the data's Gram matrix).
Where neither is there, the bound is minus infinity: nothing is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy import sparse

from lighttouch.arrays import Floats, Vector, dense
from lighttouch.domains import Ball
from lighttouch.objectives import EmpiricalRisk, Quadratic
from lighttouch.problem import Problem
from lighttouch.running.prepared import prepared
from lighttouch.solvers.costs import COSTS, EPSILON


@dataclass(frozen=True)
class Tangent:
    """A convex minorant's value and gradient at x, and p, the projection of x - length gradient.

    `scale` holds the units in which the projection was made; it differs from 1 only on boxes.
    """

    x: Vector
    value: float
    gradient: Vector
    p: Vector
    length: float
    scale: Vector

    @property
    def rest(self) -> Vector:
        """rho, in units of the parameters."""
        return np.asarray((self.x - self.p) / (self.length * np.square(self.scale)))

    @property
    def base(self) -> float:
        return self.value + float(self.gradient @ (self.p - self.x))


def lower_bound(problem: Problem, at: Tangent) -> float:
    """The best bound on the objective of every feasible point; -inf where none is known."""
    return max(_by_domain(problem, at), _by_curvature(problem, at)) - _rounding(at)


def bound_within(radius: Vector, at: Tangent) -> float:
    """A bound for the feasible points that differ from p by at most `radius` per coordinate.

    Good for deciding when to stop; no proof, unless the radius is one.
    """
    return at.base - float(np.abs(at.rest) @ radius)


def _rounding(at: Tangent) -> float:
    """What adding up the terms may have rounded away."""
    terms = abs(at.value) + float(np.abs(at.gradient) @ (np.abs(at.p) + np.abs(at.x)))
    return 4.0 * EPSILON * math.sqrt(at.x.size) * terms


def _by_domain(problem: Problem, at: Tangent) -> float:
    """<rho, v - p> over the box or ball, coordinate by coordinate with an l2 term's help."""
    rest, domain = at.rest, problem.domain
    if isinstance(domain, Ball):
        center = np.zeros(rest.size) if domain.center is None else domain.center
        return at.base + float(rest @ (center - at.p)) - domain.radius * float(np.linalg.norm(rest))
    lower, upper = domain.bounds(problem.dimension)
    l2 = problem.objective.l2
    if l2 > 0.0:  # f(v) is larger by l2/2 |v - x|^2 than its tangent
        v = np.clip(at.x - rest / l2, lower, upper)
        return at.base + float(rest @ (v - at.p)) + 0.5 * l2 * float((v - at.x) @ (v - at.x))
    ends = np.where(rest > 0.0, lower, upper)
    moved = rest != 0.0
    if np.isinf(ends[moved]).any():
        return -math.inf
    return at.base + float(rest[moved] @ (ends[moved] - at.p[moved]))


def _by_curvature(problem: Problem, at: Tangent) -> float:
    """For f(v) = f(x) + <g, v - x> + (v - x)'H(v - x)/2: the least over all v has v - x = -H^-1 rho."""
    objective = problem.objective
    exact = isinstance(objective, Quadratic) or (
        isinstance(objective, EmpiricalRisk) and objective.loss == "squared"
    )
    if not exact:
        return -math.inf
    factor = prepared(problem, "curvature factor", lambda: _factor(problem))
    if factor is None:
        return -math.inf
    rest = at.rest
    less = 0.5 * float(rest @ scipy.linalg.cho_solve(factor, rest, check_finite=False))
    return at.base + float(rest @ (at.x - at.p)) - less * (1.0 + math.sqrt(EPSILON))


def _factor(problem: Problem) -> tuple[Floats, bool] | None:
    """A Cholesky factor of the Hessian; None where it is singular or too expensive."""
    objective, d = problem.objective, problem.dimension
    work = float(d) ** 3 / 3.0 + objective.examples * objective.cost * d
    if work > COSTS.largest_gram:
        return None
    H = _hessian(problem)
    H.flat[:: d + 1] -= 8.0 * EPSILON * d * float(np.abs(H).max(initial=0.0))  # outward rounding
    try:
        return scipy.linalg.cho_factor(H, lower=True, check_finite=False)  # type: ignore[no-any-return]
    except scipy.linalg.LinAlgError:
        return None


def _hessian(problem: Problem) -> Floats:
    objective = problem.objective
    if isinstance(objective, Quadratic):
        return np.array(dense(objective.P))
    assert isinstance(objective, EmpiricalRisk)
    weights = objective.shares
    X = objective.X
    weighted = X.multiply(weights[:, None]).tocsr() if sparse.issparse(X) else weights[:, None] * X
    H = np.array(dense(X.T @ weighted))
    H.flat[:: H.shape[0] + 1] += objective.l2
    return H
