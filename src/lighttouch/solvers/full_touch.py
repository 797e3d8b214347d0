"""SGD that looks at every constraint in every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lighttouch.checks import positive, positive_int
from lighttouch.interfaces import Vector
from lighttouch.kernels.full_touch import full_touch
from lighttouch.kernels.gradient import new_gradient
from lighttouch.kernels.iterate import average
from lighttouch.problem import Problem
from lighttouch.solvers.state import TouchState, first_state, runnable
from lighttouch.solvers.steps import StepSize, rule_and_eta


@dataclass(frozen=True)
class FullTouch:
    """SGD that looks at every constraint in every step (Algorithm 1); plain SGD where there are none."""

    penalty: float
    step_size: StepSize
    batch: int = 1

    def __post_init__(self) -> None:
        positive(self.penalty, "penalty", zero=True)
        rule_and_eta(self.step_size)
        positive_int(self.batch, "batch")

    def objection_to(self, problem: Problem) -> str | None:
        return None

    def init(self, problem: Problem, start: Vector) -> TouchState:
        return first_state(problem, start)

    def advance(self, problem: Problem, state: TouchState, steps: int, rng: np.random.Generator) -> None:
        touch_all(problem, state, self.penalty, self.step_size, self.batch, steps, rng)

    def solution(self, state: TouchState) -> Vector:
        return self.average(state)

    def average(self, state: TouchState) -> Vector:
        return average(state.iterate, int(state.counters[3]), state.iteration)

    def probabilities(self, state: TouchState) -> Vector | None:
        return None

    def batch_sizes(self, state: TouchState) -> tuple[int, int, int]:
        return (self.batch, 0, 0)


def touch_all(
    problem: Problem, state: TouchState, penalty: float, step_size: StepSize, batch: int, steps: int, rng: np.random.Generator
) -> None:
    """`steps` iterations of Algorithm 1 on the state, in place."""
    rule, eta = rule_and_eta(step_size)
    objective, constraints = problem.objective, problem.constraints
    runnable(full_touch, problem)(
        objective.record, objective.l2, constraints.record, constraints.members, problem.domain.record(problem.dimension),
        float(penalty), rule, eta, batch, state.iterate, state.visits, new_gradient(problem.dimension), state.counters, steps, rng,
    )  # fmt: skip
