"""What all objectives share: value and gradient recomputed from the record, by the kernel that fits
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.gradient import clear, new_gradient
from lighttouch.kernels.verbs.objectives import full_gradient, mean_value
from lighttouch.validation import finite_vector


class RecordObjective:
    """An objective given by a record of arrays and the verbs for its class."""

    record: Any
    examples: int
    dimension: int
    l2: float = 0.0
    interpreted: bool = False
    independent: bool = False
    cost: float = 1.0

    def value(self, w: Any) -> float:
        """The objective at w, from every example."""
        mean = interpreted(mean_value) if self.interpreted else mean_value
        return float(
            mean(self.record, self.examples, self.l2, finite_vector(w, "w", self.dimension))
        )

    def gradient(self, w: Any) -> Vector:
        """A subgradient of the whole objective at w."""
        gradient = new_gradient(self.dimension)
        clear(gradient)
        run = interpreted(full_gradient) if self.interpreted else full_gradient
        run(self.record, self.examples, self.l2, finite_vector(w, "w", self.dimension), gradient)
        return np.where(gradient.stamp == gradient.cursor[1], gradient.values, 0.0)
