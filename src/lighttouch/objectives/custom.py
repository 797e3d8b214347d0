"""The user's own objective: plain functions, compiled or interpreted."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs.custom import (
    PythonObjective,
    compiled_objective,
    name_of,
    refusing_what_is_not_compiled,
)
from lighttouch.kernels.verbs.objectives import example_value
from lighttouch.objectives.empirical import RecordObjective
from lighttouch.running import Timed, remembered
from lighttouch.validation import finite_vector, function, positive_int, takes


class CustomObjective(RecordObjective):
    """A convex function given by its value and a stochastic subgradient.

    With Python callables, loops run interpreted. With a `record`, the same loops run compiled.

    Parameters
    ----------
    dimension : int
        The number of parameters d.
    value : callable
        `value(i, w)` returns example i's term, a number at every w (NaN is an error); with a
        record, `value(record, i, w)`.
    gradient : callable
        `gradient(i, w)` returns a subgradient of example i's term, an array of d numbers. With a
        record, `gradient(record, i, w, out)` writes it into `out`, which comes filled with zeros.
    examples : int, default=1
        The number of terms; the objective is their mean.
    record : NamedTuple of arrays and numbers, default=None
        Handed to both functions, which are then compiled by numba: plain loops.

    Raises
    ------
    ValueError
        If `value` or `gradient` is no function, or a count is not positive.
    DataError
        If a function to compile takes other arguments. While solving, if a function does not
        compile, returns NaN or a gradient of the wrong length.

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
        record: object = None,
    ) -> None:
        self.dimension = positive_int(dimension, "dimension")
        self.examples = positive_int(examples, "examples")
        self.cost = float(dimension)
        self.interpreted = record is None
        function(value, "value", "value(i, w), that returns a number")
        function(gradient, "gradient", "gradient(i, w), that returns an array")
        self.functions = name_of(value), name_of(gradient)
        self.record = (
            PythonObjective(Timed(value), Timed(gradient))
            if record is None
            else compiled_objective(record, value, gradient)
        )
        if record is not None:
            takes(value, "value", "record, i, w", DataError)
            takes(gradient, "gradient", "record, i, w, out", DataError)

    def value(self, w: Any) -> float:
        """The objective at w; of a few points it is remembered, where Python computes it."""
        point = finite_vector(w, "w", self.dimension)
        if not self.interpreted:
            return self._value(point)
        return remembered(self, "values", point, lambda: self._value(point))

    def _value(self, point: Vector) -> float:
        with refusing_what_is_not_compiled(self.functions, DataError):
            value = super().value(point)
        if math.isnan(value):
            self._refuse_nan(point)
        return value

    def _refuse_nan(self, w: Vector) -> None:
        values = (example_value(self.record, i, w) for i in range(self.examples))
        first = next((i for i, value in enumerate(values) if math.isnan(value)), None)
        where = "the mean of all examples" if first is None else f"example {first}"
        raise DataError(
            f"value must return a number at every w of the domain: the function "
            f"{self.functions[0]!r} returned nan for {where}"
        )
