"""The solver that chooses for itself: what `solve(problem)` runs.

It chains solvers that can each be used alone (`ChainSolver`, in `base.py`). `choices` is the whole
choice, and an iterator: what a later solver would cost is asked only where those before it have
proven nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.interfaces import AnySolver
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections.sets import FeasibleSet, feasible_set
from lighttouch.solvers.accelerated import Accelerated
from lighttouch.solvers.averaged import AveragedShards
from lighttouch.solvers.base import ChainSolver, ChainState
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.cutting_planes import CuttingPlanes
from lighttouch.solvers.interior import InteriorPoint
from lighttouch.solvers.interior_rounds import interior_seconds
from lighttouch.solvers.quadratic_steps import QuadraticSteps
from lighttouch.solvers.sampled import SampledAdaGrad, is_ours
from lighttouch.solvers.scales import (
    check_operations,
    fista_seconds,
    full_pass_is_cheap,
    has_kinks,
    pass_operations,
    polish_is_cheap,
    provable_passes,
)
from lighttouch.solvers.splitting import AlternatingDirections
from lighttouch.validation import positive


@dataclass(frozen=True)
class Automatic(ChainSolver):
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
    takes_shards = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def choices(self, problem: Problem, seconds: float) -> Iterator[AnySolver]:
        if isinstance(problem.objective, ShardedRisk):
            return self._for_shards(problem)
        try:
            feasible = feasible_set(problem.constraints, problem.domain)
        except InfeasibleConstraintsError:
            return iter([Accelerated(self.tolerance)])  # its first projection says so in words
        cheap = full_pass_is_cheap(problem)
        if cheap and feasible.has_nested:
            directions = AlternatingDirections(self.tolerance)
            if directions.objection_to(problem) is None:
                return iter([directions, Accelerated(self.tolerance)])
        interior = self._interior_seconds(problem, feasible, seconds)
        patience = COSTS.proof_seconds if cheap and feasible.is_coupled else COSTS.interior_seconds
        by_fista = max(fista_seconds(problem, self.tolerance), COSTS.short_interior)
        if interior <= min(patience, by_fista):
            return self._interior_first(problem, feasible, interior)
        if cheap and check_operations(problem) <= COSTS.cheap_check:
            return self._fista_first(problem, feasible)
        return self._sampling_first(problem, interior, by_fista)

    def _for_shards(self, problem: Problem) -> Iterator[AnySolver]:
        """Quadratic models where their matrix is small, for kinked losses where FISTA proves
        nothing; else every shard alone, and full gradients from the mean.
        """
        polish = Accelerated(self.tolerance)
        steps = QuadraticSteps(min(self.tolerance, COSTS.interior_claim))
        if steps.objection_to(problem) is None:
            return iter([polish, steps] if has_kinks(problem) else [steps, polish])  # fewer passes
        if not is_ours(problem.constraints.record):
            return iter([polish])  # a user's rules cannot go to other processes
        return iter([AveragedShards(self.tolerance), replace(polish, near=True)])

    def _interior_seconds(self, problem: Problem, feasible: FeasibleSet, seconds: float) -> float:
        """About how long an interior point would take; infinite where others are better anyway
        (smooth losses under orders and boxes, whose projections are cheap), and where that is
        longer than the time limit.
        """
        if not (feasible.is_coupled or has_kinks(problem)):
            return math.inf
        if InteriorPoint().objection_to(problem) is not None:
            return math.inf
        needed = interior_seconds(problem)
        return needed if needed <= COSTS.estimated_share * seconds else math.inf

    def _interior_first(
        self, problem: Problem, feasible: FeasibleSet, seconds: float
    ) -> Iterator[AnySolver]:
        short = seconds <= COSTS.short_interior
        yield InteriorPoint(min(self.tolerance, COSTS.interior_claim) if short else self.tolerance)
        yield from self._planes(problem, feasible)
        yield Accelerated(self.tolerance)

    def _fista_first(self, problem: Problem, feasible: FeasibleSet) -> Iterator[AnySolver]:
        """FISTA, and what proves its answer, or finds a better one, where that is cheap too. Under
        rules that make projections dear, the others go first: they need few.
        """
        polish = Accelerated(self.tolerance)
        if not (feasible.is_coupled or feasible.has_curved_families):
            yield replace(polish, passes=COSTS.passes_before_proof)
        interior = InteriorPoint(self.tolerance)
        if interior.objection_to(problem) is None:
            patience = COSTS.interior_seconds if has_kinks(problem) else COSTS.short_interior
            if interior_seconds(problem) > patience:
                yield polish
                return
            yield interior
        yield from self._planes(problem, feasible)
        yield polish

    def _planes(self, problem: Problem, feasible: FeasibleSet) -> Iterator[AnySolver]:
        """Cutting planes, for functions that the interior point cannot take as they are."""
        needed = feasible.is_curved or InteriorPoint().objection_to(problem) is not None
        small = problem.dimension <= COSTS.cutting_dimension
        if needed and small and pass_operations(problem) <= COSTS.cutting_pass:
            yield CuttingPlanes(self.tolerance)

    def _sampling_first(
        self, problem: Problem, interior: float, by_fista: float
    ) -> Iterator[AnySolver]:
        """Sampling, and what finishes or proves it, if anything can be afforded."""
        rest: list[AnySolver] = []
        affordable = polish_is_cheap(problem) or provable_passes(problem) >= COSTS.proof_passes
        if affordable and not interior <= min(COSTS.proof_seconds, by_fista):
            rest.append(Accelerated(self.tolerance, near=True))
        if interior <= COSTS.proof_seconds:
            rest.append(InteriorPoint(self.tolerance, near=True))
        near = max(self.tolerance, COSTS.proof_tolerance) if rest else self.tolerance
        return iter([SampledAdaGrad(near), *rest])

    def adapted(self, problem: Problem, state: ChainState, solver: AnySolver) -> AnySolver:
        """A finish that ends in a proof, or takes less work than the sampling before it, where
        kinks make it slow.
        """
        if not (isinstance(solver, Accelerated) and solver.near and has_kinks(problem)):
            return solver
        if isinstance(problem.objective, ShardedRisk):
            return solver  # the mean of the shards' solutions is too far off to stop near it
        sampled = COSTS.sparse_operations * state.gradient_samples / problem.objective.examples
        few = max(COSTS.fewest_polish_passes, int(COSTS.polish_share * sampled))
        proof = provable_passes(problem)
        return replace(solver, passes=proof if proof >= COSTS.proof_passes else few)
