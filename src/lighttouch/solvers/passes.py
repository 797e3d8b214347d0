"""Full passes over the examples, in memory or in shards: the rounded objective and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.verbs.objectives import smooth_value, smooth_value_and_gradient
from lighttouch.objectives import ShardedRisk
from lighttouch.problem import Problem


def rounded(problem: Problem, w: Vector, width: float) -> tuple[float, Vector]:
    """The objective with its kinks rounded over `width`, and its gradient."""
    objective = problem.objective
    if isinstance(objective, ShardedRisk):
        value, gradient = objective.mean(_rounded, w, width)
        return float(value), gradient
    return _rounded(objective, w, width, problem.interpreted)


def rounded_value(problem: Problem, w: Vector, width: float) -> float:
    """The rounded objective alone."""
    objective = problem.objective
    if isinstance(objective, ShardedRisk):
        return float(objective.mean(_rounded_value, w, width))
    return _rounded_value(objective, w, width, problem.interpreted)


def _rounded(
    objective: Any, w: Vector, width: float, python: bool | None = None
) -> tuple[float, Vector]:
    out = np.empty(w.size)
    run = _runnable(smooth_value_and_gradient, objective, python)
    value = run(objective.record, objective.examples, objective.l2, width, w, out)
    return float(value), out


def _rounded_value(objective: Any, w: Vector, width: float, python: bool | None = None) -> float:
    run, spare = _runnable(smooth_value, objective, python), np.zeros(w.size)
    return float(run(objective.record, objective.examples, objective.l2, width, w, spare))


def _runnable(kernel: Any, objective: Any, python: bool | None) -> Any:
    return interpreted(kernel) if (objective.interpreted if python is None else python) else kernel
