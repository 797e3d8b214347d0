"""How estimators train: `solve` with the solver that fits the size, a last step that leaves no
violation at all, and the ending in words.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from lighttouch.arrays import Indices
from lighttouch.constraints import LinearConstraints
from lighttouch.domains import Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.interfaces import AnySolver
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import Loss
from lighttouch.objectives import EmpiricalRisk, ShardedRisk
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Result, Status
from lighttouch.running import Stopwatch, one_blas_thread, within
from lighttouch.signals import Interrupts, RaisedAtOnce
from lighttouch.solve import Progress, solve
from lighttouch.solvers import Automatic, QuadraticSteps
from lighttouch.solvers.costs import COSTS as SOLVING
from lighttouch.solvers.quadratic_steps import (
    begin_where_it_ended,
    feasible,
    largest_block,
)
from lighttouch.validation import positive

Floats = NDArray[np.float64]
Risk = EmpiricalRisk | ShardedRisk


@dataclass(frozen=True)
class TrainingCosts:
    """Which solver trains which model."""

    largest_gram: int = 3000
    """Parameters up to which the smoothing is judged by a factor of a dense matrix. Crossover:
    experiment `largest_gram` (whole fits to labels), between 1,400 and 3,900: 0.2 and 0.35 of the
    time at the first, 2.6 times as long at the second."""
    sampled_entries: float = 3e6
    """Entries of the feature matrix from which examples are sampled where the model is too large to
    factor: a step of conjugate gradients passes over all of them hundreds of times. Crossover:
    experiment `sampled_entries`, equal at 2e6 for labels: quadratic steps take 0.07, 0.5 and 1.7 of
    the time at 8e4, 8e5 and 4e6 (for numbers, in a single run, 0.03, 0.24 and 0.7)."""
    product_seconds: float = 3e-9
    """Per product of two entries of a row, in the matrix of a quadratic model (measured: 1.2 s for
    100,000 rows of 93 entries on a busy machine, copying included). Rate."""
    sampled_parameter_seconds: float = 2e-8
    """Per parameter of a step of the sampling solver (measured: 8.7 s for 4.8 million examples of
    109 entries and as many parameters, 63 s for 4 million of 29 entries and 637 parameters). Rate.
    """
    sampled_examples: float = 5e6
    """Examples that the sampling solver takes until it gains less than 1e-3. Rate: not measured."""
    smooth_models: int = 2
    """Matrices of quadratic models that are formed until a smooth loss other than the squared one
    has converged: a matrix serves for several models, and smoothing leaves the first one (200,000
    labels, 12 columns: 10.9 s of CPU, proven; sampling, which 5 of them chose, had not ended after
    103 s). Tables with one score whose features are not held never ask (`Examples.objective`).
    Rate: experiment `smooth_models`."""
    kinked_models: int = 30
    """Quadratic models until a loss with kinks has. Rate: not measured."""
    advantage: float = 5.0
    """How many times faster sampling must be: its answer is less exact, and not proven, and the
    estimate is rough. 60,000 full rows with the hinge loss take 8 s by sampling and 26 s by
    quadratic steps where there are 400 columns (10.8 times by the estimate), 3.8 and 8.1 s where
    there are 150 (4.0); absolute errors 7.8 and 14.5 s, 4.2 and 2.8 s. Curves and lattices of 8
    columns on 250,000 rows take 41 and 5 s for absolute errors, 63 and 9 s for a quantile (0.15);
    120,000 rows with the hinge loss 8 s by quadratic steps and more than 549 s by sampling. Tuning:
    measured once."""
    rest: float = 2.0
    """Times the seconds of the first fit of curves that are kept, of a time limit, for what follows
    the search for terms (smoothing, training and record of 20,000 rows of 10 columns, of which
    10,000 are searched: 0.06 s and 0.25 s). At most `most_rest` of the limit. Rate: measured
    once."""
    rest_of_kinks: float = 12.0
    """The same where the loss has kinks (100,000 rows of 12 columns, the median: 0.35 and 4.1 s;
    three quantiles take three times as long). Rate: measured once."""
    most_rest: float = 0.5
    """Share of a time limit that is kept for it at most. Budget."""
    surely_in_time: float = 0.5
    """Share of the examples that `rest` has time for which are trained on where it has none for
    all: the estimate is rough. Budget."""
    record: float = 0.5
    """Times the seconds of reading the table that its SHA-256 and ranges take at the end (500,000
    rows of 12 columns: 0.16 and 0.07 s). Rate: measured once."""
    shortest: float = 1e-3
    """Seconds that are always left, so that a model comes out. Budget."""


COSTS = TrainingCosts()
ENDINGS = {
    Status.CONVERGED: "converged",
    Status.STALLED: "stalled",
    Status.ITERATION_LIMIT: "iteration limit",
    Status.TIME_LIMIT: "time limit",
    Status.INTERRUPTED: "interrupted",
}
NORMAL = ("converged", "stalled")  # endings within the tolerance, proven or not


_clock_of_fit: ContextVar[Stopwatch | None] = ContextVar("clock_of_fit", default=None)
Fit = TypeVar("Fit", bound=Callable[..., Any])


def on_the_clock(fit: Fit) -> Fit:
    """The time limit of a fit counts from its first line, reading the table included, and so does
    Ctrl-C: it ends at once what has no model yet. A fit inside another has a clock of its own. BLAS
    has one thread, so that the bits are the same for any number of them.
    """

    @functools.wraps(fit)
    def timed(*arguments: Any, **named: Any) -> Any:
        before = _clock_of_fit.set(Stopwatch())
        try:
            with RaisedAtOnce(), one_blas_thread():
                return fit(*arguments, **named)
        finally:
            _clock_of_fit.reset(before)

    return timed  # type: ignore[return-value]


def share_of_limit(limit: Any, parts: int) -> float | None:
    """The limit of a fit inside the one that runs now, which is the first of so many to come: what
    is left is divided evenly.
    """
    if limit is None:
        return None
    clock = _clock_of_fit.get()
    used = 0.0 if clock is None else clock.seconds
    return max(COSTS.shortest, (positive(limit, "time_limit") - used) / parts)


def _seconds_of_record() -> float:
    """How long the record will take, before which the table has been read and nothing else done."""
    clock = _clock_of_fit.get()
    return 0.0 if clock is None else COSTS.record * clock.seconds


@dataclass(frozen=True)
class Settings:
    """How to train."""

    loss: Loss
    tolerance: float
    max_iter: int
    time_limit: float | None
    rng: np.random.Generator
    interrupts: Interrupts
    verbose: bool = False
    clock: Stopwatch = field(default_factory=lambda: _clock_of_fit.get() or Stopwatch())
    """One clock for the whole fit."""
    kept: float = field(default_factory=_seconds_of_record)
    """Of the time limit, for the record of the training rows."""

    @property
    def left(self) -> float:
        """Seconds until the limit; below 0 once the time is over, infinite without a limit."""
        if self.time_limit is None:
            return math.inf
        return self.time_limit - self.kept - self.clock.seconds

    @property
    def seconds_to_train(self) -> float | None:
        """A limit for `solve`, which may overrun it by `overtime` or by the limit itself, whichever
        is less.
        """
        left = max(2.0 * COSTS.shortest, self.left)
        return None if math.isinf(left) else left - min(SOLVING.overtime, left / 2.0)

    def limited(self, kept: float = 0.0) -> AbstractContextManager[None]:
        """What is begun in the block ends at the limit, less so many seconds kept for the rest."""
        if self.time_limit is not None:
            kept = min(kept, COSTS.most_rest * self.time_limit)
        return within(self.left - kept, lambda: self.interrupts.raised)

    @property
    def over(self) -> bool:
        return self.ending_so_far is not None

    @property
    def ending_so_far(self) -> Status | None:
        """Why the whole fit must end now; None where it need not."""
        if self.interrupts.raised:
            return Status.INTERRUPTED
        return Status.TIME_LIMIT if self.left <= 0.0 else None


def train(
    objective: Risk, rules: LinearConstraints | None, start: Floats, settings: Settings
) -> Result:
    """The parameters that minimise the objective under the rules; `Result.w` obeys them to rounding
    errors of the solver.
    """
    return _solved(objective, rules, start, settings)


def train_without_rules(objective: Risk, trained: Result, settings: Settings) -> Result | None:
    """The same without rules, from where training under them ended; None where less time is left
    than that took, where either ends early, or where only the one under rules is proven: their
    difference would say nothing about the rules.
    """
    little = settings.left < trained.seconds
    if little or settings.over or ending(trained) not in NORMAL:
        return None
    begin_where_it_ended(objective, trained.state.solver_state)
    free = _solved(objective, None, trained.w, replace(settings, verbose=False))
    return free if ending(free) in (ending(trained), "converged") else None


def _solved(
    objective: Risk,
    rules: LinearConstraints | None,
    start: Floats,
    settings: Settings,
) -> Result:
    solver = solver_for(objective, settings.tolerance)
    quadratic = isinstance(solver, QuadraticSteps)

    def interrupted(progress: Progress) -> bool:
        return settings.interrupts.raised

    given, nothing = start, np.zeros(start.size)
    one_model = quadratic and loss_row_of(objective).name == "squared"
    if (
        one_model
        and start.size <= COSTS.largest_gram
        and (rules is None or rules.violation(nothing) <= 0.0)
    ):
        start = nothing  # its minimum does not depend on the start, and this one is feasible
    whole: Any = objective
    problem = Problem(whole, rules)
    result = solve(
        problem,
        solver,
        iterations=settings.max_iter if quadratic else None,
        time_limit=settings.seconds_to_train,
        start=start,
        seed=int(settings.rng.integers(2**31)),
        callback=interrupted,
        progress=settings.verbose,
        record_every=1 if quadratic else None,
        project=not quadratic,
    )
    unbegun = result.iterations == 0 and ending(result) not in NORMAL
    return _from_start(problem, given, result) if unbegun and given is not start else result


def _from_start(problem: Problem, start: Floats, result: Result) -> Result:
    """Where the time was over before the first step: the point that was given, made feasible, if it
    is better.
    """
    w = feasible(problem, start)
    value = problem.objective.value(w)
    return replace(result, w=w, objective=value) if value < result.objective else result


def solver_for(objective: Risk, tolerance: float) -> AnySolver:
    """Quadratic steps, or sampled examples where there are many of them; on shards the steps that
    prove what they find, where the model is not too large.
    """
    if isinstance(objective, ShardedRisk):
        small = objective.dimension <= COSTS.largest_gram
        return QuadraticSteps(tolerance) if small else Automatic()
    if sampling_is_faster(objective):
        return Automatic()
    return QuadraticSteps(tolerance)


def sampling_is_faster(objective: EmpiricalRisk) -> bool:
    """From counted work alone, so that the same data always take the same way."""
    per_row = objective.cost
    if largest_block(objective) > COSTS.largest_gram:
        return objective.examples * per_row > COSTS.sampled_entries
    row = objective.loss_row
    models = COSTS.kinked_models if row.kinked else COSTS.smooth_models
    models = 1 if row.name == "squared" else models
    quadratic = COSTS.product_seconds * models * objective.examples * per_row**2 / 2.0
    each = COSTS.sampled_parameter_seconds * objective.dimension  # penalties, rules and averages
    return bool(quadratic > COSTS.advantage * each * COSTS.sampled_examples)


def loss_row_of(objective: Risk) -> LossRow:
    """The loss; that of shards is the same in all of them."""
    risk: EmpiricalRisk = objective.template if isinstance(objective, ShardedRisk) else objective
    return risk.loss_row


# -------------------------------------------------------------------------------------------------
# The last step of every fit: parameters that obey every row with no violation at all.

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)  # relative to the parameters' size


def exactly_feasible(w: Floats, rules: LinearConstraints) -> tuple[Floats, float]:
    """The nearest point without violation, and the violation that is left where rules leave no room
    to remove it. Rows that share no parameter are met apart, as those of different terms.
    """
    if rules.count == 0 or violation(w, rules) == 0.0:
        return w, 0.0
    broken = np.asarray(rules.A @ w) > rules.b
    size = max(_scale(w), float(np.abs(rules.b[broken]).max(initial=0.0)))
    unit = math.ldexp(1.0, min(math.frexp(size)[1], 1000))
    if unit != 1.0:  # exact either way; projections know rounding errors of numbers near 1
        scaled = LinearConstraints(rules.A, rules.b / unit, nested=rules.nested, copy=False)
        found, left = exactly_feasible(w / unit, scaled)
        return unit * found, unit * left
    if rules.nested or not rules.sparse:
        return _feasible_together(w, rules)
    near = _order_nearby(w, rules)
    if near is not None and violation(near, rules) == 0.0:
        return near, 0.0
    found, left = w.copy(), 0.0
    for rows, columns in _groups(rules):
        part = LinearConstraints(rules.A[rows][:, columns], rules.b[rows])
        if violation(w[columns], part) > 0.0:
            try:
                found[columns], more = _feasible_together(w[columns], part)
            except InfeasibleConstraintsError as error:
                named = [int(rows[each]) for each in error.rows]
                raise InfeasibleConstraintsError(str(error), named) from None
            left = max(left, more)
    return found, left


def _groups(rules: LinearConstraints) -> Iterator[tuple[Indices, Indices]]:
    """Rows, and the parameters that they are about, such that groups have none in common."""
    A = sparse.csr_matrix(rules.A)
    both = sparse.bmat([[None, A], [A.T, None]], format="csr")
    labels = connected_components(both, directed=False)[1]
    of_rows, of_columns = labels[: rules.count], labels[rules.count :]
    for label in np.unique(of_rows):
        yield np.flatnonzero(of_rows == label), np.flatnonzero(of_columns == label)


def _feasible_together(w: Floats, rules: LinearConstraints) -> tuple[Floats, float]:
    """Orders are projected exactly; where little is to be removed, any feasible point as near will
    do, which spares a first fit the compilation of projections. Other rows are met up to rounding
    errors. Those go when the rows are tightened by slightly more than the rounding.
    """
    scale = _scale(w)
    best = _order_nearby(w, rules)
    if best is None:
        try:
            best = project(w, rules).w
        except InfeasibleConstraintsError:
            if (rules.b < 0.0).any():
                raise
            best = w  # 0 obeys them all: rows that differ by 1e12 contradict each other by rounding
    left = violation(best, rules)
    for margin in MARGINS:
        for rows in (_not_orders(rules), np.ones(rules.count, dtype=bool)):
            if left == 0.0:
                return best, left
            try:
                asked = LinearConstraints(
                    rules.A, rules.b - np.where(rows, margin * scale * rules.row_scales(), 0.0)
                )
                closer = project(best, asked).w
            except InfeasibleConstraintsError:
                continue
            if violation(closer, rules) < left:
                best, left = closer, violation(closer, rules)
    return best, left


def feasible_nearby(w: Floats, rules: LinearConstraints) -> Floats | None:
    """The same point without rounding errors; None where it breaks a rule by more than those."""
    if violation(w, rules) > MARGINS[-1] * _scale(w):
        return None
    met, left = exactly_feasible(w, rules)
    return met if left == 0.0 else None


def _order_nearby(w: Floats, rules: LinearConstraints) -> Floats | None:
    """A point that obeys orders, where next to nothing needs to be removed; None elsewhere."""
    near = feasible_set(rules, Everywhere()).near(w)
    if near is None or float(np.abs(near - w).max()) > MARGINS[-1] * _scale(w):
        return None
    return near


def _scale(w: Floats) -> float:
    return max(float(np.abs(w).max()), 1e-300)


def violation(w: Floats, rules: LinearConstraints) -> float:
    """The largest, also when rows are added up as a user would check them: rules hold either way,
    and long rows round differently.
    """
    return max(rules.violation(w), float(np.max(rules.A @ w - rules.b, initial=0.0)))


def _not_orders(rules: LinearConstraints) -> NDArray[np.bool_]:
    if not rules.sparse:
        return np.ones(rules.count, dtype=bool)
    entries = np.diff(rules.A.indptr)
    sums = np.abs(np.asarray(rules.A.sum(axis=1)).ravel())
    bound = sparse.csr_matrix(abs(rules.A)).max(axis=1).toarray().ravel()
    return np.asarray((entries != 2) | (sums > 1e-12 * bound) | (rules.b != 0.0))


# -------------------------------------------------------------------------------------------------
# The ending in words.


def ending(result: Result) -> str:
    """How training ended, in the words of `status_`."""
    return ENDINGS.get(result.status, result.status.name.lower().replace("_", " "))


def has_ended(status: str) -> bool:
    """Whether the same call would not go on: the checkpoint is of no use any more."""
    return status not in ("time limit", "interrupted")


def warn_about(status: str) -> None:
    """Warn, at the user's line, of an ending that asks for more time."""
    if status in NORMAL:
        return
    told = {
        "interrupted": "training was interrupted; the model obeys its rules but could fit better",
        "time limit": "training ended at its time limit, and what there was no time for was left "
        "out; the model obeys its rules, raise time_limit for a better one",
    }
    text = told.get(status, f"training ended at its {status}; raise max_iter or time_limit")
    warn_user(text, ConvergenceWarning)


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller that is not part of lighttouch."""
    warnings.warn(text, category, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """The stack level of the first caller that is not part of lighttouch."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _name_of(frame).startswith("lighttouch."):
        level, frame = level + 1, frame.f_back
    return level


def _name_of(frame: FrameType) -> str:
    """The module that a frame runs; programs run by `exec` may have none."""
    return str(frame.f_globals.get("__name__", ""))
