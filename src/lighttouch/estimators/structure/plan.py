"""What the user asked for, checked: the plan that the structure of a model is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lighttouch.estimators.rules.base import AxisKind, BoundShape
from lighttouch.estimators.structure.limits import LIMITS
from lighttouch.estimators.tables import Columns, Name


@dataclass(frozen=True)
class Plan:
    """What the user asked for, checked."""

    columns: Columns
    monotonic: dict[int, int]
    shapes: list[BoundShape]
    keypoints: int | None  # None: chosen by the data
    lattices: str | int | Sequence[Sequence[Name]]  # "auto", "single", a number, or subsets
    lattice_size: int | str  # "auto" or a number
    columns_per_lattice: int | None  # None: chosen by the data
    interpolation: str
    trees: int | None = 0  # None: chosen by the data

    @property
    def categorical(self) -> list[bool]:
        return [column.categorical for column in self.columns.columns]

    @property
    def single(self) -> bool:
        return isinstance(self.lattices, str) and self.lattices == "single"

    @property
    def ruled(self) -> set[int]:
        """The columns that rules are about."""
        return set(self.monotonic) | {place for bound in self.shapes for place in bound.places}

    def shapes_of(self, column: int) -> list[BoundShape]:
        """The shape constraints about a column."""
        return [bound for bound in self.shapes if column in bound.places]

    def has_axis_kind(self, column: int, kind: AxisKind) -> bool:
        """Whether a shape constraint wants the column to lie along lattice axes in this way."""
        return any(bound.shape.axis_kind == kind for bound in self.shapes_of(column))

    def fixed_vertices(self, column: int) -> list[float]:
        """Values of the column that shape constraints need as vertices."""
        return [value for bound in self.shapes_of(column) for value in bound.shape.vertices]

    def without_curve(self, column: int) -> bool:
        """Whether a column acts through lattices only, for the sake of a shape constraint."""
        return any(
            column in bound.shape.columns_without_curve(bound.places, self.single)
            for bound in self.shapes
        )

    def missing_apart(self, column: int) -> bool:
        """Whether missing cells may have a vertex of their own along lattice axes: where no shape
        constraint is about the column, and one lattice does not hold all columns.
        """
        return not self.single and not self.shapes_of(column)

    def affordable(self, keypoints: int) -> int:
        """Fewer keypoints per column where columns are many, so that all curves together stay of a
        size that can be factored.
        """
        return max(2, min(keypoints, LIMITS.all_keypoints // max(1, len(self.columns))))

    @property
    def columns_together(self) -> int:
        """The most columns of a lattice that is chosen by the data."""
        most = self.columns_per_lattice or LIMITS.columns_together
        return min(most, len(self.columns))
