"""Several families of constraints as one."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
import scipy.sparse

from lighttouch.arrays import Vector
from lighttouch.constraints.base import Aggregated, RecordConstraints
from lighttouch.constraints.linear import LinearConstraints
from lighttouch.constraints.nested import one_after_another
from lighttouch.errors import ConstraintError
from lighttouch.kernels.verbs.constraints import Joined


def stack(*parts: RecordConstraints) -> RecordConstraints:
    """All constraints of all parts, in order; linear ones become one LinearConstraints."""
    if not parts:
        raise ConstraintError("stack needs at least one constraint family")
    dimensions = {part.dimension for part in parts}
    if len(dimensions) > 1:
        raise ConstraintError(f"all parts must have the same dimension, got {sorted(dimensions)}")
    if any(isinstance(part, Aggregated) for part in parts):
        raise ConstraintError(
            "stack the single constraints first, then aggregate the whole: stack(a, "
            "b).aggregated(size)"
        )
    flat = [
        inner for part in parts for inner in (part.parts if isinstance(part, Stacked) else (part,))
    ]
    if len(flat) == 1:
        return flat[0]
    if all(isinstance(part, LinearConstraints) for part in flat):
        return _one_matrix(flat)
    return Stacked(flat)


class Stacked(RecordConstraints):
    """Families of different kinds, one after the other."""

    def __init__(self, parts: list[RecordConstraints]) -> None:
        self.parts = tuple(parts)
        self.count = sum(part.count for part in parts)
        self.dimension = parts[0].dimension
        self.interpreted = any(part.interpreted for part in parts)
        self.cost = sum(part.cost * part.count for part in parts) / max(1, self.count)
        self._ends = list(np.cumsum([part.count for part in parts]))
        self.record = self._join(list(parts))

    def _join(self, parts: list[RecordConstraints]) -> Any:
        if len(parts) == 1:
            return parts[0].record
        return Joined(parts[0].record, self._join(parts[1:]), parts[0].count)

    def part_of(self, j: int) -> tuple[RecordConstraints, int]:
        """The family constraint j belongs to, and its place in it."""
        which = bisect.bisect_right(self._ends, j)
        return self.parts[which], j - (int(self._ends[which - 1]) if which else 0)

    def row_scales(self) -> Vector:
        return np.concatenate([part.row_scales() for part in self.parts])

    def describe(self, j: int) -> str:
        part, place = self.part_of(j)
        return part.describe(place)


def _one_matrix(parts: list[Any]) -> LinearConstraints:
    names = None
    if any(part.names for part in parts):
        names = [part.describe(j) for part in parts for j in range(part.count)]
    b = np.concatenate([part.b for part in parts])
    sparse = any(part.sparse for part in parts)
    A = (
        scipy.sparse.vstack([part.A for part in parts], format="csr")
        if sparse
        else np.vstack([part.A for part in parts])
    )
    whole = LinearConstraints(A, b, names)
    whole.nested = one_after_another(parts)
    return whole
