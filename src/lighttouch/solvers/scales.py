"""What a problem says about itself before it is solved: sizes, kinks, and the cost of a pass."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lighttouch.arrays import Vector
from lighttouch.interfaces import Objective
from lighttouch.losses import target_size
from lighttouch.objectives import EmpiricalRisk, Quadratic, ShardedRisk, WeightedSum
from lighttouch.objectives.sums import column_squares
from lighttouch.objectives.sums import has_kinks as kinked
from lighttouch.problem import Problem
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
