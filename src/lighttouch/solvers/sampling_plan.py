"""How sampled AdaGrad sizes its batches and visits: from counted costs, so that runs repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.loops.sampled_adagrad import SamplingPlan
from lighttouch.kernels.verbs.constraints import OrderRows
from lighttouch.kernels.verbs.domains import BALL, DomainRecord
from lighttouch.kernels.verbs.lattice_rows import LatticeOrder
from lighttouch.kernels.verbs.objectives import SparseExamples
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.solvers.costs import COSTS
from lighttouch.solvers.scales import check_operations, pass_operations


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
