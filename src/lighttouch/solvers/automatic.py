"""The solver that chooses for itself: what `solve(problem)` runs."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.loops.sampled_adagrad import (
    AdaGradState,
    SamplingPlan,
    new_adagrad_state,
    sampled_adagrad,
)
from lighttouch.kernels.state.counters import CHECKS, ITERATION, SAMPLES, new_counters
from lighttouch.kernels.state.distribution import Distribution, new_distribution, probabilities
from lighttouch.kernels.state.example_order import ExampleOrder, new_example_order
from lighttouch.kernels.state.gradient import new_gradient
from lighttouch.kernels.verbs.objectives import sampled_mean
from lighttouch.problem import Problem
from lighttouch.projections import project
from lighttouch.result import Status
from lighttouch.solvers import accelerated, alternating, interior
from lighttouch.solvers.accelerated import Acceleration
from lighttouch.solvers.alternating import Alternation
from lighttouch.solvers.interior import InteriorRun
from lighttouch.solvers.pace import (
    choose_pace,
    first_eta,
    first_stage,
    full_pass_is_cheap,
    inward,
    polishing_pays,
    projection_is_cheap,
    ridge_shares,
    sweeps_pairs,
)
from lighttouch.solvers.state import copied, runnable
from lighttouch.validation import positive

TRIAL_EXAMPLES = 8192
TRIAL_JUDGES = 2048  # examples by which trials are compared
FINEST = 1e-5  # no smaller tolerance is left to single precision
JUDGES = 16384  # examples by which the points at the end of a stage are compared
ALMOST = 0.01
SLICE_SECONDS = 0.1


@dataclass
class AutomaticState:
    """Where the solver stands: the stochastic loop's arrays, the accelerated method's, and the best
    feasible point so far.
    """

    phase: str
    walk: AdaGradState
    visits: ExampleOrder
    counters: np.ndarray[Any, np.dtype[np.int64]]
    distribution: Distribution
    pace: SamplingPlan
    eta: float
    stage_end: int
    stage_objectives: list[float] = field(default_factory=list)
    best: Vector = field(default_factory=lambda: np.zeros(0))
    best_objective: float = math.inf
    at: Vector | None = None  # where the deterministic phases stand, once there
    acceleration: Acceleration | None = None
    interior: InteriorRun | None = None
    alternation: Alternation | None = None
    status: Status | None = None

    @property
    def iteration(self) -> int:
        return int(self.counters[ITERATION])

    @property
    def constraint_checks(self) -> int:
        return int(self.counters[CHECKS])

    @property
    def gradient_samples(self) -> int:
        return int(self.counters[SAMPLES])

    @property
    def w(self) -> Vector:
        return np.array(self.walk.coordinates[0], dtype=np.float64) if self.at is None else self.at

    def copy(self) -> AutomaticState:
        arrays = ("walk", "visits", "counters", "distribution", "best", "at")
        acceleration = None if self.acceleration is None else self.acceleration.copy()
        return replace(
            self,
            acceleration=acceleration,
            interior=None if self.interior is None else self.interior.copy(),
            alternation=None if self.alternation is None else self.alternation.copy(),
            stage_objectives=list(self.stage_objectives),
            **{name: copied(getattr(self, name)) for name in arrays},
        )


@dataclass(frozen=True)
class Automatic:
    """No parameters: AdaGrad with sweeps over sampled constraints where examples are many, then
    accelerated projected steps.

    The stochastic phase doubles its length until the projected objective gains less than
    `tolerance` (relative); the accelerated phase ends when the proven gap is below it. Small
    problems go to the accelerated phase at once, and quadratic programs that are cheap to factor to
    an interior point. Smooth losses under nested rows (simplex-exact dominance) go to alternating
    directions.
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")

    def objection_to(self, problem: Problem) -> str | None:
        return None

    def init(self, problem: Problem, start: Vector) -> AutomaticState:
        phase, pace = first_phase(problem), choose_pace(problem)
        if phase != "tuning" or self.tolerance < FINEST:
            pace = pace._replace(far=False)
        groups = -(-problem.constraints.members // pace.group) if problem.constraints.members else 0
        examples = problem.objective.examples
        return AutomaticState(
            phase=phase,
            walk=new_adagrad_state(
                start, ridge_shares(problem) if pace.sparse else np.zeros(0), pace
            ),
            visits=new_example_order(-(-examples // pace.run), problem.objective.independent),
            counters=new_counters(),
            distribution=new_distribution(np.zeros(groups), 1.0),
            pace=pace,
            eta=0.0,
            stage_end=first_stage(problem, pace),
            best=start.copy(),
        )

    def _tune(self, problem: Problem, state: AutomaticState) -> None:
        """The best of a power-of-four grid on short trials, as the paper's authors did by hand; the
        run goes on from its trial.

        The grid grows while its edge wins. Of steps that do almost equally well the smallest is
        taken: long runs want it smaller.
        """
        base = first_eta(problem)
        rows = some_examples(problem, TRIAL_JUDGES)
        worst = sample_value(problem, state.w, rows)
        scores: dict[int, float] = {}
        good: dict[
            int, AutomaticState
        ] = {}  # the trials that may still be chosen: large states are not kept for nothing
        work = np.zeros_like(state.counters)
        powers = [-1, 0, 1]
        while powers:
            for power in powers:
                scores[power], good[power] = self._trial(problem, state, base * 4.0**power, rows)
                work += good[power].counters
                least = min(scores.values())
                enough = least + ALMOST * max(0.0, worst - least)
                good = {tried: trial for tried, trial in good.items() if scores[tried] <= enough}
            best = min(scores, key=lambda power: scores[power])
            powers = [
                edge for edge in (best - 1, best + 1) if edge not in scores and abs(edge) <= 10
            ]
            if sorted(scores.values())[1] - least <= ALMOST * (worst - least):
                break  # its neighbour does as well: no need to look farther
        vars(state).update(vars(good[min(good)]))
        state.counters[[ITERATION, CHECKS, SAMPLES]] = 0, work[CHECKS], work[SAMPLES]
        state.phase = "stochastic"

    def _trial(
        self, problem: Problem, state: AutomaticState, eta: float, rows: Any
    ) -> tuple[float, AutomaticState]:
        trial = state.copy()
        trial.eta = eta
        self._run(
            problem,
            trial,
            max(20, TRIAL_EXAMPLES // (state.pace.run * state.pace.runs)),
            np.random.default_rng(1),
        )
        score = (
            sample_value(problem, trial.w, rows)
            if np.isfinite(trial.walk.coordinates).all()
            else math.inf
        )
        return (score if math.isfinite(score) else math.inf), trial

    def _run(
        self, problem: Problem, state: AutomaticState, steps: int, rng: np.random.Generator
    ) -> None:
        objective, constraints = problem.objective, problem.constraints
        domain = problem.domain.record(problem.dimension)
        domain = inward(domain) if state.pace.far else domain
        gradient = new_gradient(
            0 if sweeps_pairs(problem) or constraints.members == 0 else problem.dimension
        )
        runnable(sampled_adagrad, problem)(
            objective.record, objective.examples, objective.l2, constraints.record, constraints.members,
            domain, state.eta, state.pace, state.walk,
            state.visits, state.distribution, gradient, state.counters, steps, rng,
        )  # fmt: skip

    def advance(
        self, problem: Problem, state: AutomaticState, steps: int, rng: np.random.Generator
    ) -> None:
        """At most `steps` iterations: it returns early at the end of a stage, or after a slice of
        time (which changes nothing).
        """
        if state.phase == "tuning":
            self._tune(problem, state)
        if state.phase == "stochastic":
            self._run(problem, state, min(steps, state.stage_end - state.iteration), rng)
            if state.iteration == state.stage_end:
                self._end_stage(problem, state)
            return
        until = time.perf_counter() + SLICE_SECONDS
        for _ in range(steps):
            if state.phase == "interior":
                self._follow_interior(problem, state)
            elif state.phase == "alternating":
                self._alternate(problem, state)
            else:
                self._accelerate(problem, state)
            if state.status is not None or time.perf_counter() > until:
                return

    def _end_stage(self, problem: Problem, state: AutomaticState) -> None:
        """Project what was reached, keep the best; go on, or to the next phase, or end."""
        projected = [
            project(candidate, problem.constraints, problem.domain).w
            for candidate in self._recent(state)
        ]
        candidate = projected[0]
        if len(projected) > 1:
            weighted = (
                getattr(problem.objective, "sample_weight", None) is not None
            )  # a sample may lack the heavy ones
            sampled = functools.partial(sample_value, problem, rows=some_examples(problem, JUDGES))
            candidate = min(projected, key=problem.objective.value if weighted else sampled)
        objective = problem.objective.value(candidate)
        if objective < state.best_objective:
            state.best, state.best_objective = candidate, objective
        state.stage_objectives.append(state.best_objective)
        state.stage_end = 2 * state.stage_end
        recent = state.stage_objectives[-2:]
        if len(recent) == 2 and recent[0] - recent[1] <= self.tolerance * abs(recent[1]):
            if polishing_pays(problem):
                state.phase = "accelerated"
            else:
                state.status = Status.STALLED

    def _accelerate(self, problem: Problem, state: AutomaticState) -> None:
        if state.acceleration is None:
            state.acceleration = accelerated.begin(
                problem, state.best, near=bool(state.stage_objectives)
            )
        inner = state.acceleration
        passes, projections = inner.passes, inner.projections
        ended = accelerated.step(problem, inner, self.tolerance)
        state.counters[ITERATION] += 1
        state.counters[SAMPLES] += (inner.passes - passes) * problem.objective.examples
        state.counters[CHECKS] += (inner.projections - projections) * problem.constraints.members
        state.at = inner.scale * inner.x
        if inner.best_objective < state.best_objective:
            state.best, state.best_objective = inner.best.copy(), inner.best_objective
        if ended:
            proven = inner.gap <= self.tolerance * accelerated.scale_of(problem, inner)
            state.status = Status.CONVERGED if proven else Status.STALLED

    def _follow_interior(self, problem: Problem, state: AutomaticState) -> None:
        """One step; where the path ends without a proof, the accelerated steps go on from its best
        point.
        """
        if state.interior is None:
            state.interior = interior.begin(problem)
        inner = state.interior
        ended = interior.advance(problem, inner)
        state.counters[[ITERATION, CHECKS, SAMPLES]] += 1, problem.constraints.members, 1
        state.at = inner.at.x.copy()
        if math.isfinite(inner.best_objective):
            state.best, state.best_objective = inner.best.copy(), inner.best_objective
        if ended and interior.proven(inner):
            state.status = Status.CONVERGED
        elif ended:
            state.phase = "accelerated"

    def _alternate(self, problem: Problem, state: AutomaticState) -> None:
        """Some steps; where they end without a proof, the accelerated steps go on from the best
        point.
        """
        if state.alternation is None:
            state.alternation = alternating.begin(problem, state.w.copy())
        inner = state.alternation
        ended = alternating.advance(problem, inner, self.tolerance)
        state.counters[[ITERATION, CHECKS, SAMPLES]] += (
            1,
            problem.constraints.members,
            2 * problem.objective.examples,
        )
        state.at = inner.at.w.copy()
        if math.isfinite(inner.best_objective):
            state.best, state.best_objective = inner.best.copy(), inner.best_objective
        if ended and alternating.proven(inner, self.tolerance):
            state.status = Status.CONVERGED
        elif ended:
            state.phase = "accelerated"

    def finished(self, state: AutomaticState) -> Status | None:
        return state.status

    def solution(self, state: AutomaticState) -> Vector:
        return self.candidates(state)[0]

    def candidates(self, state: AutomaticState) -> list[Vector]:
        """Points whose projections are worth comparing at the end."""
        best = [state.best] if math.isfinite(state.best_objective) else []
        if state.acceleration is not None:
            return [*best, state.acceleration.scale * state.acceleration.x]
        if state.alternation is not None:
            return best or [state.w]
        return best + (self._recent(state) if state.status is None else [])

    def _recent(self, state: AutomaticState) -> list[Vector]:
        """The tail average; also the last iterate, where constraints are so cheap that projecting
        twice is nothing.
        """
        return [self.average(state)] if state.pace.draws > 0 else [state.w, self.average(state)]

    def average(self, state: AutomaticState) -> Vector:
        tail = state.walk.tail
        return tail[:-1] / tail[-1] if tail[-1] > 0 else state.w.copy()

    def probabilities(self, state: AutomaticState) -> Vector | None:
        return probabilities(state.distribution) if state.distribution.law.shape[0] else None

    def batch_sizes(self, state: AutomaticState) -> tuple[int, int, int]:
        return (state.pace.run * state.pace.runs, state.pace.draws, 1)

    def notes(self, state: AutomaticState) -> list[str]:
        """What was chosen, in words."""
        told = []
        if state.interior is not None:
            told.append(
                f"interior point: {state.interior.steps} steps, objective proven within "
                f"{state.interior.gap:.3g} of the optimum"
            )
        if state.alternation is not None:
            gap = max(0.0, state.alternation.gap)
            told.append(
                f"alternating directions: {state.alternation.at.steps} steps, objective "
                f"proven within {gap:.3g} of the optimum"
            )
        if state.eta > 0.0:
            pace = state.pace
            steps = "one for each example, " if pace.sparse else ""
            told.append(
                f"stochastic phase: AdaGrad steps of {state.eta:.3g}, {steps}{pace.runs} "
                f"runs of {pace.run} examples an iteration, "
                f"{1 + pace.draws} groups of {pace.group} constraints every {pace.every} iterations"
                f"{', in single precision' if pace.far else ''}"
            )
        if state.acceleration is not None:
            inner = state.acceleration
            told.append(
                f"accelerated projected steps: {inner.steps}, objective proven within "
                f"{max(0.0, inner.gap):.3g} of the optimum"
            )
        return told


def first_phase(problem: Problem) -> str:
    """Quadratic programs that are cheap to factor are solved by an interior point; examples are
    sampled where there are many.
    """
    if interior.fits(problem):
        return "interior"
    if full_pass_is_cheap(problem) and alternating.fits(problem):
        return "alternating"
    return (
        "accelerated" if full_pass_is_cheap(problem) and projection_is_cheap(problem) else "tuning"
    )


def some_examples(problem: Problem, count: int) -> Any:
    """The same ones every time, so that points compared by them are compared alike; all where there
    are no more.
    """
    examples = problem.objective.examples
    return (
        np.arange(examples)
        if examples <= count
        else np.random.default_rng(2).integers(examples, size=count)
    )


def sample_value(problem: Problem, w: Vector, rows: Any) -> float:
    """The mean of some examples' terms."""
    objective = problem.objective
    values = runnable(sampled_mean, problem)
    return float(values(objective.record, rows, w)) + objective.penalty_value(w)
