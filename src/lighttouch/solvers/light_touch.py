"""SGD that looks at a few constraints a step and learns which ones matter."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import ConstraintError
from lighttouch.kernels.loops.light_touch import light_touch
from lighttouch.kernels.state.batches import Batches, automatic_batches, fixed_batches
from lighttouch.kernels.state.distribution import new_distribution
from lighttouch.kernels.state.gradient import new_gradient
from lighttouch.problem import Problem
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.full_touch import MORE_PENALTY, touch_all
from lighttouch.solvers.sample_costs import timed_costs
from lighttouch.solvers.steps import InverseSqrt, StepSize, rule_and_eta
from lighttouch.validation import one_of, positive, positive_int, refuse_if_too_large

LEAST_LOSSES = 2  # k_f of Section 5.2, and the examples per step where there is no constraint
BYTES_A_CONSTRAINT = 96  # law, bounds, links, order and the values they begin with


@dataclass(frozen=True)
class LightTouch(AveragingSolver):
    """SGD that checks constraint_batch + 1 constraints a step and learns which ones are violated
    (Algorithm 2).

    weight_step_size None means the same constant as step_size, as in the paper.
    """

    penalty: float
    step_size: StepSize
    constraint_batch: int
    weight_step_size: float | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        positive(self.penalty, "penalty", zero=True)
        rule_and_eta(self.step_size)
        positive_int(self.constraint_batch, "constraint_batch")
        positive_int(self.batch, "batch")
        if self.weight_step_size is not None:
            positive(self.weight_step_size, "weight_step_size", zero=True)
        elif not isinstance(self.step_size, float | int):
            raise ValueError(
                "weight_step_size must be given when step_size is not a constant, for "
                "example weight_step_size=1/16"
            )

    @property
    def _weight_step(self) -> float:
        return float(self.step_size if self.weight_step_size is None else self.weight_step_size)  # type: ignore[arg-type]

    def objection_to(self, problem: Problem) -> str | None:
        count = problem.constraints.count
        if 0 < count < self.constraint_batch:
            return (
                f"constraint_batch is {self.constraint_batch} but there are only {count} "
                "constraints; FullTouch, which checks all "
                f"of them, is then the better choice (or a constraint_batch of at most {count})"
            )
        return None

    def init(self, problem: Problem, start: Vector) -> SgdState:
        state = first_state(problem, start)
        if problem.constraints.count:
            begin_learning(
                problem,
                state,
                self.penalty * self._weight_step,
                fixed_batches(self.batch, 1, self.constraint_batch),
            )
        return state

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        if state.distribution is None:
            touch_all(problem, state, self.penalty, self.step_size, self.batch, steps, rng)
        else:
            touch_lightly(
                problem, state, self.penalty, self.step_size, self._weight_step, steps, rng
            )

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        if state.distribution is None:
            return (self.batch, 0, 0)
        return (self.batch, 1, self.constraint_batch)

    def remedy(self) -> str:
        return MORE_PENALTY


@dataclass(frozen=True)
class PracticalLightTouch(AveragingSolver):
    """LightTouch with decreasing steps and automatic minibatch sizes (Algorithm 4).

    costs="counted" weighs the three gradients by counted operations, so that runs can be repeated;
    "timed" measures them, as the paper does. `memory` is the weight nu of past variances.
    """

    penalty: float = 1.0
    step_size: StepSize = field(default_factory=lambda: InverseSqrt(16.0))
    weight_step_size: float = 1 / 16
    memory: float = 0.999
    costs: str = "counted"

    def __post_init__(self) -> None:
        positive(self.penalty, "penalty", zero=True)
        rule_and_eta(self.step_size)
        positive(self.weight_step_size, "weight_step_size", zero=True)
        if not 0.0 <= self.memory <= 1.0:
            raise ValueError(f"memory must lie between 0 and 1, got {self.memory}")
        one_of(self.costs, ("counted", "timed"), "costs")

    @property
    def _weight_step(self) -> float:
        return float(self.weight_step_size)

    def init(self, problem: Problem, start: Vector) -> SgdState:
        state = first_state(problem, start)
        if problem.constraints.count:
            check = problem.constraints.cost
            batches = automatic_batches(
                np.array([problem.objective.cost, check, check]),
                self.memory,
                problem.constraints.count,
            )
            begin_learning(problem, state, self.penalty * self._weight_step, batches)
        return state

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        if state.distribution is None:
            touch_all(problem, state, self.penalty, self.step_size, LEAST_LOSSES, steps, rng)
            return
        if self.costs == "timed" and state.batches is not None:
            timed_costs(problem, state)
        touch_lightly(problem, state, self.penalty, self.step_size, self._weight_step, steps, rng)

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        if state.batches is None:
            return (LEAST_LOSSES, 0, 0)
        losses, pushes, learnt = (int(size) for size in state.batches.sizes)
        return losses, pushes, learnt

    def remedy(self) -> str:
        return MORE_PENALTY


def begin_learning(problem: Problem, state: SgdState, rate: float, batches: Batches) -> None:
    """Algorithm 2, lines 2 and 3: a uniform p, and the violations of every constraint
    remembered.
    """
    count = problem.constraints.count
    refuse_if_too_large(
        count * BYTES_A_CONSTRAINT,
        f"learning which of {count:,} constraints matter",
        "aggregate them",
        ConstraintError,
    )
    violations = np.maximum(0.0, problem.constraints.values(state.w))
    state.distribution = new_distribution(violations, rate)
    state.batches = batches


def touch_lightly(
    problem: Problem,
    state: SgdState,
    penalty: float,
    step_size: StepSize,
    weight_step: float,
    steps: int,
    rng: np.random.Generator,
) -> None:
    """`steps` iterations of Algorithm 2 or 4 on the state, in place."""
    rule, eta = rule_and_eta(step_size)
    objective, constraints = problem.objective, problem.constraints
    first, second, gradient = (new_gradient(problem.dimension) for _ in range(3))
    runnable(light_touch, problem)(
        objective.record, objective.l2, constraints.record, constraints.members, constraints.group_size,
        problem.domain.record(problem.dimension), float(penalty), rule, eta, weight_step,
        state.iterate, state.visits, state.distribution, state.batches, gradient, first, second,
        np.empty(constraints.count), state.counters, steps, rng,
    )  # fmt: skip
