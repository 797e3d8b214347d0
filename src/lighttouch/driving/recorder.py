"""The history of a run: rows at chosen iterations, shown to the user's callback and on the bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.interfaces import AnySolver, State
from lighttouch.problem import Problem
from lighttouch.result import History
from lighttouch.running.progress import ProgressBar
from lighttouch.solvers.costs import COSTS
from lighttouch.validation import positive_int


@dataclass(frozen=True)
class Progress:
    """What a callback of `solve` sees; returning True from it stops the run.

    Parameters
    ----------
    iteration : int
        Iterations so far.
    seconds : float
        Seconds in the solver so far, without recording and compilation.
    constraint_checks : int
        Single constraints evaluated so far.
    objective : float
        The objective at `w`.
    violation : float
        max(0, max_j g_j(w)).
    w : ndarray of shape (d,)
        A copy of the present iterate.
    w_average : ndarray of shape (d,)
        The average of the iterates.

    Examples
    --------
    >>> problem = lt.Problem(lt.Quadratic(np.eye(2), [1.0, 1.0]), lt.ordering(2))
    >>> seen = []
    >>> result = lt.solve(problem, callback=lambda progress: seen.append(progress.iteration))
    >>> seen[0]
    0
    """

    iteration: int
    seconds: float
    constraint_checks: int
    objective: float
    violation: float
    w: Vector
    w_average: Vector


Callback = Callable[[Progress], Any]


class Recorder:
    """Decides when a row is due, makes it, and hands it to callback and progress bar.

    By default rows are due at powers of four, and left out where they would cost more than a
    twentieth of the work of the run. Work is counted, not timed, so that a run recorded twice has
    the same rows.
    """

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        every: int | None,
        callback: Callback | None,
        progress: bool,
    ) -> None:
        self.problem, self.solver, self.callback = problem, solver, callback
        self.every = None if every is None else positive_int(every, "record_every")
        self.history = History()
        self.bar = ProgressBar(progress, f"{type(solver).__name__} ")

    def next_stop(self, iteration: int) -> int:
        """The next iteration at which a row may be due."""
        if self.every is not None:
            return (iteration // self.every + 1) * self.every
        return 1 << 2 * ((iteration.bit_length() + 1) // 2)

    def is_due(self, state: State) -> bool:
        if self.every is not None:
            return state.iteration % self.every == 0
        at_stop = self.next_stop(max(0, state.iteration - 1)) == state.iteration
        return at_stop and (self.callback is not None or self._affordable(state))

    def _affordable(self, state: State) -> bool:
        objective, constraints = self.problem.objective, self.problem.constraints
        per_check = constraints.cost / constraints.group_size
        row = objective.examples * objective.cost + constraints.members * per_check
        done = state.gradient_samples * objective.cost + state.constraint_checks * per_check
        spent = (len(self.history) + 1) * row
        return bool(row <= COSTS.free_record or spent <= COSTS.recording_share * done)

    def record(self, state: State, seconds: float) -> bool:
        """Add a row; whether the callback asks to stop."""
        row = self.add_row(state, seconds)
        if self.callback is None:
            return False
        average = self.solver.average(state)
        answer = self.callback(Progress(**row, w=np.array(state.w), w_average=average))
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def add_row(self, state: State, seconds: float) -> dict[str, Any]:
        sizes = self.solver.batch_sizes(state)
        row = {
            "iteration": state.iteration,
            "seconds": seconds,
            "constraint_checks": state.constraint_checks,
            "objective": self.problem.objective.value(state.w),
            "violation": self.problem.violation(state.w),
        }
        self.history.append(**row, loss_batch=sizes[0], push_batch=sizes[1], learn_batch=sizes[2])
        return row

    def show(self, share: float, iteration: int) -> None:
        last = f"objective {self.history.last()['objective']:.6g}" if len(self.history) else ""
        self.bar.show(share, f"iteration {iteration:,}  {last}")

    def close(self, state: State, seconds: float, finite: bool) -> None:
        """The last row, so that the history ends where the run does, and the end of the bar."""
        self.bar.show(1.0, f"iteration {state.iteration:,}")
        self.bar.close()
        if finite and self.history.last()["iteration"] < state.iteration:
            self.add_row(state, seconds)
