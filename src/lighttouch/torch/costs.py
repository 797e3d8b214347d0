"""Every number that decides in `lighttouch.torch`, with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TorchCosts:
    """Defaults, budgets and tolerances."""

    weight_step: float = 64.0
    """By how much ln p_j grows at most when a violation of 1 is found, at penalty 1."""
    most_weight_step: float = 1 / 16
    """The paper's eta_p (Section 5)."""
    audited: int = 10_000
    """Constraints of an audit that is not full: shares are then known to about one percent."""


COSTS = TorchCosts()
