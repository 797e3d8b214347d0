"""Sampled AdaGrad: the stochastic method of the default solver.

AdaGrad (Duchi, Hazan, Singer 2011) on sampled examples, with steps onto violated constraints that
are visited a few at a time: in cyclic order, and drawn from a learnt distribution as in the paper.
The step size is found by short trials on a power-of-four grid, as the paper's authors did by hand.
Stages double in length; each ends with a projection of what was reached.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.kernels.loops.sampled_adagrad import (
    AdaGradState,
    SamplingPlan,
    new_adagrad_state,
    sampled_adagrad,
)
from lighttouch.kernels.state.distribution import Distribution, new_distribution, probabilities
from lighttouch.kernels.state.iterate import (
    CHECKS,
    ITERATION,
    SAMPLES,
    ExampleOrder,
    new_counters,
    new_example_order,
    new_gradient,
)
from lighttouch.kernels.verbs.constraints import OrderRows
from lighttouch.kernels.verbs.domains import BALL, DomainRecord
from lighttouch.kernels.verbs.lattice_rows import LatticeOrder
from lighttouch.kernels.verbs.objectives import SparseExamples, sampled_mean
from lighttouch.objectives import EmpiricalRisk, WeightedSum
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.result import Status
from lighttouch.solvers.base import BaseSolver, SolverState, runnable
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import TINY, check_operations, first_step_size, pass_operations
from lighttouch.solvers.steps import AdaGrad, step_numbers
from lighttouch.validation import positive


@dataclass
class SampledState(SolverState):
    """The loop's arrays, the stage it is in, and the best feasible point at the end of a stage."""

    adagrad: AdaGradState
    order: ExampleOrder
    distribution: Distribution
    plan: SamplingPlan
    step_size: float  # 0 before the trials
    stage_end: int
    best: Vector
    best_objective: float = math.inf
    last_gain: float = math.inf  # of the latest stage over the one before
    stages: int = 0

    @property
    def w(self) -> Vector:
        return np.array(self.adagrad.coordinates[0], dtype=np.float64)


@dataclass(frozen=True)
class SampledAdaGrad(BaseSolver[SampledState]):
    """AdaGrad on sampled examples and constraints, with its own step size and batch sizes.

    It ends when a stage, twice as long as all before it, gains less than `tolerance`. That proves
    nothing, so the status is then STALLED.

    Parameters
    ----------
    tolerance : float, default=1e-3
        Relative gain of a stage below which the run ends.
    step_size : float, default=None
        AdaGrad's eta; None finds it by short trials.

    Raises
    ------
    ValueError
        If the tolerance is not a positive number.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> problem = lt.Problem(lt.EmpiricalRisk(X, X @ [1.0, 2.0, 3.0]), lt.ordering(3))
    >>> lt.solve(problem, lt.SampledAdaGrad()).violation
    0.0
    """

    tolerance: float = 1e-3
    step_size: float | None = None
    stops_itself = True

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")
        if self.step_size is not None:
            positive(self.step_size, "step_size")

    def init(self, problem: Problem, start: Vector) -> SampledState:
        plan = sampling_plan(problem, self.tolerance)
        members, examples = problem.constraints.members, problem.objective.examples
        return SampledState(
            counters=new_counters(),
            adagrad=new_adagrad_state(
                start, ridge_shares(problem) if plan.sparse else np.zeros(0), plan
            ),
            order=new_example_order(-(-examples // plan.run), problem.objective.independent),
            distribution=new_distribution(np.zeros(-(-members // plan.group)), 1.0),
            plan=plan,
            step_size=self.step_size or 0.0,
            stage_end=first_stage(problem, plan),
            best=start.copy(),
        )

    def advance(
        self, problem: Problem, state: SampledState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` iterations: it returns early at the end of a stage."""
        if steps == 0:
            return
        if state.step_size == 0.0:
            _find_step_size(problem, state)
        _run(problem, state, min(steps, state.stage_end - state.iteration), rng)
        if state.iteration == state.stage_end:
            self._end_stage(problem, state)

    def _end_stage(self, problem: Problem, state: SampledState) -> None:
        """Project what was reached and keep it if it is better than before."""
        objective, point = _judged(problem, self._recent(state))
        before = state.best_objective
        if objective < state.best_objective:
            state.best, state.best_objective = point, objective
        if state.stages:
            state.last_gain = (before - state.best_objective) / max(abs(state.best_objective), TINY)
        state.stages += 1
        state.stage_end = 2 * state.stage_end

    def _recent(self, state: SampledState) -> list[Vector]:
        """The tail average; also the last iterate, where constraints are cheap to project onto."""
        tail = self.average(state)
        return [tail] if state.plan.draws > 0 else [state.w, tail]

    def finished(self, state: SampledState) -> Status | None:
        return Status.STALLED if state.last_gain <= self.tolerance else None

    def average(self, state: SampledState) -> Vector:
        tail = state.adagrad.tail
        return np.asarray(tail[:-1] / tail[-1]) if tail[-1] > 0 else state.w

    def solution(self, state: SampledState) -> Vector:
        return self.candidates(state)[0]

    def candidates(self, state: SampledState) -> Sequence[Vector]:
        best = [state.best] if math.isfinite(state.best_objective) else []
        return best if self.finished(state) else best + self._recent(state)

    def probabilities(self, state: SampledState) -> Vector | None:
        return probabilities(state.distribution) if state.distribution.law.shape[0] else None

    def batch_sizes(self, state: SampledState) -> tuple[int, int, int]:
        return (state.plan.run * state.plan.runs, state.plan.draws, 1)

    def notes(self, state: SampledState) -> Sequence[str]:
        plan = state.plan
        if state.step_size == 0.0:
            return ()
        return (
            f"sampled AdaGrad: steps of {state.step_size:.3g}, "
            f"{'one for each example, ' if plan.sparse else ''}{plan.runs} runs of {plan.run} "
            f"examples per iteration, {1 + plan.draws} groups of {plan.group} constraints every "
            f"{plan.every} iterations{', in single precision' if plan.far else ''}",
        )


def _run(problem: Problem, state: SampledState, steps: int, rng: np.random.Generator) -> None:
    objective, constraints = problem.objective, problem.constraints
    domain = problem.domain.record(problem.dimension)
    numbers = step_numbers(AdaGrad(state.step_size), state.plan.run, objective.l2)
    gathers = constraints.members > 0 and not sweeps_pairs(problem)
    runnable(sampled_adagrad, problem)(
        objective.record,
        constraints.record,
        inward(domain) if state.plan.far else domain,
        numbers,
        state.plan,
        state.adagrad,
        state.order,
        state.distribution,
        new_gradient(problem.dimension if gathers else 0),
        state.counters,
        steps,
        rng,
    )


def _find_step_size(problem: Problem, state: SampledState) -> None:
    """The best of a power-of-four grid on short trials; the run goes on from its trial.

    The grid grows while its edge wins. Of steps that do almost equally well the smallest is taken.
    """
    base = first_step_size(problem)
    rows = _some_examples(problem, COSTS.trial_judges)
    worst = _sample_value(problem, state.w, rows)
    scores: dict[int, float] = {}
    good: dict[int, SampledState] = {}  # only those that may still be chosen: states are large
    work = np.zeros_like(state.counters)
    powers = [-1, 0, 1]
    while powers:
        for power in powers:
            scores[power], good[power] = _trial(
                problem, state, base * COSTS.trial_grid**power, rows
            )
            work += good[power].counters
            least = min(scores.values())
            enough = least + COSTS.almost * max(0.0, worst - least)
            good = {tried: trial for tried, trial in good.items() if scores[tried] <= enough}
        best = min(scores, key=lambda power: scores[power])
        powers = [
            edge
            for edge in (best - 1, best + 1)
            if edge not in scores and abs(edge) <= COSTS.farthest_trial
        ]
        if sorted(scores.values())[1] - least <= COSTS.almost * (worst - least):
            break  # its neighbour does as well: no need to look farther
    _go_on_from(state, good[min(good)], work)


def _go_on_from(state: SampledState, trial: SampledState, work: Indices) -> None:
    vars(state).update(vars(trial))
    state.counters[[ITERATION, CHECKS, SAMPLES]] = 0, work[CHECKS], work[SAMPLES]


def _trial(
    problem: Problem, state: SampledState, step_size: float, rows: Indices
) -> tuple[float, SampledState]:
    trial = state.copy()
    trial.step_size = step_size
    steps = COSTS.trial_examples // (state.plan.run * state.plan.runs)
    _run(problem, trial, max(COSTS.fewest_trial_steps, steps), np.random.default_rng(1))
    finite = np.isfinite(trial.adagrad.coordinates).all()
    score = _sample_value(problem, trial.w, rows) if finite else math.inf
    return (score if math.isfinite(score) else math.inf), trial


def _judged(problem: Problem, candidates: list[Vector]) -> tuple[float, Vector]:
    """The better of the candidates' projections, compared by a sample, and its objective."""
    projected = [project(each, problem.constraints, problem.domain).w for each in candidates]
    point, objective = projected[0], problem.objective
    if len(projected) > 1:
        weighted = isinstance(objective, WeightedSum) or (
            isinstance(objective, EmpiricalRisk) and objective.sample_weight is not None
        )
        sampled = functools.partial(
            _sample_value, problem, rows=_some_examples(problem, COSTS.judges)
        )
        # a sample may lack the heavy examples
        point = min(projected, key=objective.value if weighted else sampled)
    return objective.value(point), point


def _some_examples(problem: Problem, count: int) -> Indices:
    """The same ones every time, so that points are compared alike; all if there are no more."""
    examples = problem.objective.examples
    if examples <= count:
        return np.arange(examples)
    return np.random.default_rng(2).integers(examples, size=count)


def _sample_value(problem: Problem, w: Vector, rows: Indices) -> float:
    """The mean of some examples' terms."""
    objective = problem.objective
    values = runnable(sampled_mean, problem)
    return float(values(objective.record, rows, w)) + objective.penalty_value(w)


# -------------------------------------------------------------------------------------------------
# How sampled AdaGrad sizes its batches and visits: from counted costs, so that runs repeat.


def sampling_plan(problem: Problem, tolerance: float) -> SamplingPlan:
    """Sixteen examples per iteration, in four runs of four; a share of the time for constraints."""
    objective, constraints = problem.objective, problem.constraints
    many = objective.examples >= COSTS.fewest_for_runs and not objective.independent
    run = COSTS.run_length if many else 1
    runs = 1 if objective.examples == 1 else COSTS.runs
    pairs = sweeps_pairs(problem)
    share = COSTS.constraint_share if pairs else _constraint_share(problem)
    sparse = isinstance(objective.record, SparseExamples)
    budget = share * _example_operations(problem, sparse) * run * runs
    member = max(1.0, constraints.cost / constraints.group_size)
    draws = 0 if pairs else 1
    affordable = budget / (member * (1 + draws))
    largest = min(COSTS.largest_group, COSTS.group_stretch * affordable, constraints.members)
    group = int(max(1, largest))
    every = max(1, round(group / affordable))
    far = (
        sparse
        and tolerance >= COSTS.finest_single
        and problem.dimension > COSTS.near_coordinates
        and fits_single_precision(problem)
    )
    rows = _penalty_rows(problem, sparse, run * runs)
    plan = SamplingPlan(
        examples=objective.examples,
        members=constraints.members,
        runs=runs,
        run=run,
        every=every,
        draws=draws,
        group=group,
        record=1,
        sparse=sparse,
        far=far,
        penalty_rows=rows,
    )
    return plan._replace(record=_record_interval(problem, first_stage(problem, plan)))


def sweeps_pairs(problem: Problem) -> bool:
    """Whether each constraint compares two coordinates: steps then need no gathered gradient."""
    return isinstance(problem.constraints.record, OrderRows | LatticeOrder)


def first_stage(problem: Problem, plan: SamplingPlan) -> int:
    """Half a pass over the examples, and at least the work of the projection that ends it."""
    half_pass = problem.objective.examples // (2 * plan.run * plan.runs)
    projection = COSTS.projection_checks * check_operations(problem)
    return int(max(COSTS.shortest_stage, half_pass, projection / _step_operations(problem, plan)))


def fits_single_precision(problem: Problem) -> bool:
    """Whether single precision holds squared gradients, tells targets apart and keeps the bounds.

    Functions of the user's own are always given double precision.
    """
    examples, domain = problem.objective.record, problem.domain.record(problem.dimension)
    if domain.kind >= BALL or problem.interpreted or not is_ours(problem.constraints.record):
        return False
    parts = [part for part in (examples.data, examples.targets, examples.weights) if part.size]
    if max(max(part.max(), -part.min()) for part in parts) > COSTS.largest_single:
        return False
    targets = examples.targets
    if targets.size > 1 and np.abs(targets).max() > COSTS.most_deviations * targets.std():
        return False
    inside = inward(domain)
    return bool(np.all(inside.lower <= inside.upper))


def inward(domain: DomainRecord) -> DomainRecord:
    """Bounds that single precision can hold, none of them outside the given ones."""
    with np.errstate(over="ignore"):  # beyond its largest number lies infinity, which is outside
        lower, upper = (bound.astype(np.float32) for bound in (domain.lower, domain.upper))
    lower = np.where(lower < domain.lower, np.nextafter(lower, np.float32(np.inf)), lower)
    upper = np.where(upper > domain.upper, np.nextafter(upper, np.float32(-np.inf)), upper)
    return domain._replace(lower=lower.astype(np.float64), upper=upper.astype(np.float64))


def is_ours(record: Any) -> bool:
    return type(record).__module__.startswith("lighttouch.") and all(
        is_ours(part) for part in record if hasattr(part, "_fields")
    )


def ridge_shares(problem: Problem) -> Vector:
    """The l2 term dealt out among the examples that touch a coordinate; empty without one.

    A step then need not move all coordinates. Infinite where no example touches a coordinate.
    """
    objective = problem.objective
    if objective.l2 == 0.0:
        return np.zeros(0)
    touching = np.bincount(objective.record.indices, minlength=problem.dimension)
    with np.errstate(divide="ignore"):
        return np.asarray(objective.l2 * objective.examples / touching)


def _penalty_rows(problem: Problem, sparse: bool, batch: int) -> int:
    """Terms of the penalty visited per iteration: they get a fixed share of the time."""
    objective = problem.objective
    if not isinstance(objective, EmpiricalRisk):
        return 0
    of_l1 = problem.dimension if objective.l1 > 0.0 else 0
    rows, entries = objective.roughness.shape[0] + of_l1, objective.roughness.nnz + of_l1
    if rows == 0:
        return 0
    each = COSTS.penalty_operations * max(1.0, entries / rows)
    affordable = COSTS.penalty_share * _example_operations(problem, sparse) * batch / each
    return int(min(rows, max(1.0, round(affordable))))


def _constraint_share(problem: Problem) -> float:
    """In proportion to a check of all constraints against a pass over all examples."""
    share = check_operations(problem) / pass_operations(problem)
    return float(np.clip(share, COSTS.constraint_share, COSTS.largest_share))


def _example_operations(problem: Problem, sparse: bool) -> float:
    each = COSTS.sparse_operations if sparse else COSTS.example_operations
    return float(each * problem.objective.cost)


def _step_operations(problem: Problem, plan: SamplingPlan) -> float:
    visited = (1 + plan.draws) * plan.group / plan.every
    constraints = problem.constraints
    each = constraints.cost / constraints.group_size if constraints.members else 0.0
    return _example_operations(problem, plan.sparse) * plan.run * plan.runs + visited * each


def _record_interval(problem: Problem, stage: int) -> int:
    """Rarely enough to cost nothing, often enough for an average over half the first stage."""
    rarely = problem.dimension / max(1.0, COSTS.record_cost * problem.objective.cost)
    return int(max(COSTS.shortest_record_interval, min(stage / COSTS.record_intervals, rarely)))
