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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lighttouch.arrays import EPSILON, Booleans, Floats, Indices, Matrix, Vector, dense
from lighttouch.cholesky import Cholesky
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program
from lighttouch.losses import conjugate_values
from lighttouch.running import seconds_left

TINY = 1e-300  # keeps quotients of zeros finite


def balanced_value(
    program: Program,
    x: Vector,
    s: Vector,
    left: tuple[Vector, Vector],
    bounds: tuple[Vector, Vector],
    bend: Vector,
    balance: Balance,
    room: Vector | None = None,
) -> float:
    """The bound of `path.dual_bounds` without an assumption; -inf where it would need one.

    `left` holds rho as computed, for slopes within their bounds, and how far the exact one may be
    from it; `room`, if given, says how far each slope may be moved.
    """
    rest, error = left
    room = _room(program, x, s) if room is None else np.maximum(room, 0.0)
    none = Moves(np.zeros(s.size), np.zeros(x.size), 0.0)
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
        found = balance(program, x, room, np.abs(rest) + error, free)
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
    bent = 0.5 * float(x @ (program.P @ x)) + moves.bent
    return program.constant - float(most.sum()) - bent


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
    rest: Vector  # of rho, for the parameters that are not free
    bent: float  # of x'Px / 2


Balance = Callable[[Program, Vector, Vector, Vector, Booleans], Moves | None]


def balancing_moves(
    program: Program, x: Vector, room: Vector, rest: Vector, free: Booleans
) -> Moves | None:
    """Moves that leave nothing over for the free parameters; None where none are known."""
    if not program.blocks:
        return None
    rows, places = program.rows, np.flatnonzero(free)
    mine = rows if free.all() else rows[:, places]
    curved = sparse.csc_matrix(program.P)[:, places]
    bent = sparse.csr_matrix(curved)[places]
    moves = []
    for solve in (_by_eigenvalues, _by_singular_values):
        found = solve(mine, room, bent, np.abs(rest[places]))
        if found is None:
            continue
        by = moves_by(found, (rows, mine, curved), program.P @ x, room, free)
        if by is not None:
            moves.append(by)
    return min(moves, key=lambda each: float(each.slopes.sum()) + each.bent, default=None)


def moves_by(
    h: Solution, parts: tuple[Matrix, Matrix, Matrix], pull: Vector, room: Vector, free: Booleans
) -> Moves | None:
    """The moves of such a solution; None where slopes have not the room. `parts` are the rows,
    their columns of the free parameters, and those of P; `pull` is P x.
    """
    rows, mine, curved = parts
    slopes = room * h.products(mine)
    if not np.all(slopes <= COSTS.room_used * room):
        return None
    changed = np.asarray(abs(rows).T @ slopes) + h.products(curved)
    grown = float(h.products(np.asarray(pull)[free][None])[0]) + 0.5 * h.square
    return Moves(slopes, np.where(free, 0.0, changed), grown)


@dataclass(frozen=True, eq=False)
class Solution:
    """What is known about h: h = V g with |g| <= length, or the size of every entry."""

    sizes: Vector | None
    square: float  # h'Ph at most
    V: Floats | None = None
    length: float = 0.0

    def products(self, rows: Matrix) -> Vector:
        """Upper bounds on |rows h|."""
        if self.sizes is not None:
            return np.asarray(abs(rows) @ self.sizes)
        assert self.V is not None
        off = COSTS.rest_rounding * EPSILON * np.asarray(abs(rows) @ np.abs(self.V))
        near = np.abs(np.asarray(rows @ self.V)) + off
        return np.asarray(self.length * np.linalg.norm(near, axis=1))


def _room(program: Program, x: Vector, s: Vector) -> Vector:
    """How far each slope is from its nearer bound; of smooth losses, their curvature."""
    room = np.minimum(s - program.least, program.most - s)
    room = np.where(np.isinf(room), np.maximum(1.0, np.abs(s)), np.maximum(room, 0.0))
    if program.smooth:
        _, slopes, curvature = program.smooth_terms(program.forward(x) - program.centre)
        smooth = program.is_smooth
        room[smooth] = np.minimum(curvature, np.abs(slopes))[smooth]
    return np.asarray(room)


def _by_eigenvalues(mine: Matrix, room: Vector, bent: Matrix, left: Vector) -> Solution | None:
    """For each entry of the solution of H h = left an upper bound on its size: the length of its
    connected component by the least eigenvalue.
    """
    H = sparse.csr_matrix(bent + _gram(mine, room))
    scale = np.sqrt(np.maximum(H.diagonal(), TINY))
    inverse = sparse.diags(1.0 / scale)
    H, left = sparse.csr_matrix(inverse @ H @ inverse), left / scale
    count, labels = connected_components(H, directed=False)
    sizes = np.bincount(labels, minlength=count)
    if sizes.max(initial=0) > COSTS.largest_component or not np.isfinite(H.data).all():
        return None
    least = np.empty(count)
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        least[chosen] = _least_eigenvalues(_dense_parts(H, labels, chosen, int(size)))
    lengths = np.sqrt(np.bincount(labels, np.square(left), minlength=count))
    needed = lengths > 0.0
    if np.any(least[needed] <= 0.0):
        return None
    found = np.where(needed, lengths / np.where(needed, least, 1.0), 0.0)
    h = found[labels] / scale
    return Solution(h, float(h @ (abs(bent) @ h)))


def _gram(rows: Matrix, weights: Vector) -> Matrix:
    """rows' diag(weights) rows."""
    if rows.nnz <= COSTS.dense_share * rows.shape[0] * rows.shape[1]:
        return rows.T @ sparse.diags(weights) @ rows
    entries = rows.toarray()
    return sparse.csr_matrix(entries.T @ (weights[:, None] * entries))


def _dense_parts(H: Matrix, labels: Indices, chosen: Indices, size: int) -> Floats:
    """The diagonal blocks of some connected components, all of the same size."""
    number = np.full(int(labels.max()) + 1, -1)
    number[chosen] = np.arange(chosen.size)
    members = np.flatnonzero(number[labels] >= 0)
    order = members[np.argsort(labels[members], kind="stable")]
    place = np.zeros(labels.size, dtype=np.int64)
    place[order] = np.tile(np.arange(size), chosen.size)
    entries = H.tocoo()
    inside = number[labels[entries.row]] >= 0
    row, column = entries.row[inside], entries.col[inside]
    out = np.zeros((chosen.size, size, size))
    out[number[labels[row]], place[row], place[column]] = entries.data[inside]
    return out


def _least_eigenvalues(parts: Floats) -> Vector:
    """A little less than they are: the computed ones are those of matrices within rounding of
    these, which have been rounded themselves.
    """
    traces = np.trace(parts, axis1=1, axis2=2)
    if parts.shape[1] <= COSTS.free_dense_dimension:
        found = np.linalg.eigvalsh(parts)[:, 0]
    else:
        found = np.array([_least_by_cholesky(part) for part in parts])
    return np.asarray(found - COSTS.eigenvalue_rounding * EPSILON * parts.shape[1] * traces)


def _least_by_cholesky(matrix: Floats) -> float:
    """Less than the least eigenvalue; 0 where that is not positive. A matrix minus a multiple of
    the identity that has a factor shows it (Rump 2006), in a third of the time of all eigenvalues
    with 3,000 parameters (1.2 and 4.0 s); inverse iteration says which multiple. 0 also where no
    time is left for it.
    """
    if seconds_left() < len(matrix) ** 3 / COSTS.dense_rate:
        return 0.0
    factor = Cholesky.of(matrix.copy())
    if factor is None:
        return 0.0
    x = np.ones(matrix.shape[0])
    for _ in range(COSTS.inverse_iterations):
        x = factor.solved(x / np.linalg.norm(x))
    least = COSTS.surely_less / float(np.linalg.norm(x))
    return 0.0 if Cholesky.of(matrix - np.diag(np.full(x.size, least))) is None else least


def _by_singular_values(mine: Matrix, room: Vector, bent: Matrix, left: Vector) -> Solution | None:
    """The same in a basis V of right singular vectors, divided by their singular values, of the
    rows M of H = M'M: there H is nearly the identity, also where it is ill-conditioned.

    What rounding makes of M V is bounded by |M| |V|. Then h = V g with |g| <= |V'left| / least
    eigenvalue of V'HV.
    """
    if left.size > COSTS.free_dense_dimension or room.size > COSTS.most_orthonormal:
        return None
    bends, vectors = np.linalg.eigh(dense(bent))
    root = np.sqrt(np.maximum(bends, 0.0))[:, None] * vectors.T
    M = np.vstack([np.sqrt(room)[:, None] * mine.toarray(), root])
    if not np.isfinite(M).all():
        return None
    _, singular, right = np.linalg.svd(M, full_matrices=False)
    if singular.size < left.size or singular[-1] <= EPSILON * singular[0]:
        return None
    V = right.T / singular
    near = M @ V
    off = COSTS.eigenvalue_rounding * EPSILON * left.size * (np.abs(M) @ np.abs(V))
    error = float(np.linalg.norm(off))
    apart = float(np.linalg.norm(near.T @ near - np.eye(left.size)))
    least = 1.0 - apart - 2.0 * error * float(np.linalg.norm(near)) - error**2
    if least <= 0.0:
        return None
    length = float(np.linalg.norm(np.abs(V).T @ left)) / least
    most = float(np.linalg.norm(near)) + error  # P is a part of H
    return Solution(None, (most * length) ** 2, V, length)
