"""Two phases for strongly convex objectives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.state.iterate import AVERAGED_FROM, Steps, average
from lighttouch.problem import Problem
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state
from lighttouch.solvers.full_touch import MORE_PENALTY, touch_all
from lighttouch.solvers.light_touch import begin_learning, touch_lightly
from lighttouch.solvers.steps import InverseTime, step_numbers
from lighttouch.validation import positive, positive_int


@dataclass(frozen=True)
class MidTouch(AveragingSolver[SgdState]):
    """FullTouch first, then LightTouch with one look per step (Algorithm 3 of the paper).

    For strongly convex objectives: both phases take steps 1 / (strong_convexity t), and the second
    starts at the average of the first. The solution is the average of the second phase.

    Parameters
    ----------
    penalty : float
        The paper's gamma, zero or positive.
    strong_convexity : float
        The paper's lambda, of the objective (its l2 term, say); positive.
    first_phase : int
        The paper's T_1: iterations that look at all constraints.
    weight_step_size : float
        The step of the distribution over the constraints, the paper's eta.
    batch : int, default=1
        Examples per step.

    Raises
    ------
    ValueError
        If a number is negative, or not positive where it must be.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [2.0, 1.0], l2=0.1)
    >>> problem = lt.Problem(objective, lt.ordering(3))
    >>> solver = lt.MidTouch(1.0, strong_convexity=0.1, first_phase=500, weight_step_size=0.02)
    >>> lt.solve(problem, solver, iterations=2000).constraint_checks
    4000
    """

    penalty: float
    strong_convexity: float
    first_phase: int
    weight_step_size: float
    batch: int = 1

    def __post_init__(self) -> None:
        positive(self.penalty, "penalty", zero=True)
        positive(self.strong_convexity, "strong_convexity")
        positive_int(self.first_phase, "first_phase")
        positive(self.weight_step_size, "weight_step_size", zero=True)
        positive_int(self.batch, "batch")

    def _numbers(self, problem: Problem) -> Steps:
        step_size = InverseTime(1.0 / self.strong_convexity)
        return step_numbers(
            step_size, self.batch, problem.objective.l2, self.penalty, self.weight_step_size, 1
        )

    def init(self, problem: Problem, start: Vector) -> SgdState:
        return first_state(problem, start)  # line 2

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        numbers = self._numbers(problem)
        first = min(steps, max(0, self.first_phase - state.iteration))
        if first:
            touch_all(problem, state, numbers, first, rng)  # lines 3-6
        if steps == first:
            return
        if state.iteration == self.first_phase:
            self._begin_second_phase(problem, state, numbers)
        touch_lightly(problem, state, numbers, steps - first, rng)  # lines 11-20

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        return (self.batch, 0, 0) if state.distribution is None else (self.batch, 1, 1)

    def remedy(self) -> str:
        return MORE_PENALTY

    def _begin_second_phase(self, problem: Problem, state: SgdState, numbers: Steps) -> None:
        """Lines 8-10: go on from the average, with a new average, a uniform p and the violations
        there.
        """
        state.iterate.w[:] = average(state.iterate, 0, state.iteration)
        state.iterate.total[:] = 0.0
        state.iterate.summed[:] = state.iteration
        state.counters[AVERAGED_FROM] = state.iteration
        begin_learning(problem, state, numbers)
