"""Lower bounds on the optimum that are theorems: valid for every feasible point.

Let x be any point, f convex, g a (sub)gradient of f or of a convex function below f with value c at
x, and p the projection of x - L g onto the feasible set C. Then q = x - L g - p is normal to C at
p, so that every v in C has <q, v - p> <= 0, and with rho = (x - p) / L

    f(v) >= c + <g, v - x> = c + <g, p - x> + <rho, v - p> - <q, v - p> / L
         >= c + <g, p - x> + <rho, v - p>.

What is left, <rho, v - p>, tends to 0 at an optimum and must be bounded over C: by the box or ball
that C lies in, or by the curvature of f (an l2 term, a quadratic form, the data's Gram matrix).
Where neither is there, the bound is minus infinity: nothing is claimed.

A projection is not exact. With a gap e (|p - z|^2 / 2 minus its optimum, z = x - L g) the segment
from p to v lies in C, so that <q, v - p> <= sqrt(2 e) |v - p| + 2 e; a point that is d away from
the nearest one has <q, v - p> <= d |v - p| + d |q|. The bound loses both, for all of C.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.linalg

from lighttouch.arrays import Floats, Vector, dense
from lighttouch.domains import Ball, Simplex
from lighttouch.interior.statement import least_bends
from lighttouch.objectives import Quadratic
from lighttouch.problem import Problem
from lighttouch.projections.result import EXACT, Certificate
from lighttouch.running import is_prepared, prepared, seconds_left
from lighttouch.solvers.costs import COSTS, EPSILON

Factor = tuple[Floats, bool]  # as scipy.linalg.cho_factor gives it


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
    certificate: Certificate = EXACT  # of p

    @property
    def error(self) -> tuple[float, float]:
        """How much <q, v - p> / L may exceed 0: per unit of |v - p|, and in any case."""
        if not self.certificate.holds or self.length == 0.0:
            return math.inf, math.inf
        step = self.length * self.gradient * np.square(self.scale)
        q = float(np.linalg.norm(self.x - step - self.p))
        size = float(np.linalg.norm(np.abs(self.x) + np.abs(step) + np.abs(self.p)))
        off, gap = COSTS.outward * EPSILON * size, 0.0
        if self.certificate.kind != "exact":
            off += COSTS.certified_accuracy * q
            gap = max(0.0, self.certificate.gap or 0.0)
        length = self.length * float(np.square(self.scale).min())
        return (off + math.sqrt(2.0 * gap)) / length, (off * q + 2.0 * gap) / length

    @property
    def rest(self) -> Vector:
        """rho, in units of the parameters."""
        return np.asarray((self.x - self.p) / (self.length * np.square(self.scale)))

    @property
    def base(self) -> float:
        return self.value + float(self.gradient @ (self.p - self.x))

    @property
    def rounding(self) -> float:
        """What adding up the terms may have rounded away."""
        terms = abs(self.value) + float(np.abs(self.gradient) @ (np.abs(self.p) + np.abs(self.x)))
        return 4.0 * EPSILON * math.sqrt(self.x.size) * terms


def lower_bound(problem: Problem, at: Tangent) -> float:
    """The best bound on the objective of every feasible point; -inf where none is known."""
    drift, lost = at.error
    if not (math.isfinite(drift) and math.isfinite(lost)):
        return -math.inf
    found = max(
        _by_domain(problem, at, drift),
        _by_bends(problem, at, drift),
        _by_curvature(problem, at, drift),
    )
    return found - lost - at.rounding


def bound_within(radius: Vector, at: Tangent) -> float:
    """A bound for the feasible points that differ from p by at most `radius` per coordinate.

    Good for deciding when to stop; no proof, unless the radius is one.
    """
    return at.base - float(np.abs(at.rest) @ radius)


def _by_domain(problem: Problem, at: Tangent, drift: float) -> float:
    """<rho, v - p> over the domain, coordinate by coordinate with an l2 term's help."""
    rest, domain = at.rest, problem.domain
    lower, upper = domain.bounds(problem.dimension)
    charged = drift * float(np.linalg.norm(np.maximum(upper - at.p, at.p - lower)))
    if not math.isfinite(charged):
        return -math.inf
    if isinstance(domain, Ball):
        center = np.zeros(rest.size) if domain.center is None else domain.center
        least = float(rest @ (center - at.p)) - domain.radius * float(np.linalg.norm(rest))
        return at.base + least - charged
    least = least_of_line(rest, problem.objective.l2, at.x, lower, upper)
    within = at.base + float(rest @ (at.x - at.p)) + least
    if isinstance(domain, Simplex):  # <rest, v> is least at a vertex
        within = max(within, at.base + domain.total * float(rest.min()) - float(rest @ at.p))
    return within - charged


def _by_bends(problem: Problem, at: Tangent, drift: float) -> float:
    """f exceeds its tangent at x by sum_j c_j (v_j - x_j)^2 / 2: with <rho, v - x> and the drift
    the sum is least at a distance of rho / c and a little more.
    """
    bends = prepared(problem, "bends", lambda: least_bends(problem.objective))
    least = float(bends.min(initial=math.inf))
    if not least > 0.0:
        return -math.inf
    rest, away = at.rest, at.x - at.p
    force = math.sqrt(float(np.square(rest) @ (1.0 / bends))) + drift / math.sqrt(least)
    return at.base + float(rest @ away) - drift * float(np.linalg.norm(away)) - 0.5 * force**2


def least_of_line(rest: Vector, l2: float, x: Vector, lower: Vector, upper: Vector) -> float:
    """The least of <rest, v - x> + (l2/2) |v - x|^2 over lower <= v <= upper; -inf if unbounded.

    f exceeds its tangent at x by the second term at least.
    """
    if l2 > 0.0:
        v = np.clip(x - rest / l2, lower, upper)
        return float(rest @ (v - x)) + 0.5 * l2 * float((v - x) @ (v - x))
    ends = np.where(rest > 0.0, lower, upper)
    moved = rest != 0.0
    if np.isinf(ends[moved]).any():
        return -math.inf
    return float(rest[moved] @ (ends[moved] - x[moved]))


def _by_curvature(problem: Problem, at: Tangent, drift: float) -> float:
    """A quadratic f exceeds its tangent by (v - x)'P(v - x)/2: the sum is least at x - P^-1 rho."""
    if not isinstance(problem.objective, Quadratic):
        return -math.inf
    key, seconds = "factor of P", COSTS.curvature_seconds * float(problem.dimension) ** 3
    if seconds_left() < seconds and not is_prepared(problem, key):
        return -math.inf  # a bound is no use after the time limit
    factor, bend = prepared(problem, key, lambda: _factor_of_P(problem))
    if factor is None or bend <= 0.0:
        return -math.inf
    rest, away = at.rest, at.x - at.p
    square = float(rest @ scipy.linalg.cho_solve(factor, rest, check_finite=False))
    less = 0.5 * (math.sqrt(max(0.0, square)) + drift / math.sqrt(bend)) ** 2
    charged = drift * float(np.linalg.norm(away))
    return at.base + float(rest @ away) - charged - less * (1.0 + math.sqrt(EPSILON))


def _factor_of_P(problem: Problem) -> tuple[Factor | None, float]:
    """A factor of P, and its least eigenvalue, both a little less."""
    assert isinstance(problem.objective, Quadratic)
    if float(problem.dimension) ** 3 / 3.0 > COSTS.largest_gram:
        return None, 0.0
    P = np.array(dense(problem.objective.P))
    least = float(scipy.linalg.eigvalsh(P, subset_by_index=(0, 0))[0])
    outward = COSTS.outward * EPSILON * P.shape[0] * float(np.abs(P).max(initial=0.0))
    return factor_less(P), least - outward


def factor_less(H: Floats) -> Factor | None:
    """A Cholesky factor of a little less than H (outward rounding); None where H is singular."""
    d = H.shape[0]
    H.flat[:: d + 1] -= COSTS.outward * EPSILON * d * float(np.abs(H).max(initial=0.0))
    try:
        return cast(Factor, scipy.linalg.cho_factor(H, lower=True, check_finite=False))
    except scipy.linalg.LinAlgError:
        return None
