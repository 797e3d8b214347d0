"""What every objective and every solver offers: all that the rest of the package relies on.

Constraint families inherit `constraints.base.RecordConstraints`; domains are one of four classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from lighttouch.arrays import Vector

if TYPE_CHECKING:
    from lighttouch.problem import Problem
    from lighttouch.result import Status


@runtime_checkable
class Objective(Protocol):
    """A convex function: the mean over examples of convex terms, plus (l2/2) ||w||^2."""

    l2: float

    @property
    def dimension(self) -> int: ...
    @property
    def examples(self) -> int: ...
    @property
    def record(self) -> Any:
        """The arrays a kernel reads."""

    @property
    def interpreted(self) -> bool:
        """Whether the record holds Python callables, so that loops must run interpreted."""

    @property
    def cost(self) -> float:
        """Mean operations of one example's gradient."""

    @property
    def independent(self) -> bool:
        """Whether examples are drawn independently rather than in random permutations."""

    def value(self, w: Vector) -> float: ...
    def penalty_value(self, w: Vector) -> float:
        """What is left of the objective without its examples."""

    def gradient(self, w: Vector) -> Vector: ...


class State(Protocol):
    """Everything a run needs to go on, as arrays and numbers."""

    @property
    def iteration(self) -> int: ...
    @property
    def constraint_checks(self) -> int: ...
    @property
    def gradient_samples(self) -> int: ...
    @property
    def w(self) -> Vector: ...
    def copy(self) -> State: ...


SomeState = TypeVar("SomeState", bound=State)


@runtime_checkable
class Solver(Protocol[SomeState]):
    """A frozen record of hyperparameters and what it does to a state.

    `solvers.base.BaseSolver` has defaults for everything but `init` and `advance`.
    """

    stops_itself: ClassVar[bool]
    """Whether `finished` ends the run some day, so that it needs no limit on iterations."""

    def objection_to(self, problem: Problem) -> str | None:
        """Why this solver cannot take the problem, and what can; None if it can."""

    def init(self, problem: Problem, start: Vector) -> SomeState:
        """A new state at `start`, a point of the domain."""

    def advance(
        self, problem: Problem, state: SomeState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` iterations, in place. Where it returns early does not change the run."""

    def finished(self, state: SomeState) -> Status | None:
        """How the run has ended; None while it goes on."""

    def is_content(self, state: SomeState) -> bool:
        """Whether the run has ended where another method would gain nothing worth its time."""

    def average(self, state: SomeState) -> Vector:
        """The mean of the iterates."""

    def solution(self, state: SomeState) -> Vector:
        """What the solver would answer now; it need not be feasible."""

    def candidates(self, state: SomeState) -> Sequence[Vector]:
        """Points whose projections are worth comparing at the end."""

    def probabilities(self, state: SomeState) -> Vector | None:
        """The learnt distribution over the constraints, where there is one."""

    def batch_sizes(self, state: SomeState) -> tuple[int, int, int]:
        """Examples, drawn constraints and remembered constraints per step."""

    def lower_bound(self, state: SomeState) -> float:
        """What no feasible point's objective is below; -inf where nothing is proven."""

    def multipliers(self, problem: Problem, state: SomeState) -> Vector | None:
        """One per constraint, of the solution; None where the solver has none."""

    def accuracy(self, state: SomeState) -> float:
        """The gap within which CONVERGED may be said, in units of the objective."""

    def notes(self, state: SomeState) -> Sequence[str]:
        """What was chosen and found, in sentences for the user."""

    def remedy(self) -> str:
        """What brings an infeasible solution closer to the constraints; may be empty."""


AnySolver = Solver[Any]  # of whichever state
