"""SGD that looks at every constraint in every step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.loops.full_touch import full_touch
from lighttouch.kernels.state.gradient import new_gradient
from lighttouch.kernels.state.running_maximum import new_maximum_tree
from lighttouch.problem import Problem
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.steps import StepSize, rule_and_eta
from lighttouch.solvers.tracking import objection_to_tracking, tracked_rows
from lighttouch.validation import positive, positive_int

MORE_PENALTY = "a larger penalty brings it closer to feasible"


@dataclass(frozen=True)
class FullTouch(AveragingSolver):
    """SGD that looks at every constraint in every step (Algorithm 1); plain SGD where there are
    none.

    With `incremental` only rows whose coordinates moved are evaluated again, and the largest value
    is kept up to date: the same iterates to the last bit, for a work an iteration that no longer
    grows with the number of constraints.
    """

    penalty: float
    step_size: StepSize
    batch: int = 1
    incremental: bool = False

    def __post_init__(self) -> None:
        positive(self.penalty, "penalty", zero=True)
        rule_and_eta(self.step_size)
        positive_int(self.batch, "batch")

    def objection_to(self, problem: Problem) -> str | None:
        return objection_to_tracking(problem) if self.incremental else None

    def init(self, problem: Problem, start: Vector) -> SgdState:
        state = first_state(problem, start)
        if self.incremental and problem.constraints.members:
            state.tree = new_maximum_tree(
                problem.constraints.record, problem.constraints.members, state.w
            )
        return state

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        constraints = (
            problem.constraints.record if state.tree is None else tracked_rows(problem, state.tree)
        )
        touch_all(problem, state, self.penalty, self.step_size, self.batch, steps, rng, constraints)

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        return (self.batch, 0, 0)

    def remedy(self) -> str:
        return MORE_PENALTY


def touch_all(
    problem: Problem,
    state: SgdState,
    penalty: float,
    step_size: StepSize,
    batch: int,
    steps: int,
    rng: np.random.Generator,
    constraints: Any = None,
) -> None:
    """`steps` iterations of Algorithm 1 on the state, in place; `constraints` stands for the
    problem's own record.
    """
    rule, eta = rule_and_eta(step_size)
    objective, record = (
        problem.objective,
        problem.constraints.record if constraints is None else constraints,
    )
    runnable(full_touch, problem)(
        objective.record, objective.l2, record, problem.constraints.members, problem.domain.record(problem.dimension),
        float(penalty), rule, eta, batch, state.iterate, state.visits, new_gradient(problem.dimension), state.counters, steps, rng,
    )  # fmt: skip
