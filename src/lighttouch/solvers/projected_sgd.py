"""SGD that projects onto all constraints after every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.domains import Everywhere
from lighttouch.kernels.loops.touch import full_touch
from lighttouch.kernels.state.iterate import CHECKS, new_gradient, put_iterate
from lighttouch.problem import Problem
from lighttouch.projections import Projected, project
from lighttouch.solvers.base import AveragingSolver, SgdState, first_state, runnable
from lighttouch.solvers.steps import StepSize, rule_and_eta, step_numbers
from lighttouch.validation import positive_int

Projection = Callable[[Vector, Any, Any], Projected | Vector]


@dataclass
class ProjectedState(SgdState):
    """The iterate, how often it was projected, and what the last projection hands to the next."""

    projections: int = 0
    warm: Vector | None = None


@dataclass(frozen=True)
class ProjectedSGD(AveragingSolver[ProjectedState]):
    """SGD with Pi_g, the exact projection onto constraints and domain, after every step.

    The start is projected too. The projection of a step looks at every constraint and is counted as
    that many checks; the result's notes, and `result.state.solver_state.projections`, say how many
    there were. The solution is the average of the iterates.

    Parameters
    ----------
    step_size : float or InverseSqrt or InverseTime or AdaGrad
        A float is a constant step.
    batch : int, default=1
        Examples per step.
    projection : callable, optional
        Called as projection(w, constraints, domain), it returns the projected point, as an array or
        as a `Projected`. None, the default, is `lighttouch.project`, started from the multipliers
        of the projection before.

    Raises
    ------
    ValueError
        If a number is not positive where it must be, or `step_size` is neither a positive
        number nor one of `InverseSqrt`, `InverseTime` and `AdaGrad`.
    TypeError
        If `projection` is not a function.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0, 0.0], [0.0, 1.0]], [2.0, 1.0])
    >>> problem = lt.Problem(objective, lt.ordering(2))
    >>> result = lt.solve(problem, lt.ProjectedSGD(lt.InverseSqrt(0.5)), iterations=200)
    >>> result.violation <= 1e-9
    True
    """

    step_size: StepSize
    batch: int = 1
    projection: Projection | None = None

    def __post_init__(self) -> None:
        rule_and_eta(self.step_size)
        positive_int(self.batch, "batch")
        if self.projection is not None and not callable(self.projection):
            raise TypeError(
                "projection must be callable as projection(w, constraints, domain), got "
                f"{type(self.projection).__name__}"
            )

    def __repr__(self) -> str:
        """Without the address of the projection, which differs in every process: a run is resumed
        under the same repr.
        """
        chosen = (
            getattr(self.projection, "__qualname__", type(self.projection).__name__)
            if self.projection
            else None
        )
        return (
            f"ProjectedSGD(step_size={self.step_size!r}, batch={self.batch}, projection={chosen})"
        )

    def init(self, problem: Problem, start: Vector) -> ProjectedState:
        """A state at the projection of the start."""
        first = first_state(problem, start)
        state = ProjectedState(first.counters, first.iterate, first.visits)
        state.iterate.w[:] = self._nearest(problem, state)
        return state

    def advance(
        self, problem: Problem, state: ProjectedState, steps: int, rng: np.random.Generator
    ) -> None:
        objective, constraints = problem.objective, problem.constraints
        numbers = step_numbers(self.step_size, self.batch, objective.l2)
        everywhere, gradient = (
            Everywhere().record(problem.dimension),
            new_gradient(problem.dimension),
        )
        take_step = runnable(full_touch, problem)
        for _ in range(steps):
            take_step(
                objective.record,
                constraints.record,
                0,
                everywhere,
                numbers,
                state.iterate,
                state.visits,
                gradient,
                state.counters,
                1,
                rng,
            )
            if not np.isfinite(state.w).all():
                return
            put_iterate(state.iterate, self._nearest(problem, state), state.iteration)
            state.projections += 1
            state.counters[CHECKS] += constraints.members

    def _nearest(self, problem: Problem, state: ProjectedState) -> Vector:
        if self.projection is None:
            found = project(state.w, problem.constraints, problem.domain, warm=state.warm)
            state.warm = found.warm if isinstance(found.warm, np.ndarray) else None
            return found.w
        nearest = self.projection(state.w.copy(), problem.constraints, problem.domain)
        return (
            nearest.w if isinstance(nearest, Projected) else np.asarray(nearest, dtype=np.float64)
        )

    def notes(self, state: ProjectedState) -> tuple[str, ...]:
        return (f"{state.projections:,} projections onto the constraints, one per step",)

    def batch_sizes(self, state: ProjectedState) -> tuple[int, int, int]:
        return (self.batch, 0, 0)
