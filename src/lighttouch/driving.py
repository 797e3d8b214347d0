"""The parts of `solve`: Budget, Reserve, Recorder, Answer and Proof.

`Budget` says how far a run may go and how many steps to take at once, `Reserve` what of its time is
kept for the final projection. `Recorder` decides when a row of the history is due and makes it.
`Answer` is the best of the solver's candidates, projected: objective and violation are computed
here from the point that is returned, over all examples and all constraints; nothing is carried over
from the loop. `Proof` is how far from the optimum it can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.interfaces import AnySolver, State
from lighttouch.problem import Problem
from lighttouch.projections import OutOfTimeError, Projected, project
from lighttouch.projections.sets import feasible_set
from lighttouch.result import History
from lighttouch.running import ProgressBar, Stopwatch
from lighttouch.solvers.costs import COSTS
from lighttouch.validation import positive, positive_int


class Budget:
    """Limits of a run and the clock they are measured by.

    The clock is the user's: it runs from the beginning of the call, also while the history is
    recorded. Only compilation is left out, which happens once per machine and cannot be hurried.
    """

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        iterations: int | None,
        time_limit: float | None,
        clock: Stopwatch,
    ) -> None:
        self.clock = clock
        self.seconds = math.inf if time_limit is None else positive(time_limit, "time_limit")
        self.iterations = self._limit(problem, solver, iterations)
        self._chunk = COSTS.first_chunk

    def _limit(self, problem: Problem, solver: AnySolver, iterations: int | None) -> float:
        if iterations is not None:
            return positive_int(iterations, "iterations", least=0)
        if self.seconds < math.inf or solver.stops_itself:
            return math.inf
        passes = COSTS.default_passes * problem.objective.examples
        return min(COSTS.most_default_iterations, max(COSTS.fewest_default_iterations, passes))

    @property
    def left(self) -> float:
        """Seconds; below 0 once the time is over."""
        return self.seconds - self.clock.seconds

    def for_projections(self, kept: float = 0.0) -> float:
        """A little more than is left besides what is kept: a projection just begun may end."""
        return self.left - kept + min(COSTS.overtime, self.seconds)

    def for_looking(self, interrupted: bool) -> float:
        """Functions in Python may take seconds for one pass over all of them: once the time is
        over, or a signal has come, points that were not looked at yet are given up soon.
        """
        seconds = max(0.0, self.left) + COSTS.overtime
        return min(seconds, COSTS.signal_grace) if interrupted else seconds

    def share_used(self, iteration: int) -> float:
        """How much of the nearer limit is used up, from 0 to 1."""
        by_steps = iteration / self.iterations if self.iterations else 1.0
        return max(by_steps, self.clock.seconds / self.seconds)

    def steps(self, iteration: int, next_record: int) -> int:
        """How many iterations to take at once: about `chunk_seconds`, up to the next stop."""
        most = min(self._chunk, self.iterations - iteration, next_record - iteration)
        if self.left < COSTS.chunk_seconds:
            most = min(most, self._chunk * self.left / COSTS.chunk_seconds)
        return int(max(1, most))

    def learn(self, done: int, seconds: float) -> None:
        """Fit the next chunk to how long the last one took."""
        fitting = done * COSTS.chunk_seconds / max(seconds, COSTS.shortest_chunk)
        self._chunk = int(max(1, min(COSTS.chunk_growth * done, fitting)))


class Reserve:
    """Seconds of the limit that are kept for the final projection, where one must be made.

    Millions of rows take a while to look at: so the last look counts until looks have taken less
    than their share of the run.
    """

    def __init__(self, problem: Problem, solver: AnySolver, budget: Budget, projects: bool) -> None:
        self.problem, self.solver, self.budget = problem, solver, budget
        share = COSTS.final_projection_share * budget.seconds
        self._share = share if projects and math.isfinite(share) else 0.0
        self._needed = True  # at the last look
        self._looking = 0.0  # seconds of all looks

    def seconds(self, state: State, spent: float) -> float:
        """What is kept by now, after so many seconds of work."""
        if self._share and self._looking <= COSTS.looking_share * spent:
            clock = Stopwatch()
            self._needed = self._is_needed(state)
            self._looking += clock.seconds
        return self._share if self._needed else 0.0

    def is_touched(self, state: State, spent: float) -> bool:
        """Whether no more is left than what is kept."""
        if self.budget.left > self._share:
            return False
        return self.seconds(state, spent) > 0.0 and self._is_needed(state)

    def _is_needed(self, state: State) -> bool:
        return all(is_broken(self.problem, each) for each in self.solver.candidates(state))


@dataclass(frozen=True)
class Progress:
    """What a callback of `solve` sees; returning True from it stops the run.

    Parameters
    ----------
    iteration : int
        Iterations so far.
    seconds : float
        Seconds in the solver so far, without recording and compilation.
    constraint_checks : int
        Single constraints evaluated so far.
    objective : float
        The objective at `w`.
    violation : float
        max(0, max_j g_j(w)).
    w : ndarray of shape (d,)
        A copy of the present iterate.
    w_average : ndarray of shape (d,)
        The average of the iterates.

    Examples
    --------
    >>> problem = lt.Problem(lt.Quadratic(np.eye(2), [1.0, 1.0]), lt.ordering(2))
    >>> seen = []
    >>> result = lt.solve(problem, callback=lambda progress: seen.append(progress.iteration))
    >>> seen[0]
    0
    """

    iteration: int
    seconds: float
    constraint_checks: int
    objective: float
    violation: float
    w: Vector
    w_average: Vector


Callback = Callable[[Progress], Any]


class Recorder:
    """Decides when a row is due, makes it, and hands it to callback and progress bar.

    By default rows are due at powers of four, and left out where they would cost more than a
    twentieth of the work of the run. Work is counted, not timed, so that a run recorded twice has
    the same rows.
    """

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        every: int | None,
        callback: Callback | None,
        progress: bool,
    ) -> None:
        self.problem, self.solver, self.callback = problem, solver, callback
        self.every = None if every is None else positive_int(every, "record_every")
        self.history = History()
        self.bar = ProgressBar(progress, f"{type(solver).__name__} ")
        self.known: Vector | None = None  # the best point of a row: one that was looked at
        self._rank = (True, math.inf)

    def next_stop(self, iteration: int) -> int:
        """The next iteration at which a row may be due."""
        if self.every is not None:
            return (iteration // self.every + 1) * self.every
        return 1 << 2 * ((iteration.bit_length() + 1) // 2)

    def is_due(self, state: State) -> bool:
        if self.every is not None:
            return state.iteration % self.every == 0
        at_stop = self.next_stop(max(0, state.iteration - 1)) == state.iteration
        return at_stop and (self.callback is not None or self._affordable(state))

    def _affordable(self, state: State) -> bool:
        objective, constraints = self.problem.objective, self.problem.constraints
        per_check = constraints.cost / constraints.group_size
        row = objective.examples * objective.cost + constraints.members * per_check
        done = state.gradient_samples * objective.cost + state.constraint_checks * per_check
        spent = (len(self.history) + 1) * row
        return bool(row <= COSTS.free_record or spent <= COSTS.recording_share * done)

    def record(self, state: State, seconds: float) -> bool:
        """Add a row; whether the callback asks to stop."""
        row = self.add_row(state, seconds)
        if self.callback is None:
            return False
        average = self.solver.average(state)
        answer = self.callback(Progress(**row, w=np.array(state.w), w_average=average))
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def add_row(self, state: State, seconds: float) -> dict[str, Any]:
        sizes = self.solver.batch_sizes(state)
        row = {
            "iteration": state.iteration,
            "seconds": seconds,
            "constraint_checks": state.constraint_checks,
            "objective": self.problem.objective.value(state.w),
            "violation": self.problem.violation(state.w),
        }
        self.history.append(**row, loss_batch=sizes[0], push_batch=sizes[1], learn_batch=sizes[2])
        rank = (row["violation"] > 0.0, row["objective"])
        if self.problem.interpreted and (self.known is None or rank < self._rank):
            self.known, self._rank = np.array(state.w), rank
        return row

    def show(self, share: float, iteration: int) -> None:
        last = f"objective {self.history.last()['objective']:.6g}" if len(self.history) else ""
        self.bar.show(share, f"iteration {iteration:,}  {last}")

    def close(self, state: State, seconds: float, finite: bool) -> None:
        """The last row, so that the history ends where the run does, and the end of the bar."""
        self.bar.show(1.0, f"iteration {state.iteration:,}")
        self.bar.close()
        if finite and self.history.last()["iteration"] < state.iteration:
            self.add_row(state, seconds)


def endless_direction(problem: Problem, base: Vector, far: Vector) -> Vector | None:
    """The direction from `base` to a point that ran away, where the objective falls along it
    without end and no constraint stops it; None otherwise.

    Tried at growing distances: what a quadratic or a loss does at the last of them it does for
    ever, because convex functions do not turn down again.
    """
    away = far - base
    size = float(np.abs(away).max(initial=0.0))
    if not np.isfinite(away).all() or size == 0.0:
        return None
    away = away / size
    direction = np.where(np.abs(away) > COSTS.still, away, 0.0)
    values = [problem.objective.value(base)]
    for length in COSTS.far_lengths:
        point = base + length * direction
        if problem.relative_violation(point) > COSTS.still * length + problem.relative_violation(
            base
        ) or not np.allclose(problem.domain.project(point), point, rtol=COSTS.still):
            return None
        values.append(problem.objective.value(point))
    falls = -np.diff(values)
    steady = all(later > COSTS.falling * earlier > 0.0 for earlier, later in pairwise(falls))
    return direction if steady else None


@dataclass(frozen=True)
class Answer:
    """A point `w`, the solver's `solution` that it is the projection of, and both their values."""

    w: Vector
    solution: Vector
    objective: float
    violation: float
    objective_before: float
    violation_before: float
    method: str
    seconds: float
    broken: bool
    broken_before: bool
    given_up: bool = False  # the last point was not looked at: the time was over


def unprojected(problem: Problem, solution: Vector, method: str) -> Answer:
    """The solver's solution as it is."""
    return _judged(problem, solution, solution, method, 0.0)


def best_projection(
    problem: Problem, candidates: Sequence[Vector], limit: float, soon: float = math.inf
) -> Answer:
    """Project every candidate and keep the best: feasible first, then the smaller objective. One
    that breaks no constraint by more than rounding has only until `soon`.
    """
    clock = Stopwatch()
    projected = [
        _projected(problem, each, limit if is_broken(problem, each) else min(limit, soon))
        if soon < limit
        else _projected(problem, each, limit)
        for each in candidates
    ]
    best = 0
    if len(projected) > 1:
        ranks = [
            (is_broken(problem, found.w), problem.objective.value(found.w)) for found in projected
        ]
        best = min(range(len(ranks)), key=lambda k: ranks[k])
    found = projected[best]
    return _judged(problem, candidates[best], found.w, found.method, clock.seconds)


def is_broken(problem: Problem, w: Vector) -> bool:
    """Whether w breaks a constraint by more than rounding explains."""
    size = 1.0 + float(np.abs(w).max())
    return problem.relative_violation(w) > COSTS.feasibility_tolerance * size


def _projected(problem: Problem, candidate: Vector, limit: float) -> Projected:
    """The candidate itself where it is feasible already; and where the projection fails or runs
    out of time: no result is lost.
    """
    inside = np.array_equal(problem.domain.project(candidate), candidate)
    if inside and problem.violation(candidate) <= 0.0:
        return Projected(candidate, 0.0, 0.0, "the point satisfies every constraint", 0.0)
    try:
        return project(
            candidate,
            problem.constraints,
            problem.domain,
            time_limit=None if limit == np.inf else limit,
        )
    except (RuntimeError, OutOfTimeError) as error:
        near = None
        if isinstance(error, OutOfTimeError):
            near = feasible_set(problem.constraints, problem.domain).near(candidate)
        if near is not None:
            how = "feasible and near, but not the nearest point: the time was over"
            distance = float(np.linalg.norm(near - candidate))
            return Projected(near, distance, problem.violation(near), how, 0.0)
        violation = problem.violation(candidate)
        return Projected(candidate, 0.0, violation, f"not projected: {error}", 0.0)


def _judged(problem: Problem, solution: Vector, w: Vector, method: str, seconds: float) -> Answer:
    objective, violation = problem.objective.value(w), problem.violation(w)
    same = w is solution or np.array_equal(w, solution)
    broken = violation > 0.0 and is_broken(problem, w)
    return Answer(
        w=w,
        solution=solution,
        objective=objective,
        violation=violation,
        objective_before=objective if same else problem.objective.value(solution),
        violation_before=violation if same else problem.violation(solution),
        method=method,
        seconds=seconds,
        broken=broken,
        broken_before=broken if same else is_broken(problem, solution),
    )


@dataclass(frozen=True)
class Proof:
    """A lower bound of the optimum, and how far above it the answer is."""

    bound: float
    gap: float

    @classmethod
    def of(cls, answer: Answer, bound: float) -> Proof:
        """A bound above the objective of a feasible point by more than rounding contradicts itself
        and proves nothing.
        """
        if answer.broken:
            return cls(bound, math.inf)
        rounding = COSTS.bound_rounding * (1.0 + abs(answer.objective))
        contradicts = not bound <= answer.objective + rounding
        bound = -math.inf if contradicts else min(bound, answer.objective)
        return cls(bound, answer.objective - bound)

    def is_within(self, accuracy: float) -> bool:
        """Whether CONVERGED may be said, with room for rounding."""
        return self.gap <= accuracy * (1.0 + COSTS.claim_rounding)

    def words(self) -> list[str]:
        if not math.isfinite(self.gap):
            return []
        return [f"the objective is proven within {self.gap:.3g} of the optimum"]
