"""What is trained where examples come in parts: each makes its features when it is asked, so that
those of all rows are never in memory together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.estimators.model import AdditiveModel
from lighttouch.losses import Loss
from lighttouch.objectives import EmpiricalRisk

if TYPE_CHECKING:
    from lighttouch.estimators.examples import Examples


@dataclass(frozen=True)
class PartOfTable:
    """Examples in memory that follow each other."""

    examples: Examples
    first: int
    end: int

    @property
    def has_weight(self) -> bool:
        return bool(self.examples.weights[self.first : self.end].any())

    def __call__(self) -> Examples:
        return self.examples.rows(np.arange(self.first, self.end))


@dataclass(frozen=True)
class RiskOfPart:
    """What is trained, on the examples of one part."""

    examples: Callable[[], Examples]
    model: AdditiveModel
    loss: Loss
    roughness: Any
    pull: float
    total: float | None = None

    def __call__(self) -> EmpiricalRisk:
        examples = self.examples()
        one = examples.score_problem(self.model, self.loss, self.roughness, self.pull)
        return examples.outputs.risk(replace(one, total=self.total))
