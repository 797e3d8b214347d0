"""solve(): the one driver loop. It owns the clock, the history, the ending and the final answer.

The parts are in `driving.py`: `Budget` (how far a run may go), `Reserve` (what it keeps for the
end), `Recorder` (what it notes on the way), `Answer` (the projected point and what is true of it)
and `Proof` (how far from the optimum it can be). A solver owns everything in between; it is asked
only through `interfaces.Solver`.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Vector
from lighttouch.checking import look_at_custom_pieces
from lighttouch.checkpoints import (
    EVERY,
    Belonging,
    CheckpointFile,
    Snapshot,
    checkpointing,
)
from lighttouch.driving import (
    Answer,
    Budget,
    Callback,
    Progress,
    Proof,
    Recorder,
    Reserve,
    best_projection,
    endless_direction,
    unprojected,
)
from lighttouch.errors import CheckpointMismatchError, DataError, ProjectionError
from lighttouch.fingerprints import fingerprint
from lighttouch.interfaces import AnySolver, Solver
from lighttouch.kernels.state.iterate import new_counters
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem, is_custom
from lighttouch.result import History, Result, RunState, Status
from lighttouch.running import Engine, OutOfTimeError, Stopwatch, within, working_with
from lighttouch.signals import Interrupts
from lighttouch.solvers.automatic import Automatic
from lighttouch.solvers.base import BaseSolver, SolverState
from lighttouch.solvers.costs import COSTS
from lighttouch.validation import flag, positive, told, whole_seed

__all__ = ["Progress", "RunState", "solve"]

LOG = logging.getLogger("lighttouch")
COLUMNS_IN_WORDS = 6  # of a direction


def solve(
    problem: Problem,
    solver: AnySolver | None = None,
    *,
    iterations: int | None = None,
    time_limit: float | None = None,
    start: ArrayLike | None = None,
    seed: int | None = 0,
    callback: Callback | None = None,
    progress: bool = False,
    record_every: int | None = None,
    resume: RunState | None = None,
    project: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = EVERY,
    engine: Engine | None = None,
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
        A fifth of it is kept for the final projection, where one is needed. Where that is not
        finished soon after, the answer under orders is a feasible point nearby; elsewhere the
        status is NOT_PROJECTED.
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
    checkpoint : str or path, default=None
        A file that the run is kept in. Where it is there already, the run goes on from it, to the
        same bits as if it had never been interrupted. It stays when the run has ended.
    checkpoint_every : float, default=30.0
        Seconds between two writings of the file.
    engine : Engine, default=None
        What computes the shards of a `ShardedRisk`: `lt.Processes(workers)`, `lt.Ray(address)`, or
        None for this process. The result is the same, to the bit.
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
        If `resume` or `checkpoint` belongs to another problem, solver or version; it names what
        differs.

    Examples
    --------
    >>> problem = lt.Problem(lt.EmpiricalRisk(np.eye(3), [3.0, 1.0, 2.0]), lt.ordering(3))
    >>> lt.solve(problem).w.round(4)
    array([2., 2., 2.])
    """
    clock = Stopwatch()  # before shards are asked what they hold
    place = _device(problem, device)
    every = positive(checkpoint_every, "checkpoint_every", zero=True)
    with (
        Interrupts() as interrupts,
        checkpointing(checkpoint, every) as file,
        working_with(engine),
    ):
        run_on = _Run
        if place is not None:
            on_device = importlib.import_module("lighttouch.torch.device")
            solver, run_on = on_device.solver_for(solver, place), on_device.DeviceRun
        solver = Automatic() if solver is None else solver
        refuse_bad_arguments(problem, solver, callback, resume, seed, project, progress)
        _refuse_two_beginnings(resume, start, checkpoint)
        _refuse_what_it_cannot_take(problem, solver)
        budget = Budget(problem, solver, iterations, time_limit, clock)
        looks_convex = not is_custom(problem) or look_at_custom_pieces(problem)
        recorder = Recorder(problem, solver, record_every, callback, progress)
        run = run_on(problem, solver, budget, recorder, interrupts, project, looks_convex)
        run.open(start, seed, resume, file)
        LOG.info("solving %r with %s", problem, solver)
        status = run.until_it_ends()
        result = run.result(status, run.answer(status))
        LOG.log(logging.INFO if status in GOOD_ENDINGS else logging.WARNING, "%s", told_end(result))
        return result


def _refuse_two_beginnings(resume: object, start: object, checkpoint: object) -> None:
    if resume is not None and (start is not None or checkpoint is not None):
        other = "start" if start is not None else "checkpoint"
        raise ValueError(
            f"{other} and resume cannot be given together: a resumed run goes on from where it was"
        )


def _refuse_what_it_cannot_take(problem: Problem, solver: AnySolver) -> None:
    objection = _shards_objection(problem, solver) or solver.objection_to(problem)
    if objection:
        raise ValueError(f"{type(solver).__name__} cannot take this problem: {objection}")


def _shards_objection(problem: Problem, solver: AnySolver) -> str | None:
    """A solver that draws single examples needs them all in this process."""
    if not isinstance(problem.objective, ShardedRisk):
        return None
    if isinstance(solver, BaseSolver) and solver.takes_shards:
        return None
    return (
        "its examples are in shards (ShardedRisk), and it draws from all of them; use Automatic, "
        "Accelerated, QuadraticSteps or LocalTouch"
    )


def _device(problem: object, device: Any) -> Any:
    """Where to solve: what was asked for, or where rows are that only PyTorch can read."""
    own = problem.constraints.device if isinstance(problem, Problem) else None
    return own if device is None else device


RAN_AWAY = (Status.DIVERGED, Status.UNBOUNDED)
GOOD_ENDINGS = (Status.CONVERGED, Status.STALLED, Status.ITERATION_LIMIT)


def told_end(result: Result) -> str:
    """The ending of a run in one line, for the log."""
    return (
        f"{result.status.name} after {result.iterations:,} iterations and {result.seconds:.2f} s: "
        f"objective {result.objective:.8g}, violation {result.violation:.3g}"
    )


def _what_it_lacks(solver: object) -> str:
    """Of a solver that somebody began to write: what the protocol asks for besides."""
    declared = [*Solver.__annotations__, *vars(Solver)]
    lacking = [n for n in declared if not n.startswith("_") and not hasattr(solver, n)]
    if isinstance(solver, type) or {"init", "advance"} <= set(lacking):
        return ""
    return (
        f", which lacks {', '.join(lacking)}; inherit lighttouch.solvers.base.BaseSolver, which "
        "has defaults for everything but init and advance"
    )


def refuse_bad_arguments(
    problem: object,
    solver: object,
    callback: Any,
    resume: Any,
    seed: object,
    project: Any,
    progress: Any,
) -> None:
    """Before anything is done with them."""
    if not isinstance(problem, Problem):
        raise DataError(
            "problem must be a Problem, such as Problem(EmpiricalRisk(X, y), ordering(d)), got "
            f"{told(problem)}"
        )
    if isinstance(solver, type) or not isinstance(solver, Solver):
        raise ValueError(
            "solver must be a solver such as LightTouch(penalty=1.0, step_size=0.01), or None for "
            f"the default one; got {told(solver)}{_what_it_lacks(solver)}"
        )
    if callback is not None and not callable(callback):
        raise ValueError(
            "callback must be a function of one argument, the Progress, or None; got "
            f"{told(callback)}"
        )
    if resume is not None and not isinstance(resume, RunState):
        raise ValueError(
            "resume must be the `state` of an earlier result: solve(..., resume=result.state); got "
            f"{told(resume)}"
        )
    if seed is not None:
        whole_seed(seed)
    flag(project, "project")
    flag(progress, "progress")


@dataclass
class NotBegunState(SolverState):
    """The first point of a run whose time was over before its solver was ready."""

    w: Vector


class NotBegun(BaseSolver[NotBegunState]):
    """Stands in for a solver that was not ready in time: its solution is the first point."""

    def init(self, problem: Problem, start: Vector) -> NotBegunState:
        return NotBegunState(new_counters(), start)

    def advance(self, *_: Any) -> None:
        """Nothing: there is no time."""


class _Run:
    """One run of one solver on one problem: its state, random numbers and seconds."""

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        budget: Budget,
        recorder: Recorder,
        interrupts: Interrupts,
        projects: bool,
        looks_convex: bool,
    ) -> None:
        self.problem, self.solver, self.asked = problem, solver, solver
        self.budget, self.recorder, self.interrupts = budget, recorder, interrupts
        self.projects = projects  # whether the answer will be projected
        self.looks_convex = looks_convex  # else nothing proven of convex functions may be claimed
        self.reserve = Reserve(problem, solver, budget, projects)
        self.belongs_to = Belonging(problem, solver)
        self.file: CheckpointFile | None = None
        self.start = ""  # the fingerprint of the first point
        self.went_on = ""  # from which iteration of which file, in words
        self.rng = np.random.default_rng(0)
        self.state: Any = None
        self.seconds = 0.0  # in the solver, without recording and compilation
        self.seed: int | None = None
        self.direction: Vector | None = None  # along which the objective falls without end
        self.finite: tuple[Vector, Vector] = (np.zeros(0), np.zeros(0))  # last iterate, average

    # -- how it begins ------------------------------------------------------------------------

    def open(
        self,
        start: ArrayLike | None,
        seed: int | None,
        resume: RunState | None,
        file: CheckpointFile | None,
    ) -> None:
        """Begin, or go on from a state or from what the file holds."""
        if resume is not None:
            self.belongs_to.refuse_other(resume.belongs_to)
            self._refuse_fewer_iterations(resume)
            self._go_on(resume)
            return
        point = self.problem.start(start)
        if file is not None:
            self.file, self.start = file, fingerprint(point)
            known = file.open_run(self.belongs_to, self.solver, self.start, seed)
            if known is not None:
                self._refuse_to_go_back(known.state)
                self.recorder.history = History(known.history)
                self._go_on(known.state)
                LOG.info("going on from %s, iteration %d", file.path, self.state.iteration)
                self.went_on = f"went on from iteration {self.state.iteration} of {file.path.name}"
                return
        self._begin(point, seed)

    def _begin(self, point: Vector, seed: int | None) -> None:
        self.recorder.bar.show(0.0, "preparing; the first time compiling takes a while")
        self.seed, self.rng = seed, np.random.default_rng(seed)
        clock = Stopwatch()
        try:
            with within(self.budget.for_projections(), lambda: self.interrupts.raised):
                self.state = self.solver.init(self.problem, point)
        except OutOfTimeError:
            self.solver, self.state = NotBegun(), NotBegunState(new_counters(), point)
            self.recorder.solver = self.solver
        self.seconds = clock.seconds
        self._keep_if_finite()

    def _go_on(self, resume: RunState) -> None:
        if isinstance(resume.solver_state, NotBegunState):
            self._begin(resume.solver_state.w, resume.seed)
        else:
            self.state = resume.solver_state.copy()
            self.seconds, self.seed = resume.seconds, resume.seed
            self._keep_if_finite()
        self.rng.bit_generator.state = resume.generator

    def _refuse_fewer_iterations(self, resume: RunState) -> None:
        done = resume.solver_state.iteration
        if self.budget.iterations <= done and self.budget.iterations < math.inf:
            raise ValueError(
                f"iterations counts from the beginning of the run: it must exceed the {done} "
                f"already done, got {self.budget.iterations}"
            )

    def _refuse_to_go_back(self, known: RunState) -> None:
        done = known.solver_state.iteration
        if self.budget.iterations < done:
            raise CheckpointMismatchError(
                f"{self.file and self.file.path} is at {done} iterations already, more than the "
                f"{self.budget.iterations} asked for; allow as many, or begin anew"
            )

    # -- how it goes on -----------------------------------------------------------------------

    def until_it_ends(self) -> Status:
        """Chunk after chunk, until the solver, a limit or the user ends the run."""
        status = self._loop()
        if status is Status.DIVERGED:
            start = self.problem.start()
            self.direction = endless_direction(self.problem, start, self.finite[0])
            return status if self.direction is None else Status.UNBOUNDED
        if status is Status.CONVERGED and not self.looks_convex:
            return Status.STALLED
        return status

    def _loop(self) -> Status:
        ended = self._ended_before()
        while ended is None:
            try:
                in_time = self._advance()
            except ProjectionError:
                return Status.NOT_PROJECTED if self._keep_if_finite() else Status.DIVERGED
            if not self._keep_if_finite():
                return Status.DIVERGED
            self.recorder.show(self.budget.share_used(self.state.iteration), self.state.iteration)
            ended = self._ending()
            if not in_time:
                return ended or self._cut_short()
            if self.file is not None and (ended is not None or self.file.is_due):
                self._keep()
        return ended

    def _ended_before(self) -> Status | None:
        """Whether there is nothing to do at all."""
        known = len(self.recorder.history) > 0  # the last row of a run that goes on from a file
        asked = not known and self.recorder.record(self.state, self.seconds)
        if isinstance(self.state, NotBegunState):
            return self._cut_short()
        if known and (ended := self.solver.finished(self.state)) is not None:
            return ended
        if self.state.iteration >= self.budget.iterations:
            return Status.ITERATION_LIMIT
        return Status.INTERRUPTED if asked else None

    def _advance(self) -> bool:
        """A chunk of iterations; False where a projection ran out of time on the way."""
        before, clock = self.state.iteration, Stopwatch()
        steps = self.budget.steps(before, self.recorder.next_stop(before))
        kept = 0.0 if self.problem.interpreted else self.reserve.seconds(self.state, self.seconds)
        try:
            with (
                within(self.budget.for_projections(kept), lambda: self.interrupts.raised),
                np.errstate(over="ignore", invalid="ignore"),  # `_keep_if_finite` looks
            ):
                self.solver.advance(self.problem, self.state, steps, self.rng)
        except OutOfTimeError:
            return False
        finally:
            took = clock.seconds
            self.seconds += took
            self.budget.learn(max(1, self.state.iteration - before), took)
        return True

    def _ending(self) -> Status | None:
        try:
            with self._time_to_look():
                return self._ending_by_now()
        except OutOfTimeError:
            return self._cut_short()

    def _ending_by_now(self) -> Status | None:
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
        over = self.budget.left <= 0.0 or self.reserve.is_touched(self.state, self.seconds)
        return Status.TIME_LIMIT if over else None

    def _cut_short(self) -> Status:
        return Status.INTERRUPTED if self.interrupts.raised else Status.TIME_LIMIT

    def _time_to_look(self) -> AbstractContextManager[None]:
        """Only functions in Python take long enough to be given up."""
        if not self.problem.interpreted:
            return nullcontext()
        return within(self.budget.for_looking(self.interrupts.raised))

    def _keep_if_finite(self) -> bool:
        last = np.array(self.state.w)
        if _blown_up(last):
            return False
        average = self.solver.average(self.state)
        if _blown_up(average):
            return False
        self.finite = (last, average)
        return True

    def _keep(self) -> None:
        """Hand a copy of the run to the checkpoint."""
        if self.file is not None:
            rows = self.recorder.history.rows()
            self.file.write(Snapshot(self._run_state(copied=True), self.start, rows))

    def _run_state(self, copied: bool = False) -> RunState:
        return RunState(
            self.state.copy() if copied else self.state,
            self.rng.bit_generator.state,
            self.seconds,
            self.belongs_to,
            self.seed,
        )

    # -- what it gives ------------------------------------------------------------------------

    def answer(self, status: Status) -> Answer:
        known = self.recorder.known
        if known is None:
            return self._best_answer(status)
        try:
            with self._time_to_look():
                return self._best_answer(status)
        except OutOfTimeError:
            how = "not projected: the time was over, and this is the best point that was looked at"
            return replace(unprojected(self.problem, known, how), given_up=True)

    def _best_answer(self, status: Status) -> Answer:
        finite = status not in RAN_AWAY
        self.recorder.close(self.state, self.seconds, finite)
        if not self.projects:
            point = self.solver.solution(self.state) if finite else self.finite[1]
            return unprojected(self.problem, point, "not projected")
        candidates = self.solver.candidates(self.state) if finite else [self.finite[1]]
        left = max(0.0, self.budget.left)  # what was kept for it, and a little more
        return best_projection(
            self.problem, candidates, left + COSTS.chunk_seconds, left + COSTS.overtime
        )

    def result(self, status: Status, answer: Answer) -> Result:
        if self.projects and status not in RAN_AWAY and answer.broken:
            status = Status.NOT_PROJECTED
        elif answer.given_up:
            status = self._cut_short()
        bound = self.solver.lower_bound(self.state) if self.looks_convex else -math.inf
        proof = Proof.of(answer, bound)
        if status is Status.CONVERGED and not proof.is_within(self.solver.accuracy(self.state)):
            status = Status.STALLED
        last, average = self.finite
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
            state=self._run_state(),
            seed=self.seed,
            solver=self.asked,
            projection=answer.method,
            violation_before_projection=answer.violation_before,
            objective_before_projection=answer.objective_before,
            preparation_seconds=self.budget.clock.compiling,
            lower_bound=proof.bound,
            gap=proof.gap,
            multipliers=self.solver.multipliers(self.problem, self.state),
            notes=tuple(self._notes(status, answer, proof)),
        )

    def _notes(self, status: Status, answer: Answer, proof: Proof) -> Iterator[str]:
        if self.went_on:
            yield self.went_on
        yield from self.solver.notes(self.state)
        if isinstance(self.problem.objective, ShardedRisk):
            yield self.problem.objective.memory()
        yield from proof.words()
        yield (
            f"compilation and other preparation took {self.budget.clock.compiling:.2f} s, not "
            "included in the seconds"
        )
        if self.direction is not None:
            largest = np.argsort(-np.abs(self.direction))[:COLUMNS_IN_WORDS]
            terms = ", ".join(f"w[{j}]: {self.direction[j]:+.3g}" for j in sorted(largest))
            yield f"the objective falls without end along ({terms})"
        if answer.broken_before:
            removed = self.projects and status is not Status.NOT_PROJECTED
            ended = "the projection removed it" if removed else "w was not projected"
            advice = "; ".join(filter(None, [ended, self.solver.remedy()]))
            yield f"the solution broke a constraint by {answer.violation_before:.3g}: {advice}"


def _blown_up(w: Vector) -> bool:
    """Beyond this size squares overflow: such a point is as good as infinite."""
    return not float(np.abs(w).max()) < COSTS.blown_up
