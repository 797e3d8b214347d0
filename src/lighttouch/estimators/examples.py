"""Examples as the models see them: rows of tables with a sign, targets and weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lighttouch.estimators import smoothing
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import ONE_SCORE, Outputs
from lighttouch.estimators.structure.screening import Leftover
from lighttouch.kernels.verbs.losses import LossRow

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Tables that enter the predictions with a sign: one, or better minus worse; targets in
    training units.
    """

    signed_tables: list[tuple[Floats, float]]
    y: Floats
    weights: Floats  # adding up to 1
    scale: float = 1.0  # one training unit in the user's units
    shift: float = 0.0
    independent: int | None = None  # how many of them tell something of their own; None: all
    source: tuple[Floats, list[NDArray[np.int64]]] | None = (
        None  # the rows that the signed tables repeat, and which each takes
    )
    offset: Floats | None = None  # what is added to the scores: the logarithm of the exposure
    nearby: tuple[Floats, Floats] | None = None
    """Targets and weights of squared errors that stand for the loss while the structure is chosen;
    None for y and its weights."""
    outputs: Outputs = ONE_SCORE
    _known: dict[int, tuple[AdditiveModel, Any]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def count(self) -> int:
        """For deciding how much can be learnt. Rows without weight do not count, and pairs of the
        same rows are not so many examples.
        """
        weighted = int(np.count_nonzero(self.weights))
        return weighted if self.independent is None else min(weighted, self.independent)

    def features(self, model: AdditiveModel) -> sparse.csr_matrix:
        """One row an example; kept for the model asked about last."""
        if id(model) not in self._known:
            self._known.clear()
            self._known[id(model)] = (model, self._new_features(model))
        return self._known[id(model)][1]

    def _new_features(self, model: AdditiveModel) -> sparse.csr_matrix:
        if self.source is None:
            parts = [sign * model.features(table) for table, sign in self.signed_tables]
        else:
            once = model.features(self.source[0])
            parts = [
                sign * once[rows]
                for rows, (_, sign) in zip(self.source[1], self.signed_tables, strict=True)
            ]
        total = parts[0] if len(parts) == 1 else sparse.csr_matrix(sum(parts[1:], parts[0]))
        total.sort_indices()
        return total

    @property
    def squares(self) -> tuple[Floats, Floats]:
        """Targets and weights by which the structure is chosen."""
        return (self.y, self.weights) if self.nearby is None else self.nearby

    @cached_property
    def table(self) -> Floats:
        return (
            np.vstack([table for table, _ in self.signed_tables])
            if self.source is None
            else self.source[0]
        )

    @cached_property
    def table_weights(self) -> Floats:
        if self.source is None:
            return np.concatenate([self.weights] * len(self.signed_tables))
        count = self.source[0].shape[0]
        return np.asarray(
            sum(np.bincount(rows, self.weights, minlength=count) for rows in self.source[1]),
            dtype=np.float64,
        )

    def some(self, most: int, rng: np.random.Generator) -> Examples:
        """At most so many of them, drawn at random; the same ones where there are no more."""
        if self.y.size <= most:
            return self
        chosen = np.sort(rng.choice(self.y.size, most, replace=False))
        total = float(self.weights[chosen].sum())
        if total == 0.0:
            return self
        share = most / self.y.size
        return replace(
            self,
            signed_tables=[(table[chosen], sign) for table, sign in self.signed_tables],
            y=self.y[chosen],
            weights=self.weights[chosen] / total,
            offset=None if self.offset is None else self.offset[chosen],
            nearby=None if self.nearby is None else _part(*self.nearby, chosen),
            independent=None if self.independent is None else int(share * self.independent),
            source=None,
            _known={},
        )

    def judged(
        self, model: AdditiveModel, row: LossRow | None, rng: np.random.Generator
    ) -> tuple[smoothing.Examples, float]:
        """What smoothing is chosen on, and which share of the examples that is."""
        features, (targets, shares) = self.features(model), self.squares
        rows = smoothing.judged_rows(features, shares, True, rng)
        features, y, weights = features[rows], targets[rows], shares[rows]
        share = y.size / self.y.size
        weights = weights if share == 1.0 else weights / weights.sum()
        differences = len(self.signed_tables) > 1
        problem = smoothing.Examples(features, y, weights, row, share * self.count, differences)
        return problem, share

    def sampled_errors(
        self, model: AdditiveModel, rng: np.random.Generator
    ) -> smoothing.SampledErrors:
        """Squared errors of a part, for a model that is too large to factor."""
        features, (targets, shares) = self.features(model), self.squares
        rows = smoothing.judged_rows(features, shares, False, rng)
        features, y, weights = features[rows], targets[rows], shares[rows]
        share = y.size / self.y.size
        weights = weights if share == 1.0 else weights / weights.sum()
        return smoothing.SampledErrors(features, y, weights, self.count, share)

    def searched(
        self, features: Any, row: LossRow | None, curvature: Floats | None = None
    ) -> smoothing.Examples:
        """All of them, for a model whose features are known."""
        differences = len(self.signed_tables) > 1
        (y, weights), count = self.squares, self.count
        return smoothing.Examples(features, y, weights, row, count, differences, curvature)

    def leftover(self, features: Any, row: LossRow | None, w: Floats) -> Leftover:
        """What a model with these features leaves over for every example."""
        residual, weights = self.searched(features, row).residual(w)
        noise = float(weights @ np.square(residual))
        if row is not None and row.name == "logistic":
            noise = min(noise, 1.0)  # less than labels drawn at random where they are determined
        return Leftover(residual, weights, max(noise, 1e-300))


def _part(y: Floats, weights: Floats, chosen: NDArray[np.int64]) -> tuple[Floats, Floats]:
    some = weights[chosen]
    return y[chosen], some / max(float(some.sum()), 1e-300)
