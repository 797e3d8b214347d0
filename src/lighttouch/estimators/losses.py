"""Which losses the estimators take, and probabilities from log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import CLASSES, LOSSES, loss_of
from lighttouch.text import alternatives
from lighttouch.validation import one_of

Floats = NDArray[np.float64]
_TAKEN = {name: row for name, row in LOSSES.items() if row.estimators}
CLASSIFICATION = tuple(name for name, row in _TAKEN.items() if row.labelled)
LOG_LINK = tuple(name for name, row in _TAKEN.items() if row.log_link)
LINEAR_REGRESSION = tuple(name for name in _TAKEN if name not in (*CLASSIFICATION, *LOG_LINK))
REGRESSION = (*LINEAR_REGRESSION, *LOG_LINK)
LARGEST_LOGARITHM = 700.0  # e^700 is 1e304


def choices(names: Sequence[str], default: str = "squared") -> str:
    """Losses by name and class, for a docstring: {"squared", "absolute", "quantile"}, Quantile."""
    quoted = ", ".join(f'"{name}"' for name in _in_front(default, names))
    classes = [kind.__name__ for name, kind in CLASSES.items() if name in names]
    return f"{{{quoted}}}" + (f", {alternatives(classes)}" if classes else "")


def purposes(names: Sequence[str], default: str = "") -> str:
    """Losses and what they are for, in words: squared (default), absolute or poisson (counts)."""
    notes = {name: LOSSES[name].purpose for name in _in_front(default, names)}
    notes |= {default: "default"} if default else {}
    return alternatives([f"{name} ({note})" if note else name for name, note in notes.items()])


def _in_front(name: str, names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda other: other != name)


def chance(z: Floats) -> Floats:
    """1 / (1 + e^-z), never falling in z to the last bit.

    z is rounded to a multiple of 2^-32 (which changes a probability by less than 1e-10): neighbours
    on that grid give values that differ by far more than the rounding errors of `exp`, so the
    computed values keep their order.
    """
    steps = np.round(np.clip(z, -740.0, 740.0) * 2.0**32) / 2.0**32
    small = np.exp(-np.abs(steps))
    rare = small / (1.0 + small)
    return np.where(steps > 0.0, 1.0 - rare, rare)


def mean_of(z: Floats) -> Floats:
    """e^z, never falling in z to the last bit, positive and finite.

    z is rounded as in `chance`, which changes a mean by less than 1e-9 of it.
    """
    steps = np.round(np.clip(z, -LARGEST_LOGARITHM, LARGEST_LOGARITHM) * 2.0**32) / 2.0**32
    return np.exp(steps)


def margin_loss(loss: Any) -> LossRow:
    return loss_of(one_of(loss, CLASSIFICATION, "loss"))
