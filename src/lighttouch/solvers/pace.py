"""How the automatic solver sizes its steps and visits, from counted costs alone, so that runs can
be repeated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Vector
from lighttouch.kernels.loops.sampled_adagrad import SamplingPlan
from lighttouch.kernels.verbs.constraints import OrderRows
from lighttouch.kernels.verbs.domains import BALL, DomainRecord
from lighttouch.kernels.verbs.lattice_rows import LatticeOrder
from lighttouch.kernels.verbs.objectives import SparseExamples
from lighttouch.problem import Problem
from lighttouch.solvers.accelerated import has_kinks

CHEAP_PASS = 4e6  # operations of a full gradient that are no reason to sample
POLISH_PASS = 1.2e7
# a loss with kinks takes hundreds of full gradients, and sampling far fewer passes to come near
KINKED_CHEAP_PASS = 2e5
KINKED_POLISH_PASS = 4e6
CHEAP_CHECK = 2e7  # operations of checking all constraints that are no reason to avoid projections
EXAMPLE_OPERATIONS = (
    12.0  # an example's number is read, gathered, and stepped on; a constraint's is only read
)
SPARSE_OPERATIONS = 4.0  # the same where an example is stepped on at once
PENALTY_SHARE = 0.2  # of the time that examples take, for the rows of the roughness
PENALTY_OPERATIONS = 8.0  # per entry of a row: two square roots and divisions
CONSTRAINT_SHARE = 0.1  # of the time that examples take
LARGEST_SHARE = 2.0
PROJECTION_CHECKS = 30.0  # of all constraints, that a projection costs about as much as
LARGEST_GROUP = 1024
FINEST_SINGLE = (
    1e3  # deviations of the targets: what single precision rounds off is then no part of them
)
LARGEST_SINGLE = 1e5  # its sixth power, a million times over, is a number in single precision
NEAR = 200_000  # coordinates, at 16 bytes each, that stay near the processor


def choose_pace(problem: Problem) -> SamplingPlan:
    """Sixteen examples an iteration in four runs of four; constraints get a tenth of the time, more
    where they are the heavier part.
    """
    examples = problem.objective.examples
    run = 4 if examples >= 64 and not problem.objective.independent else 1
    runs = 1 if examples == 1 else 4
    cheap = sweeps_pairs(problem)
    share = CONSTRAINT_SHARE if cheap else constraint_share(problem)
    sparse = isinstance(problem.objective.record, SparseExamples)
    budget = share * example_operations(problem, sparse) * run * runs
    member = max(1.0, problem.constraints.cost / problem.constraints.group_size)
    draws = 0 if cheap else 1
    affordable = budget / (member * (1 + draws))
    group = int(max(1, min(LARGEST_GROUP, 8 * affordable, problem.constraints.members)))
    every = max(1, round(group / affordable))
    far = sparse and problem.dimension > NEAR and fits_single_precision(problem)
    rows = penalty_rows(problem, sparse, run * runs)
    pace = SamplingPlan(runs, run, every, draws, group, 1, sparse, far, rows)
    return pace._replace(record=record_interval(problem, first_stage(problem, pace)))


def penalty_rows(problem: Problem, sparse: bool, batch: int) -> int:
    """Rows of the roughness visited per iteration: they get a fixed share of the examples' time."""
    roughness = getattr(problem.objective, "roughness", None)
    if roughness is None or roughness.shape[0] == 0:
        return 0
    row = PENALTY_OPERATIONS * max(1.0, roughness.nnz / roughness.shape[0])
    affordable = PENALTY_SHARE * example_operations(problem, sparse) * batch / row
    return int(min(roughness.shape[0], max(1.0, round(affordable))))


def sweeps_pairs(problem: Problem) -> bool:
    """Whether each constraint compares two coordinates: such pairs are parted in place, without a
    gradient to gather.
    """
    return isinstance(problem.constraints.record, OrderRows | LatticeOrder)


def fits_single_precision(problem: Problem) -> bool:
    """Whether it holds the sums of squared gradients, tells the targets apart and keeps the bounds;
    users' loops want double precision.
    """
    examples, domain = problem.objective.record, problem.domain.record(problem.dimension)
    if domain.kind == BALL or problem.interpreted or not _ours(problem.constraints.record):
        return False
    parts = [part for part in (examples.data, examples.targets, examples.weights) if part.size]
    if max(max(part.max(), -part.min()) for part in parts) > LARGEST_SINGLE:
        return False
    targets = examples.targets
    if targets.size > 1 and np.abs(targets).max() > FINEST_SINGLE * targets.std():
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


def _ours(record: Any) -> bool:
    return type(record).__module__.startswith("lighttouch.") and all(
        _ours(part) for part in record if hasattr(part, "_fields")
    )


def ridge_shares(problem: Problem) -> Vector:
    """The l2 term dealt out among the examples that touch a coordinate, so that a step need not
    move all of them; empty without one.

    Infinite where no example touches it.
    """
    objective = problem.objective
    if objective.l2 == 0.0:
        return np.zeros(0)
    touching = np.bincount(objective.record.indices, minlength=problem.dimension)
    with np.errstate(divide="ignore"):
        return np.asarray(objective.l2 * objective.examples / touching)


def constraint_share(problem: Problem) -> float:
    """In proportion to a check of all constraints against a pass over all examples, within
    limits.
    """
    return float(
        np.clip(
            check_operations(problem) / pass_operations(problem), CONSTRAINT_SHARE, LARGEST_SHARE
        )
    )


def first_stage(problem: Problem, pace: SamplingPlan) -> int:
    """Half a pass over the examples, and at least as much work as the projection that ends the
    stage.
    """
    half_pass = problem.objective.examples // (2 * pace.run * pace.runs)
    return int(
        max(
            200,
            half_pass,
            PROJECTION_CHECKS * check_operations(problem) / step_operations(problem, pace),
        )
    )


def step_operations(problem: Problem, pace: SamplingPlan) -> float:
    visited = (1 + pace.draws) * pace.group / pace.every
    constraint = (
        problem.constraints.cost / problem.constraints.group_size
        if problem.constraints.members
        else 0.0
    )
    return example_operations(problem, pace.sparse) * pace.run * pace.runs + visited * constraint


def example_operations(problem: Problem, sparse: bool) -> float:
    return float((SPARSE_OPERATIONS if sparse else EXAMPLE_OPERATIONS) * problem.objective.cost)


def pass_operations(problem: Problem) -> float:
    return float(problem.objective.examples * problem.objective.cost)


def check_operations(problem: Problem) -> float:
    constraints = problem.constraints
    return float(constraints.members * constraints.cost / constraints.group_size)


def record_interval(problem: Problem, stage: int) -> int:
    """Rarely enough to cost nothing, but often enough for an average over the later half of the
    first stage.
    """
    return int(max(10, min(stage / 16, problem.dimension / max(1.0, 8 * problem.objective.cost))))


def full_pass_is_cheap(problem: Problem) -> bool:
    return (
        pass_operations(problem) <= (KINKED_CHEAP_PASS if has_kinks(problem) else CHEAP_PASS)
        or problem.objective.examples == 1
    )


def polishing_pays(problem: Problem) -> bool:
    """Whether accelerated steps on all examples are affordable after the stochastic phase."""
    return pass_operations(problem) <= (KINKED_POLISH_PASS if has_kinks(problem) else POLISH_PASS)


def projection_is_cheap(problem: Problem) -> bool:
    return check_operations(problem) <= CHEAP_CHECK


def first_eta(problem: Problem) -> float:
    """A step that changes a typical prediction by about the size of a typical target."""
    objective = problem.objective
    X, y = getattr(objective, "X", None), getattr(objective, "y", None)
    if X is None or y is None:
        return 1.0
    data = X.data if scipy.sparse.issparse(X) else X[: min(1000, X.shape[0])]
    entry = (
        float(np.sqrt(np.mean(np.square(data[:100_000] if scipy.sparse.issparse(X) else data))))
        if data.size
        else 1.0
    )
    reach = max(1e-300, float(np.sqrt(np.mean(np.square(y[:100_000])))))
    return reach / max(1e-300, entry * math.sqrt(objective.cost))
