"""The solver that chooses for itself: what `solve(problem)` runs.

It chains solvers that can each be used alone. Each goes on from the solution of the one before; the
chain ends with the first proof, or with the last of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.interfaces import AnySolver
from lighttouch.kernels.state.iterate import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.result import Status
from lighttouch.running import seconds_left
from lighttouch.solvers.accelerated import Accelerated
from lighttouch.solvers.averaged import AveragedShards
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.cutting_planes import CuttingPlanes
from lighttouch.solvers.interior import InteriorPoint
from lighttouch.solvers.interior_rounds import interior_seconds
from lighttouch.solvers.quadratic_steps import QuadraticSteps
from lighttouch.solvers.sampled import SampledAdaGrad, is_ours
from lighttouch.solvers.scales import check_operations, has_kinks, pass_operations
from lighttouch.solvers.splitting import AlternatingDirections
from lighttouch.validation import positive


@dataclass
class ChainState(SolverState):
    """Which solver of the chain runs, its state, and the best feasible point of those before."""

    solvers: tuple[AnySolver, ...]
    place: int
    inner: SolverState
    earlier: Indices  # the counters of the solvers before
    best: Vector
    best_objective: float = math.inf
    bound: float = -math.inf  # of the solvers before

    @property
    def w(self) -> Vector:
        return self.inner.w  # type: ignore[attr-defined,no-any-return]

    @property
    def solver(self) -> AnySolver:
        return self.solvers[self.place]


@dataclass(frozen=True)
class Automatic(BaseSolver[ChainState]):
    """The default solver: it chooses among `lt.SampledAdaGrad`, `lt.Accelerated` and others.

    Losses with kinks and rows that couple many parameters go to an interior point, after sampling
    where that takes long; other small problems go to accelerated projected gradient steps at once,
    smooth losses under nested rows to alternating directions. Many examples are sampled first.

    Parameters
    ----------
    tolerance : float, default=1e-3
        Relative accuracy. CONVERGED is said only where a bound proves it.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> problem = lt.Problem(lt.EmpiricalRisk(np.eye(3), [3.0, 1.0, 2.0]), lt.ordering(3))
    >>> round(lt.solve(problem, lt.Automatic(1e-6)).objective, 6)
    0.333333
    """

    tolerance: float = 1e-3
    stops_itself = True
    takes_shards = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def chain(self, problem: Problem) -> tuple[AnySolver, ...]:
        """The solvers for this problem, in the order in which they run."""
        if isinstance(problem.objective, ShardedRisk):
            return self._for_shards(problem)
        return self._for_memory(problem)

    def _for_memory(self, problem: Problem) -> tuple[AnySolver, ...]:
        """All examples are in this process."""
        polish = Accelerated(self.tolerance)
        try:
            feasible = feasible_set(problem.constraints, problem.domain)
        except InfeasibleConstraintsError:
            return (polish,)  # its first projection says so in words
        directions = AlternatingDirections(self.tolerance)
        cheap = _full_pass_is_cheap(problem)
        if cheap and feasible.has_nested and directions.objection_to(problem) is None:
            return (directions, polish)
        seconds = self._interior_seconds(problem, feasible)
        patience = COSTS.proof_seconds if cheap and feasible.is_coupled else COSTS.interior_seconds
        first_order = max(_proof_by_fista(problem, self.tolerance), COSTS.short_interior)
        if seconds <= min(patience, first_order):
            short = seconds <= COSTS.short_interior
            tolerance = min(self.tolerance, COSTS.interior_claim) if short else self.tolerance
            return (InteriorPoint(tolerance), *self._planes(problem, feasible), polish)
        if cheap and check_operations(problem) <= COSTS.cheap_check:
            return self._with_proof(problem, feasible, polish)
        affordable = _polish(problem) or _provable_passes(problem) >= COSTS.proof_passes
        rest: list[AnySolver] = []
        if affordable and not seconds <= min(COSTS.proof_seconds, first_order):
            rest.append(Accelerated(self.tolerance, near=True))
        if seconds <= COSTS.proof_seconds:
            rest.append(InteriorPoint(self.tolerance, near=True))
        near = max(self.tolerance, COSTS.proof_tolerance) if rest else self.tolerance
        return (SampledAdaGrad(near), *rest)

    def _for_shards(self, problem: Problem) -> tuple[AnySolver, ...]:
        """Quadratic models where their matrix is small, for kinked losses where FISTA proves
        nothing; else every shard alone, and full gradients from the mean.
        """
        steps = QuadraticSteps(min(self.tolerance, COSTS.interior_claim))
        if steps.objection_to(problem) is None:
            polish = Accelerated(self.tolerance)
            return (polish, steps) if has_kinks(problem) else (steps, polish)  # fewer passes
        if not is_ours(problem.constraints.record):
            return (Accelerated(self.tolerance),)  # a user's rules cannot go to other processes
        return (AveragedShards(self.tolerance), Accelerated(self.tolerance, near=True))

    def _with_proof(
        self, problem: Problem, feasible: FeasibleSet, polish: Accelerated
    ) -> tuple[AnySolver, ...]:
        """FISTA, and what proves its answer, or finds a better one, where that is cheap too. Under
        rules that make projections dear, the others go first: they need few.
        """
        interior = InteriorPoint(self.tolerance)
        proofs: tuple[AnySolver, ...] = self._planes(problem, feasible)
        if interior.objection_to(problem) is None:
            patience = COSTS.interior_seconds if has_kinks(problem) else COSTS.short_interior
            if interior_seconds(problem) > patience:
                return (polish,)
            proofs = (interior, *proofs)
        if feasible.is_coupled or feasible.has_curved_families or not proofs:
            return (*proofs, polish)
        return (replace(polish, passes=COSTS.passes_before_proof), *proofs, polish)

    def _planes(self, problem: Problem, feasible: FeasibleSet) -> tuple[AnySolver, ...]:
        """Cutting planes, for functions that the interior point cannot take as they are."""
        needed = feasible.is_curved or InteriorPoint().objection_to(problem) is not None
        small = problem.dimension <= COSTS.cutting_dimension
        cheap = pass_operations(problem) <= COSTS.cutting_pass
        return (CuttingPlanes(self.tolerance),) if needed and small and cheap else ()

    def _interior_seconds(self, problem: Problem, feasible: FeasibleSet) -> float:
        """About how long an interior point would take; infinite where others are better anyway
        (smooth losses under orders and boxes, whose projections are cheap), and where that is
        longer than the time limit.
        """
        kinked = has_kinks(problem)
        if not (feasible.is_coupled or kinked):
            return math.inf
        if InteriorPoint().objection_to(problem) is not None:
            return math.inf
        seconds = interior_seconds(problem)
        return seconds if seconds <= COSTS.estimated_share * seconds_left() else math.inf

    def init(self, problem: Problem, start: Vector) -> ChainState:
        solvers = self.chain(problem)
        inner = solvers[0].init(problem, start)
        return ChainState(new_counters(), solvers, 0, inner, new_counters(), start.copy())

    def advance(
        self, problem: Problem, state: ChainState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` iterations of the solver whose turn it is."""
        if steps == 0:
            return
        if state.solver.finished(state.inner) is not None:
            if self.finished(state) is not None:
                return  # a finished run that was resumed
            self._next(problem, state)
        state.solver.advance(problem, state.inner, steps, rng)
        for counter in (ITERATION, CHECKS, SAMPLES):
            state.counters[counter] = state.earlier[counter] + state.inner.counters[counter]

    def _next(self, problem: Problem, state: ChainState) -> None:
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
        state.place += 1
        state.solvers = tuple(_within_budget(problem, state, each) for each in state.solvers)
        if math.isinf(state.first_objective):
            state.first_objective = first if math.isfinite(first) else objective
        state.inner = state.solver.init(problem, state.best)
        state.inner.first_objective = state.first_objective

    def finished(self, state: ChainState) -> Status | None:
        status = state.solver.finished(state.inner)
        if status is None:
            return None
        if state.best_objective - self.lower_bound(state) <= self._enough(state):
            return Status.CONVERGED  # what one has found, another has proven
        last = state.place + 1 == len(state.solvers)
        return status if last or state.solver.is_content(state.inner) else None

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


def _within_budget(problem: Problem, state: ChainState, solver: AnySolver) -> AnySolver:
    """A finish that ends in a proof, or takes less work than the sampling before it, where kinks
    make it slow.
    """
    if not (isinstance(solver, Accelerated) and solver.near and has_kinks(problem)):
        return solver
    if isinstance(problem.objective, ShardedRisk):
        return solver  # the mean of the shards' solutions is too far off to stop near it
    sampled = COSTS.sparse_operations * state.gradient_samples / problem.objective.examples
    few = max(COSTS.fewest_polish_passes, int(COSTS.polish_share * sampled))
    proof = _provable_passes(problem)
    return replace(solver, passes=proof if proof >= COSTS.proof_passes else few)


def _provable_passes(problem: Problem) -> int:
    """Full gradients that a proof may take; 0 where FISTA's bounds are seldom finite: without a
    ridge or bounds on all parameters, or where projections are no matter of milliseconds.
    """
    lower, upper = problem.domain.bounds(problem.dimension)
    bounded = bool(np.isfinite(lower).all() and np.isfinite(upper).all())
    if not (bounded or problem.objective.l2 > 0.0):
        return 0
    feasible = feasible_set(problem.constraints, problem.domain)
    if not (feasible.is_box or feasible.is_order):
        return 0
    return int(COSTS.proof_seconds * COSTS.pass_rate / max(1.0, pass_operations(problem)))


def _proof_by_fista(problem: Problem, tolerance: float) -> float:
    """About how many seconds FISTA takes to prove the answer of sampling; infinite where it cannot.
    Under kinks its steps grow as the tolerance shrinks.
    """
    if _provable_passes(problem) < COSTS.proof_passes:
        return math.inf
    passes = COSTS.proof_passes * max(1.0, COSTS.proof_tolerance / tolerance)
    work = pass_operations(problem) + COSTS.projection_operations * problem.dimension
    return passes * work / COSTS.pass_rate


def _full_pass_is_cheap(problem: Problem) -> bool:
    most = COSTS.kinked_cheap_pass if has_kinks(problem) else COSTS.cheap_pass
    return pass_operations(problem) <= most or problem.objective.examples == 1


def _polish(problem: Problem) -> bool:
    """Whether FISTA on all examples is affordable after sampling."""
    most = COSTS.kinked_polish_pass if has_kinks(problem) else COSTS.polish_pass
    return pass_operations(problem) <= most
