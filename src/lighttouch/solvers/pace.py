"""How the automatic solver sizes its steps and visits, from counted costs alone, so that runs can be repeated."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse

from lighttouch.kernels.constraints import OrderRows
from lighttouch.kernels.lattice_order import LatticeOrder
from lighttouch.kernels.objectives import SparseExamples
from lighttouch.kernels.swift import Pace
from lighttouch.problem import Problem

CHEAP_PASS = 4e6  # operations of a full gradient that are no reason to sample
POLISH_PASS = 1.2e7
CHEAP_CHECK = 2e7  # operations of checking all constraints that are no reason to avoid projections
EXAMPLE_OPERATIONS = 12.0  # an example's nonzero is read, written and rooted; a constraint's is only read
CONSTRAINT_SHARE = 0.1
LARGEST_GROUP = 1024
NEAR = 200_000  # coordinates, at 24 bytes each, that stay near the processor


def choose_pace(problem: Problem) -> Pace:
    """Sixteen examples a step in four runs of four; constraints get about a tenth of the time."""
    examples = problem.objective.examples
    run = 4 if examples >= 64 and not problem.objective.independent else 1
    runs = 1 if examples == 1 else 4
    budget = CONSTRAINT_SHARE * EXAMPLE_OPERATIONS * run * runs * problem.objective.cost
    member = max(1.0, problem.constraints.cost / problem.constraints.group_size)
    cheap = isinstance(problem.constraints.record, OrderRows | LatticeOrder)
    draws = 0 if cheap else 1
    affordable = budget / (member * (1 + draws))
    group = int(max(1, min(LARGEST_GROUP, 8 * affordable, problem.constraints.members)))
    every = max(1, round(group / affordable))
    sparse = isinstance(problem.objective.record, SparseExamples) and problem.objective.l2 == 0.0
    far = problem.dimension > NEAR
    return Pace(runs, run, every, draws, group, record_interval(problem), sparse, far)


def record_interval(problem: Problem) -> int:
    """Often enough for an average, rarely enough to cost nothing."""
    return int(max(10, min(1000, problem.dimension / max(1.0, 16 * problem.objective.cost))))


def full_pass_is_cheap(problem: Problem) -> bool:
    return problem.objective.examples * problem.objective.cost <= CHEAP_PASS or problem.objective.examples == 1


def polishing_pays(problem: Problem) -> bool:
    """Whether accelerated steps on all examples are affordable after the stochastic phase."""
    return problem.objective.examples * problem.objective.cost <= POLISH_PASS


def projection_is_cheap(problem: Problem) -> bool:
    constraints = problem.constraints
    return bool(constraints.members * constraints.cost / constraints.group_size <= CHEAP_CHECK)


def first_eta(problem: Problem) -> float:
    """A step that changes a typical prediction by about the size of a typical target."""
    objective = problem.objective
    X, y = getattr(objective, "X", None), getattr(objective, "y", None)
    if X is None or y is None:
        return 1.0
    data = X.data if scipy.sparse.issparse(X) else X[: min(1000, X.shape[0])]
    entry = float(np.sqrt(np.mean(np.square(data[:100_000] if scipy.sparse.issparse(X) else data)))) if data.size else 1.0
    reach = max(1e-300, float(np.sqrt(np.mean(np.square(y[:100_000])))))
    return reach / max(1e-300, entry * math.sqrt(objective.cost))
