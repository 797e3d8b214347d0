"""How far a run may go: iterations, seconds, and how many steps to take at once until then."""

from __future__ import annotations

import math

from lighttouch.interfaces import AnySolver
from lighttouch.problem import Problem
from lighttouch.running.stopwatch import Stopwatch
from lighttouch.solvers.costs import COSTS
from lighttouch.validation import positive, positive_int


class Budget:
    """Limits of a run and the clock they are measured by.

    The clock is the user's: it runs from the beginning of the call, also while the history is
    recorded. Only compilation is left out, which happens once per machine and cannot be hurried.
    """

    def __init__(
        self, problem: Problem, solver: AnySolver, iterations: int | None, time_limit: float | None
    ) -> None:
        self.clock = Stopwatch()
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
