"""Losses by name."""

from __future__ import annotations

from dataclasses import dataclass

from lighttouch.kernels.verbs import losses

KINDS = {
    "hinge": losses.HINGE,
    "logistic": losses.LOGISTIC,
    "squared": losses.SQUARED,
    "absolute": losses.ABSOLUTE,
    "huber": losses.HUBER,
}
LABELLED = ("hinge", "logistic")  # losses whose targets are -1 and +1


@dataclass(frozen=True)
class Quantile:
    """The pinball loss, minimised by the conditional quantile of the given level."""

    level: float

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level must lie strictly between 0 and 1, got {self.level}")


Loss = str | Quantile


def kind_and_level(loss: Loss) -> tuple[int, float]:
    if isinstance(loss, Quantile):
        return losses.QUANTILE, loss.level
    if loss not in KINDS:
        raise ValueError(f"loss must be one of {', '.join(KINDS)} or Quantile(level); got {loss!r}")
    return KINDS[loss], 0.0
