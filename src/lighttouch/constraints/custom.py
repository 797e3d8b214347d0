"""Constraints that the user writes as functions: convex ones of any kind, and rows that are made
from their numbers and never stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Matrix, Vector
from lighttouch.constraints.base import RecordConstraints, blocks, rows_of, runnable, scratch_for
from lighttouch.constraints.linear import in_terms
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.custom import (
    PythonConstraints,
    PythonRows,
    compiled_constraints,
    generated_rows,
    name_of,
    refusing_what_is_not_compiled,
)
from lighttouch.kernels.verbs.rows import largest_of, largest_relative_of, row_lengths
from lighttouch.running import Timed
from lighttouch.validation import finite_vector, function, positive_int, refuse_if_too_large, takes


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


# -------------------------------------------------------------------------------------------------
# Linear inequalities whose rows are made from their numbers and never stored.


BYTES_PER_ENTRY = 40  # of a stored row, while it is built


class GeneratedRows(RecordConstraints):
    """Linear inequalities a_j.w <= b_j whose rows a function writes from their numbers.

    Rows are made when they are looked at and never stored: tens of millions of them, such as one
    per pair of people or points, take no memory. Projections and solvers that need stored rows
    work with the few that matter.

    Parameters
    ----------
    dimension : int
        The number of parameters.
    count : int
        The number of rows.
    record : NamedTuple of arrays and numbers, or any object
        What `row` reads. With a NamedTuple the loops and `row` run compiled by numba, with
        anything else (also None) interpreted, which is a hundred times slower.
    row : callable
        ``row(record, j, columns, values)`` writes the entries of row j into the first places of
        `columns` and `values`, each column once, and returns how many they are and b_j.
    entries : int
        The largest number of entries of a row.

    Raises
    ------
    ConstraintError
        Where the first or the last row is not one: a column out of range, say, or NaN.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> class Gaps(NamedTuple):
    ...     largest: np.ndarray
    >>> def row(record, j, columns, values):  # w[j + 1] - w[j] <= largest[j]
    ...     columns[0], values[0] = j + 1, 1.0
    ...     columns[1], values[1] = j, -1.0
    ...     return 2, record.largest[j]
    >>> rows = lt.GeneratedRows(3, 2, Gaps(np.array([0.5, 0.5])), row, entries=2)
    >>> rows.values([0.0, 1.0, 1.0])
    array([ 0.5, -0.5])
    >>> lt.project([0.0, 1.0, 1.0], rows).w
    array([0.25, 0.75, 1.  ])
    """

    is_linear = True
    generated = True

    def __init__(
        self,
        dimension: int,
        count: int,
        record: object,
        row: Callable[..., tuple[int, float]],
        entries: int,
    ) -> None:
        self.dimension = positive_int(dimension, "dimension")
        self.count = positive_int(count, "count", least=0)
        self.entries = positive_int(entries, "entries")
        self.cost = float(self.entries)
        self.interpreted = not hasattr(record, "_fields")
        for j in sorted({0, self.count - 1}) if self.count else ():
            self._try(record, row, j)
        self.record = (
            PythonRows(record, row, self.entries, self.dimension)
            if self.interpreted
            else generated_rows(record, row, self.entries, self.dimension)
        )

    def _try(self, record: object, row: Callable[..., Any], j: int) -> None:
        """Run `row` once in Python, where a place too many is an error and not a crash."""
        columns, values = np.full(self.entries, -1, dtype=np.int64), np.full(self.entries, np.nan)
        try:
            many, right = getattr(row, "py_func", row)(record, j, columns, values)
        except (IndexError, TypeError, ValueError) as problem:
            raise ConstraintError(
                f"row(record, j, columns, values) must write at most entries={self.entries} numbers"
                f" and return (how many, right side); for j={j} it raised: {problem}"
            ) from problem
        if not 0 <= many <= self.entries:
            raise ConstraintError(
                f"row must write at most entries={self.entries} numbers, got {many} for j={j}"
            )
        used = columns[:many]
        if np.any(used < 0) or np.any(used >= self.dimension):
            raise ConstraintError(
                f"row must write columns from 0 to {self.dimension - 1}, got {used.tolist()} for "
                f"j={j}"
            )
        if np.unique(used).size < many:
            raise ConstraintError(f"row must write each column once, got {used.tolist()} for j={j}")
        if not (np.all(np.isfinite(values[:many])) and np.isfinite(right)):
            raise ConstraintError(
                f"row must write finite numbers and return a finite right side, got "
                f"{values[:many].tolist()} and {right} for j={j}"
            )

    @property
    def most_entries(self) -> int:
        return self.entries

    def linear_rows(self) -> tuple[Matrix, Vector]:
        """All rows, stored: for few of them, or where somebody asks for it."""
        refuse_if_too_large(
            self.count * self.entries * BYTES_PER_ENTRY,
            f"storing {self.count:,} generated rows",
            "use rows_at(indices), which makes only those",
            ConstraintError,
        )
        return rows_of(self, np.arange(self.count))

    def largest(self, w: Vector) -> float:
        """The largest g_j(w), block by block: nothing is kept of the others."""
        return self._largest(largest_of, w)

    def largest_relative(self, w: Vector) -> float:
        return self._largest(largest_relative_of, w)

    def _largest(self, kernel: Callable[..., Any], w: Vector) -> float:
        point, most = finite_vector(w, "w", self.dimension), -np.inf
        scratch, run = scratch_for(self), runnable(self, kernel)
        for start, stop in blocks(self):
            value, j = run(self.record, start, stop, point, scratch)
            if np.isnan(value):
                self.refuse_nan(int(j), point)
            most = max(most, float(value))
        return most

    def row_scales(self) -> Vector:
        """The norm of each row; 1 for a row of zeros."""
        out, scratch = np.empty(self.count), scratch_for(self)
        run = runnable(self, row_lengths)
        for start, stop in blocks(self):
            run(self.record, start, stop, np.zeros(self.dimension), scratch, out[start:stop])
        return out

    def refuse_nan(self, j: int, w: Vector) -> None:
        raise ConstraintError(
            f"row must write at most entries={self.entries} finite numbers in columns 0 to "
            f"{self.dimension - 1} and return how many and a finite right side: it does not for "
            f"j={j}"
        )

    def describe(self, j: int) -> str:
        matrix, right = self.rows_at([j])
        return f"row {j}: {in_terms(matrix)} <= {right[0]:.6g}"
