"""solve(): the one driver loop. It owns the clock, the history, the ending and the final answer.

The parts are in `driving.py`: `Budget` (how far a run may go), `Recorder` (what it notes on the
way) and `Answer` (the projected point and what is true of it). A solver owns everything in between;
it is asked only through `interfaces.Solver`.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.checking import look_at_custom_pieces
from lighttouch.driving import (
    Answer,
    Budget,
    Callback,
    Progress,
    Recorder,
    best_projection,
    endless_direction,
    unprojected,
)
from lighttouch.errors import CheckpointMismatchError, ProjectionError
from lighttouch.interfaces import AnySolver
from lighttouch.problem import Problem
from lighttouch.result import Result, RunState, Status
from lighttouch.running import Interrupts, OutOfTimeError, Stopwatch, within
from lighttouch.solvers.automatic import Automatic
from lighttouch.solvers.costs import COSTS

__all__ = ["Progress", "RunState", "solve"]

COLUMNS_IN_WORDS = 6  # of a direction


def solve(
    problem: Problem,
    solver: AnySolver | None = None,
    *,
    iterations: int | None = None,
    time_limit: float | None = None,
    start: Any = None,
    seed: int | None = 0,
    callback: Callback | None = None,
    progress: bool = False,
    record_every: int | None = None,
    resume: RunState | None = None,
    project: bool = True,
    device: Any = None,
) -> Result:
    """Minimise the problem's objective under its constraints.

    Parameters
    ----------
    problem : Problem
        Objective, constraints and domain.
    solver : Solver, default=None
        For example `lt.LightTouch(...)`; None is `lt.Automatic()`, which needs no parameters.
    iterations : int, default=None
        The most iterations, counted from the beginning of the run, also when resuming. None leaves
        it to the solver; one that does not stop by itself makes about ten passes over the examples.
    time_limit : float, default=None
        Wall-clock seconds of this call, recording and projections included, compilation left out.
        A final projection that cannot be finished soon after leaves the status NOT_PROJECTED.
    start : array-like of shape (d,), default=None
        Where to begin; it need not be feasible. None is the domain's projection of 0.
    seed : int or None, default=0
        Of the random numbers: the same seed gives the same bits. None is a fresh seed.
    callback : callable, default=None
        Called with a `Progress` at every recorded iteration; returning True stops the run.
    progress : bool, default=False
        Whether to show a progress bar on the error stream.
    record_every : int, default=None
        Iterations between two rows of the history. None records at powers of four, as long as that
        takes at most a twentieth of the run.
    resume : RunState, default=None
        The `state` of an earlier result on the same problem with the same solver, to go on from.
    project : bool, default=True
        Whether the returned `w` is the projection of the solver's solution onto the constraints.
    device : str, default=None
        Where PyTorch solves it, "cuda" say: `InteriorPoint` with all rows and matrices there. None
        is here, without PyTorch, unless the rows are a tensor (`lighttouch.torch.TensorRows`).

    Returns
    -------
    Result
        The point `w` with recomputed `objective` and `violation`, the `status` and the `history`.

    Raises
    ------
    InfeasibleConstraintsError
        If no point satisfies the constraints; `error.rows` names a few that conflict.
    CheckpointMismatchError
        If `resume` belongs to another problem or solver.

    Examples
    --------
    >>> problem = lt.Problem(lt.EmpiricalRisk(np.eye(3), [3.0, 1.0, 2.0]), lt.ordering(3))
    >>> lt.solve(problem).w.round(4)
    array([2., 2., 2.])
    """
    device = problem.constraints.device if device is None else device
    if device is not None:
        return importlib.import_module("lighttouch.torch.device").solve_on(  # type: ignore[no-any-return]
            problem,
            solver,
            device,
            limits=(iterations, time_limit),
            start=start,
            seed=seed,
            recorder=(record_every, callback, progress),
            resume=resume,
            project=project,
        )
    solver = Automatic() if solver is None else solver
    objection = solver.objection_to(problem)
    if objection:
        raise ValueError(f"{type(solver).__name__} cannot take this problem: {objection}")
    looks_convex = look_at_custom_pieces(problem)
    budget = Budget(problem, solver, iterations, time_limit)
    recorder = Recorder(problem, solver, record_every, callback, progress)
    with Interrupts() as interrupts:
        run = _Run(problem, solver, budget, recorder, interrupts)
        run.begin(start, seed) if resume is None else run.go_on(start, resume)
        status = run.ending(run.until_it_ends())
        if status is Status.CONVERGED and not looks_convex:
            status = Status.STALLED
        return run.result(status, run.answer(status, project), project)


class _Run:
    """One run of one solver on one problem: its state, random numbers and seconds."""

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        budget: Budget,
        recorder: Recorder,
        interrupts: Interrupts,
    ) -> None:
        self.problem, self.solver = problem, solver
        self.budget, self.recorder, self.interrupts = budget, recorder, interrupts
        self.rng = np.random.default_rng(0)
        self.state: Any = None
        self.seconds = 0.0  # in the solver, without recording and compilation
        self.seed: int | None = None
        self.direction: Vector | None = None  # along which the objective falls without end
        self.unprojected = False  # a projection failed on the way
        self.finite: tuple[Vector, Vector] = (np.zeros(0), np.zeros(0))  # last iterate, average

    def begin(self, start: Any, seed: int | None) -> None:
        self.recorder.bar.show(0.0, "preparing; the first time compiling takes a while")
        self.seed, self.rng = seed, np.random.default_rng(seed)
        point = self.problem.start(start)
        clock = Stopwatch()
        self.state = self.solver.init(self.problem, point)
        self.seconds = clock.seconds
        self._keep_if_finite()

    def go_on(self, start: Any, resume: RunState) -> None:
        if start is not None:
            raise ValueError(
                "start and resume cannot be given together: a resumed run goes on from where it was"
            )
        for name, value in self._belongs_to().items():
            known = resume.belongs_to.get(name)
            if known != value:
                raise CheckpointMismatchError(
                    f"this run cannot be resumed: {name} was {known}, now it is {value}"
                )
        done = resume.solver_state.iteration
        if self.budget.iterations <= done and self.budget.iterations < math.inf:
            raise ValueError(
                f"iterations counts from the beginning of the run: it must exceed the {done} "
                f"already done, got {self.budget.iterations}"
            )
        self.state = resume.solver_state.copy()
        self.rng.bit_generator.state = resume.generator
        self.seconds, self.seed = resume.seconds, resume.seed
        self._keep_if_finite()

    def _belongs_to(self) -> dict[str, Any]:
        return {
            "the solver": repr(self.solver),
            "the number of parameters": self.problem.dimension,
            "the number of examples": self.problem.objective.examples,
            "the number of constraints": self.problem.constraints.count,
        }

    def ending(self, status: Status) -> Status:
        """DIVERGED is UNBOUNDED where a direction shows it."""
        if status is Status.DIVERGED:
            start = self.problem.start()
            self.direction = endless_direction(self.problem, start, self.finite[0])
            return status if self.direction is None else Status.UNBOUNDED
        return status

    def until_it_ends(self) -> Status:
        """Chunk after chunk, until the solver, a limit or the user ends the run."""
        asked = self.recorder.record(self.state, self.seconds)
        if self.state.iteration >= self.budget.iterations:
            return Status.ITERATION_LIMIT
        if asked:
            return Status.INTERRUPTED
        while True:
            in_time = self._advance()
            if not self._keep_if_finite():
                return Status.DIVERGED
            self.recorder.show(self.budget.share_used(self.state.iteration), self.state.iteration)
            if self.unprojected:
                return Status.NOT_PROJECTED
            status = self._ending()
            if status is not None or not in_time:
                return status or Status.TIME_LIMIT

    def _advance(self) -> bool:
        """A chunk of iterations; False where a projection ran out of time on the way."""
        before, clock = self.state.iteration, Stopwatch()
        steps = self.budget.steps(before, self.recorder.next_stop(before))
        try:
            with (
                within(self._time_for_projections(), lambda: self.interrupts.raised),
                np.errstate(over="ignore", invalid="ignore"),  # `_keep_if_finite` looks
            ):
                self.solver.advance(self.problem, self.state, steps, self.rng)
        except OutOfTimeError:
            return False
        except ProjectionError:
            self.unprojected = True
        finally:
            took = clock.seconds
            self.seconds += took
            self.budget.learn(max(1, self.state.iteration - before), took)
        return True

    def _time_for_projections(self) -> float:
        """A little more than is left: a projection just begun may end."""
        return self.budget.left + COSTS.overtime * self.budget.seconds + COSTS.chunk_seconds

    def _ending(self) -> Status | None:
        at_limit = self.state.iteration >= self.budget.iterations
        asked = False
        if at_limit or self.recorder.is_due(self.state):
            asked = self.recorder.record(self.state, self.seconds)
        if at_limit:
            return Status.ITERATION_LIMIT
        if asked:
            return Status.INTERRUPTED
        ended = self.solver.finished(self.state)
        if ended is not None:
            return ended
        if self.interrupts.raised:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.budget.left <= 0.0 else None

    def _keep_if_finite(self) -> bool:
        last = np.array(self.state.w)
        if _blown_up(last):
            return False
        average = self.solver.average(self.state)
        if _blown_up(average):
            return False
        self.finite = (last, average)
        return True

    def answer(self, status: Status, project: bool) -> Answer:
        finite = status not in (Status.DIVERGED, Status.UNBOUNDED)
        self.recorder.close(self.state, self.seconds, finite)
        if not finite:
            candidates = [self.finite[1]]
        elif project:
            candidates = list(self.solver.candidates(self.state))
        else:
            candidates = [self.solver.solution(self.state)]
        if not project:
            return unprojected(self.problem, candidates[0], "not projected")
        limit = COSTS.final_projection_share * self.budget.seconds + COSTS.final_projection_seconds
        return best_projection(self.problem, candidates, limit)

    def result(self, status: Status, answer: Answer, project: bool) -> Result:
        if project and status not in (Status.DIVERGED, Status.UNBOUNDED) and answer.broken:
            status = Status.NOT_PROJECTED
        last, average = self.finite
        bound = self._bound(answer)
        if status is Status.CONVERGED and answer.objective - bound > self._claim():
            status = Status.STALLED
        return Result(
            w=answer.w,
            w_average=average,
            w_last=last,
            objective=answer.objective,
            violation=answer.violation,
            iterations=self.state.iteration,
            constraint_checks=self.state.constraint_checks,
            gradient_samples=self.state.gradient_samples,
            seconds=self.seconds + answer.seconds,
            status=status,
            history=self.recorder.history,
            constraint_probabilities=self.solver.probabilities(self.state),
            state=RunState(
                self.state,
                self.rng.bit_generator.state,
                self.seconds,
                self._belongs_to(),
                self.seed,
            ),
            seed=self.seed,
            solver=self.solver,
            projection=answer.method,
            violation_before_projection=answer.violation_before,
            objective_before_projection=answer.objective_before,
            preparation_seconds=self.budget.clock.compiling,
            lower_bound=bound,
            multipliers=self.solver.multipliers(self.problem, self.state),
            notes=self._notes(answer, project and status is not Status.NOT_PROJECTED),
        )

    def _bound(self, answer: Answer) -> float:
        """The solver's bound; a bound above the objective of a feasible point by more than rounding
        contradicts itself and proves nothing.
        """
        bound = self.solver.lower_bound(self.state)
        if answer.broken:
            return bound
        rounding = COSTS.bound_rounding * (1.0 + abs(answer.objective))
        return min(bound, answer.objective) if bound <= answer.objective + rounding else -math.inf

    def _claim(self) -> float:
        """The gap within which CONVERGED may be said, with room for rounding."""
        return self.solver.accuracy(self.state) * (1.0 + COSTS.claim_rounding)

    def _notes(self, answer: Answer, projected: bool) -> tuple[str, ...]:
        compiling = self.budget.clock.compiling
        gap = answer.objective - self._bound(answer)
        proven = (
            [f"the objective is proven within {max(0.0, gap):.3g} of the optimum"]
            if math.isfinite(gap)
            else []
        )
        notes = [
            *self.solver.notes(self.state),
            *proven,
            f"compilation and other preparation took {compiling:.2f} s, not included in the "
            "seconds",
        ]
        if self.direction is not None:
            largest = np.argsort(-np.abs(self.direction))[:COLUMNS_IN_WORDS]
            terms = ", ".join(f"w[{j}]: {self.direction[j]:+.3g}" for j in sorted(largest))
            notes.append(f"the objective falls without end along ({terms})")
        if answer.broken_before:
            ended = "the projection removed it" if projected else "w was not projected"
            advice = "; ".join(filter(None, [ended, self.solver.remedy()]))
            notes.append(
                f"the solution broke a constraint by {answer.violation_before:.3g}: {advice}"
            )
        return tuple(notes)


def _blown_up(w: Vector) -> bool:
    """Beyond this size squares overflow: such a point is as good as infinite."""
    return not float(np.abs(w).max()) < COSTS.blown_up
