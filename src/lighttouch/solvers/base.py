"""What solvers share: the half of the protocol that most leave as it is, states made of arrays, and
how one solver runs others in a chain.

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
from itertools import islice
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.interfaces import AnySolver, SomeState
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
from lighttouch.running import seconds_left
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
    used_up: bool = field(default=False, kw_only=True)  # what it was allowed: that has ended it

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
class ChainState(SolverState):
    """The solver that runs, its state, and the best feasible point of those before."""

    solver: AnySolver
    inner: SolverState
    earlier: Indices  # the counters of the solvers before
    best: Vector
    seconds: float  # that were left at the start, for all choices
    place: int = 0  # how many solvers ran before
    following: AnySolver | None = None  # once `solver` has ended without a proof
    is_last: bool = False  # nothing follows
    best_objective: float = math.inf
    bound: float = -math.inf  # of the solvers before

    @property
    def w(self) -> Vector:
        return self.inner.w  # type: ignore[attr-defined,no-any-return]


class ChainSolver(BaseSolver[ChainState]):
    """Solvers that run others, each from the solution of the one before, until one of them proves
    enough, or the last has ended.
    """

    tolerance: float
    stops_itself = True

    def chain(self, problem: Problem) -> tuple[AnySolver, ...]:
        """The solvers for this problem, in the order in which they run."""
        return tuple(self.choices(problem, seconds_left()))

    def choices(self, problem: Problem, seconds: float) -> Iterator[AnySolver]:
        """The same one by one, each chosen when it is asked for, for a run of so many seconds. The
        same solver twice has a limit the first time: it goes on where that has ended it.
        """
        raise NotImplementedError

    def adapted(self, problem: Problem, state: ChainState, solver: AnySolver) -> AnySolver:
        """The next solver, in view of what those before have done."""
        return solver

    def init(self, problem: Problem, start: Vector) -> ChainState:
        seconds = seconds_left()
        choices = self.choices(problem, seconds)
        first = next(choices)
        if math.isfinite(seconds):
            list(choices)  # a late answer would break a time limit: it is kept with the problem
        inner = first.init(problem, start)
        return ChainState(new_counters(), first, inner, new_counters(), start.copy(), seconds)

    def advance(
        self, problem: Problem, state: ChainState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` iterations of the solver whose turn it is."""
        if steps == 0:
            return
        if state.following is not None:
            self._next(problem, state, state.following)
        if state.solver.finished(state.inner) is None:
            state.solver.advance(problem, state.inner, steps, rng)
            for counter in (ITERATION, CHECKS, SAMPLES):
                state.counters[counter] = state.earlier[counter] + state.inner.counters[counter]
        if state.solver.finished(state.inner) is not None and self.finished(state) is None:
            self._choose_next(problem, state)

    def _choose_next(self, problem: Problem, state: ChainState) -> None:
        """The next solver; the same one goes on without a limit where that has ended it, and is
        the last one otherwise.
        """
        found = next(islice(self.choices(problem, state.seconds), state.place + 1, None), None)
        inner = state.inner
        again = isinstance(inner, EndingState) and type(found) is type(state.solver)
        if isinstance(inner, EndingState) and again and inner.used_up:
            assert found is not None
            state.solver, inner.ended, inner.used_up = found, False, False
        elif found is None or again:
            state.is_last = True
        else:
            state.following = self.adapted(problem, state, found)

    def _next(self, problem: Problem, state: ChainState, following: AnySolver) -> None:
        """Go on with the next solver from the solution of this one."""
        if state.place == 0 and not problem.relative_violation(state.best) > 0.0:
            state.best_objective = problem.objective.value(state.best)  # the start, feasible
        first = state.best_objective
        solution = state.solver.solution(state.inner)
        objective = problem.objective.value(solution)
        if objective < state.best_objective:
            state.best, state.best_objective = solution, objective
        state.bound = max(state.bound, state.solver.lower_bound(state.inner))
        state.earlier = state.counters.copy()
        if math.isinf(state.first_objective):
            state.first_objective = first if math.isfinite(first) else objective
        inner = following.init(problem, state.best)
        inner.first_objective = state.first_objective
        state.solver, state.inner, state.following = following, inner, None
        state.place += 1

    def finished(self, state: ChainState) -> Status | None:
        status = state.solver.finished(state.inner)
        if status is not None and self._is_proven(state):
            return Status.CONVERGED
        if status is None or state.is_last or state.solver.is_content(state.inner):
            return status
        return None  # another follows, or has still to be chosen

    def _is_proven(self, state: ChainState) -> bool:
        """What one has found, another has proven."""
        return state.best_objective - self.lower_bound(state) <= self._enough(state)

    def average(self, state: ChainState) -> Vector:
        return state.solver.average(state.inner)

    def solution(self, state: ChainState) -> Vector:
        return self.candidates(state)[0]

    def candidates(self, state: ChainState) -> Sequence[Vector]:
        earlier = [state.best] if state.place else []
        return [*state.solver.candidates(state.inner), *earlier]

    def probabilities(self, state: ChainState) -> Vector | None:
        return state.solver.probabilities(state.inner)

    def batch_sizes(self, state: ChainState) -> tuple[int, int, int]:
        return state.solver.batch_sizes(state.inner)

    def lower_bound(self, state: ChainState) -> float:
        return max(state.bound, state.solver.lower_bound(state.inner))

    def multipliers(self, problem: Problem, state: ChainState) -> Vector | None:
        return state.solver.multipliers(problem, state.inner)

    def accuracy(self, state: ChainState) -> float:
        return max(self._enough(state), state.solver.accuracy(state.inner))

    def _enough(self, state: ChainState) -> float:
        """The gap within which the best point of the solvers before may be called optimal."""
        known = math.isfinite(state.best_objective)
        return self.tolerance * abs(state.best_objective) if known else 0.0

    def notes(self, state: ChainState) -> Sequence[str]:
        return state.solver.notes(state.inner)


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
