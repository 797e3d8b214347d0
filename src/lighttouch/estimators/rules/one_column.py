"""Rules about one column."""

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
