"""Step sizes eta^(t): a float is a constant; the others decrease."""

from __future__ import annotations

from dataclasses import dataclass

from lighttouch.kernels.state import iterate as kernel
from lighttouch.validation import positive


@dataclass(frozen=True)
class InverseSqrt:
    """The step size eta / sqrt(t), for convex objectives.

    Parameters
    ----------
    eta : float
        The first step; positive.

    Raises
    ------
    ValueError
        If `eta` is not a positive number.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.FullTouch(penalty=1.0, step_size=lt.InverseSqrt(0.1)).step_size
    InverseSqrt(eta=0.1)
    """

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


@dataclass(frozen=True)
class InverseTime:
    """The step size eta / t, for strongly convex objectives.

    Parameters
    ----------
    eta : float
        The first step; positive. In theory 1 / strong_convexity.

    Raises
    ------
    ValueError
        If `eta` is not a positive number.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.FullTouch(penalty=1.0, step_size=lt.InverseTime(2.0)).step_size
    InverseTime(eta=2.0)
    """

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


@dataclass(frozen=True)
class AdaGrad:
    """The step size eta / sqrt(sum of squared gradients so far), coordinate by coordinate.

    Duchi, Hazan and Singer (2011).

    Parameters
    ----------
    eta : float
        The length of a coordinate's first step; positive.

    Raises
    ------
    ValueError
        If `eta` is not a positive number.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.FullTouch(penalty=1.0, step_size=lt.AdaGrad(0.1)).step_size
    AdaGrad(eta=0.1)
    """

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


StepSize = float | InverseSqrt | InverseTime | AdaGrad

_RULES = {
    InverseSqrt: kernel.INVERSE_SQRT,
    InverseTime: kernel.INVERSE_TIME,
    AdaGrad: kernel.ADAGRAD,
}


def rule_and_eta(step_size: StepSize) -> tuple[int, float]:
    """The step size as two numbers a kernel understands."""
    if isinstance(step_size, InverseSqrt | InverseTime | AdaGrad):
        return _RULES[type(step_size)], float(step_size.eta)
    return kernel.CONSTANT, positive(step_size, "step_size")


def step_numbers(
    step_size: StepSize,
    batch: int,
    l2: float,
    penalty: float = 0.0,
    weight_step: float = 0.0,
    looks: int = 0,
) -> kernel.Steps:
    """The record of numbers that every loop of the paper takes: gamma and eta_p stand here and
    nowhere else.
    """
    rule, eta = rule_and_eta(step_size)
    return kernel.Steps(
        rule, eta, int(batch), float(l2), float(penalty), float(weight_step), int(looks)
    )
