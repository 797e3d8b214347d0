"""What all constraint families share, and their aggregation into groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.verbs.constraints import group_values
from lighttouch.validation import finite_vector, positive_int


class RecordConstraints:
    """Constraints given by a record of arrays and the verbs for its class."""

    record: Any
    count: int
    dimension: int
    interpreted: bool = False
    group_size: int = 1
    cost: float = 1.0
    names: tuple[str, ...] | None = None

    @property
    def members(self) -> int:
        return self.count

    def values(self, w: Any) -> Vector:
        """g_j(w) for every j (for every group, when aggregated)."""
        out = np.empty(self.count)
        run = interpreted(group_values) if self.interpreted else group_values
        run(self.record, self.members, self.group_size, finite_vector(w, "w", self.dimension), out)
        return out

    def largest(self, w: Vector) -> float:
        """The largest g_j(w)."""
        return float(self.values(w).max())

    def largest_relative(self, w: Vector) -> float:
        """The largest g_j(w) in units of its row's scale."""
        return float((self.values(w) / self.row_scales()).max())

    def aggregated(self, size: int) -> Aggregated:
        """The maxima over consecutive groups of `size` constraints (Section 5.1): fewer, dearer
        constraints, the same set.
        """
        return Aggregated(self, positive_int(size, "size"))

    def row_scales(self) -> Vector:
        """How large a unit of violation of each constraint is: 1 unless the family knows better."""
        return np.ones(self.count)

    def describe(self, j: int) -> str:
        return self.names[j] if self.names else f"constraint {j}"

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count} constraints on {self.dimension} parameters)"


class Aggregated(RecordConstraints):
    """The maximum over each group of `size` consecutive constraints of another family."""

    def __init__(self, base: RecordConstraints, size: int) -> None:
        self.base: RecordConstraints = base.base if isinstance(base, Aggregated) else base
        self.group_size = size * base.group_size
        self.record = base.record
        self.dimension = base.dimension
        self.interpreted = base.interpreted
        self.count = -(-self.base.count // self.group_size)
        self.cost = self.base.cost * min(self.group_size, max(1, self.base.count))

    @property
    def members(self) -> int:
        return self.base.count

    def row_scales(self) -> Vector:
        scales = self.base.row_scales()
        starts = np.arange(0, scales.size, self.group_size)
        return np.minimum.reduceat(scales, starts) if scales.size else scales

    def describe(self, j: int) -> str:
        return (
            f"the worst of constraints {j * self.group_size} to "
            f"{min((j + 1) * self.group_size, self.members) - 1}"
        )
