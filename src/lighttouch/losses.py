"""Losses by name: the rows of the table (`kernels.verbs.losses`), and their values on vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.errors import DataError
from lighttouch.kernels.verbs import losses as kernels
from lighttouch.kernels.verbs.losses import LABELS, NONNEGATIVE, POSITIVE, TABLE, LossRow
from lighttouch.validation import finite_vector, positive

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
        if np.ndim(self.level) == 0:
            if not 0.0 < self.level < 1.0:
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


Loss = str | Quantile | Huber | EpsilonInsensitive | Tweedie
_CLASSES: dict[str, Any] = {
    "quantile": Quantile,
    "huber": Huber,
    "tweedie": Tweedie,
    "epsilon_insensitive": EpsilonInsensitive,
}  # of losses with a parameter
BY_NAME = tuple(name for name in LOSSES if name == "huber" or name not in _CLASSES)


def loss_of(loss: Loss) -> LossRow:
    """The row of a loss given by its name or as Quantile(level), Huber(threshold), ..."""
    for name, kind in _CLASSES.items():
        if isinstance(loss, kind):
            row = LOSSES[name]
            return replace(row, level=getattr(loss, row.parameter))
    if not isinstance(loss, str) or loss not in BY_NAME:
        given = [f"{kind.__name__}({LOSSES[name].parameter})" for name, kind in _CLASSES.items()]
        raise ValueError(f"loss must be one of {', '.join((*BY_NAME, *given))}; got {loss!r}")
    return LOSSES[loss]


def given_as(row: LossRow) -> Loss:
    """The loss as `EmpiricalRisk` takes it: the inverse of `loss_of`."""
    if row.name in BY_NAME and row.level == LOSSES[row.name].level:
        return row.name
    made: Loss = _CLASSES[row.name](row.level)
    return made


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
    out = np.empty(z.size)
    kernels.rounded_values(row.number, row.levels, float(width), z, y, out)
    return out


def quadratic(row: LossRow, z: Vector, y: Vector, width: float) -> tuple[Vector, Vector]:
    """Slopes and curvatures of quadratics that touch the rounded loss at the predictions z."""
    slopes, curvatures = np.empty(z.size), np.empty(z.size)
    kernels.quadratic_models(row.number, row.levels, float(width), z, y, slopes, curvatures)
    return slopes, curvatures


def derivatives(row: LossRow, z: Vector, y: Vector) -> tuple[Vector, Vector, Vector]:
    """The loss of every example with its first and second derivative."""
    found = np.empty(z.size), np.empty(z.size), np.empty(z.size)
    kernels.derivatives(row.number, row.levels, z, y, *found)
    return found


def slope_ranges(row: LossRow, y: Vector) -> tuple[Vector, Vector]:
    """The smallest and the largest slope of every example."""
    far = np.full(y.size, np.inf)
    return conjugate_values(row, -far, y)[0], conjugate_values(row, far, y)[0]


def typical_residual(row: LossRow, z: Vector, y: Vector) -> float:
    """The mean size of what the predictions miss, in units of z."""
    out = np.empty(z.size)
    kernels.residuals(row.number, z, y, out)
    return float(np.mean(np.abs(out)))


def target_size(row: LossRow, y: Vector) -> float:
    """The root mean square of the targets, in units of predictions; with a log link at least 1."""
    if not row.log_link:
        return float(np.sqrt(np.mean(np.square(y))))
    logarithms = np.log(np.where(y > 0.0, y, 1.0))
    return max(1.0, float(np.sqrt(np.mean(np.square(logarithms)))))


def conjugate_values(row: LossRow, slopes: Vector, y: Vector) -> tuple[Vector, Vector]:
    """The nearest slopes in the domain of phi*, and phi* there: phi(z) >= s z - phi*(s)."""
    allowed, out = np.array(slopes, dtype=np.float64), np.empty(slopes.size)
    kernels.conjugates(row.number, row.levels, allowed, y, out)
    return allowed, out
