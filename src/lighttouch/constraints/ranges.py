"""A range of the constraints of a family, for a worker that visits these only."""

from __future__ import annotations

from lighttouch.arrays import Vector
from lighttouch.constraints.base import RecordConstraints
from lighttouch.kernels.verbs.constraints import Ranged


class ConstraintRange(RecordConstraints):
    """Constraints `first` to `stop - 1` of another family (groups of them, where it is aggregated).

    Nothing is copied or stored: the family's own record answers, with its numbers moved.
    """

    def __init__(self, base: RecordConstraints, first: int, stop: int) -> None:
        self.base, self.first = base, first
        self.count, self.group_size = stop - first, base.group_size
        self.dimension, self.interpreted = base.dimension, base.interpreted
        self.cost, self.generated = base.cost, base.generated
        self.record = Ranged(base.record, first * base.group_size)
        last = min(stop * base.group_size, base.members)
        self._members = max(0, last - first * base.group_size)

    @property
    def members(self) -> int:
        return self._members

    def refuse_nan(self, j: int, w: Vector) -> None:
        self.base.refuse_nan(self.first + j, w)

    def describe(self, j: int) -> str:
        return self.base.describe(self.first + j)
