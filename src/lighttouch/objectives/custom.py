"""The user's own objective: plain functions, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lighttouch.kernels.verbs.custom import PythonObjective, compiled_objective
from lighttouch.objectives.base import RecordObjective
from lighttouch.validation import positive_int


class CustomObjective(RecordObjective):
    """A convex function given by its value and a stochastic subgradient.

    With Python callables, loops run interpreted: `gradient(i, w)` returns a subgradient of example
    i's term (an array), `value(i, w)` its value; the objective is their mean over `examples`.

    With `record` (a NamedTuple of arrays and numbers) the same loops run compiled:
    `gradient(record, i, w, out)` writes into `out`, which comes filled with zeros, and
    `value(record, i, w)` returns a number; both are plain loops that numba can compile.
    """

    def __init__(
        self,
        dimension: int,
        value: Callable[..., float],
        gradient: Callable[..., Any],
        *,
        examples: int = 1,
        record: Any = None,
    ) -> None:
        self.dimension = positive_int(dimension, "dimension")
        self.examples = positive_int(examples, "examples")
        self.cost = float(dimension)
        self.interpreted = record is None
        self.record = (
            PythonObjective(value, gradient)
            if record is None
            else compiled_objective(record, value, gradient)
        )
