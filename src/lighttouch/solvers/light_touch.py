"""SGD that looks at a few constraints per step and learns which ones matter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import ConstraintError
from lighttouch.kernels.loops.touch import (
    Learning,
    light_touch,
    practical_light_touch,
    time_draws,
    time_learning,
    time_losses,
)
from lighttouch.kernels.state.distribution import Distribution, new_distribution
from lighttouch.kernels.state.iterate import Steps, first_batches, new_gradient
from lighttouch.kernels.verbs.constraints import Groups
from lighttouch.problem import Problem
from lighttouch.solvers.base import AveragingSolver, SgdState, copied, first_state, runnable
from lighttouch.solvers.full_touch import MORE_PENALTY, touch_all
from lighttouch.solvers.steps import InverseSqrt, StepSize, rule_and_eta, step_numbers
from lighttouch.validation import one_of, positive, positive_int, refuse_if_too_large

LEAST_LOSSES = 2  # k_f of Section 5.2, and the examples per step where there is no constraint
BYTES_PER_CONSTRAINT = 112  # law, bound, permutation, set, and the violations they begin with


@dataclass(frozen=True)
class LightTouch(AveragingSolver[SgdState]):
    """SGD that checks a few constraints per step and learns which ones are violated.

    Algorithm 2 of the paper: a step is pushed by one constraint, drawn from a distribution that is
    learned from looks at `constraint_batch` others. Its cost does not depend on how many
    constraints there are. The solution is the average of the iterates.

    Parameters
    ----------
    penalty : float
        The paper's gamma, zero or positive: the price of one unit of the largest violation.
    step_size : float or InverseSqrt or InverseTime or AdaGrad
        The paper's eta for w; a float is a constant step.
    constraint_batch : int
        The paper's k: constraints looked at per step, besides the one that pushes. At most as many
        as there are.
    weight_step_size : float, optional
        The step of the distribution. None, the default, means `step_size`, as in the paper, which
        must be a constant then.
    batch : int, default=1
        Examples per step.

    Raises
    ------
    ValueError
        For parameters out of their range, and where `weight_step_size` is missing.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(3))
    >>> result = lt.solve(problem, lt.LightTouch(2.0, 0.02, 1), iterations=2000)
    >>> result.constraint_checks
    4000
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

    def numbers(self, problem: Problem) -> Steps:
        """What an iteration of the loop is told."""
        own = self.step_size if self.weight_step_size is None else self.weight_step_size
        assert isinstance(own, float | int)
        return step_numbers(
            self.step_size,
            self.batch,
            problem.objective.l2,
            self.penalty,
            own,
            self.constraint_batch,
        )

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
        state = first_state(problem, start)  # line 1
        begin_learning(problem, state, self.numbers(problem))
        return state

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        touch_lightly(problem, state, self.numbers(problem), steps, rng)

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        if state.distribution is None:
            return (self.batch, 0, 0)
        return (self.batch, 1, self.constraint_batch)

    def remedy(self) -> str:
        return MORE_PENALTY


@dataclass(frozen=True)
class PracticalLightTouch(AveragingSolver[SgdState]):
    """LightTouch with decreasing steps and automatic minibatch sizes (Algorithm 4 of the paper).

    The numbers of examples, drawn constraints and remembered constraints per step follow the
    variances of their gradients and what one of each costs (Section 5.2).

    Parameters
    ----------
    penalty : float, default=1.0
        The paper's gamma, zero or positive.
    step_size : float or InverseSqrt or InverseTime or AdaGrad, default=InverseSqrt(16.0)
        The paper's eta_w.
    weight_step_size : float, default=1/16
        The paper's eta_p, the constant step of the distribution.
    memory : float, default=0.999
        The weight nu of past variances, between 0 and 1.
    costs : {"counted", "timed"}, default="counted"
        Whether the three gradients are weighed by counted operations, so that runs can be repeated,
        or by measured seconds, as in the paper.

    Raises
    ------
    ValueError
        If a number is not positive where it must be, or `step_size` is neither a positive
        number nor one of `InverseSqrt`, `InverseTime` and `AdaGrad`.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(3))
    >>> solver = lt.PracticalLightTouch(step_size=lt.InverseSqrt(0.5))
    >>> lt.solve(problem, solver, iterations=2000).gradient_samples
    4000
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

    def _numbers(self, problem: Problem) -> Steps:
        return step_numbers(
            self.step_size,
            LEAST_LOSSES,
            problem.objective.l2,
            self.penalty,
            self.weight_step_size,
        )

    def init(self, problem: Problem, start: Vector) -> SgdState:
        state = first_state(problem, start)  # line 1
        begin_learning(problem, state, self._numbers(problem))
        if state.distribution is not None:
            count, check = problem.constraints.count, problem.constraints.cost
            costs = np.array([problem.objective.cost, check, check])
            state.batches = first_batches(costs, self.memory, count)
        return state

    def advance(
        self, problem: Problem, state: SgdState, steps: int, rng: np.random.Generator
    ) -> None:
        numbers = self._numbers(problem)
        if state.distribution is None:
            touch_all(problem, state, numbers, steps, rng)
            return
        if self.costs == "timed":
            timed_costs(problem, state)
        constraints, domain = problem.constraints, problem.domain.record(problem.dimension)
        gradients = tuple(new_gradient(problem.dimension) for _ in range(3))
        runnable(practical_light_touch, problem)(
            problem.objective.record,
            constraints.record,
            domain,
            numbers,
            state.iterate,
            state.visits,
            _learning(problem, state.distribution, constraints.count),
            state.batches,
            gradients,
            state.counters,
            steps,
            rng,
        )

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        if state.batches is None:
            return (LEAST_LOSSES, 0, 0)
        losses, pushes, learnt = (int(size) for size in state.batches.sizes)
        return losses, pushes, learnt

    def remedy(self) -> str:
        return MORE_PENALTY


def begin_learning(problem: Problem, state: SgdState, numbers: Steps) -> None:
    """Algorithm 2, lines 2 and 3: a uniform p, and the violations of every constraint remembered.

    Where there are no constraints nothing is learnt, and Algorithm 2 is Algorithm 1.
    """
    count = problem.constraints.count
    if not count:
        return
    refuse_if_too_large(
        count * BYTES_PER_CONSTRAINT,
        f"learning which of {count:,} constraints matter",
        "aggregate them",
        ConstraintError,
    )
    violations = np.maximum(0.0, problem.constraints.values(state.w))
    state.distribution = new_distribution(violations, numbers.penalty * numbers.weight_step)


def touch_lightly(
    problem: Problem, state: SgdState, numbers: Steps, steps: int, rng: np.random.Generator
) -> None:
    """`steps` iterations of Algorithm 2 on the state, in place."""
    if state.distribution is None:
        touch_all(problem, state, numbers, steps, rng)
        return
    constraints, domain = problem.constraints, problem.domain.record(problem.dimension)
    runnable(light_touch, problem)(
        problem.objective.record,
        constraints.record,
        domain,
        numbers,
        state.iterate,
        state.visits,
        _learning(problem, state.distribution, numbers.looks),
        new_gradient(problem.dimension),
        state.counters,
        steps,
        rng,
    )


def _learning(problem: Problem, distribution: Distribution, most: int) -> Learning:
    """p over the constraints, with room for sets S of at most so many."""
    constraints = problem.constraints
    return Learning(
        Groups(constraints.group_size, constraints.members), distribution, np.empty(most)
    )


# -------------------------------------------------------------------------------------------------
# The paper's timed costs: how long one loss gradient, one drawn constraint and one remembered
# constraint take.


REPEATS = 64


def timed_costs(problem: Problem, state: SgdState) -> None:
    """Measure the three single-sample costs at the current state and average them with what was
    measured before.

    The state's randomness is left alone; a run with timed costs can still not be repeated bit for
    bit.
    """
    assert state.batches is not None and state.distribution is not None
    rng = np.random.default_rng(0)
    distribution, gradient, w = copied(state.distribution), new_gradient(problem.dimension), state.w
    objective, constraints = problem.objective, problem.constraints
    rows = (constraints.record, constraints.members, constraints.group_size)
    measured = np.array(
        [
            _seconds(
                lambda: runnable(time_losses, problem)(
                    objective.record, objective.examples, w, gradient, REPEATS, rng
                )
            ),
            _seconds(
                lambda: runnable(time_draws, problem)(
                    *rows, w, distribution, gradient, REPEATS, rng
                )
            ),
            _seconds(
                lambda: runnable(time_learning, problem)(*rows, w, distribution, REPEATS, rng)
            ),
        ]
    )
    first = state.batches.weight[0] == 0.0
    state.batches.costs[:] = measured if first else 0.5 * (state.batches.costs + measured)


def _seconds(run: Callable[[], object]) -> float:
    run()
    start = time.perf_counter()
    run()
    return max(1e-9, (time.perf_counter() - start) / REPEATS)
