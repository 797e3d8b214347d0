"""The user's own objective: plain functions, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lighttouch.kernels.verbs.custom import PythonObjective, compiled_objective
from lighttouch.objectives.base import RecordObjective
from lighttouch.validation import positive_int


class CustomObjective(RecordObjective):
    """A convex function given by its value and a stochastic subgradient.

    With Python callables, loops run interpreted. With a `record`, the same loops run compiled.

    Parameters
    ----------
    dimension : int
        The number of parameters d.
    value : callable
        `value(i, w)` returns example i's term; with a record, `value(record, i, w)`.
    gradient : callable
        `gradient(i, w)` returns a subgradient of example i's term, an array of d numbers. With a
        record, `gradient(record, i, w, out)` writes it into `out`, which comes filled with zeros.
    examples : int, default=1
        The number of terms; the objective is their mean.
    record : NamedTuple of arrays and numbers, default=None
        Handed to both functions, which are then compiled by numba: plain loops.

    Examples
    --------
    >>> squares = lt.CustomObjective(2, lambda i, w: float(w @ w), lambda i, w: 2.0 * w)
    >>> squares.value([1.0, 2.0])
    5.0
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
