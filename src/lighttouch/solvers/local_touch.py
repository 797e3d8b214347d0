"""LightTouch in rounds on shards: examples and constraints are both divided among the workers.

In a round every worker goes on from the common w by steps of LightTouch on the examples of its
shard and on its own range of the constraints; then the points are averaged (local SGD, Stich 2019,
"Local SGD converges fast and communicates little").

Ranges are disjoint, so p of all constraints is the ranges' weights one behind the other, brought to
one sum in the log domain: nothing is approximated. A worker draws from p within its range only, and
weighs what it draws by the range's share of p over the shard's share of the examples. So the mean
of the workers' steps is, at the common w, a step of LightTouch on the whole problem, and S is as
many constraints of every range. Of p only what was ever violated is sent; all others have weight 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints.base import ConstraintRange, RecordConstraints
from lighttouch.domains import Domain
from lighttouch.kernels.state.distribution import (
    REMEMBERED,
    log_weights,
    new_distribution,
    normalised,
)
from lighttouch.kernels.state.iterate import (
    CHECKS,
    ITERATION,
    SAMPLES,
    Steps,
    new_counters,
    put_iterate,
)
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem
from lighttouch.running import OutOfTimeError
from lighttouch.solvers.base import BaseSolver, SolverState, first_state
from lighttouch.solvers.full_touch import MORE_PENALTY
from lighttouch.solvers.light_touch import LightTouch, touch_lightly
from lighttouch.solvers.sampled import is_ours
from lighttouch.validation import positive_int, told


class Learnt(NamedTuple):
    """The constraints that were ever violated: their numbers, increasing, the logarithms of their
    weights, and the violations that are remembered. Of all others the weight is 1, the violation 0.
    """

    numbers: Indices
    logs: Vector
    remembered: Vector


NOTHING = Learnt(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class Common(NamedTuple):
    """Where all workers begin a round: `time` steps were made before, `steps` are to be made."""

    w: Vector
    squares: Vector
    time: int
    steps: int


class Range(NamedTuple):
    """What one worker is told of the constraints: which are its own, and what is known of them."""

    first: int
    stop: int
    learnt: Learnt  # numbered from `first`


@dataclass
class LocalTouchState(SolverState):
    """The common point, the sum of the iterates so far, AdaGrad's squares, t, and p."""

    w: Vector
    total: Vector
    squares: Vector
    steps: int  # of every worker in all rounds
    constraints: int
    learnt: Learnt


@dataclass(frozen=True)
class LocalTouch(BaseSolver[LocalTouchState]):
    """LightTouch on shards: each worker has its own examples and its own range of constraints.

    For problems whose constraints are too many for the exact projections of the default solver; it
    proves nothing. An iteration is a round: `steps` steps of LightTouch in every shard from a
    common point, which becomes the mean of where they end. What was learnt about the constraints is
    merged exactly. The solution is the average of all iterates.

    Parameters
    ----------
    touch : LightTouch
        The steps: penalty, step size and batches. With AdaGrad the sums of squares are carried
        from round to round, as means over the shards.
    steps : int, default=1000
        Steps of a round.

    Raises
    ------
    ValueError
        If `touch` is no LightTouch, or `steps` no positive whole number.

    Examples
    --------
    >>> halves = [lt.EmpiricalRisk(np.eye(3), [y, 2.0, 1.0]) for y in (2.0, 4.0)]
    >>> problem = lt.Problem(lt.ShardedRisk(halves), lt.ordering(3))
    >>> solver = lt.LocalTouch(lt.LightTouch(2.0, 0.02, 1), steps=50)
    >>> lt.solve(problem, solver, iterations=20).violation
    0.0
    """

    touch: LightTouch
    steps: int = 1000
    takes_shards = True

    def __post_init__(self) -> None:
        if not isinstance(self.touch, LightTouch):
            raise ValueError(
                f"touch must be a LightTouch such as LightTouch(1.0, 0.01, 4), got "
                f"{told(self.touch)}"
            )
        positive_int(self.steps, "steps")

    def objection_to(self, problem: Problem) -> str | None:
        if not isinstance(problem.objective, ShardedRisk):
            return "its examples must be in shards (ShardedRisk); use LightTouch"
        if not is_ours(problem.constraints.record):
            return "constraints with a function of your own cannot go to workers; use Accelerated"
        return self.touch.objection_to(problem)

    def init(self, problem: Problem, start: Vector) -> LocalTouchState:
        """Algorithm 2, lines 1 to 3: a uniform p, and the violations at the start remembered."""
        risk, count = _sharded(problem), problem.constraints.count
        ranges = _ranges(risk, count, NOTHING)
        found = risk.each(first_violations, problem.constraints, start, own=ranges)
        return LocalTouchState(
            new_counters(),
            start.copy(),
            np.zeros_like(start),
            np.zeros_like(start),
            0,
            count,
            _merged(ranges, found),
        )

    def advance(
        self, problem: Problem, state: LocalTouchState, steps: int, rng: np.random.Generator
    ) -> None:
        for _ in range(steps):
            before = rng.bit_generator.state
            try:
                self._round(problem, state, int(rng.integers(2**63)))
            except OutOfTimeError:  # nothing of the round is kept: it is made again
                rng.bit_generator.state = before
                raise

    def _round(self, problem: Problem, state: LocalTouchState, seed: int) -> None:
        risk = _sharded(problem)
        shares = risk.survey.shares
        ranges = _ranges(risk, state.constraints, state.learnt)
        masses = range_masses(ranges)
        own = [
            (each, mass / share if share else 0.0, (seed, place))
            for place, (each, mass, share) in enumerate(zip(ranges, masses, shares, strict=True))
        ]
        numbers = self.touch.numbers(problem)
        common = Common(state.w, state.squares, state.steps, self.steps)
        pieces = (problem.constraints, problem.domain, numbers, common)
        w, total = np.zeros_like(state.w), np.zeros_like(state.w)
        squares, counted, learnt = np.zeros_like(state.w), np.zeros_like(state.counters), []
        for share, found in zip(shares, risk.each(touch_range, *pieces, own=own), strict=True):
            if found is not None:
                w += share * found.w
                total += share * found.total
                squares += share * found.squares
                counted += found.counters
            learnt.append(None if found is None else found.learnt)
        state.w = problem.domain.project(w)  # the mean of points of the domain, but for rounding
        state.total += total
        state.squares = squares
        state.steps += self.steps
        state.learnt = _merged(ranges, learnt)
        state.counters[[CHECKS, SAMPLES]] += counted[[CHECKS, SAMPLES]]
        state.counters[ITERATION] += 1

    def average(self, state: LocalTouchState) -> Vector:
        return state.total / state.steps if state.steps else state.w.copy()

    def probabilities(self, state: LocalTouchState) -> Vector | None:
        if not state.constraints:
            return None
        logs = np.zeros(state.constraints)
        logs[state.learnt.numbers] = state.learnt.logs
        return normalised(logs)

    def batch_sizes(self, state: LocalTouchState) -> tuple[int, int, int]:
        drawn = (1, self.touch.constraint_batch) if state.constraints else (0, 0)
        return (self.touch.batch, *drawn)

    def remedy(self) -> str:
        return MORE_PENALTY


# -------------------------------------------------------------------------------------------------
# ranges of constraints


def _sharded(problem: Problem) -> ShardedRisk:
    assert isinstance(problem.objective, ShardedRisk)
    return problem.objective


def _ranges(risk: ShardedRisk, count: int, learnt: Learnt) -> list[Range]:
    """As many constraints for every shard as its examples count, and what was learnt of them."""
    ends = np.rint(np.cumsum(risk.survey.shares) * count).astype(np.int64)
    ends[np.flatnonzero(risk.survey.shares)[-1] :] = count
    cuts = np.concatenate([[0], ends])
    places = np.searchsorted(learnt.numbers, cuts)
    ranges = []
    for k in range(ends.size):
        here = slice(places[k], places[k + 1])
        own = Learnt(learnt.numbers[here] - cuts[k], learnt.logs[here], learnt.remembered[here])
        ranges.append(Range(int(cuts[k]), int(cuts[k + 1]), own))
    return ranges


def range_masses(ranges: Sequence[Range]) -> Vector:
    """The share of p of every range: one common reference, then one sum."""
    if not any(each.stop > each.first for each in ranges):
        return np.zeros(len(ranges))
    others = [each.stop - each.first - each.learnt.numbers.size for each in ranges]
    peaks = [float(each.learnt.logs.max()) for each in ranges if each.learnt.logs.size]
    peak = max([*peaks, 0.0] if any(others) else peaks)
    weights = [
        float(np.exp(each.learnt.logs - peak).sum()) + (many * math.exp(-peak) if many else 0.0)
        for each, many in zip(ranges, others, strict=True)
    ]
    return np.asarray(weights) / math.fsum(weights)


def _merged(ranges: Sequence[Range], found: Any) -> Learnt:
    """What the workers have learnt, one behind the other; None of an empty shard, whose range is
    empty too.
    """
    parts = [
        Learnt(each.numbers + own.first, each.logs, each.remembered)
        for own, each in zip(ranges, found, strict=True)
        if each is not None
    ]
    return Learnt(*(np.concatenate(column) for column in zip(*parts, strict=True)))


# -------------------------------------------------------------------------------------------------
# what a worker does


class Touched(NamedTuple):
    """Where a worker ended: `total` is the sum of its iterates."""

    w: Vector
    total: Vector
    squares: Vector
    counters: Indices
    learnt: Learnt


def first_violations(
    objective: Any, constraints: RecordConstraints, w: Vector, own: Range
) -> Learnt:
    """What is violated at the start, in a range."""
    del objective
    if own.first == own.stop:
        return NOTHING
    violations = np.maximum(0.0, ConstraintRange(constraints, own.first, own.stop).values(w))
    numbers = np.flatnonzero(violations)
    return Learnt(numbers, np.zeros(numbers.size), violations[numbers])


def touch_range(
    objective: Any,
    constraints: RecordConstraints,
    domain: Domain,
    numbers: Steps,
    common: Common,
    own: tuple[Range, float, tuple[int, int]],
) -> Touched:
    """Steps of LightTouch from the common point on one shard and one range of constraints."""
    part, weight, seed = own
    count = part.stop - part.first
    range_of = ConstraintRange(constraints, part.first, part.stop) if count else None
    local = Problem(objective, range_of, domain)
    state = first_state(local, common.w)
    state.counters[ITERATION] = common.time
    state.iterate.summed[:] = common.time
    state.iterate.squares[:] = common.squares
    if count:
        remembered, logs = np.zeros(count), np.zeros(count)
        remembered[part.learnt.numbers] = part.learnt.remembered
        logs[part.learnt.numbers] = part.learnt.logs
        rate = numbers.penalty * numbers.weight_step
        state.distribution = new_distribution(remembered, rate, logs)
    scaled = numbers._replace(penalty=weight * numbers.penalty, looks=min(numbers.looks, count))
    touch_lightly(local, state, scaled, common.steps, np.random.default_rng(seed))
    put_iterate(state.iterate, state.iterate.w, common.time + common.steps)
    learnt = part.learnt
    if state.distribution is not None:
        logs, remembered = log_weights(state.distribution), state.distribution.law[:, REMEMBERED]
        known = np.flatnonzero((logs != 0.0) | (remembered > 0.0))
        learnt = Learnt(known, logs[known], remembered[known])
    return Touched(
        state.iterate.w, state.iterate.total, state.iterate.squares, state.counters, learnt
    )
