"""Step sizes eta^(t): a float is a constant; the others decrease."""

from __future__ import annotations

from dataclasses import dataclass

from lighttouch.kernels.state import iterate
from lighttouch.validation import positive


@dataclass(frozen=True)
class InverseSqrt:
    """eta / sqrt(t), for convex objectives."""

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


@dataclass(frozen=True)
class InverseTime:
    """eta / t, for strongly convex objectives (eta = 1/strong_convexity in theory)."""

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


@dataclass(frozen=True)
class AdaGrad:
    """eta / sqrt(sum of squared gradients so far), coordinate by coordinate."""

    eta: float

    def __post_init__(self) -> None:
        positive(self.eta, "eta")


StepSize = float | InverseSqrt | InverseTime | AdaGrad

_RULES = {
    InverseSqrt: iterate.INVERSE_SQRT,
    InverseTime: iterate.INVERSE_TIME,
    AdaGrad: iterate.ADAGRAD,
}


def rule_and_eta(step_size: StepSize) -> tuple[int, float]:
    """The step size as two numbers a kernel understands."""
    if isinstance(step_size, InverseSqrt | InverseTime | AdaGrad):
        return _RULES[type(step_size)], float(step_size.eta)
    return iterate.CONSTANT, positive(step_size, "step_size")
