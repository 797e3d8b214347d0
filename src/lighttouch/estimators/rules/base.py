"""What every rule about columns offers: its columns, its needs, and its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.rules.probing import Probe
from lighttouch.estimators.rules.rows import RuleRows
from lighttouch.estimators.tables import Column, Name

AxisKind = Literal["bent", "straight", "common unit"]
LinearRow = tuple[dict[int, float], float]
"""sum of value * coefficient[column] <= right, as ({column: value}, right)"""


@dataclass(frozen=True)
class ShapeConstraint(ABC):
    """A rule about one or two columns, each given by name or position."""

    column_fields: ClassVar[tuple[str, ...]] = ("column",)
    together: ClassVar[bool] = False
    """Both columns must share a lattice for the rule to say anything."""
    alone: ClassVar[bool] = False
    """The column may not enter a lattice, unless one lattice holds all columns."""
    both_increasing: ClassVar[bool] = False
    """The rule makes both columns increasing."""
    of_categories: ClassVar[bool] = False
    """The column must hold categories, not numbers."""
    about_order: ClassVar[bool] = False
    """The rule only compares predictions: it holds for every increasing function of them too, so
    for a classifier's probability as well as for its log-odds."""
    exact_on_predictions: ClassVar[bool] = False
    """The rule holds for predictions to the last bit, not only to rounding."""
    axis_kind: ClassVar[AxisKind] = "bent"
    """How the columns lie along lattice axes: freely bent, straight because the rule is about
    amounts, or with one unit worth the same amount for both columns."""

    @property
    def kept_below(self) -> bool:
        """Whether predictions that are cut off below still obey the rule."""
        return self.about_order

    @property
    def kept_above(self) -> bool:
        """Whether predictions that are cut off above still obey the rule."""
        return self.about_order

    @property
    def columns(self) -> tuple[Name, ...]:
        return tuple(getattr(self, name) for name in self.column_fields)

    @property
    def vertices(self) -> tuple[float, ...]:
        """Values of the column that must be vertices of its curve and of lattice axes."""
        return ()

    def companions(
        self, places: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> tuple[tuple[int, int], ...]:
        """Pairs (column, companion): a lattice over the column that lacks the companion could break
        the rule.
        """
        return ()

    def columns_without_curve(self, places: tuple[int, ...], single: bool) -> tuple[int, ...]:
        """Columns that act through lattices only, because a curve of their own could not keep the
        rule; `single` where one lattice holds all columns.
        """
        return ()

    def holds_for_exponential(self, places: tuple[int, ...], monotonic: Mapping[int, int]) -> bool:
        """Whether e^prediction obeys the rule too, so that it holds for a mean whose logarithm is
        modelled.
        """
        return self.about_order

    def category_codes(self, column: Column) -> tuple[tuple[int, int], ...]:
        """Pairs of category codes, lower first."""
        return ()

    @abstractmethod
    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        """The rule as rows about the parameters of a model of curves and lattices."""

    @abstractmethod
    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        """By how much predictions break the rule, one number per comparison; at most 0 where it
        holds.
        """

    def linear_rows(self, places: tuple[int, ...], ranges: Floats) -> list[LinearRow]:
        """The rule as rows about the coefficients of a linear model, given the columns' ranges."""
        raise ConstraintError(
            f"{self} says nothing about a linear model; use a lattice model, or "
            "Dominates, RangeDominates, SlopeBound"
        )

    def __str__(self) -> str:
        given = ", ".join(
            repr(getattr(self, each.name))
            for each in fields(self)
            if getattr(self, each.name) != each.default
        )
        return f"{type(self).__name__}({given})"


MonotonicCst = Mapping[Name, int] | Sequence[int] | None
Shapes = ShapeConstraint | Sequence[ShapeConstraint] | None


@dataclass(frozen=True)
class BoundShape:
    """A shape constraint whose columns have been found."""

    shape: ShapeConstraint
    places: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()  # category codes, lower first

    @property
    def kind(self) -> str:
        return type(self.shape).__name__

    def label(self, names: list[str]) -> str:
        """The rule as reports call it, such as Convex(age)."""
        return f"{self.kind}({', '.join(names[place] for place in self.places)})"

    def lattice_rows(self, model: AdditiveModel) -> list[RuleRows]:
        return self.shape.lattice_rows(model, self)

    def linear_rows(self, ranges: Floats) -> list[LinearRow]:
        return self.shape.linear_rows(self.places, ranges)

    def missing_companion(
        self, subset: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> int | None:
        """A column without which a lattice over the subset could break the rule."""
        for column, companion in self.shape.companions(self.places, monotonic):
            if column in subset and companion not in subset:
                return companion
        return None
