"""The steps: Mehrotra's predictor and corrector on an extended linear-quadratic program.

S. Mehrotra, "On the implementation of a primal-dual interior point method", SIAM Journal on
Optimization 2, 1992; for penalties with slopes between two bounds as in Aravkin, Burke and
Pillonetto, "Sparse/robust estimation and Kalman smoothing with nonsmooth log-concave densities",
JMLR 14, 2013. With u = B x - c, the optimality conditions are

    P x + q + B's = 0,   u = p - n + r s,   n (s - l) = 0,   p (h - s) = 0,   all four >= 0.

No step is trusted: `dual_bounds` bounds the optimum from any x and any slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import EPSILON, Booleans, Indices, Vector
from lighttouch.interior.balance import Balance, balanced_value, balancing_moves
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, Units
from lighttouch.interior.systems import Factor, System, refined
from lighttouch.kernels.numerics.slacks import (
    aim_at,
    aim_nearer,
    products_after,
    slack_changes,
)
from lighttouch.running import check_deadline


@dataclass
class Point:
    """x, the slope s of every row, its distances `low` and `high` from the bounds l and h, and the
    slacks n and p; rows without a bound have 1 and 0 there.
    """

    x: Vector
    s: Vector
    low: Vector
    high: Vector
    n: Vector
    p: Vector

    def copy(self) -> Point:
        parts = (self.x, self.s, self.low, self.high, self.n, self.p)
        return Point(*(part.copy() for part in parts))

    def times(self, units: Units) -> Point:
        """From scaled units to those of the problem."""
        slope, slack = units.rows / units.objective, 1.0 / units.rows
        return Point(
            units.parameters(self.x),
            self.s * slope,
            self.low * slope,
            self.high * slope,
            self.n * slack,
            self.p * slack,
        )

    def into(self, units: Units) -> Point:
        """The opposite way."""
        slope, slack = units.objective / units.rows, units.rows
        return Point(
            units.inner(self.x),
            self.s * slope,
            self.low * slope,
            self.high * slope,
            self.n * slack,
            self.p * slack,
        )

    def at(self, rows: Indices) -> Point:
        """The same x with these of its rows."""
        parts = (self.s, self.low, self.high, self.n, self.p)
        return Point(self.x, *(part[rows] for part in parts))

    @property
    def pairs(self) -> tuple[Vector, Vector, Vector, Vector]:
        """What must stay positive, in the order of the kernels."""
        return self.n, self.p, self.low, self.high

    @property
    def slacks(self) -> tuple[Vector, Vector, Vector, Vector]:
        """What the constructor takes after x and s."""
        return self.low, self.high, self.n, self.p

    @property
    def products(self) -> float:
        """The complementarity left, summed over rows."""
        return float(self.n @ self.low + self.p @ self.high)

    @property
    def finite(self) -> bool:
        parts = (self.x, self.s, self.n, self.p)
        return all(bool(np.isfinite(part).all()) for part in parts)


def first_point(
    system: System, far: float, lift: float = COSTS.first_lift, near: bool = False
) -> Point:
    """The point that squared penalties on all rows would choose, well inside of all bounds: `far`
    times as far as rows are broken, or as they are away; with `near`, only as they are broken.
    """
    program = system.program
    below, above = program.below, program.above
    delta = np.ones(program.count)
    delta[program.is_equality] = 0.0
    if near:  # what the origin satisfies pulls nowhere
        one_sided = below ^ above
        satisfied = np.where(below, -program.centre, program.centre) <= 0.0
        delta[one_sided & satisfied] = COSTS.immovable
    x, _ = system.factor(delta, lift).solve(-program.q, program.centre)
    u = program.forward(x) - program.centre
    width = np.where(below & above, program.most - program.least, np.inf)
    two_sided = np.isfinite(width)
    if two_sided.any() and far == COSTS.first_slacks[0]:
        far = 1.0  # slopes between two bounds are well inside of both
    away = np.abs(u)
    if near:  # a row that is far away says nothing about sizes
        away = np.where(two_sided, away, np.maximum(0.0, np.where(below, u, -u)))
    typical = far * max(COSTS.least_slack, float(away[below | above].max(initial=0.0)))
    s = np.zeros(program.count)
    s[two_sided] = 0.5 * (program.least[two_sided] + program.most[two_sided])
    n = np.where(below, np.maximum(-u, 0.0) + typical, 0.0)
    p = np.where(above, np.maximum(u, 0.0) + typical, 0.0)
    low = np.where(two_sided, 0.5 * width, 1.0)
    high = low.copy()
    if two_sided.any():  # one-sided slopes such that products are alike
        product = float(np.mean((n * low)[two_sided]))
    else:
        product = typical * max(1.0, typical)
        inverse = np.where(below | above, 1.0 / np.maximum(n + p, typical), 0.0)
        push = float(program.sizes.backward(inverse).max(initial=0.0))
        slope = max(1.0, float(np.abs(program.P @ x + program.q).max(initial=0.0)))
        if push > 0.0:
            product = min(product, far * slope / push)
    one = below & ~two_sided
    low[one] = product / n[one]
    one = above & ~two_sided
    high[one] = product / p[one]
    s = np.where(below & ~two_sided, program.least + low, s)
    s = np.where(above & ~two_sided, program.most - high, s)
    curved = program.roundness > 0.0
    free = curved & ~below & ~above
    s[free] = u[free] / program.roundness[free]
    _, slopes, _ = program.smooth_terms(u)
    s = np.where(program.is_smooth, slopes, s)
    return Point(np.asarray(x), s, low, high, n, p)


def point_near(system: System, x: Vector, product: float) -> Point:
    """A point at x with the same complementarity for every row: each slack is what the row has, or
    as much as the worst row lacks.
    """
    program = system.program
    below, above = program.below, program.above
    u = program.forward(x) - program.centre
    worst = max(COSTS.least_slack, worst_excess(program, u))
    both = below & above
    n = np.where(below, np.maximum(-u, worst), 0.0)
    p = np.where(above, np.maximum(u, worst), 0.0)
    low, high = np.ones(u.size), np.ones(u.size)
    low[below], high[above] = product / n[below], product / p[above]
    width = (program.most - program.least)[both]
    share = low[both] / (low[both] + high[both])  # slopes of two bounds lie between them
    low[both], high[both] = width * share, width * (1.0 - share)
    n[both], p[both] = product / low[both], product / high[both]
    s = np.zeros(u.size)
    s[below] = (program.least + low)[below]
    s[above & ~below] = (program.most - high)[above & ~below]
    free = (program.roundness > 0.0) & ~below & ~above
    s[free] = u[free] / program.roundness[free]
    s = np.where(program.is_smooth, program.smooth_terms(u)[1], s)
    return Point(x.copy(), s, low, high, n, p)


@dataclass
class _Moves:
    """The moves from one point, all with the same factor."""

    program: Program
    at: Point
    rest: Vector
    missing: Vector
    delta: Vector
    factor: Factor
    lift: float
    refinements: int
    exact: bool = False  # one solution needed no refinement: then the others are not looked at

    @classmethod
    def of(cls, system: System, at: Point, lift: float, refinements: int) -> _Moves:
        program = system.program
        smooth = program.is_smooth
        u = program.forward(at.x) - program.centre
        rest = program.P @ at.x + program.q + program.backward(at.s)
        missing = u + at.n - at.p - program.roundness * at.s
        delta = at.n / at.low + at.p / at.high + program.roundness
        if program.smooth:
            curvature = program.smooth_terms(u)[2][smooth]
            delta[smooth] = 1.0 / np.maximum(curvature, COSTS.least_loss_curvature)
            missing[smooth] = 0.0
        factor = system.factor(delta, lift)
        return cls(program, at, rest, missing, delta, factor, lift, refinements)

    def towards(self, lower: Vector, upper: Vector) -> tuple[Point, float]:
        """The move that changes products by these, to first order, and how far it may go."""
        program, at = self.program, self.at
        bottom = -self.missing - lower / at.low + upper / at.high
        if self.exact:
            dx, ds = self.factor.solve(-self.rest, bottom)
        else:
            terms = self.delta, -self.rest, bottom, self.lift, self.refinements
            dx, ds, needed = refined(program, self.factor, *terms)
            self.exact = not needed
        dn, dp, dlow, dhigh = np.empty((4, ds.size))
        changes = dn, dp, dlow, dhigh
        reach = slack_changes(program.below, program.above, lower, upper, *at.pairs, ds, *changes)
        return Point(dx, ds, dlow, dhigh, dn, dp), min(reach, 1.0 / COSTS.share_of_step)


def step(
    system: System, at: Point, lift: float, refinements: int = COSTS.refinements
) -> tuple[Point, Factor] | None:
    """The next point, and the factor that it was made with; None where the path cannot go on: the
    factor is singular, or numbers are too large for doubles.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # `finite` looks
            new, factor = _step(system, at, lift, refinements)
    except RuntimeError:
        return None
    return (new, factor) if new.finite else None


def _step(system: System, at: Point, lift: float, refinements: int) -> tuple[Point, Factor]:
    """A predictor towards zero complementarity, then a corrector that aims where the predictor says
    is reachable (the cube is Mehrotra's).
    """
    program, moves = system.program, _Moves.of(system, at, lift, refinements)
    lower, upper = -at.n * at.low, -at.p * at.high
    count = int(np.count_nonzero(program.below) + np.count_nonzero(program.above))
    move, reach = moves.towards(lower, upper)
    length = min(1.0, reach)
    if count:
        left, before = products_after(*at.pairs, *move.pairs, length), at.products
        centre = before / count * (left / before) ** 3 if before > 0.0 else 0.0
        aim_at(program.below, program.above, *move.pairs, centre, lower, upper)
        move, length = _corrected(moves, centre, lower, upper)
    if program.smooth:
        change = float(np.abs(program.forward(move.x))[program.is_smooth].max())
        length = min(length, COSTS.longest_change / max(change, 1e-300))
    new = moved(at, move, length)
    if program.smooth:
        u = program.forward(new.x) - program.centre
        new.s = np.where(program.is_smooth, program.smooth_terms(u)[1], new.s)
    return new, moves.factor


def falling_lift(at: Point) -> float:
    """The lift for the next step: it falls with complementarity, so that what bends very little is
    not held back at the end.
    """
    return min(COSTS.lift, max(at.products, COSTS.least_lift))


@dataclass(frozen=True)
class Judged:
    """What a point is worth to whoever follows the path.

    `lack` is what the conditions of optimality lack, in units of the judge's; `gap` the distance
    from the optimum of a point that is feasible, infinite elsewhere. With `enough` the path ends.
    """

    lack: float
    gap: float = math.inf
    enough: bool = False


@dataclass
class Pace:
    """The steps of a path, those since a point was better, and what the best have reached."""

    steps: int = 0
    waited: int = 0
    least_lack: float = math.inf
    least_gap: float = math.inf

    def is_better(self, lack: float, gap: float = math.inf, gained: bool = False) -> bool:
        """Whether a point lacks clearly less than those before, its gap is clearly smaller, or
        something else was gained. Many small gains are one.
        """
        less, nearer = lack < COSTS.better * self.least_lack, gap < COSTS.better * self.least_gap
        self.least_lack = lack if less else self.least_lack
        self.least_gap = gap if nearer else self.least_gap
        better = less or nearer or gained
        self.waited = 0 if better else self.waited + 1
        return better

    @property
    def is_over(self) -> bool:
        return self.waited > COSTS.path_patience or self.steps >= COSTS.path_steps_per_round


def follow(
    system: System,
    at: Point,
    judge: Callable[[Point], Judged],
    lift: Callable[[Point], float] = falling_lift,
    refinements: int = COSTS.refinements,
) -> tuple[Point, Judged] | None:
    """The path from a point: until one is enough, none has been better for a while, or it cannot
    go on. The best point, and what it is worth; None where there is none.
    """
    best, pace = None, Pace()
    while not pace.is_over:
        check_deadline()
        found = step(system, at, lift(at), refinements)
        if found is None:
            break
        at, pace.steps = found[0], pace.steps + 1
        judged = judge(at)
        if judged.enough:
            return at, judged
        if pace.is_better(judged.lack, judged.gap):
            best = at, judged
    return best


def _corrected(moves: _Moves, centre: float, lower: Vector, upper: Vector) -> tuple[Point, float]:
    """The corrector, and its length; again with products brought back between a tenth and ten times
    the centre, while that lengthens it (Gondzio 1996).
    """
    sides, pairs = (moves.program.below, moves.program.above), moves.at.pairs
    least, most = COSTS.least_product * centre, COSTS.largest_product * centre
    move, reach = moves.towards(lower, upper)
    length = min(1.0, COSTS.share_of_step * reach)
    for _ in range(COSTS.correctors):
        if length >= COSTS.long_step:
            break
        aim, far = np.empty((2, lower.size)), min(1.0, length + COSTS.farther)
        aim_nearer(*sides, *pairs, *move.pairs, far, least, most, lower, upper, aim)
        tried, reach = moves.towards(aim[0], aim[1])
        found = min(1.0, COSTS.share_of_step * reach)
        if found < length + COSTS.worth * COSTS.farther:
            break
        lower, upper, move, length = aim[0], aim[1], tried, found
    return move, length


def moved(at: Point, move: Point, length: float) -> Point:
    pairs = zip(
        (at.x, at.s, at.low, at.high, at.n, at.p),
        (move.x, move.s, move.low, move.high, move.n, move.p),
        strict=True,
    )
    return Point(*(value + length * change for value, change in pairs))


def dual_bounds(
    program: Program,
    x: Vector,
    s: Vector,
    lower: Vector,
    upper: Vector,
    bend: Vector,
    worth: float = -np.inf,
    balance: Balance = balancing_moves,
) -> tuple[float, float]:
    """Lower bounds on the objective of every v with lower <= v <= upper: proven, and likely; -inf
    where none is known. The proof is only tried where the likely bound is at least `worth`.

    For any slopes s within their bounds and any x, with rho = P x + q + B's,

        f(v) >= rho.v - x'Px/2 + (v - x)'P(v - x)/2 - sum_k (s_k c_k + rho_k*(s_k)),

    with rho_k*(s) = r_k s^2 / 2 or the conjugate of the loss (Fenchel's inequality), and
    P - diag(bend) is positive semidefinite. Where nothing bounds v and rho is rounding, the likely
    bound takes v to be within `leftover_reach` of x; the proven one moves s until rho is exactly 0
    (`balance.py`).
    """
    s, conjugates = program.conjugates(s)
    constant = program.constant - conjugates
    rest = np.asarray(program.P @ x + program.q + program.backward(s))
    sizes = program.sizes
    size = np.asarray(sizes.P @ np.abs(x) + sizes.q + sizes.backward(np.abs(s)))
    largest = float(size.max(initial=0.0))
    rounding = EPSILON * (COSTS.linear_rounding * size + COSTS.largest_rounding * largest)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        v = np.where(bend > 0.0, x - rest / bend, np.where(rest > 0.0, -np.inf, np.inf))
        v = np.clip(v, lower, upper)
        loss = np.where(rest == 0.0, 0.0, rest * (v - x))
        loss = np.where(bend > 0.0, loss + 0.5 * bend * np.square(v - x), loss)
    reach = COSTS.leftover_reach * max(1.0, float(np.abs(x).max(initial=0.0)))
    near = np.isinf(loss) & (np.abs(rest) <= rounding)  # known bounds need no guess
    least = float(np.where(near, np.maximum(loss, -np.abs(rest) * reach), loss).sum())
    bent, moved_to = 0.5 * float(x @ (program.P @ x)), float(rest @ x)
    terms = abs(program.constant) + program.conjugate_size(s) + float(np.abs(x) @ size)
    terms += abs(least)
    outward = COSTS.sum_rounding * EPSILON * terms
    likely = constant - bent + moved_to + least - outward
    if likely == -np.inf or likely < worth:
        return -np.inf, likely
    error = COSTS.rest_rounding * EPSILON * size
    left = rest, error
    proven = balanced_value(program, x, s, left, (lower, upper), bend, balance) - outward
    return min(proven, likely), likely


def worst_excess(program: Program, u: Vector) -> float:
    """By how much the worst inequality or equality is broken."""
    hard = ~program.is_smooth & (program.roundness == 0.0)
    up = np.where(hard & ~program.above, u, 0.0)
    down = np.where(hard & ~program.below, -u, 0.0)
    return max(0.0, float(np.max(up, initial=0.0)), float(np.max(down, initial=0.0)))


# -------------------------------------------------------------------------------------------------
# Where a round begins after another one whose rows are mostly the same.
#
# A point on the path of the round before, not yet near its end, is near the path of this one as
# well (Gondzio 1998, "Warm start of the primal-dual method applied in the cutting plane scheme").
# Only rows that are new have no slack and no slope yet.


def point_again(program: Program, earlier: Point, known: Booleans) -> Point:
    """The earlier point for this program; rows that are not `known` are new inequalities, and what
    the point says of them counts for nothing.

    They get the mean product of the others, and as much slack as their excess, or as a slope of
    the same size leaves them.
    """
    pairs = np.count_nonzero(program.below[known]) + np.count_nonzero(program.above[known])
    products = earlier.n * earlier.low + earlier.p * earlier.high
    product = float(products[known].sum()) / max(1, int(pairs))
    excess = np.abs(program.forward(earlier.x) - program.centre)
    n = np.where(known, earlier.n, np.maximum(excess, np.sqrt(product)))
    low = np.where(known, earlier.low, product / n)
    s = np.where(known, earlier.s, low)
    high, p = np.where(known, earlier.high, 1.0), np.where(known, earlier.p, 0.0)
    return Point(earlier.x.copy(), s, low, high, n, p)


# -------------------------------------------------------------------------------------------------
# Slopes that leave nothing over, for a bound: what a step leaves is small, but not rounding.


def repaired(system: System, at: Point, lift: float) -> Iterator[Point]:
    """x and s moved until (P - lift I) x + q + B's = 0 to rounding: each slope by no more than its
    room. The points are good for `dual_bounds` alone.

    The first has all slopes free. In the second, slopes that are nearer to a bound than their slack
    is to 0 are put there first, and stay: what no active row holds then balances exactly. In the
    third also those that the second has made negligible: at a corner of convex regression no slope
    but 0 balances, however small.
    """
    program = system.program
    below, above = program.below, program.above
    delta, none = _deltas(program, at), np.zeros(program.count, dtype=bool)
    found = _balanced(system, delta, at.x, at.s, none, lift)
    if found is not None:
        yield Point(*found, *at.slacks)
    least, most = below & (at.low < at.n), above & (at.high < at.p)
    found = _balanced(system, delta, at.x, _settled(program, at.s, least, most), least | most, lift)
    if found is None:
        return
    yield Point(*found, *at.slacks)
    x, s = found
    small = COSTS.negligible_slope * float(np.abs(s).max(initial=0.0))
    more = below & (s - program.least <= small), above & (program.most - s <= small)
    if np.all(more[0] | more[1] <= least | most):
        return
    least, most = least | more[0], most | more[1]
    found = _balanced(system, delta, x, _settled(program, s, least, most), least | most, lift)
    if found is not None:
        yield Point(*found, *at.slacks)


def _deltas(program: Program, at: Point) -> Vector:
    """By how much a slack gives way per change of its slope: the less, the more room it has."""
    below, above = program.below, program.above
    room = np.where(above, np.where(below, at.low * at.high / (at.low + at.high), at.high), at.low)
    delta = np.where(below | above, 1.0 / room, 0.0) + program.roundness
    if program.smooth:
        _, _, curvature = program.smooth_terms(program.forward(at.x) - program.centre)
        smooth = program.is_smooth
        delta[smooth] = 1.0 / np.maximum(curvature[smooth], COSTS.least_loss_curvature)
    return np.asarray(delta)


def _settled(program: Program, s: Vector, least: Booleans, most: Booleans) -> Vector:
    return np.where(least, program.least, np.where(most, program.most, s))


def _balanced(
    system: System, delta: Vector, x: Vector, s: Vector, settled: Booleans, lift: float
) -> tuple[Vector, Vector] | None:
    """x and s with nothing left over, and the settled slopes where they are; None where the
    equations are singular.
    """
    program, none = system.program, np.zeros(s.size)
    delta = np.where(settled, COSTS.immovable, delta)
    try:
        factor = system.factor(delta, -lift)
        for _ in range(COSTS.repairs):
            rest = program.P @ x - lift * x + program.q + program.backward(s)
            dx, ds, _ = refined(program, factor, delta, -rest, none, -lift)
            x, s = x + dx, np.where(settled, s, s + ds)
    except RuntimeError:  # singular
        return None
    return x, s
