"""Contradictions in words: the few rows that cannot hold together, with the numbers that prove it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.errors import InfeasibleConstraintsError


def refuse_contradiction(unit: Any, working: Any, proof: NDArray[np.float64]) -> None:
    """Raise with the rows whose non-negative combination is a zero row with a negative right side."""
    used = np.flatnonzero(proof > 1e-12 * proof.max())
    source = unit.source[working.ids[used]]
    rows = sorted({int(s) for s in source if s >= 0})
    domain = " and the domain" if np.any(source < 0) else ""
    raise InfeasibleConstraintsError(f"no point satisfies rows {', '.join(map(str, rows))}{domain} together", rows)
