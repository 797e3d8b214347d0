"""Canonical examples: rows whose prediction must lie within limits, or in a given order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lighttouch.arrays import Booleans, Floats, Matrix
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.rules.rows import RuleRows
from lighttouch.validation import positive

# canonical examples are asked for this much more, so that predictions keep them to the last bit
ROUNDING = 1e-9
SMALLEST_MARGIN = 1e-3  # of scores, where the user gives none

Featuriser = Callable[[Floats], Matrix]
"""From a table to a matrix with one row per example and one column per parameter."""


@dataclass(frozen=True)
class Limits:
    """least <= prediction <= most for every row of a table; infinite where there is no limit."""

    label: str
    table: Floats
    least: Floats
    most: Floats
    about_order: bool = False

    def rows(self, features_of: Featuriser) -> RuleRows:
        features = sparse.csr_matrix(features_of(self.table))
        low, high = np.isfinite(self.least), np.isfinite(self.most)
        least, most = self.least[low], self.most[high]
        b = [-(least + ROUNDING * (1.0 + np.abs(least))), most - ROUNDING * (1.0 + np.abs(most))]
        A = sparse.vstack([-features[low], features[high]], format="csr")
        return RuleRows(self.label, A, np.concatenate(b), about_order=self.about_order)


@dataclass(frozen=True)
class Ordered:
    """The prediction for every row of `better` is above that for the same row of `worse`, by
    `margin`.
    """

    label: str
    better: Floats
    worse: Floats
    margin: float

    def rows(self, features_of: Featuriser) -> RuleRows:
        A = features_of(self.worse) - features_of(self.better)
        return RuleRows(self.label, A, np.full(self.better.shape[0], -self.margin))


@dataclass(frozen=True)
class CanonicalRules:
    """All rules that come from canonical examples; called with a model, they are its rows."""

    parts: tuple[Limits | Ordered, ...]

    def __call__(self, model: AdditiveModel) -> list[RuleRows]:
        return [part.rows(model.features) for part in self.parts]


def margin_of(given: float | None, default: float) -> float:
    """The parameter `canonical_margin`."""
    return default if given is None else positive(given, "canonical_margin")


def class_limits(label: str, table: Floats, positives: Booleans, margin: float) -> Limits:
    """The score of every row is at least `margin` on the right side of 0."""
    least = np.where(positives, margin, -np.inf)
    most = np.where(positives, np.inf, -margin)
    return Limits(label, table, least, most, about_order=True)
