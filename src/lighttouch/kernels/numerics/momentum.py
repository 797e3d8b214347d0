"""Nesterov's sequence: the momentum of accelerated gradients (FISTA; Beck and Teboulle 2009)."""

from __future__ import annotations

import math


def next_momentum(t: float) -> tuple[float, float]:
    """t' = (1 + sqrt(1 + 4 t^2)) / 2, and the share (t - 1) / t' of the last move to go on by."""
    following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t**2))
    return following, (t - 1.0) / following
