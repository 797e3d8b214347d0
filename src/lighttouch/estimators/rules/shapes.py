"""Rules about columns, by name: what users put into `shape_constraints`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lighttouch import lattice
from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.rules import probing, rows
from lighttouch.estimators.rules.base import AxisKind, BoundShape, LinearRow, ShapeConstraint
from lighttouch.estimators.rules.probing import Probe
from lighttouch.estimators.rules.rows import RuleRows
from lighttouch.estimators.tables import Column, Name

# -------------------------------------------------------------------------------------------------
# Rules about one column.


@dataclass(frozen=True)
class Convex(ShapeConstraint):
    """The prediction bends upwards along a column, within the range seen in training.

    In a classifier the log-odds are convex. The probability need not be: the logistic curve is
    concave above one half. With a log link the log-mean is convex, and so is the mean.

    Parameters
    ----------
    column : str or int
        Name or position of the column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> model = lt.LatticeRegressor(shape_constraints=[lt.Convex(0)]).fit(x, np.sin(4.0 * x[:, 0]))
    >>> model.constraint_report_.violation
    0.0
    """

    column: Name

    axis_kind: ClassVar[AxisKind] = "straight"

    def holds_for_exponential(self, places: tuple[int, ...], monotonic: Mapping[int, int]) -> bool:
        """An increasing convex function of a convex function is convex."""
        return True

    @property
    def kept_below(self) -> bool:
        return True

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.curvature(probe, bound.places[0], 1.0)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.curved(model, bound.places[0], lattice.convex, lattice.submodular)


@dataclass(frozen=True)
class Concave(ShapeConstraint):
    """The prediction bends downwards along a column, within the range seen in training.

    In a classifier the log-odds are concave. The probability need not be: the logistic curve is
    convex below one half. With a log link the log-mean is concave, the mean need not be.

    Parameters
    ----------
    column : str or int
        Name or position of the column.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> model = lt.LatticeRegressor(shape_constraints=[lt.Concave(0)]).fit(x, np.exp(x[:, 0]))
    >>> model.constraint_report_.violation
    0.0
    """

    column: Name

    axis_kind: ClassVar[AxisKind] = "straight"

    @property
    def kept_above(self) -> bool:
        return True

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.curvature(probe, bound.places[0], -1.0)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.curved(model, bound.places[0], lattice.concave, lattice.supermodular)


@dataclass(frozen=True)
class Unimodal(ShapeConstraint):
    """The prediction falls until the column reaches `mode` and rises after it, or the reverse.

    In a classifier the rule holds for the log-odds and for the probability, with a log link for the
    mean.

    Parameters
    ----------
    column : str or int
        Name or position of the column.
    mode : float
        The value of the column where the prediction turns.
    shape : {"valley", "peak"}, default "valley"
        Whether the prediction is lowest or highest at the mode.

    Raises
    ------
    ConstraintError
        If the mode is not a finite number or the shape is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> rule = lt.Unimodal(0, mode=0.5, shape="peak")
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(x, np.cos(9.0 * x[:, 0]))
    >>> model.constraint_report_.violation
    0.0
    """

    column: Name
    mode: float
    shape: str = "valley"

    exact_on_predictions: ClassVar[bool] = True
    about_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.shape not in ("valley", "peak"):
            raise ConstraintError(f"shape must be 'valley' or 'peak', got {self.shape!r}")
        if not isinstance(self.mode, int | float) or not math.isfinite(self.mode):
            raise ConstraintError(
                f"Unimodal needs a known mode, a value of the column, got {self.mode!r}: "
                "with a learned mode the allowed models are not a "
                "convex set; fit once for each mode and keep the best, or ask for Convex"
            )

    @property
    def vertices(self) -> tuple[float, ...]:
        return (float(self.mode),)

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.one_turn(
            probe, bound.places[0], float(self.mode), 1.0 if self.shape == "valley" else -1.0
        )

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.unimodal(model, bound.places[0], self.mode, self.shape)


@dataclass(frozen=True)
class SlopeBound(ShapeConstraint):
    """The prediction changes by at most `limit` per unit of the column.

    In a classifier the limit holds for the log-odds. The slope of the probability is then at most
    a quarter of it. With a log link it holds for the log-mean: the mean changes by at most a factor
    e^limit per unit.

    Parameters
    ----------
    column : str or int
        Name or position of the column.
    limit : float
        The largest change per unit, at least 0.

    Raises
    ------
    ConstraintError
        If the limit is negative or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> model = lt.ConstrainedLinearRegressor(shape_constraints=[lt.SlopeBound(0, 2.0)])
    >>> model.fit(x, 5.0 * x[:, 0]).coef_
    array([2.])
    """

    column: Name
    limit: float

    alone: ClassVar[bool] = True
    axis_kind: ClassVar[AxisKind] = "straight"

    def __post_init__(self) -> None:
        if (
            not isinstance(self.limit, int | float)
            or not math.isfinite(self.limit)
            or self.limit < 0.0
        ):
            raise ConstraintError(
                f"limit must be a finite number of at least 0, got {self.limit!r}"
            )

    def columns_without_curve(self, places: tuple[int, ...], single: bool) -> tuple[int, ...]:
        return places if single else ()

    @property
    def kept_below(self) -> bool:
        return True

    @property
    def kept_above(self) -> bool:
        return True

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.slope(probe, bound.places[0], float(self.limit))

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.slope_bound(model, bound.places[0], float(self.limit))

    def linear_rows(self, places: tuple[int, ...], ranges: Floats) -> list[LinearRow]:
        limit = float(self.limit)
        return [({places[0]: 1.0}, limit), ({places[0]: -1.0}, limit)]


@dataclass(frozen=True)
class CategoryOrder(ShapeConstraint):
    """Predictions never fall from the first to the second category of each pair.

    Everything else is equal. In a classifier the rule holds for the log-odds and for the
    probability, with a log link for the mean.

    Parameters
    ----------
    column : str or int
        Name or position of a column of categories.
    pairs : sequence of (category, category), default ()
        The lower category of each pair first.

    Raises
    ------
    ConstraintError
        If the pairs are not pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> X = np.array([["low"], ["high"]] * 20, dtype=object)
    >>> rule = lt.CategoryOrder(0, [("low", "high")])
    >>> model = lt.LatticeRegressor(shape_constraints=[rule]).fit(X, [1.0, 0.0] * 20)
    >>> low, high = model.predict(X[:2])
    >>> bool(low <= high)
    True
    """

    column: Name
    pairs: Sequence[tuple[Any, Any]] = field(default=())

    exact_on_predictions: ClassVar[bool] = True
    about_order: ClassVar[bool] = True
    of_categories: ClassVar[bool] = True

    def __post_init__(self) -> None:
        try:
            plain = tuple((low, high) for low, high in self.pairs)
        except (TypeError, ValueError):
            raise ConstraintError(
                f"pairs must be pairs of categories such as [('low', 'high')], got {self.pairs!r}"
            ) from None
        object.__setattr__(self, "pairs", plain)

    def category_codes(self, column: Column) -> tuple[tuple[int, int], ...]:
        if not column.categorical:
            return ()
        codes = {category: code for code, category in enumerate(column.categories or ())}
        for category in (each for pair in self.pairs for each in pair):
            if category not in codes:
                raise ConstraintError(
                    f"{self}: {category!r} is not a category of column {column.name!r}; "
                    f"seen were {list(codes)[:8]}"
                )
        return tuple((codes[low], codes[high]) for low, high in self.pairs)

    def excess_on(self, probe: Probe, bound: BoundShape) -> Floats:
        return probing.category_order(probe, bound.places[0], bound.pairs)

    def lattice_rows(self, model: AdditiveModel, bound: BoundShape) -> list[RuleRows]:
        return rows.category_order(model, bound.places[0], bound.pairs)


# -------------------------------------------------------------------------------------------------
# Rules about two columns.


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


# -------------------------------------------------------------------------------------------------
# Every rule by its name.


KINDS: dict[str, type[ShapeConstraint]] = {
    kind.__name__: kind
    for kind in (
        EdgeworthTrust,
        TrapezoidTrust,
        Dominates,
        RangeDominates,
        JointlyMonotonic,
        Supermodular,
        Submodular,
        Convex,
        Concave,
        Unimodal,
        SlopeBound,
        CategoryOrder,
    )
}
