"""Several families of constraints as one."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Booleans, Floats, Indices, Matrix, Vector
from lighttouch.constraints.base import (
    Aggregated,
    RecordConstraints,
    one_after_another,
    stacked_rows,
)
from lighttouch.constraints.linear import LinearConstraints, LinearEqualities
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import Joined
from lighttouch.validation import told


def stack(*parts: RecordConstraints) -> RecordConstraints:
    """All constraints of all parts, in order; where all are LinearConstraints, or all
    LinearEqualities, they become one of these.

    Parameters
    ----------
    *parts : constraint families
        At least one, all about the same number of parameters.

    Returns
    -------
    LinearConstraints, LinearEqualities or Stacked
        A single family comes back as it is.

    Raises
    ------
    ConstraintError
        Without parts, where their dimensions differ, or where one is aggregated.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.stack(lt.ordering(3), lt.bounds(3, lower=0.0))
    LinearConstraints(5 constraints on 3 parameters)
    """
    if not parts:
        raise ConstraintError("stack needs at least one constraint family")
    for place, part in enumerate(parts):
        if not isinstance(part, RecordConstraints):
            hint = "; write stack(*parts)" if isinstance(part, list | tuple) else ""
            raise ConstraintError(
                "stack needs constraint families such as ordering(3), one after the other, got "
                f"{told(part)} as part {place}{hint}"
            )
    dimensions = {part.dimension for part in parts}
    if len(dimensions) > 1:
        raise ConstraintError(f"all parts must have the same dimension, got {sorted(dimensions)}")
    if any(isinstance(part, Aggregated) for part in parts):
        raise ConstraintError(
            "stack the single constraints first, then aggregate the whole: stack(a, "
            "b).aggregated(size)"
        )
    flat = [inner for part in parts for inner in part.parts]
    if len(flat) == 1:
        return flat[0]
    linear = [part for part in flat if isinstance(part, LinearConstraints)]
    if len(linear) == len(flat):
        return _one_family(linear)
    equal = [part for part in flat if isinstance(part, LinearEqualities)]
    return _one_system(equal) if len(equal) == len(flat) else Stacked(flat)


class Stacked(RecordConstraints):
    """Families of different kinds, one after the other."""

    def __init__(self, parts: list[RecordConstraints]) -> None:
        self._parts = tuple(parts)
        self.count = sum(part.count for part in parts)
        self.dimension = parts[0].dimension
        self.interpreted = any(part.interpreted for part in parts)
        self.cost = sum(part.cost * part.count for part in parts) / max(1, self.count)
        self.is_linear = all(part.is_linear for part in parts)
        self.generated = any(part.generated for part in parts)
        self.device = next((part.device for part in parts if part.device is not None), None)
        self._ends = list(np.cumsum([part.count for part in parts]))
        self.record = self._join(list(parts))

    def _join(self, parts: list[RecordConstraints]) -> Any:
        if len(parts) == 1:
            return parts[0].record
        return Joined(parts[0].record, self._join(parts[1:]), parts[0].count)

    @property
    def parts(self) -> tuple[RecordConstraints, ...]:
        return self._parts

    def linear_rows(self) -> tuple[Matrix, Vector] | None:
        return stacked_rows(self._parts)

    @property
    def is_equality(self) -> Booleans:
        return np.concatenate(
            [np.broadcast_to(part.is_equality, part.count) for part in self._parts]
        )

    @property
    def most_entries(self) -> int:
        return max(part.most_entries for part in self._parts)

    @property
    def row_count(self) -> int:
        return sum(part.row_count for part in self._parts)

    def constraint_of_row(self) -> Indices:
        starts = [0, *self._ends[:-1]]
        return np.concatenate(
            [
                start + part.constraint_of_row()
                for start, part in zip(starts, self._parts, strict=True)
            ]
        )

    def row_signs(self) -> Floats:
        return np.concatenate([part.row_signs() for part in self._parts])

    def largest(self, w: Vector) -> float:
        return max(part.largest(w) for part in self._parts if part.count)

    def largest_relative(self, w: Vector) -> float:
        return max(part.largest_relative(w) for part in self._parts if part.count)

    def part_of(self, j: int) -> tuple[RecordConstraints, int]:
        """The family constraint j belongs to, and its place in it."""
        which = bisect.bisect_right(self._ends, j)
        return self.parts[which], j - (int(self._ends[which - 1]) if which else 0)

    def refuse_nan(self, j: int, w: Vector) -> None:
        part, place = self.part_of(j)
        part.refuse_nan(place, w)

    def row_scales(self) -> Vector:
        return np.concatenate([part.row_scales() for part in self.parts])

    def describe(self, j: int) -> str:
        part, place = self.part_of(j)
        return part.describe(place)


def _one_system(parts: list[LinearEqualities]) -> LinearEqualities:
    sparse = any(part.sparse for part in parts)
    join: Any = partial(scipy.sparse.vstack, format="csr") if sparse else np.vstack
    b = np.concatenate([part.b for part in parts])
    return LinearEqualities(join([part.A for part in parts]), b, _names(parts))


def _names(parts: Sequence[RecordConstraints]) -> list[str] | None:
    if not any(part.names for part in parts):
        return None
    return [part.describe(j) for part in parts for j in range(part.count)]


def _one_family(parts: list[LinearConstraints]) -> LinearConstraints:
    rows = stacked_rows(parts)
    assert rows is not None
    return LinearConstraints(*rows, _names(parts), nested=one_after_another(parts), copy=False)
