"""solve(): the one driver loop. It owns the clock, the history, the ending and the final
projection.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import CheckpointMismatchError
from lighttouch.interfaces import Solver
from lighttouch.problem import Problem
from lighttouch.projections import Projected
from lighttouch.projections import project as project_onto
from lighttouch.result import History, Result, Status
from lighttouch.running.deadline import OutOfTimeError, within
from lighttouch.running.interrupts import Interrupts
from lighttouch.running.progress import ProgressBar
from lighttouch.solvers.default import default_solver
from lighttouch.validation import positive, positive_int

CHUNK_SECONDS = 0.1
BLOWN_UP = 1e150  # beyond it squares overflow: such a w is as good as infinite
DEFAULT_PASSES = 10
PREPARATION_SECONDS = 0.5  # projections off the clock get no more than that


@dataclass(frozen=True)
class Progress:
    """What a callback sees; returning True from it stops the run."""

    iteration: int
    seconds: float
    constraint_checks: int
    objective: float
    violation: float
    w: Vector
    w_average: Vector


@dataclass(frozen=True)
class RunState:
    """A run that can go on: the solver's state, the random generator's, the seconds so far, and
    what they belong to.
    """

    solver_state: Any
    generator: Any
    seconds: float
    belongs_to: dict[str, Any]
    seed: int | None = None


Callback = Callable[[Progress], Any]


def solve(
    problem: Problem,
    solver: Solver | None = None,
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
) -> Result:
    """Minimise the problem's objective under its constraints; without a solver, by this project's
    own best method.

    `iterations` counts from the beginning of the run, also when resuming; `time_limit` is in
    seconds, compilation not included; projections end with it or soon after, and a final one that
    could not be finished leaves the status NOT_PROJECTED. History is recorded every `record_every`
    iterations (at powers of four by default), off the clock. With `project`, the returned w is the
    projection onto the constraints.
    """
    if solver is None:
        solver = default_solver(problem)
    objection = solver.objection_to(problem)
    if objection:
        raise ValueError(f"{type(solver).__name__} cannot take this problem: {objection}")
    run = _Run(problem, solver, iterations, time_limit, seed, callback, progress, record_every)
    run.begin(start, resume)
    with Interrupts() as interrupts:
        status = run.loop(interrupts)
    return run.finish(status, project)


def _blown_up(w: Vector) -> bool:
    return not float(np.abs(w).max()) < BLOWN_UP


class _Run:
    """One run of one solver on one problem."""

    def __init__(
        self,
        problem: Problem,
        solver: Any,
        iterations: int | None,
        time_limit: float | None,
        seed: int | None,
        callback: Callback | None,
        progress: bool,
        record_every: int | None,
    ) -> None:
        self.problem, self.solver, self.seed, self.callback = problem, solver, seed, callback
        self.time_limit = math.inf if time_limit is None else positive(time_limit, "time_limit")
        self.iterations = self._limit(iterations, time_limit)
        self.record_every = (
            None if record_every is None else positive_int(record_every, "record_every")
        )
        self.history = History()
        self.bar = ProgressBar(progress, f"{type(solver).__name__} ")
        self.seconds = 0.0
        self.preparation = 0.0

    def _limit(self, iterations: int | None, time_limit: float | None) -> float:
        if iterations is not None:
            return positive_int(iterations, "iterations", least=0)
        if time_limit is not None or hasattr(self.solver, "finished"):
            return math.inf
        return min(5_000_000, max(20_000, DEFAULT_PASSES * self.problem.objective.examples))

    def begin(self, start: Any, resume: RunState | None) -> None:
        if resume is None:
            self.bar.show(0.0, "preparing; the first time compiling takes a while")
            self.rng = np.random.default_rng(self.seed)
            self.state = self.solver.init(self.problem, self.problem.start(start))
        else:
            if start is not None:
                raise ValueError(
                    "start and resume cannot be given together: a resumed run goes on from "
                    "where it was"
                )
            self._accept(resume)
        self._compile()
        self.finite = (self.state.w.copy(), self.solver.average(self.state))

    def _accept(self, resume: RunState) -> None:
        for name, value in self._belongs_to().items():
            if resume.belongs_to.get(name) != value:
                raise CheckpointMismatchError(
                    f"this run cannot be resumed: {name} was "
                    f"{resume.belongs_to.get(name)}, now it is {value}"
                )
        if self.iterations <= resume.solver_state.iteration and self.iterations < math.inf:
            raise ValueError(
                "iterations counts from the beginning of the run: it must exceed the "
                f"{resume.solver_state.iteration} already done, "
                f"got {self.iterations}"
            )
        self.state = resume.solver_state.copy()
        self.rng = np.random.default_rng()
        self.rng.bit_generator.state = resume.generator
        self.seconds, self.seed = resume.seconds, resume.seed

    def _belongs_to(self) -> dict[str, Any]:
        return {
            "the solver": repr(self.solver),
            "the number of parameters": self.problem.dimension,
            "the number of examples": self.problem.objective.examples,
            "the number of constraints": self.problem.constraints.count,
        }

    def _compile(self) -> None:
        """Everything once, on copies, so that compilation is not on the clock."""
        if not self.problem.interpreted:
            began = time.perf_counter()
            if getattr(self.solver, "compiles_by_stepping", True):
                self._step_on_a_copy()
            self.problem.objective.value(self.state.w)
            if hasattr(self.solver, "prepare"):
                self.solver.prepare(self.problem, self.state.copy())
            self.problem.objective.value(self.state.w)
            self.problem.violation(self.state.w)
            self.preparation = time.perf_counter() - began

    def _step_on_a_copy(self) -> None:
        with suppress(OutOfTimeError), within(PREPARATION_SECONDS):
            self.solver.advance(self.problem, self.state.copy(), 1, np.random.default_rng(0))

    def loop(self, interrupts: Interrupts) -> Status:
        self.began = time.perf_counter()
        self.interrupts = interrupts
        chunk = 16
        if self.record() or self.state.iteration >= self.iterations:
            return (
                Status.INTERRUPTED
                if self.state.iteration < self.iterations
                else Status.ITERATION_LIMIT
            )
        while True:
            steps = self._steps_until_stop(chunk)
            iteration, before = self.state.iteration, time.perf_counter()
            finished = self._advance(steps)
            took = time.perf_counter() - before
            self.seconds += took
            done = max(1, self.state.iteration - iteration)
            chunk = int(max(1, min(8 * done, done * CHUNK_SECONDS / max(took, 1e-9))))
            status = self._ending(interrupts)
            if status is not None or not finished:
                return status or Status.TIME_LIMIT

    def _advance(self, steps: int) -> bool:
        """Whether no projection on the way had to be given up for the time limit."""
        left = self.time_limit - (time.perf_counter() - self.began)
        try:
            most = left + 0.1 * self.time_limit + CHUNK_SECONDS
            with within(most, lambda: self.interrupts.raised):
                self.solver.advance(self.problem, self.state, steps, self.rng)
        except OutOfTimeError:
            return False
        return True

    def _steps_until_stop(self, chunk: int) -> int:
        steps = min(
            chunk,
            self.iterations - self.state.iteration,
            self._next_record() - self.state.iteration,
        )
        left = self.time_limit - (time.perf_counter() - self.began)
        return int(
            max(1, steps if left > CHUNK_SECONDS else min(steps, chunk * left / CHUNK_SECONDS))
        )

    def _next_record(self) -> int:
        done = int(self.state.iteration)
        if self.record_every is not None:
            return (done // self.record_every + 1) * self.record_every
        return 1 << 2 * ((done.bit_length() + 1) // 2)

    def _ending(self, interrupts: Interrupts) -> Status | None:
        if not self._keep_if_finite():
            return Status.DIVERGED
        self._show()
        done = self.state.iteration
        due = self.record_every is not None and done % self.record_every == 0
        power = self.record_every is None and done & (done - 1) == 0 and done.bit_length() % 2 == 1
        if (due or power or done >= self.iterations) and self.record() and done < self.iterations:
            return Status.INTERRUPTED
        if done >= self.iterations:
            return Status.ITERATION_LIMIT
        ended: Status | None = (
            self.solver.finished(self.state) if hasattr(self.solver, "finished") else None
        )
        if ended is not None:
            return ended
        if interrupts.raised:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if time.perf_counter() - self.began >= self.time_limit else None

    def _keep_if_finite(self) -> bool:
        if _blown_up(self.state.w):
            return False
        average = self.solver.average(self.state)
        if _blown_up(average):
            return False
        self.finite = (self.state.w.copy(), average)
        return True

    def _show(self) -> None:
        by_steps = self.state.iteration / self.iterations if self.iterations < math.inf else 0.0
        by_time = (time.perf_counter() - self.began) / self.time_limit
        last = f"objective {self.history.last()['objective']:.6g}" if len(self.history) else ""
        self.bar.show(max(by_steps, by_time), f"iteration {self.state.iteration:,}  {last}")

    def record(self) -> bool:
        """Add a row to the history, off the clock; whether the callback asks to stop."""
        row = self._add_row()
        if self.callback is None:
            return False
        answer = self.callback(
            Progress(**row, w=self.state.w.copy(), w_average=self.solver.average(self.state))
        )
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def _add_row(self) -> dict[str, Any]:
        w, sizes = self.state.w, self.solver.batch_sizes(self.state)
        row = {
            "iteration": self.state.iteration,
            "seconds": self.seconds,
            "constraint_checks": self.state.constraint_checks,
            "objective": self.problem.objective.value(w),
            "violation": self.problem.violation(w),
        }
        self.history.append(**row, loss_batch=sizes[0], push_batch=sizes[1], learn_batch=sizes[2])
        return row

    def finish(self, status: Status, project: bool) -> Result:
        self.bar.show(1.0, f"iteration {self.state.iteration:,}")
        self.bar.close()
        if (
            status is not Status.DIVERGED
            and self.history.last()["iteration"] < self.state.iteration
        ):
            self._add_row()
        last, average = self.finite
        solution, w, method, projected_in = self._answer(status, project)
        violation_before = self.problem.violation(solution)
        if project and status is not Status.DIVERGED and self._broken(w):
            status = Status.NOT_PROJECTED
        return Result(
            w=w,
            w_average=average,
            w_last=last,
            objective=self.problem.objective.value(w),
            violation=self.problem.violation(w),
            iterations=self.state.iteration,
            constraint_checks=self.state.constraint_checks,
            gradient_samples=self.state.gradient_samples,
            seconds=self.seconds + projected_in,
            status=status,
            history=self.history,
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
            projection=method,
            violation_before_projection=violation_before,
            objective_before_projection=self.problem.objective.value(solution),
            preparation_seconds=self.preparation,
            notes=self._notes(
                project and status is not Status.NOT_PROJECTED, solution, violation_before
            ),
        )

    def _answer(self, status: Status, project: bool) -> tuple[Vector, Vector, str, float]:
        """The solver's solution (the best of its candidates), its projection, how it was projected
        and how long that took.
        """
        if status is Status.DIVERGED:
            candidates = [self.finite[1]]
        elif project and hasattr(self.solver, "candidates"):
            candidates = self.solver.candidates(self.state)
        else:
            candidates = [self.solver.solution(self.state)]
        if not project:
            return candidates[0], candidates[0], "not projected", 0.0
        began = time.perf_counter()
        projected = [self._projected(candidate) for candidate in candidates]
        best = (
            min(range(len(projected)), key=lambda k: self._rank(projected[k]))
            if len(projected) > 1
            else 0
        )
        return (
            candidates[best],
            projected[best].w,
            projected[best].method,
            time.perf_counter() - began,
        )

    def _projected(self, candidate: Vector) -> Projected:
        """The projection; where it fails or is given up, the candidate itself with the reason, so
        that no result is lost.
        """
        try:
            limit = None if self.time_limit == math.inf else 0.2 * self.time_limit + 0.5
            return project_onto(
                candidate, self.problem.constraints, self.problem.domain, time_limit=limit
            )
        except RuntimeError as error:
            return Projected(
                candidate, 0.0, self.problem.violation(candidate), f"not projected: {error}", 0.0
            )

    def _rank(self, projected: Projected) -> tuple[bool, float]:
        """Feasible points first, then the smaller objective."""
        return self._broken(projected.w), self.problem.objective.value(projected.w)

    def _broken(self, w: Vector) -> bool:
        """Whether w breaks a constraint by more than rounding explains."""
        return self.problem.relative_violation(w) > 1e-8 * (1.0 + float(np.abs(w).max()))

    def _notes(self, project: bool, solution: Vector, violation: float) -> tuple[str, ...]:
        notes = list(self.solver.notes(self.state)) if hasattr(self.solver, "notes") else []
        notes += [
            (
                f"compilation and other preparation took {self.preparation:.2f} s, not "
                "included in the seconds"
            )
        ]
        if self._broken(solution):
            ended = "the projection removed it" if project else "w was not projected"
            advice = (
                "; a larger penalty brings it closer to feasible"
                if hasattr(self.solver, "penalty")
                else ""
            )
            notes.append(f"the solution broke a constraint by {violation:.3g}: {ended}{advice}")
        return tuple(notes)
