"""Two phases for strongly convex objectives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.state.batches import fixed_batches
from lighttouch.kernels.state.counters import AVERAGED_FROM
from lighttouch.kernels.state.iterate import average
from lighttouch.problem import Problem
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state
from lighttouch.solvers.full_touch import MORE_PENALTY, touch_all
from lighttouch.solvers.light_touch import begin_learning, touch_lightly
from lighttouch.solvers.steps import InverseTime
from lighttouch.validation import positive, positive_int


@dataclass(frozen=True)
class MidTouch(AveragingSolver):
    """FullTouch for first_phase iterations, then LightTouch with one check, both with steps
    1/(strong_convexity t) (Algorithm 3).
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

    @property
    def _step(self) -> InverseTime:
        return InverseTime(1.0 / self.strong_convexity)

    def init(self, problem: Problem, start: Vector) -> SgdState:
        return first_state(problem, start)

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        full = min(steps, max(0, self.first_phase - state.iteration))
        if full:
            touch_all(problem, state, self.penalty, self._step, self.batch, full, rng)
        if steps == full:
            return
        if state.iteration == self.first_phase:
            self._begin_second_phase(problem, state)
        if state.distribution is None:
            touch_all(problem, state, self.penalty, self._step, self.batch, steps - full, rng)
        else:
            touch_lightly(
                problem, state, self.penalty, self._step, self.weight_step_size, steps - full, rng
            )

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        return (self.batch, 0, 0) if state.distribution is None else (self.batch, 1, 1)

    def remedy(self) -> str:
        return MORE_PENALTY

    def _begin_second_phase(self, problem: Problem, state: SgdState) -> None:
        """Lines 8-10: go on from the average, with a new average, a uniform p and the violations
        there.
        """
        state.iterate.w[:] = average(state.iterate, 0, state.iteration)
        state.iterate.total[:] = 0.0
        state.iterate.summed[:] = state.iteration
        state.counters[AVERAGED_FROM] = state.iteration
        if problem.constraints.count:
            begin_learning(
                problem,
                state,
                self.penalty * self.weight_step_size,
                fixed_batches(self.batch, 1, 1),
            )
