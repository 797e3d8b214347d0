"""Any convex constraint the user can write."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from lighttouch.arrays import Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.custom import (
    PythonConstraints,
    compiled_constraints,
    name_of,
    refusing_what_is_not_compiled,
)
from lighttouch.running import Timed
from lighttouch.validation import finite_vector, function, positive_int, takes


class ConvexConstraints(RecordConstraints):
    """g_j(w) <= 0 for `count` convex functions the user writes.

    Parameters
    ----------
    dimension : int
        The number of parameters.
    count : int
        The number of constraints.
    value : callable
        ``value(j, w)`` returns g_j(w), a number at every w (NaN is an error). With a record:
        ``value(record, j, w)``, a plain loop that numba compiles.
    subgradient : callable
        ``subgradient(j, w)`` returns an array of `dimension` numbers. With a record:
        ``subgradient(record, j, w, out)`` writes into `out`, which comes filled with zeros.
    record : NamedTuple of arrays and numbers, optional
        With it the loops around the functions run compiled, without it interpreted.

    Raises
    ------
    ValueError
        If `value` or `subgradient` is no function, or a count is not positive.
    ConstraintError
        If a function to compile takes other arguments. While solving, if a function does not
        compile, returns NaN or a subgradient of the wrong length.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> disc = lt.ConvexConstraints(2, 1, lambda j, w: w @ w - 1.0, lambda j, w: 2.0 * w)
    >>> disc.values([2.0, 0.0])
    array([3.])
    """

    def __init__(
        self,
        dimension: int,
        count: int,
        value: Callable[..., float],
        subgradient: Callable[..., Any],
        *,
        record: object = None,
    ) -> None:
        self.dimension = positive_int(dimension, "dimension")
        self.count = positive_int(count, "count", least=0)
        self.cost = float(dimension)
        self.interpreted = record is None
        function(value, "value", "value(j, w), that returns a number")
        function(subgradient, "subgradient", "subgradient(j, w), that returns an array")
        self.functions = name_of(value), name_of(subgradient)
        self.record = (
            PythonConstraints(Timed(value), Timed(subgradient))
            if record is None
            else compiled_constraints(record, value, subgradient)
        )
        if record is not None:
            takes(value, "value", "record, j, w", ConstraintError)
            takes(subgradient, "subgradient", "record, j, w, out", ConstraintError)

    def value(self, j: int, w: ArrayLike) -> float:
        """g_j(w)."""
        if not self.interpreted:
            return float(self.values(w)[j])
        point = finite_vector(w, "w", self.dimension)
        value = float(self.record.value(j, point))
        if math.isnan(value):
            self.refuse_nan(j, point)
        return value

    def _values(self, point: Vector) -> Vector:
        with refusing_what_is_not_compiled(self.functions, ConstraintError):
            return super()._values(point)

    def refuse_nan(self, j: int, w: Vector) -> None:
        raise ConstraintError(
            f"value must return a number at every w of the domain: the function "
            f"{self.functions[0]!r} returned nan for constraint {j}"
        )
