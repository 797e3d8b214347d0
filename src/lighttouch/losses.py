"""Losses by name: the rows of the table (`kernels.verbs.losses`), and their values on vectors."""

from __future__ import annotations

import copyreg
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs import losses as kernels
from lighttouch.kernels.verbs.custom import loop_over
from lighttouch.kernels.verbs.loss_functions import SMALLEST_CURVATURE
from lighttouch.kernels.verbs.losses import ANY, LABELS, NONNEGATIVE, POSITIVE, TABLE, LossRow
from lighttouch.validation import finite_vector, one_of, positive

DIFFERENCE = 1e-6  # of predictions, for curvatures: the cube root of the rounding, about

LOSSES: dict[str, LossRow] = {
    row.name: replace(row, number=number) for number, row in enumerate(TABLE)
}


@dataclass(frozen=True, eq=False)
class Quantile:
    """The pinball loss, minimised by the conditional quantile of the given level.

    Parameters
    ----------
    level : float, or array-like of shape (n,)
        Strictly between 0 and 1; 0.5 gives half the absolute loss. An array has one level for each
        example.

    Raises
    ------
    ValueError
        If a level does not lie strictly between 0 and 1.

    Examples
    --------
    >>> import lighttouch as lt
    >>> objective = lt.EmpiricalRisk([[1.0], [1.0]], [0.0, 2.0], loss=lt.Quantile(0.25))
    >>> objective.value([1.0])
    0.5
    >>> lt.EmpiricalRisk([[1.0], [1.0]], [0.0, 2.0], loss=lt.Quantile([0.25, 0.5])).value([1.0])
    0.625
    """

    level: Any

    def __post_init__(self) -> None:
        if isinstance(self.level, str) or np.ndim(self.level) == 0:
            level = positive(self.level, "level")
            if not level < 1.0:
                raise ValueError(f"level must lie strictly between 0 and 1, got {self.level}")
            return
        levels = finite_vector(self.level, "level", error=ValueError).copy()
        outside = (levels <= 0.0) | (levels >= 1.0)
        if outside.any():
            first = int(np.argmax(outside))
            raise ValueError(
                f"level must lie strictly between 0 and 1, got {levels[first]} in row {first}"
            )
        levels.flags.writeable = False
        object.__setattr__(self, "level", levels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantile) and np.array_equal(self.level, other.level)

    def __hash__(self) -> int:
        return hash(np.asarray(self.level, dtype=np.float64).tobytes())


@dataclass(frozen=True)
class Huber:
    """Squared errors up to a threshold t, straight beyond: t |e| - t^2 / 2 (Huber 1964).

    Parameters
    ----------
    threshold : float, default=1.0
        The error from which on the loss is straight; the loss "huber" has threshold 1.

    Raises
    ------
    ValueError
        If the threshold is not positive.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.EmpiricalRisk([[1.0]], [0.0], loss=lt.Huber(2.0)).value([3.0])
    4.0
    """

    threshold: float = 1.0

    def __post_init__(self) -> None:
        positive(self.threshold, "threshold")


@dataclass(frozen=True)
class EpsilonInsensitive:
    """Absolute errors beyond epsilon, max(0, |z - y| - epsilon): support vector regression.

    Parameters
    ----------
    epsilon : float, default=0.1
        Errors up to epsilon cost nothing; 0 gives the absolute loss.

    Raises
    ------
    ValueError
        If epsilon is negative.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.EmpiricalRisk([[1.0]], [0.0], loss=lt.EpsilonInsensitive(0.5)).value([3.0])
    2.5
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        positive(self.epsilon, "epsilon", zero=True)


@dataclass(frozen=True)
class Tweedie:
    """Half the Tweedie deviance with a log link, for amounts that are often 0, such as claims.

    With power p it is -y e^((1 - p) z) / (1 - p) + e^((2 - p) z) / (2 - p), minimised by
    predictions z whose exponential is the mean of y.

    Parameters
    ----------
    power : float, default=1.5
        Strictly between 1 (Poisson: use the loss "poisson") and 2 (gamma: use "gamma").

    Raises
    ------
    ValueError
        If the power does not lie strictly between 1 and 2.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.EmpiricalRisk([[1.0]], [1.0], loss=lt.Tweedie(1.5)).value([0.0])
    4.0
    """

    power: float = 1.5

    def __post_init__(self) -> None:
        if not 1.0 < self.power < 2.0:
            raise ValueError(
                f"power must lie strictly between 1 and 2, got {self.power}; use the loss "
                '"poisson" for 1 and "gamma" for 2'
            )


@dataclass(frozen=True)
class CustomLoss:
    """A convex loss of your own, given by functions of a prediction z and a target y.

    It runs in every loop that takes the built-in losses. An optimum is proven for it only where its
    conjugate is given.

    Parameters
    ----------
    value : callable
        `value(z, y)` returns the loss, a number.
    slope : callable
        `slope(z, y)` returns a subgradient in z.
    curvature : callable, default=None
        `curvature(z, y)` returns the second derivative. Give it where the loss is smooth: without
        it, the loss counts as one with kinks.
    targets : str, default="any"
        Which targets it takes: "any", "labels" (-1 and +1), "nonnegative" or "positive".
    compiled : bool, default=True
        Whether numba compiles the functions; False calls them from Python, which is slow.
    conjugate : callable, default=None
        `conjugate(s, y)` returns the largest s z - value(z, y) over all z, infinity where there is
        none. With it, `QuadraticSteps` can prove that an answer is optimal.

    Raises
    ------
    ValueError
        If a function is none, or cannot be compiled.

    Examples
    --------
    >>> import lighttouch as lt
    >>> fourth = lt.CustomLoss(lambda z, y: (z - y) ** 4, lambda z, y: 4.0 * (z - y) ** 3)
    >>> lt.EmpiricalRisk([[1.0]], [0.0], loss=fourth).value([2.0])
    16.0
    """

    value: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    curvature: Callable[[float, float], float] | None = None
    targets: str = ANY
    compiled: bool = True
    conjugate: Callable[[float, float], float] | None = None

    def __post_init__(self) -> None:
        one_of(self.targets, (ANY, LABELS, NONNEGATIVE, POSITIVE), "targets")
        for name in ("value", "slope", "curvature", "conjugate"):
            function = getattr(self, name)
            if name in ("curvature", "conjugate") and function is None:
                continue
            if not callable(function):
                raise ValueError(f"{name} must be a function of (z, y), got {function!r}")
            self._refuse_failing(name, function)

    def _refuse_failing(self, name: str, function: Callable[..., float]) -> None:
        """Try it once, so that a mistake is found here and not within a compiled loop."""
        try:
            loop_over(function, self.compiled)(np.ones(1), np.ones(1))
        except Exception as error:
            advice = "; compiled=False calls it from Python" if self.compiled else ""
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(  # numba says in its second line what is wrong
                f"{name} must return a number for z = 1 and y = 1, but it failed: "
                f"{said[min(1, len(said) - 1)]}{advice}"
            ) from error

    def at(self, name: str, z: Vector, y: Vector) -> Vector:
        """One of the functions at every example."""
        return np.asarray(loop_over(getattr(self, name), self.compiled)(z, y))

    def curvatures(self, z: Vector, y: Vector) -> Vector:
        """The second derivatives, by differences of slopes where none are given."""
        if self.curvature is not None:
            return self.at("curvature", z, y)
        step = DIFFERENCE * (1.0 + np.abs(z))
        rise = self.at("slope", z + step, y) - self.at("slope", z - step, y)
        return np.asarray(rise / (2.0 * step))


Class = TypeVar("Class")
Loss = str | Quantile | Huber | EpsilonInsensitive | Tweedie | CustomLoss
CLASSES: dict[str, Any] = {
    "quantile": Quantile,
    "huber": Huber,
    "tweedie": Tweedie,
    "epsilon_insensitive": EpsilonInsensitive,
}  # of losses with a parameter
BY_NAME = tuple(name for name in LOSSES if name == "huber" or name not in CLASSES)


_UNKNOWN = replace(  # what nobody may call: users' losses have functions of their own
    LOSSES["squared"], name="custom", number=-1, largest_curvature=math.inf, roundness=None
)


def loss_of(loss: Loss) -> LossRow:
    """The row of a loss given by its name or as Quantile(level), Huber(threshold), ..."""
    if isinstance(loss, CustomLoss):
        return replace(_UNKNOWN, targets=loss.targets, users=loss)
    for name, kind in CLASSES.items():
        if isinstance(loss, kind):
            row = LOSSES[name]
            return replace(row, level=getattr(loss, row.parameter))
    if not isinstance(loss, str) or loss not in BY_NAME:
        given = [f"{kind.__name__}({LOSSES[name].parameter})" for name, kind in CLASSES.items()]
        choices = ", ".join((*BY_NAME, *given))
        raise ValueError(f"loss must be one of {choices} or a CustomLoss; got {loss!r}")
    return LOSSES[loss]


def names_losses(cls: type[Class]) -> type[Class]:
    """A class decorator: {losses} in the docstring becomes all that `loss_of` takes."""
    targets = (ANY, LABELS, NONNEGATIVE, POSITIVE)
    names = sorted(BY_NAME, key=lambda name: targets.index(LOSSES[name].targets))
    given = [f"`{kind.__name__}({LOSSES[name].parameter})`" for name, kind in CLASSES.items()]
    told = ", ".join([*(f'"{name}"' for name in names), *given, "or a `CustomLoss`."])
    indent = " " * 8
    lines = textwrap.fill(told, 100, initial_indent=indent, subsequent_indent=indent)
    if cls.__doc__:
        cls.__doc__ = cls.__doc__.replace(f"{indent}{{losses}}", lines)
    return cls


def given_as(row: LossRow) -> Loss:
    """The loss as `EmpiricalRisk` takes it: the inverse of `loss_of`."""
    if row.users is not None:
        return cast(CustomLoss, row.users)
    if row.name in BY_NAME and row.level == LOSSES[row.name].level:
        return row.name
    made: Loss = CLASSES[row.name](row.level)
    return made


def _reduced(row: LossRow) -> tuple[Any, tuple[Loss]]:
    return loss_of, (given_as(row),)


copyreg.pickle(LossRow, _reduced)  # compiled functions cannot be pickled: workers look them up


def refuse_targets(row: LossRow, y: Vector) -> None:
    """Every loss says which targets it takes."""
    wanted, bad, advice = {
        LABELS: ("hold only -1 and +1", np.abs(y) != 1.0, "map your labels to -1 and +1"),
        NONNEGATIVE: ("not be negative", y < 0.0, "use squared errors for targets of any sign"),
        POSITIVE: ("be positive", y <= 0.0, 'use "poisson" or Tweedie(power) where 0 occurs'),
    }.get(row.targets, ("", np.zeros(0, bool), ""))
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            f"y must {wanted} for the {row.name} loss, got {y[first]} in row {first}; {advice}"
        )


def values(row: LossRow, z: Vector, y: Vector, width: float = 0.0) -> Vector:
    """The loss of every example, its kink rounded over `width`."""
    if row.users is not None:
        return cast(CustomLoss, row.users).at("value", z, y)
    out = np.empty(z.size)
    if width > 0.0:  # apart, so that only what is called is compiled
        kernels.rounded_values[row.number](row.levels, float(width), z, y, out)
    else:
        kernels.plain_values[row.number](row.levels, z, y, out)
    return out


def quadratic(row: LossRow, z: Vector, y: Vector, width: float) -> tuple[Vector, Vector]:
    """Slopes and curvatures of quadratics that touch the rounded loss at the predictions z."""
    if row.users is not None:
        curved = np.maximum(row.users.curvatures(z, y), SMALLEST_CURVATURE)
        return row.users.at("slope", z, y), curved
    slopes, curvatures = np.empty(z.size), np.empty(z.size)
    kernels.quadratic_models[row.number](row.levels, float(width), z, y, slopes, curvatures)
    return slopes, curvatures


def derivatives(row: LossRow, z: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
    """The loss of every example with its first and second derivative."""
    if row.users is not None:
        users = row.users
        return users.at("value", z, y), users.at("slope", z, y), users.curvatures(z, y)
    found = np.empty(z.size), np.empty(z.size), np.empty(z.size)
    kernels.derivatives[row.number](row.levels, z, y, *found)
    return found


def slope_ranges(row: LossRow, y: Vector) -> tuple[Vector, Vector]:
    """The smallest and the largest slope of every example."""
    far = np.full(y.size, np.inf)
    return conjugate_values(row, -far, y)[0], conjugate_values(row, far, y)[0]


def typical_residual(row: LossRow, z: Vector, y: Vector) -> float:
    """The mean size of what the predictions miss, in units of z."""
    if row.users is not None:
        return float(np.mean(np.abs(z - y)))
    out = np.empty(z.size)
    kernels.residuals[row.number](z, y, out)
    return float(np.mean(np.abs(out)))


def target_size(row: LossRow, y: Vector) -> float:
    """The root mean square of the targets, in units of predictions; with a log link at least 1."""
    if not row.log_link:
        return float(np.sqrt(np.mean(np.square(y))))
    logarithms = np.log(np.where(y > 0.0, y, 1.0))
    return max(1.0, float(np.sqrt(np.mean(np.square(logarithms)))))


def conjugate_values(row: LossRow, slopes: Vector, y: Vector) -> tuple[Vector, Vector]:
    """The nearest slopes in the domain of phi*, and phi* there: phi(z) >= s z - phi*(s).

    Of a user's loss without a conjugate phi* is not known: infinity, with which every bound is true
    and says nothing.
    """
    if row.users is not None:
        known = row.users.conjugate is not None
        allowed = np.array(slopes, dtype=np.float64)
        out = row.users.at("conjugate", allowed, y) if known else np.full(slopes.size, np.inf)
        return allowed, out
    allowed, out = np.array(slopes, dtype=np.float64), np.empty(slopes.size)
    kernels.conjugates[row.number](row.levels, allowed, y, out)
    return allowed, out
