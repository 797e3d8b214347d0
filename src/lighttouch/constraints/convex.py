"""Any convex constraint the user can write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.gradient import clear, new_gradient
from lighttouch.kernels.verbs.constraints import add_subgradient
from lighttouch.kernels.verbs.custom import PythonConstraints, compiled_constraints
from lighttouch.validation import finite_vector, positive_int


class ConvexConstraints(RecordConstraints):
    """g_j(w) <= 0 for `count` convex functions the user writes.

    With Python callables, loops run interpreted: `value(j, w)` returns g_j(w), `subgradient(j, w)`
    an array.

    With `record` (a NamedTuple of arrays and numbers) the same loops run compiled: `value(record,
    j, w)` returns a number, `subgradient(record, j, w, out)` writes into `out`, which comes filled
    with zeros; both are plain loops.
    """

    def __init__(
        self,
        dimension: int,
        count: int,
        value: Callable[..., float],
        subgradient: Callable[..., Any],
        *,
        record: Any = None,
    ) -> None:
        self.dimension = positive_int(dimension, "dimension")
        self.count = positive_int(count, "count", least=0)
        self.cost = float(dimension)
        self.interpreted = record is None
        self.record = (
            PythonConstraints(value, subgradient)
            if record is None
            else compiled_constraints(record, value, subgradient)
        )

    def value(self, j: int, w: Any) -> float:
        """g_j(w)."""
        return (
            float(self.values(w)[j])
            if not self.interpreted
            else float(self.record.value(j, finite_vector(w, "w", self.dimension)))
        )

    def subgradient(self, j: int, w: Any) -> Vector:
        """A subgradient of g_j at w."""
        gradient = new_gradient(self.dimension)
        clear(gradient)
        one = interpreted(_one_subgradient)
        one(self.record, j, finite_vector(w, "w", self.dimension), gradient)
        return np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)


def _one_subgradient(record: Any, j: int, w: Vector, gradient: Any) -> None:
    add_subgradient(record, j, w, 1.0, gradient)
