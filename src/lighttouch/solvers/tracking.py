"""Which rows a coordinate touches, so that only they are evaluated again when it moves."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from lighttouch.constraints import Aggregated, LinearConstraints
from lighttouch.domains import Ball
from lighttouch.kernels.state.running_maximum import MaximumTree, TrackedRows
from lighttouch.problem import Problem

_columns: WeakKeyDictionary[Any, tuple[Any, Any]] = WeakKeyDictionary()


def objection_to_tracking(problem: Problem) -> str | None:
    constraints = problem.constraints
    if isinstance(constraints, Aggregated) or not isinstance(constraints, LinearConstraints):
        return (
            "incremental looks need linear constraints (one family, not aggregated), whose "
            "rows say which coordinates they depend on: "
            "leave incremental=False"
        )
    if isinstance(problem.domain, Ball):
        return (
            "incremental looks need steps that move few coordinates, and a ball moves all of "
            "them: use a Box, or leave incremental=False"
        )
    return None


def tracked_rows(problem: Problem, tree: MaximumTree) -> TrackedRows:
    constraints = problem.constraints
    if constraints not in _columns:
        columns = sparse.csc_matrix(constraints.A)
        _columns[constraints] = columns.indptr.astype(np.int64), columns.indices
    return TrackedRows(constraints.record, *_columns[constraints], tree)
