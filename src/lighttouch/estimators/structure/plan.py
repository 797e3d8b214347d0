"""What the user asked for, checked: the plan that the structure of a model is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lighttouch.estimators.rules import BoundShape
from lighttouch.estimators.tables import Columns

ALL_KEYPOINTS = 1500  # of all curves together


@dataclass(frozen=True)
class Plan:
    """What the user asked for, checked."""

    columns: Columns
    monotonic: dict[int, int]
    shapes: list[BoundShape]
    keypoints: int
    lattices: Any  # "auto", "single", a number, or subsets
    lattice_size: Any  # "auto" or a number
    columns_per_lattice: int
    interpolation: str

    @property
    def categorical(self) -> list[bool]:
        return [column.categorical for column in self.columns.columns]

    @property
    def single(self) -> bool:
        return isinstance(self.lattices, str) and self.lattices == "single"

    def of_column(self, column: int, *kinds: str) -> list[BoundShape]:
        return [shape for shape in self.shapes if column in shape.places and shape.kind in kinds]

    @property
    def affordable_keypoints(self) -> int:
        """Fewer keypoints a column where columns are many, so that all curves together stay of a
        size that can be factored.
        """
        return max(2, min(self.keypoints, ALL_KEYPOINTS // max(1, len(self.columns))))

    def increasing(self, column: int) -> bool:
        return self.monotonic.get(column, 0) > 0
