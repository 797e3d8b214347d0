"""What every rule about columns offers: its columns, its needs, and its rows; and how the rules of
a user are read and become rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from lighttouch.arrays import Floats, Matrix
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.rules.probing import Probe
from lighttouch.estimators.rules.rows import RuleRows, joined, monotone
from lighttouch.estimators.tables import Column, Columns, Name

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


# -------------------------------------------------------------------------------------------------
# What the user asked for, read and checked: monotone columns and shape constraints; and all of it
# as the rows of a lattice model or of a linear one.


Rows = LinearConstraints | tuple[Matrix, ArrayLike]
"""The rows that users of a linear model give: A and b."""


def read_monotonic(monotonic_cst: MonotonicCst, columns: Columns) -> dict[int, int]:
    """Column positions and signs, from a dict by name (or position) or one number per column."""
    if monotonic_cst is None:
        return {}
    if isinstance(monotonic_cst, dict):
        given = [
            (columns.place(name, "monotonic_cst"), sign, name)
            for name, sign in monotonic_cst.items()
        ]
    else:
        signs = np.asarray(monotonic_cst)
        if signs.shape != (len(columns),):
            raise ConstraintError(
                f"monotonic_cst must hold -1, 0 or 1 for each of the {len(columns)} "
                f"columns, got shape {signs.shape}"
            )
        given = [(place, sign, columns[place].name) for place, sign in enumerate(signs.tolist())]
    found = {}
    for place, sign, name in given:
        _check_sign(sign, name, columns[place])
        if sign:
            found[place] = int(sign)
    return found


def _check_sign(sign: object, name: object, column: Column) -> None:
    if isinstance(sign, bool) or sign not in (-1, 0, 1):
        raise ConstraintError(
            f"monotonic_cst must be -1, 0 or 1 for every column, got {sign!r} for {name!r}"
        )
    if sign and column.categorical:
        first = column.categories or ("?",)
        raise ConstraintError(
            f"monotonic_cst for {name!r} needs a column of numbers; it holds text such "
            f"as {first[0]!r}. Give numbers, or order its categories with CategoryOrder"
        )


def read_shapes(
    shape_constraints: Shapes,
    columns: Columns,
    monotonic: dict[int, int],
) -> list[BoundShape]:
    """Shape constraints with their columns found; those that ask for increasing columns add to
    `monotonic`.
    """
    if shape_constraints is None:
        return []
    if isinstance(shape_constraints, ShapeConstraint):
        shape_constraints = [shape_constraints]
    bound = []
    for shape in shape_constraints:
        if not isinstance(shape, ShapeConstraint):
            raise ConstraintError(
                f"shape_constraints must hold rules such as lt.Convex('age'), got {shape!r}"
            )
        places = tuple(columns.place(name, str(shape)) for name in shape.columns)
        bound.append(BoundShape(shape, places, shape.category_codes(columns[places[0]])))
        _check_places(bound[-1], columns)
        if shape.both_increasing:
            _make_increasing(shape, places, columns, monotonic)
    return bound


def _check_places(bound: BoundShape, columns: Columns) -> None:
    """Rules about amounts need numbers; rules about categories need categories."""
    for place in bound.places:
        if columns[place].categorical != bound.shape.of_categories:
            given = "categories" if columns[place].categorical else "numbers"
            wanted = (
                "categories (see categorical_features)" if bound.shape.of_categories else "numbers"
            )
            raise ConstraintError(
                f"{bound.shape} needs a column of {wanted}; column {columns[place].name!r} holds "
                f"{given}"
            )
    if len(set(bound.places)) < len(bound.places):
        raise ConstraintError(f"{bound.shape} must name two different columns")


def _make_increasing(
    shape: ShapeConstraint, places: tuple[int, ...], columns: Columns, monotonic: dict[int, int]
) -> None:
    for place in places:
        if monotonic.get(place, 1) < 0:
            name = columns[place].name
            raise ConstraintError(
                f"{shape} speaks of increasing columns, but monotonic_cst makes {name!r} "
                "decreasing; negate the column"
            )
        monotonic[place] = 1


def all_rules(
    model: AdditiveModel, names: list[str], monotonic: dict[int, int], shapes: list[BoundShape]
) -> list[RuleRows]:
    """Every rule the user asked for, as rows about the parameters of a lattice model."""
    found = [
        RuleRows(monotone_label(names[column], sign), A, np.zeros(A.shape[0]), about_order=True)
        for (column, sign), A in zip(monotonic.items(), monotone(model, monotonic), strict=True)
    ]
    return found + [
        joined(
            bound.label(names),
            bound.lattice_rows(model),
            model.dimension,
            bound.shape.about_order,
            bound.shape.holds_for_exponential(bound.places, monotonic),
        )
        for bound in shapes
    ]


def monotone_label(name: str, sign: int) -> str:
    """What reports call a monotone column."""
    return f"{'increasing' if sign > 0 else 'decreasing'} in {name}"


def linear_rules(
    columns: Columns,
    monotonic: dict[int, int],
    shapes: Shapes,
    constraints: Rows | None,
    ranges: Floats,
) -> list[RuleRows]:
    """Every rule as rows about (intercept, coefficients) of a linear model, the user's own rows
    included.
    """
    count = len(columns)
    bound = read_shapes(shapes, columns, monotonic)
    found = []
    for column, sign in monotonic.items():
        label = monotone_label(columns[column].name, sign)
        found.append(_rule(label, [({column: -float(sign)}, 0.0)], count, True))
    for shape in bound:
        rows = shape.linear_rows(ranges)
        found.append(_rule(shape.label(columns.names), rows, count, shape.shape.about_order))
    if constraints is not None:
        found.append(_given(constraints, count))
    return found


def _rule(label: str, rows: list[LinearRow], count: int, about_order: bool) -> RuleRows:
    A = sparse.lil_matrix((len(rows), count + 1))
    for place, (terms, _) in enumerate(rows):
        for column, value in terms.items():
            A[place, column + 1] = value
    b = np.array([right for _, right in rows])
    return RuleRows(label, sparse.csr_matrix(A), b, about_order=about_order)


def _given(constraints: Rows, count: int) -> RuleRows:
    if not isinstance(constraints, LinearConstraints):
        try:
            A, b = constraints
        except (TypeError, ValueError):
            raise ConstraintError(
                f"constraints must be (A, b) or LinearConstraints, got {type(constraints).__name__}"
            ) from None
        constraints = LinearConstraints(A, b)
    if constraints.dimension != count:
        raise ConstraintError(
            f"constraints must have one column for each of the {count} columns of X, got "
            f"{constraints.dimension}"
        )
    no_intercept = sparse.csr_matrix((constraints.count, 1))
    wide = sparse.hstack([no_intercept, sparse.csr_matrix(constraints.A)], format="csr")
    return RuleRows("given rows", wide, constraints.b)
