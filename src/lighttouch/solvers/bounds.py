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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from lighttouch.arrays import EPSILON, Floats, Vector, dense, in_parts
from lighttouch.cholesky import Cholesky
from lighttouch.domains import Ball, Everywhere, Simplex
from lighttouch.interfaces import Objective
from lighttouch.interior.balance import balanced_value, balancing_moves
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.interior.program import Program, Smooth
from lighttouch.losses import conjugate_values, quadratic
from lighttouch.objectives import EmpiricalRisk, Quadratic, ShardedRisk
from lighttouch.problem import Problem
from lighttouch.result import EXACT, Certificate
from lighttouch.running import is_prepared, one_blas_thread, prepared, seconds_left
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY, least_bends


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
    square = float(rest @ factor.solved(rest))
    less = 0.5 * (math.sqrt(max(0.0, square)) + drift / math.sqrt(bend)) ** 2
    charged = drift * float(np.linalg.norm(away))
    return at.base + float(rest @ away) - charged - less * (1.0 + math.sqrt(EPSILON))


def _factor_of_P(problem: Problem) -> tuple[Cholesky | None, float]:
    """A factor of P, and its least eigenvalue, both a little less."""
    assert isinstance(problem.objective, Quadratic)
    if float(problem.dimension) ** 3 / 3.0 > COSTS.bound_factor_products:
        return None, 0.0
    P = np.array(dense(problem.objective.P))
    outward = COSTS.outward * EPSILON * P.shape[0] * float(np.abs(P).max(initial=0.0))
    with one_blas_thread():  # several wait for each other, for seconds where cores are busy
        least = float(scipy.linalg.eigvalsh(P, subset_by_index=(0, 0))[0])
        return factor_less(P), least - outward


def factor_less(H: Floats) -> Cholesky | None:
    """A Cholesky factor of a little less than H (outward rounding); None where H is singular."""
    d = H.shape[0]
    H.flat[:: d + 1] -= COSTS.outward * EPSILON * d * float(np.abs(H).max(initial=0.0))
    return Cholesky.of(H)


# -------------------------------------------------------------------------------------------------
# Lower bounds on the optimum from dual variables: one slope per example (Fenchel's inequality).
#
# phi(z) >= s z - phi*(s) for every slope s in the domain of the conjugate phi*. `minorant` turns
# the slopes at a point into a line below the objective, `fenchel_bound` slopes and a vector normal
# to the feasible set into a bound, and `bound_by_slopes` looks for better slopes.


def whole_minorant(objective: Objective, x: Vector, width: float) -> tuple[float, Vector] | None:
    """The same of an objective in shards: the mean of its parts' lines is a line below the mean."""
    if not isinstance(objective, ShardedRisk):
        return minorant(objective, x, width)
    if minorant(objective.template, x, width) is None or not objective.survey.alike:
        return None
    value, gradient = objective.mean(minorant, x, width)
    return float(value), gradient


def minorant(objective: Objective, x: Vector, width: float) -> tuple[float, Vector] | None:
    """Value and gradient at x of a function below the objective, from the slopes of rounded losses.

    phi(z) >= s z - phi*(s) for every slope s (Fenchel 1949). Rounded over `width`, phi has the
    slopes s of its Moreau envelope and is width s^2 / 2 lower than this line: the tangent of the
    rounded objective would lose that for every example, also for those far from the kink. The
    penalties keep their curvature. None where no conjugates are known.
    """
    if not isinstance(objective, EmpiricalRisk) or objective.loss_row.users is not None:
        return None
    risk, z = objective, objective.predictions(x)
    slopes, conjugates = conjugate_values(
        risk.loss_row, quadratic(risk.loss_row, z, risk.y, width)[0], risk.y
    )
    weights, pull = risk.shares * slopes, np.asarray(risk.penalty_matrix @ x)
    signs = np.clip(risk.l1 * x.size * x / max(width, TINY), -1.0, 1.0)  # of |w_j|, rounded
    gradient = np.asarray(risk.X.T @ weights) + pull + risk.l1 * signs
    gradient -= np.asarray(risk.roughness.T @ risk.roughness_target)
    less = risk.l1 * float(np.abs(x).sum() - signs @ x)
    terms = weights * z - risk.shares * conjugates
    rounding = INTERIOR.sum_rounding * EPSILON * float(np.abs(weights) @ np.abs(z))
    rounding += INTERIOR.sum_rounding * EPSILON * float(risk.shares @ np.abs(conjugates))
    return float(terms.sum()) + risk.penalty_value(x) - less - rounding, gradient


@dataclass(frozen=True)
class Normal:
    """A vector that is normal to the feasible set at p, but for the error of the projection: it
    satisfies <vector, v - p> <= drift |v - p| + lost for every feasible v. `away` says how far v
    can be from p, per parameter.
    """

    vector: Vector
    p: Vector
    away: Vector
    drift: float = 0.0
    lost: float = 0.0


def fenchel_bound(
    risk: EmpiricalRisk,
    slopes: Vector,
    normal: Normal,
    u: Vector,
    room: Vector | None = None,
    bend: float = 0.0,
) -> float:
    """A bound from dual variables: one slope per example, and a vector normal to the set at p.

    phi(z) >= s z - phi*(s) for every slope s in the domain of phi* (Fenchel 1949), a convex penalty
    lies above its tangent at any u, and <normal, v - p> <= 0 for every feasible v. With shares a_i

        f(v) >= sum_i a_i (s_i (x_i.v + o_i) - phi*(s_i)) + penalty(u) + <penalty'(u), v - u> + b.v

    with offsets o, and any b between -l1 and l1. Where X'(a s) + penalty'(u) + b = -normal, to
    rounding, the right side is its value at p, less what is left over times a distance: to the
    bounds of the domain, or as far as an l2 term allows, or the `bend` of the losses: with slopes
    that are those at u, they exceed these lines by bend ||v - u||^2 / 2 at least. Without rules,
    bounds and l2, slopes that have `room` to move are balanced exactly (`interior.balance`).
    """
    sums = dual_sums(risk, slopes)
    found = bound_of_sums(risk, sums, normal, u, bend)
    if found > -math.inf or room is None or normal.vector.any():
        return found
    weights = risk.shares * conjugate_values(risk.loss_row, slopes, risk.y)[0]
    rest, error, lasso = _rest(risk, sums, normal, u)
    return _balanced(risk, (weights, lasso), u, (rest, error), room)


def bound_without_slopes(problem: Problem) -> float:
    """The mean of the least values of all losses, and no penalty: 0 for most losses."""
    risk = problem.objective
    if not isinstance(risk, EmpiricalRisk):
        return -math.inf
    w = np.zeros(risk.dimension)
    nothing = Normal(w, w, np.full(w.size, math.inf))
    return fenchel_bound(risk, np.zeros(risk.examples), nothing, w)


@dataclass(frozen=True)
class DualSums:
    """What a bound needs to know of the examples: X'(a s), the size of its terms, the sums of
    a phi*(s) and of a s o. Those of several shards are added.
    """

    pull: Vector
    size: Vector
    conjugates: float
    offsets: float


def dual_sums(risk: EmpiricalRisk, slopes: Vector) -> DualSums:
    slopes, conjugates = conjugate_values(risk.loss_row, slopes, risk.y)
    weights = risk.shares * slopes
    return DualSums(
        np.asarray(risk.X.T @ weights),
        _pull_of_sizes(risk.X, np.abs(weights)),
        float(risk.shares @ conjugates),
        0.0 if risk.offset is None else float(weights @ risk.offset),
    )


def _pull_of_sizes(X: Any, weights: Vector) -> Vector:
    """|X|' weights, without a copy of all X."""
    if sparse.issparse(X):
        sizes = X if X.data.min(initial=0.0) >= 0.0 else abs(X)
        return np.asarray(sizes.T @ weights)
    out = np.zeros(X.shape[1])
    for here in in_parts(X, INTERIOR.cached_entries):
        out += np.abs(X[here]).T @ weights[here]
    return out


def bound_of_sums(
    risk: EmpiricalRisk, sums: DualSums, normal: Normal, u: Vector, bend: float = 0.0
) -> float:
    """Fenchel's bound; of `risk` only the penalties are read."""
    rest, error, _ = _rest(risk, sums, normal, u)
    lost = _left_over(risk.l2 + bend, np.abs(rest) + error, normal, u) + normal.lost
    if not math.isfinite(lost):
        return -math.inf
    pull = _penalty_pull(risk, u)
    quadratic_part = risk.penalty_value(u) - risk.l1 * float(np.abs(u).sum())
    constant = quadratic_part - float(pull @ u) - sums.conjugates
    constant += sums.offsets
    return constant - float(normal.vector @ normal.p) - lost


def _penalty_pull(risk: EmpiricalRisk, u: Vector) -> Vector:
    return np.asarray(risk.penalty_matrix @ u - risk.roughness.T @ risk.roughness_target)


def _rest(
    risk: EmpiricalRisk, sums: DualSums, normal: Normal, u: Vector
) -> tuple[Vector, Vector, Vector]:
    """What the forces leave over, its rounding error, and the slopes of the l1 term."""
    pull = _penalty_pull(risk, u)
    rest = sums.pull + pull + normal.vector
    lasso = -np.clip(rest, -risk.l1, risk.l1)
    rest = rest + lasso
    size = sums.size + np.abs(pull) + np.abs(normal.vector)
    return rest, INTERIOR.rest_rounding * EPSILON * (size + np.abs(lasso)), lasso


def _left_over(bend: float, left: Vector, normal: Normal, u: Vector) -> float:
    """What is left over times the largest distances, or against curvature around u."""
    with np.errstate(invalid="ignore"):
        products = np.where(left > 0.0, left * normal.away, 0.0)
        far = normal.drift * float(np.linalg.norm(normal.away)) if normal.drift else 0.0
    by_domain = float(products.sum()) + far
    if bend <= 0.0:
        return by_domain
    force = float(np.linalg.norm(left)) + normal.drift
    return min(by_domain, force**2 / (2.0 * bend) + force * float(np.linalg.norm(u - normal.p)))


def _balanced(
    risk: EmpiricalRisk,
    slopes: tuple[Vector, Vector],
    u: Vector,
    left: tuple[Vector, Vector],
    room: Vector,
) -> float:
    """Without rules and bounds: slopes that leave nothing over exist near these."""
    counted, d = np.flatnonzero(risk.shares > 0.0), risk.dimension
    row = risk.loss_row
    if np.ndim(row.level):
        row = replace(row, level=np.asarray(row.level)[counted])
    smooth = Smooth(0, counted.size, risk.shares[counted], risk.y[counted], row)
    offset = np.zeros(counted.size) if risk.offset is None else risk.offset[counted]
    free, lasso, t = np.full(counted.size, np.inf), np.full(d, risk.l1), risk.roughness_target
    program = Program(
        sparse.csr_matrix(risk.penalty_matrix),
        -np.asarray(risk.roughness.T @ t),
        (risk.X[counted], sparse.identity(d, format="csr")),
        np.concatenate([-offset, np.zeros(d)]),
        np.concatenate([-free, -lasso]),
        np.concatenate([free, lasso]),
        np.zeros(counted.size + d),
        (smooth,),
        0.5 * float(t @ t),
    )
    s = np.concatenate([slopes[0][counted], slopes[1]])
    rooms = np.concatenate([room[counted], risk.l1 - np.abs(slopes[1])])
    ends = (np.full(d, -np.inf), np.full(d, np.inf))
    bend = np.full(d, float(risk.l2))
    value = balanced_value(program, u, s, left, ends, bend, balancing_moves, rooms)
    terms = abs(program.constant) + program.conjugate_size(s) + abs(float(u @ (program.P @ u)))
    return value - INTERIOR.sum_rounding * EPSILON * terms


def bound_by_slopes(problem: Problem, at: Tangent, width: float) -> float:
    """Fenchel's bound from the slopes at x, moved until they leave nothing over.

    At x they leave rho over (see the top of this file). They are moved by -k_i x_i.h, and u by -h
    from x, where (X'diag(a k)X + R) h = rho and R is the penalty's Hessian. The weights k_i shrink
    to 0 where a slope has no room to move.
    """
    risk = problem.objective
    if not isinstance(risk, EmpiricalRisk) or not math.isfinite(at.error[0]):
        return -math.inf
    slopes, _ = quadratic(risk.loss_row, risk.predictions(at.x), risk.y, width)
    room, normal = _room(risk, slopes), _normal(problem, at)
    found = -math.inf
    for solve in (_by_conjugate_gradients, _by_factor):
        h = solve(problem, risk, risk.shares * room, at.rest)
        if h is None:
            continue
        moved = slopes - room * np.asarray(risk.X @ h)
        movable = risk.shares * _room(risk, moved) if _affordable(problem) else None
        bound = fenchel_bound(risk, moved, normal, at.x - h, movable)
        found = max(found, bound - at.rounding)
        if found > -math.inf:
            break
    return found


def _normal(problem: Problem, at: Tangent) -> Normal:
    """What the projection says; without rules it is exactly 0."""
    if problem.constraints.count == 0 and isinstance(problem.domain, Everywhere):
        return Normal(np.zeros(at.x.size), at.p, np.full(at.x.size, np.inf))
    lower, upper = problem.domain.bounds(problem.dimension)
    away = np.maximum(upper - at.p, at.p - lower)
    return Normal(at.rest - at.gradient, at.p, away, *at.error)


def _by_conjugate_gradients(
    problem: Problem, risk: EmpiricalRisk, weights: Vector, rest: Vector
) -> Vector | None:
    """h to full precision in a few products, where the curvature is well conditioned."""

    def apply(h: Vector) -> Vector:
        return np.asarray(risk.X.T @ (weights * np.asarray(risk.X @ h)) + risk.penalty_matrix @ h)

    X = risk.X
    squares = X.multiply(X) if sparse.issparse(X) else np.square(X)
    diagonal = np.asarray(squares.T @ weights).ravel() + risk.penalty_matrix.diagonal()
    scale = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    shape = (rest.size, rest.size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # singular: not finite
        h, _ = cg(
            LinearOperator(shape, apply, dtype=np.float64),
            rest,
            rtol=EPSILON,
            maxiter=COSTS.bound_products,
            M=LinearOperator(shape, lambda h: scale * h, dtype=np.float64),
        )
    return np.asarray(h) if np.isfinite(h).all() else None


def _by_factor(
    problem: Problem, risk: EmpiricalRisk, weights: Vector, rest: Vector
) -> Vector | None:
    factor = factor_less(_curvature(risk, weights)) if _affordable(problem) else None
    return None if factor is None else factor.solved(rest)


def _affordable(problem: Problem) -> bool:
    objective, d = problem.objective, problem.dimension
    return (
        float(d) ** 3 / 3.0 + objective.examples * objective.cost * d <= COSTS.bound_factor_products
    )


def _room(objective: EmpiricalRisk, slopes: Vector) -> Vector:
    """(most - s)(s - least) / (most - least); for the logistic loss that is its curvature."""
    far = np.full(slopes.size, COSTS.unbounded_slope)
    least, _ = conjugate_values(objective.loss_row, -far, objective.y)
    most, _ = conjugate_values(objective.loss_row, far, objective.y)
    bounded = most - least < COSTS.unbounded_slope
    least, most = np.where(bounded, least, -1.0), np.where(bounded, most, 1.0)
    inside = np.maximum(0.0, most - slopes) * np.maximum(0.0, slopes - least)
    return np.where(bounded, inside / (most - least), 1.0)


def _curvature(objective: EmpiricalRisk, weights: Vector) -> Floats:
    X = objective.X
    weighted = X.multiply(weights[:, None]).tocsr() if sparse.issparse(X) else weights[:, None] * X
    return np.array(dense(X.T @ weighted) + dense(objective.penalty_matrix))
