"""SGD that looks at every constraint in every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints import Aggregated, LinearConstraints
from lighttouch.domains import Box, Everywhere
from lighttouch.kernels.loops.touch import full_touch
from lighttouch.kernels.state.iterate import Steps, new_gradient
from lighttouch.kernels.state.running_maximum import TrackedRows, new_maximum_tree
from lighttouch.problem import Problem
from lighttouch.running import prepared
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.steps import StepSize, rule_and_eta, step_numbers
from lighttouch.validation import positive, positive_int

MORE_PENALTY = "a larger penalty brings it closer to feasible"


@dataclass(frozen=True)
class FullTouch(AveragingSolver[SgdState]):
    """SGD that looks at every constraint in every step (Algorithm 1 of the paper).

    It minimises f(w) + penalty * max(0, max_j g_j(w)) over the domain; where there are no
    constraints this is plain SGD. The solution is the average of the iterates.

    Parameters
    ----------
    penalty : float
        The paper's gamma, zero or positive: the price of one unit of the largest violation.
    step_size : float or InverseSqrt or InverseTime or AdaGrad
        The paper's eta; a float is a constant step.
    batch : int, default=1
        Examples per step.
    incremental : bool, default=False
        Evaluate only rows whose coordinates moved, and keep the largest value up to date in a tree:
        the same iterates to the last bit, for a work per iteration that no longer grows with the
        number of constraints. For one family of linear constraints, not aggregated, and not in a
        ball.

    Raises
    ------
    ValueError
        If a number is not positive where it must be, or `step_size` is neither a positive
        number nor one of `InverseSqrt`, `InverseTime` and `AdaGrad`.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2))
    >>> result = lt.solve(problem, lt.FullTouch(2.0, lt.InverseSqrt(0.5)), iterations=2000)
    >>> bool(result.w[0] <= result.w[1] + 1e-9)
    True
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
        return _objection_to_tracking(problem) if self.incremental else None

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
        numbers = step_numbers(
            self.step_size, self.batch, problem.objective.l2, penalty=self.penalty
        )
        touch_all(problem, state, numbers, steps, rng)

    def batch_sizes(self, state: SgdState) -> tuple[int, int, int]:
        return (self.batch, 0, 0)

    def remedy(self) -> str:
        return MORE_PENALTY


def touch_all(
    problem: Problem, state: SgdState, numbers: Steps, steps: int, rng: np.random.Generator
) -> None:
    """`steps` iterations of Algorithm 1 on the state, in place."""
    constraints, domain = problem.constraints, problem.domain.record(problem.dimension)
    record = constraints.record if state.tree is None else _tracked_rows(problem, state)
    runnable(full_touch, problem)(
        problem.objective.record,
        record,
        constraints.members,
        domain,
        numbers,
        state.iterate,
        state.visits,
        new_gradient(problem.dimension),
        state.counters,
        steps,
        rng,
    )


def _objection_to_tracking(problem: Problem) -> str | None:
    constraints = problem.constraints
    if isinstance(constraints, Aggregated) or not isinstance(constraints, LinearConstraints):
        return (
            "incremental looks need linear constraints (one family, not aggregated), whose "
            "rows say which coordinates they depend on: "
            "leave incremental=False"
        )
    if not isinstance(problem.domain, Box | Everywhere):
        return (
            "incremental looks need steps that move few coordinates, and a "
            f"{type(problem.domain).__name__.lower()} moves all of them: use a Box, or leave "
            "incremental=False"
        )
    return None


def _tracked_rows(problem: Problem, state: SgdState) -> TrackedRows:
    """The rows with the tree of their values, and which rows depend on a coordinate."""
    constraints = problem.constraints
    assert isinstance(constraints, LinearConstraints) and state.tree is not None
    starts, touching = prepared(
        constraints, "rows of every coordinate", lambda: _columns(constraints)
    )
    return TrackedRows(constraints.record, starts, touching, state.tree)


def _columns(constraints: LinearConstraints) -> tuple[Indices, Indices]:
    columns = sparse.csc_matrix(constraints.A)
    return columns.indptr.astype(np.int64), columns.indices
