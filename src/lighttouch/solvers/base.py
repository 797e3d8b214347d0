"""What solvers share: the half of the protocol that most leave as it is, and states made of arrays.

`interfaces.Solver` declares the whole protocol. A solver inherits `BaseSolver`, is a frozen
dataclass of hyperparameters, and implements `init` and `advance`; everything else has a default
here. Its state inherits `SolverState`: arrays and numbers only, so that saving the state is saving
the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.interfaces import SomeState
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.distribution import Distribution, probabilities
from lighttouch.kernels.state.iterate import (
    AVERAGED_FROM,
    CHECKS,
    ITERATION,
    SAMPLES,
    Batches,
    ExampleOrder,
    Iterate,
    average,
    new_counters,
    new_example_order,
    new_iterate,
)
from lighttouch.kernels.state.running_maximum import MaximumTree
from lighttouch.problem import Problem
from lighttouch.result import Status
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY


class BaseSolver(Generic[SomeState]):
    """The defaults of the optional half of the protocol."""

    stops_itself: ClassVar[bool] = False
    takes_shards: ClassVar[bool] = False  # whether it can take a ShardedRisk

    def objection_to(self, problem: Problem) -> str | None:
        return None

    def finished(self, state: SomeState) -> Status | None:
        return None

    def is_content(self, state: SomeState) -> bool:
        return self.finished(state) is Status.CONVERGED

    def average(self, state: SomeState) -> Vector:
        return np.array(state.w, dtype=np.float64)

    def solution(self, state: SomeState) -> Vector:
        return self.average(state)

    def candidates(self, state: SomeState) -> Sequence[Vector]:
        return [self.solution(state)]

    def probabilities(self, state: SomeState) -> Vector | None:
        return None

    def batch_sizes(self, state: SomeState) -> tuple[int, int, int]:
        return (0, 0, 0)

    def lower_bound(self, state: SomeState) -> float:
        return -math.inf

    def multipliers(self, problem: Problem, state: SomeState) -> Vector | None:
        return None

    def accuracy(self, state: SomeState) -> float:
        return math.inf

    def notes(self, state: SomeState) -> Sequence[str]:
        return ()

    def remedy(self) -> str:
        """What brings an infeasible solution closer to the constraints; may be empty."""
        return ""


@dataclass
class SolverState:
    """What is counted (`kernels.state.iterate`); subclasses add arrays and numbers, and `w`."""

    counters: Indices
    first_objective: float = field(default=math.inf, kw_only=True)  # at the start, if it matters

    @property
    def iteration(self) -> int:
        return int(self.counters[ITERATION])

    @property
    def constraint_checks(self) -> int:
        return int(self.counters[CHECKS])

    @property
    def gradient_samples(self) -> int:
        return int(self.counters[SAMPLES])

    def copy(self) -> Self:
        return copied(self)  # type: ignore[no-any-return]


@dataclass
class EndingState(SolverState):
    """Of a solver that stops by itself."""

    ended: bool = field(default=False, kw_only=True)

    def slice(self, steps: int) -> Iterator[None]:
        """At most so many steps: fewer once the solver has ended, or after a slice of time, which
        changes nothing.
        """
        until = time.perf_counter() + COSTS.chunk_seconds
        for _ in range(steps):
            if self.ended or time.perf_counter() > until:
                return
            yield


SomeEnding = TypeVar("SomeEnding", bound=EndingState)


class EndingSolver(BaseSolver[SomeEnding]):  # type: ignore[type-var]  # states add `w`
    """Solvers that stop by themselves, with a proof or without."""

    stops_itself = True

    def is_proven(self, state: SomeEnding) -> bool:
        raise NotImplementedError

    def finished(self, state: SomeEnding) -> Status | None:
        if not state.ended:
            return None
        return Status.CONVERGED if self.is_proven(state) else Status.STALLED


@dataclass
class SgdState(SolverState):
    """The state of the paper's algorithms: iterate, place in the examples, and what some add."""

    iterate: Iterate
    visits: ExampleOrder
    distribution: Distribution | None = None
    batches: Batches | None = None
    tree: MaximumTree | None = None

    @property
    def w(self) -> Vector:
        return self.iterate.w


SomeSgd = TypeVar("SomeSgd", bound=SgdState)


class AveragingSolver(BaseSolver[SomeSgd]):
    """Solvers of the paper: their solution is the average of the iterates."""

    def average(self, state: SomeSgd) -> Vector:
        return average(state.iterate, int(state.counters[AVERAGED_FROM]), state.iteration)

    def probabilities(self, state: SomeSgd) -> Vector | None:
        return None if state.distribution is None else probabilities(state.distribution)


def claim_unit(objective: float, first_objective: float) -> float:
    """What a tolerance is relative to: the objective, or a little of what was gained since the
    start where it is nearly 0.
    """
    gained = abs(first_objective - objective)
    little = COSTS.little_objective * gained if math.isfinite(gained) else 0.0
    return max(abs(objective), little, TINY)


def first_state(problem: Problem, start: Vector) -> SgdState:
    order = new_example_order(problem.objective.examples, problem.objective.independent)
    return SgdState(new_counters(), new_iterate(start), order)


def copied(value: object) -> Any:
    """A deep copy of arrays in records, dataclasses and lists, each in its order in memory."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, tuple):
        parts = [copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [copied(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        names = [part.name for part in fields(value) if part.init]
        return replace(value, **{name: copied(getattr(value, name)) for name in names})
    return value


def runnable(kernel: Callable[..., Any], problem: Problem) -> Callable[..., Any]:
    """The kernel itself, or its interpreted twin where a Python callable takes part."""
    return interpreted(kernel) if problem.interpreted else kernel
