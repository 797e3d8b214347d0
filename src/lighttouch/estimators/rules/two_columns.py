"""Rules about two columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lighttouch import lattice
from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.rules import probing, rows
from lighttouch.estimators.rules.base import AxisKind, BoundShape, LinearRow, ShapeConstraint
from lighttouch.estimators.rules.probing import Probe
from lighttouch.estimators.rules.rows import RuleRows
from lighttouch.estimators.tables import Name


@dataclass(frozen=True)
class EdgeworthTrust(ShapeConstraint):
    """The higher `conditional`, the more the prediction rises with `main`.

    In a classifier the rule holds for the log-odds. The probability levels off towards 0 and 1, so
    there it need not hold. With a log link it holds for the log-mean, and for the mean where both
    columns are monotone and the product of their signs is `sign`.

    Parameters
    ----------
    main : str or int
        The column whose effect is strengthened, such as a rating.
    conditional : str or int
        The column that strengthens it, such as the number of reviews.
    sign : {1, -1}, default 1
        With -1 a lower `conditional` strengthens the effect.

    Raises
    ------
    ConstraintError
        If the sign is neither 1 nor -1.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> rule = lt.EdgeworthTrust(main=0, conditional=1)
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(X, -X[:, 0] * X[:, 1])
    >>> model.constraint_report_.violation
    0.0
    """

    main: Name
    conditional: Name
    sign: int = 1

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("main", "conditional")

    def __post_init__(self) -> None:
        _check_sign(self.sign)

    def holds_for_exponential(self, places: tuple[int, ...], monotonic: Mapping[int, int]) -> bool:
        """The mixed slope of e^f is e^f times that of f plus the product of f's two slopes."""
        return monotonic.get(places[0], 0) * monotonic.get(places[1], 0) == self.sign

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.mixed(probe, *bound.places, sign=float(self.sign))

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.in_lattices(
            model, bound.places, lambda term, i, j: lattice.edgeworth(term.grid, i, j, self.sign)
        )


@dataclass(frozen=True)
class TrapezoidTrust(ShapeConstraint):
    """The higher `conditional`, the wider the range of predictions over `main`.

    The prediction falls with `conditional` where `main` is lowest and rises where `main` is
    highest. In a classifier the rule holds for the log-odds and for the probability.

    Parameters
    ----------
    main : str or int
        The column over which predictions spread.
    conditional : str or int
        The column that spreads them.
    sign : {1, -1}, default 1
        With -1 a lower `conditional` spreads them.

    Raises
    ------
    ConstraintError
        If the sign is neither 1 nor -1.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> rule = lt.TrapezoidTrust(main=0, conditional=1)
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(X, X[:, 0] + X[:, 1])
    >>> model.constraint_report_.violation
    0.0
    """

    main: Name
    conditional: Name
    sign: int = 1

    together: ClassVar[bool] = True
    exact_on_predictions: ClassVar[bool] = True
    about_order: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("main", "conditional")

    def __post_init__(self) -> None:
        _check_sign(self.sign)

    def companions(
        self, places: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> tuple[tuple[int, int], ...]:
        return _second_needs_first(places)

    def columns_without_curve(self, places: tuple[int, ...], single: bool) -> tuple[int, ...]:
        return places[1:]

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.trapezoid(probe, *bound.places, sign=float(self.sign))

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.in_lattices(
            model, bound.places, lambda term, i, j: lattice.trapezoid(term.grid, i, j, self.sign)
        )


@dataclass(frozen=True)
class Dominates(ShapeConstraint):
    """One more unit of `dominant` is worth at least one more unit of `weak`, everywhere.

    Both columns are increasing. In a classifier the rule holds for the log-odds and for the
    probability.

    Parameters
    ----------
    dominant : str or int
        The column whose effect per unit is larger.
    weak : str or int
        The column whose effect per unit is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> model = lt.ConstrainedLinearRegressor(alpha=0.0, shape_constraints=[lt.Dominates(0, 1)])
    >>> coef = model.fit(X, X[:, 0] + 3.0 * X[:, 1]).coef_
    >>> bool(coef[0] >= coef[1])
    True
    """

    dominant: Name
    weak: Name

    together: ClassVar[bool] = True
    both_increasing: ClassVar[bool] = True
    about_order: ClassVar[bool] = True
    axis_kind: ClassVar[AxisKind] = "common unit"
    column_fields: ClassVar[tuple[str, ...]] = ("dominant", "weak")

    def companions(
        self, places: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> tuple[tuple[int, int], ...]:
        return _second_needs_first(places)

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.dominance(probe, *bound.places)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.dominance(model, *bound.places)

    def linear_rows(self, places: tuple[int, ...], ranges: Floats) -> list[LinearRow]:
        dominant, weak = places
        return [({weak: 1.0, dominant: -1.0}, 0.0)]


@dataclass(frozen=True)
class RangeDominates(ShapeConstraint):
    """The whole range of `dominant` is worth at least the whole range of `weak`, from everywhere.

    Both columns are increasing. In a classifier the rule compares rises of the log-odds. Rises of
    the probability need not compare the same way. With a log link the rule is about the log-mean.

    Parameters
    ----------
    dominant : str or int
        The column whose effect over its range is larger.
    weak : str or int
        The column whose effect over its range is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2)) * [10.0, 1.0]
    >>> model = lt.ConstrainedLinearRegressor(shape_constraints=[lt.RangeDominates(0, 1)])
    >>> coef = model.fit(X, X[:, 1]).coef_
    >>> bool(coef[0] * np.ptp(X[:, 0]) >= coef[1] * np.ptp(X[:, 1]) - 1e-12)
    True
    """

    dominant: Name
    weak: Name

    together: ClassVar[bool] = True
    both_increasing: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("dominant", "weak")

    def companions(
        self, places: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> tuple[tuple[int, int], ...]:
        return _second_needs_first(places)

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.range_dominance(probe, *bound.places)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.range_dominance(model, *bound.places)

    def linear_rows(self, places: tuple[int, ...], ranges: Floats) -> list[LinearRow]:
        dominant, weak = places
        return [({weak: float(ranges[weak]), dominant: -float(ranges[dominant])}, 0.0)]


@dataclass(frozen=True)
class JointlyMonotonic(ShapeConstraint):
    """The prediction never falls when both columns rise by the same amount, in their own units.

    In a classifier the rule holds for the log-odds and for the probability, with a log link for the
    mean.

    Parameters
    ----------
    first : str or int
        One of the columns.
    second : str or int
        The other column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> model = lt.ConstrainedLinearRegressor(shape_constraints=[lt.JointlyMonotonic(0, 1)])
    >>> coef = model.fit(X, X[:, 0] - 3.0 * X[:, 1]).coef_
    >>> bool(coef.sum() >= 0.0)
    True
    """

    first: Name
    second: Name

    together: ClassVar[bool] = True
    about_order: ClassVar[bool] = True
    axis_kind: ClassVar[AxisKind] = "common unit"
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")

    def companions(
        self, places: tuple[int, ...], monotonic: Mapping[int, int]
    ) -> tuple[tuple[int, int], ...]:
        return tuple(
            (here, there)
            for here, there in (places, places[::-1])
            if monotonic.get(here, 0) <= 0  # an increasing column needs no companion
        )

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.joint_rise(probe, *bound.places)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.joint_monotonicity(model, *bound.places)

    def linear_rows(self, places: tuple[int, ...], ranges: Floats) -> list[LinearRow]:
        return [({places[0]: -1.0, places[1]: -1.0}, 0.0)]


@dataclass(frozen=True)
class Supermodular(ShapeConstraint):
    """The two columns are complements: each raises the other's effect.

    In a classifier the rule holds for the log-odds, not for the probability; with a log link for
    the log-mean.

    Parameters
    ----------
    first : str or int
        One of the columns.
    second : str or int
        The other column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> rule = lt.Supermodular(0, 1)
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(X, -X[:, 0] * X[:, 1])
    >>> model.constraint_report_.violation
    0.0
    """

    first: Name
    second: Name

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")

    def holds_for_exponential(self, places: tuple[int, ...], monotonic: Mapping[int, int]) -> bool:
        """The mixed slope of e^f is e^f times that of f plus the product of f's two slopes."""
        return monotonic.get(places[0], 0) * monotonic.get(places[1], 0) == 1

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.mixed(probe, *bound.places, sign=1.0)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.in_lattices(
            model, bound.places, lambda term, i, j: lattice.supermodular(term.grid, [(i, j)])
        )


@dataclass(frozen=True)
class Submodular(ShapeConstraint):
    """The two columns are substitutes: each lowers the other's effect.

    In a classifier the rule holds for the log-odds, not for the probability; with a log link for
    the log-mean.

    Parameters
    ----------
    first : str or int
        One of the columns.
    second : str or int
        The other column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> rule = lt.Submodular(0, 1)
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(X, X[:, 0] * X[:, 1])
    >>> model.constraint_report_.violation
    0.0
    """

    first: Name
    second: Name

    together: ClassVar[bool] = True
    column_fields: ClassVar[tuple[str, ...]] = ("first", "second")

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.mixed(probe, *bound.places, sign=-1.0)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.in_lattices(
            model, bound.places, lambda term, i, j: lattice.submodular(term.grid, [(i, j)])
        )


def _check_sign(sign: int) -> None:
    if sign not in (1, -1):
        raise ConstraintError(f"sign must be 1 or -1, got {sign!r}")


def _second_needs_first(places: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """A lattice over the second column could break the rule unless it holds the first too."""
    first, second = places
    return ((second, first),)
