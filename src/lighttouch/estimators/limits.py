"""From scores to predictions: through the link, and within the limits that the user asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lighttouch.arrays import Floats
from lighttouch.errors import ConstraintError
from lighttouch.estimators.losses import mean_of
from lighttouch.estimators.rules import BoundShape


@dataclass(frozen=True)
class OutputLimits:
    """Predictions of at least `least` and at most `most`: scores (with a log link e^score), cut
    off there.

    Cutting off is an increasing function with slopes of at most 1: it keeps every rule that is
    about order, and bounds of slopes. A convex function stays convex if it is cut off below, a
    concave one if it is cut off above.
    """

    least: float = -math.inf
    most: float = math.inf
    log_link: bool = False

    @classmethod
    def of(cls, least: Any, most: Any, log_link: bool) -> OutputLimits:
        """What `output_min` and `output_max` ask for."""
        low = -math.inf if least is None else _number(least, "output_min")
        high = math.inf if most is None else _number(most, "output_max")
        if low > high:
            raise ValueError(f"output_min must not be above output_max, got {least!r} and {most!r}")
        if log_link and high <= 0.0:
            raise ValueError(
                f"output_max must be positive with a log link, whose predictions are, got {most!r}"
            )
        return cls(low, high, log_link)

    def predictions(self, scores: Floats) -> Floats:
        values = mean_of(scores) if self.log_link else scores
        if math.isinf(self.least) and math.isinf(self.most):
            return values
        return np.clip(values, self.least, self.most)

    def refuse_rules_that_clipping_breaks(self, shapes: Sequence[BoundShape]) -> None:
        for bound in shapes:
            for name, asked, kept in (
                ("output_min", not math.isinf(self.least), bound.shape.kept_below),
                ("output_max", not math.isinf(self.most), bound.shape.kept_above),
            ):
                if asked and not kept:
                    raise ConstraintError(
                        f"{name} cuts predictions off, which {bound.shape} does not survive: it "
                        "compares differences of predictions. Drop one of the two, or "
                        "transform y so that its range has no end there"
                    )

    def state(self) -> list[Any]:
        ends = [None if math.isinf(end) else end for end in (self.least, self.most)]
        return [*ends, self.log_link]

    @classmethod
    def from_state(cls, state: list[Any] | None) -> OutputLimits:
        """What `state` gave; the first files of version 1 have no limits."""
        least, most, log_link = state or [None, None, False]
        return cls.of(least, most, bool(log_link))


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number or None, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value!r}; None is no limit")
    return float(value)
