"""Rules about columns, by name: what users put into `shape_constraints`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from lighttouch.errors import ConstraintError

Name = str | int


@dataclass(frozen=True)
class ShapeConstraint:
    """A rule about one or two columns, each given by name or position."""

    together: ClassVar[bool] = (
        False  # both columns must share a lattice for the rule to say anything
    )
    same_unit: ClassVar[bool] = (
        False  # the rule compares amounts of the two columns, in their own units
    )
    both_increasing: ClassVar[bool] = False
    column_fields: ClassVar[tuple[str, ...]] = ("column",)

    @property
    def columns(self) -> tuple[Name, ...]:
        return tuple(getattr(self, name) for name in self.column_fields)

    def __str__(self) -> str:
        given = ", ".join(
            repr(getattr(self, each.name))
            for each in fields(self)
            if getattr(self, each.name) != each.default
        )
        return f"{type(self).__name__}({given})"


@dataclass(frozen=True)
class _Trust(ShapeConstraint):
    main: Name
    conditional: Name
    sign: int = 1

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("main", "conditional")

    def __post_init__(self) -> None:
        if self.sign not in (1, -1):
            raise ConstraintError(f"sign must be 1 or -1, got {self.sign!r}")


@dataclass(frozen=True)
class EdgeworthTrust(_Trust):
    """The higher `conditional` (sign -1: the lower), the more the prediction rises with `main`."""


@dataclass(frozen=True)
class TrapezoidTrust(_Trust):
    """The higher `conditional`, the lower the prediction where `main` is lowest and the higher
    where `main` is highest.
    """


@dataclass(frozen=True)
class Dominates(ShapeConstraint):
    """One more unit of `dominant` is worth at least one more unit of `weak`, everywhere; both are
    increasing.
    """

    dominant: Name
    weak: Name

    together: ClassVar[bool] = True
    same_unit: ClassVar[bool] = True
    both_increasing: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("dominant", "weak")


@dataclass(frozen=True)
class RangeDominates(ShapeConstraint):
    """The whole range of `dominant` is worth at least the whole range of `weak`, from everywhere;
    both are increasing.
    """

    dominant: Name
    weak: Name

    together: ClassVar[bool] = True
    both_increasing: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("dominant", "weak")


@dataclass(frozen=True)
class JointlyMonotonic(ShapeConstraint):
    """The prediction never falls when both columns rise by the same amount, in their own units."""

    first: Name
    second: Name

    together: ClassVar[bool] = True
    same_unit: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")


@dataclass(frozen=True)
class Supermodular(ShapeConstraint):
    """The two columns are complements: each raises the other's effect."""

    first: Name
    second: Name

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")


@dataclass(frozen=True)
class Submodular(ShapeConstraint):
    """The two columns are substitutes: each lowers the other's effect."""

    first: Name
    second: Name

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")


@dataclass(frozen=True)
class Convex(ShapeConstraint):
    """The prediction bends upwards along the column, within the range seen in training."""

    column: Name


@dataclass(frozen=True)
class Concave(ShapeConstraint):
    """The prediction bends downwards along the column, within the range seen in training."""

    column: Name


@dataclass(frozen=True)
class Unimodal(ShapeConstraint):
    """The prediction falls until the column reaches `mode` and rises after it ("valley"), or the
    other way round ("peak").
    """

    column: Name
    mode: float
    shape: str = "valley"

    def __post_init__(self) -> None:
        if self.shape not in ("valley", "peak"):
            raise ConstraintError(f"shape must be 'valley' or 'peak', got {self.shape!r}")
        if not isinstance(self.mode, int | float) or not math.isfinite(self.mode):
            raise ConstraintError(
                f"Unimodal needs a known mode, a value of the column, got {self.mode!r}: "
                "with a learned mode the allowed models are not a "
                "convex set; fit once for each mode and keep the best, or ask for Convex"
            )


@dataclass(frozen=True)
class SlopeBound(ShapeConstraint):
    """The prediction changes by at most `limit` for one unit of the column."""

    column: Name
    limit: float

    def __post_init__(self) -> None:
        if (
            not isinstance(self.limit, int | float)
            or not math.isfinite(self.limit)
            or self.limit < 0.0
        ):
            raise ConstraintError(
                f"limit must be a finite number of at least 0, got {self.limit!r}"
            )


@dataclass(frozen=True)
class CategoryOrder(ShapeConstraint):
    """Predictions never fall from the first to the second category of each pair, everything else
    equal.
    """

    column: Name
    pairs: Sequence[tuple[Any, Any]] = field(default=())

    def __post_init__(self) -> None:
        try:
            plain = tuple((low, high) for low, high in self.pairs)
        except (TypeError, ValueError):
            raise ConstraintError(
                f"pairs must be pairs of categories such as [('low', 'high')], got {self.pairs!r}"
            ) from None
        object.__setattr__(self, "pairs", plain)


KINDS: dict[str, type[ShapeConstraint]] = {
    kind.__name__: kind
    for kind in (
        EdgeworthTrust, TrapezoidTrust, Dominates, RangeDominates, JointlyMonotonic, Supermodular, Submodular, Convex, Concave,
        Unimodal, SlopeBound, CategoryOrder,
    )
}  # fmt: skip
