"""What all objectives share: value and gradient recomputed from the record, by the kernel that fits
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lighttouch.arrays import Vector
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.state.iterate import clear, new_gradient
from lighttouch.kernels.verbs.objectives import full_gradient, mean_value, whole_penalty
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
        point = finite_vector(w, "w", self.dimension)
        return float(self._run(mean_value)(self.record, self.examples, self.l2, point))

    def gradient(self, w: Any) -> Vector:
        """A subgradient of the whole objective at w."""
        gathered, out = new_gradient(self.dimension), np.empty(self.dimension)
        clear(gathered)
        point = finite_vector(w, "w", self.dimension)
        self._run(full_gradient)(self.record, self.examples, self.l2, point, gathered, out)
        return out

    def penalty_value(self, w: Vector) -> float:
        """The penalties (l2, l1, roughness): what is left of the objective without examples."""
        return float(self._run(whole_penalty)(self.record, self.l2, w))

    def _run(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        return interpreted(kernel) if self.interpreted else kernel
