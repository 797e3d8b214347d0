"""Checks that only the theory needs."""

from __future__ import annotations

import math

from lighttouch.validation import positive_int


def batch_of(constraints: int, constraint_batch: int) -> int:
    """k, refused unless it is a whole number from 1 to m."""
    k = positive_int(constraint_batch, "constraint_batch")
    if k > constraints:
        raise ValueError(
            f"constraint_batch must be at most the {constraints} constraints, got {k}; try "
            "FullTouch, which checks them all"
        )
    return k


def log_failure(failure_probability: float) -> float:
    """The ln(1/delta) of every high-probability bound."""
    if not 0 < failure_probability < 1:
        raise ValueError(
            f"failure_probability must lie strictly between 0 and 1, got {failure_probability}"
        )
    return -math.log(failure_probability)
