"""Bounds that need no assumption where nothing bounds a parameter.

Slopes prove a bound if what they leave over, rho = P x + q + B's, is exactly 0 for every parameter
that can go to infinity. In doubles it is only nearly 0. But if H = P + B'DB is positive definite,
for weights D no larger than the room that slopes have to move, then H h = -rho has a solution, and
x + h with slopes s + D B h leave nothing over. |h| <= |rho| / least eigenvalue of H says how far
they are: no digit of them is needed, only that they exist, within their bounds, and what the
bound is at least there. (Jansson, "Rigorous lower and upper bounds in linear programming", SIAM
Journal on Optimization 14, 2004, encloses such multipliers by interval arithmetic.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lighttouch.arrays import Booleans, Floats, Matrix, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program
from lighttouch.losses import conjugate_values

EPSILON = 2.0**-52
TINY = 1e-300  # keeps quotients of zeros finite


def balanced_value(
    program: Program,
    x: Vector,
    s: Vector,
    rest: Vector,
    error: Vector,
    bounds: tuple[Vector, Vector],
    bend: Vector,
) -> float:
    """The bound of `path.dual_bounds` without an assumption; -inf where it would need one.

    `error` says how far the exact rho is from the computed `rest`, which belongs to slopes within
    their bounds.
    """
    none = Moves(np.zeros(s.size), np.zeros(x.size), np.zeros(x.size))
    moves, free = none, np.zeros(x.size, dtype=bool)
    for _ in range(COSTS.balance_rounds):
        apart = error + moves.rest
        least = np.minimum(
            _least(rest - apart, x, bounds, bend), _least(rest + apart, x, bounds, bend)
        )
        least = np.where(free, 0.0, least)
        lost = np.isinf(least)
        if not lost.any():
            return _value(program, x, s, moves) + float(least.sum())
        free = free | lost
        found = balancing_moves(program, x, s, np.abs(rest) + error, free)
        if found is None:
            break
        moves = found
    return -np.inf


def _least(rho: Vector, x: Vector, bounds: tuple[Vector, Vector], bend: Vector) -> Vector:
    """min rho v + bend (v - x)^2 / 2 over the bounds, for each parameter; concave in rho."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        v = np.where(bend > 0.0, x - rho / bend, np.where(rho > 0.0, -np.inf, np.inf))
        v = np.clip(v, *bounds)
        value = rho * v + np.where(bend > 0.0, 0.5 * bend * np.square(v - x), 0.0)
    return np.where((rho == 0.0) & (bend == 0.0), 0.0, value)


def _value(program: Program, x: Vector, s: Vector, moves: Moves) -> float:
    """What does not depend on v, at least, wherever the moves lead."""
    ends = (_conjugates(program, s - moves.slopes), _conjugates(program, s + moves.slopes))
    most = np.maximum(*ends)  # convex in each slope
    h, bent = moves.parameters, np.asarray(program.P @ x)
    size = abs(program.P)
    change = float(np.abs(bent) @ h) + 0.5 * float(h @ (size @ h))
    return program.constant - float(most.sum()) - 0.5 * float(x @ bent) - change


def _conjugates(program: Program, s: Vector) -> Vector:
    """s_k c_k + rho_k*(s_k) for every row."""
    values = s * program.centre + 0.5 * program.roundness * np.square(s)
    for each in program.smooth:
        at = slice(each.start, each.stop)
        slopes, conjugate = conjugate_values(each.loss, s[at] / each.share, each.y)
        inside = np.abs(each.share * slopes - s[at]) <= COSTS.sum_rounding * EPSILON * each.share
        values[at] += np.where(inside, each.share * conjugate, np.inf)
    return np.asarray(values)


@dataclass(frozen=True)
class Moves:
    """How far slopes and parameters may have to be moved, at most, and what that changes."""

    slopes: Vector
    parameters: Vector  # 0 for those that are not free
    rest: Vector  # of rho, for the parameters that are not free


def balancing_moves(
    program: Program, x: Vector, s: Vector, rest: Vector, free: Booleans
) -> Moves | None:
    """Moves that leave nothing over for the free parameters; None where none are known."""
    if not program.blocks:
        return None
    rows = sparse.vstack([sparse.csr_matrix(b) for b in program.blocks], format="csr")
    room = _room(program, x, s)
    places = np.flatnonzero(free)
    mine = sparse.csc_matrix(rows)[:, places]
    curved = sparse.csr_matrix(program.P)
    H = sparse.csr_matrix(curved[places][:, places] + mine.T @ sparse.diags(room) @ mine)
    scale = np.sqrt(np.maximum(H.diagonal(), TINY))
    inverse = sparse.diags(1.0 / scale)
    H, left = sparse.csr_matrix(inverse @ H @ inverse), np.abs(rest[places]) / scale
    lengths = _lengths(H, left)
    if lengths is None:
        return None
    h = lengths / scale  # of each parameter, at most
    slopes = room * np.asarray(abs(mine) @ h)
    if np.any(slopes > COSTS.room_used * room):
        return None
    parameters = np.zeros(x.size)
    parameters[places] = h
    changed = np.asarray(abs(rows).T @ slopes + abs(curved) @ parameters)
    return Moves(slopes, parameters, np.where(free, 0.0, changed))


def _room(program: Program, x: Vector, s: Vector) -> Vector:
    """How far each slope is from its nearer bound; of smooth losses, their curvature."""
    room = np.minimum(s - program.least, program.most - s)
    room = np.where(np.isinf(room), np.maximum(1.0, np.abs(s)), np.maximum(room, 0.0))
    if program.smooth:
        _, slopes, curvature = program.smooth_terms(program.forward(x) - program.centre)
        smooth = program.is_smooth
        room[smooth] = np.minimum(curvature, np.abs(slopes))[smooth]
    return np.asarray(room)


def _lengths(H: Matrix, left: Vector) -> Vector | None:
    """For each entry of the solution of H h = left an upper bound on its size: the length of its
    component by the least eigenvalue.
    """
    count, labels = connected_components(H, directed=False)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=count))
    out = np.zeros(left.size)
    for part in np.split(order, ends[:-1]):
        if not left[part].any():
            continue
        if part.size > COSTS.largest_component:
            return None
        least = _least_eigenvalue(H[part][:, part].toarray())
        if least <= 0.0:
            return None
        out[part] = float(np.linalg.norm(left[part])) / least
    return out


def _least_eigenvalue(H: Floats) -> float:
    """A little less than it: the computed ones are those of a matrix within rounding of H, and H
    itself has been rounded.
    """
    found = float(scipy.linalg.eigvalsh(H, check_finite=False)[0]) if np.isfinite(H).all() else 0.0
    return found - COSTS.eigenvalue_rounding * EPSILON * H.shape[0] * float(np.trace(H))
