"""What every run counts, as places in one array of whole numbers."""

from __future__ import annotations

import numpy as np

ITERATION, CHECKS, SAMPLES = 0, 1, 2
AVERAGED_FROM = 3  # the iteration after which the average begins (MidTouch starts a second one)
NEXT_GROUP = 4  # the constraint group that is visited next in cyclic order (sampled AdaGrad)
NEXT_PENALTY_ROW = 5  # the row of the quadratic penalty that is visited next (sampled AdaGrad)


def new_counters() -> np.ndarray:
    return np.zeros(6, np.int64)
