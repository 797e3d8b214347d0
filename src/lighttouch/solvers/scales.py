"""What a problem says about itself before it is solved: sizes, kinks, least curvature, and what
passes over it cost.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from lighttouch.arrays import EPSILON, Vector
from lighttouch.interfaces import Objective
from lighttouch.interior.costs import COSTS as INTERIOR
from lighttouch.losses import target_size
from lighttouch.objectives import EmpiricalRisk, Quadratic, ShardedRisk, WeightedSum
from lighttouch.objectives.sums import column_squares
from lighttouch.objectives.sums import has_kinks as kinked
from lighttouch.problem import Problem
from lighttouch.projections.sets import feasible_set
from lighttouch.solvers.costs import COSTS

TINY = 1e-300  # keeps quotients of zeros finite


def has_kinks(problem: Problem) -> bool:
    """Whether the objective may have kinks."""
    objective = problem.objective
    return objective.survey.kinked if isinstance(objective, ShardedRisk) else kinked(objective)


def pass_operations(problem: Problem) -> float:
    """Operations of one full gradient."""
    return float(problem.objective.examples * problem.objective.cost)


def check_operations(problem: Problem) -> float:
    """Operations of checking every constraint once."""
    constraints = problem.constraints
    return float(constraints.members * constraints.cost / constraints.group_size)


def column_sizes(problem: Problem) -> Vector:
    """The root mean square of every column of the data; 0 where it is unknown.

    For a quadratic form it is the root of the diagonal.
    """
    objective = problem.objective
    if isinstance(objective, ShardedRisk):
        return np.sqrt(objective.survey.squares)
    return np.sqrt(column_squares(objective))


def coordinate_scales(sizes: Vector) -> Vector:
    """Units in which all columns have the same size; 1 where a column is too small to tell."""
    largest = float(sizes.max(initial=0.0))
    known = sizes > COSTS.known_scale * max(TINY, largest)
    return np.where(known, max(largest, TINY) / np.where(known, sizes, 1.0), 1.0)


def natural_reach(problem: Problem, w: Vector, sizes: Vector) -> Vector:
    """How far each coordinate may plausibly be from an optimum: a guess, never a proof.

    What changes predictions by a few typical targets; where the objective does not curve, nothing
    says how far, and a multiple of everything else is taken.
    """
    known = sizes > COSTS.known_column * max(TINY, float(sizes.max(initial=0.0)))
    typical = _typical_target(problem, w, sizes)
    reach = np.where(known, COSTS.targets_away * typical / np.where(known, sizes, 1.0), 0.0)
    size = max(float(reach.max(initial=0.0)), float(np.abs(w).max(initial=0.0)), 1.0)
    return np.where(known, reach, COSTS.flat_reach * size)


def _typical_target(problem: Problem, w: Vector, sizes: Vector) -> float:
    return _typical_target_of(problem.objective, w, sizes)


def _typical_target_of(objective: Objective, w: Vector, sizes: Vector) -> float:
    if isinstance(objective, WeightedSum):
        return max(_typical_target_of(part, w, sizes) for part in objective.objectives)
    if isinstance(objective, ShardedRisk):
        return float(objective.mean(_typical_target_of, w, sizes))
    if isinstance(objective, EmpiricalRisk):
        size = target_size(objective.loss_row, objective.y)
        return max(size, _root_mean_square(objective.predictions(w)))
    if isinstance(objective, Quadratic):
        known = sizes > 0.0
        return float(np.max(np.abs(objective.q[known]) / sizes[known], initial=0.0))
    return 1.0


def first_step_size(problem: Problem) -> float:
    """A step that changes a typical prediction by about the size of a typical target."""
    return _first_step_size(problem.objective)


def _first_step_size(objective: Objective) -> float:
    if isinstance(objective, WeightedSum):
        return min(_first_step_size(part) for part in objective.objectives)
    if not isinstance(objective, EmpiricalRisk):
        return 1.0
    X = objective.X
    some = X.data[: COSTS.scale_sample] if sparse.issparse(X) else X[: COSTS.scale_rows]
    entry = _root_mean_square(some) if some.size else 1.0
    target = max(TINY, target_size(objective.loss_row, objective.y[: COSTS.scale_sample]))
    return target / max(TINY, entry * float(np.sqrt(objective.cost)))


def _root_mean_square(values: Vector) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


# -------------------------------------------------------------------------------------------------
# How much an objective curves at least.


def least_bends(objective: Objective, fold: bool = True) -> Vector:
    """c with P - diag(c) positive semidefinite, for the P of the interior point's
    `program_of(objective, fold)`.
    """
    d = objective.dimension
    if isinstance(objective, WeightedSum):
        pairs = zip(objective.weights, objective.objectives, strict=True)
        bends = [weight * least_bends(part, fold) for weight, part in pairs]
        return np.asarray(np.sum(bends, axis=0))
    if not isinstance(objective, Quadratic):
        of_data = _bends_of_data(objective) if fold else np.zeros(d)
        return float(objective.l2) + of_data
    P = objective.P
    diagonal = np.array(P.diagonal())
    entries = sparse.csr_matrix(P).data if sparse.issparse(P) else P
    alone = np.count_nonzero(entries) == np.count_nonzero(diagonal)
    return diagonal if alone else np.zeros(d)


def _bends_of_data(objective: Objective) -> Vector:
    """... of a squared loss whose examples hold one parameter each, as in isotonic regression:
    X'X is diagonal. Otherwise 0, which is less than it could be.
    """
    none = np.zeros(objective.dimension)
    if not (isinstance(objective, EmpiricalRisk) and objective.loss_row.name == "squared"):
        return none
    X = objective.X
    if not sparse.issparse(X) or np.diff(X.indptr).max(initial=0) > 1:
        return none
    one = np.diff(X.indptr) == 1
    sums = np.bincount(X.indices, objective.shares[one] * np.square(X.data), objective.dimension)
    rounding = INTERIOR.sum_rounding * EPSILON * (1.0 + objective.examples)
    return np.asarray(sums * (1.0 - rounding), dtype=np.float64)


# -------------------------------------------------------------------------------------------------
# What full gradients cost, for the choice between FISTA and others.


def full_pass_is_cheap(problem: Problem) -> bool:
    """Whether FISTA goes first, rather than sampling."""
    most = COSTS.kinked_cheap_pass if has_kinks(problem) else COSTS.cheap_pass
    return pass_operations(problem) <= most or problem.objective.examples == 1


def polish_is_cheap(problem: Problem) -> bool:
    """Whether FISTA on all examples is affordable after sampling."""
    most = COSTS.kinked_polish_pass if has_kinks(problem) else COSTS.polish_pass
    return pass_operations(problem) <= most


def provable_passes(problem: Problem) -> int:
    """Full gradients that a proof may take; 0 where FISTA's bounds are seldom finite: without a
    ridge or bounds on all parameters, or where projections are no matter of milliseconds.
    """
    lower, upper = problem.domain.bounds(problem.dimension)
    bounded = bool(np.isfinite(lower).all() and np.isfinite(upper).all())
    if not (bounded or problem.objective.l2 > 0.0):
        return 0
    feasible = feasible_set(problem.constraints, problem.domain)
    if not (feasible.is_box or feasible.is_order):
        return 0
    return int(COSTS.proof_seconds * COSTS.pass_rate / max(1.0, pass_operations(problem)))


def fista_seconds(problem: Problem, tolerance: float) -> float:
    """About how long FISTA takes to prove the answer of sampling; infinite where it cannot. Under
    kinks its steps grow as the tolerance shrinks.
    """
    if provable_passes(problem) < COSTS.proof_passes:
        return math.inf
    passes = COSTS.proof_passes * max(1.0, COSTS.proof_tolerance / tolerance)
    work = pass_operations(problem) + COSTS.projection_operations * problem.dimension
    return passes * work / COSTS.pass_rate
