"""Whether trees are needed beside the terms of a model, and how many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.constraints import LinearConstraints
from lighttouch.estimators import smoothing
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import OneScore
from lighttouch.estimators.smoothing import Smoothed
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.training import COSTS as TRAINING
from lighttouch.estimators.training import feasible_nearby
from lighttouch.estimators.trees import COSTS, Bins, Rows, Trees, Trial, grown, wanted_count
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.running import check_deadline


def can_have_trees(plan: Plan, examples: AnyExamples, row: LossRow) -> bool:
    """Whether trees may follow: the user has not asked for none, one score with a smooth loss of
    ours, columns that rules let them split, and not too many; enough rows, where their number is
    chosen.
    """
    count = len(plan.columns)
    enough = plan.trees is not None or examples.count >= COSTS.least
    return (
        plan.trees != 0
        and enough
        and not row.kinked
        and row.users is None
        and isinstance(examples.outputs, OneScore)
        and not examples.differences
        and len(_barred(plan)) < count <= COSTS.columns
    )


def _barred(plan: Plan) -> set[int]:
    """Columns of rules that steps would break."""
    return {place for bound in plan.shapes for place in bound.places}


@dataclass(frozen=True)
class LeftOver:
    """A fitted model, and the examples of which it leaves something over."""

    plan: Plan
    model: AdditiveModel
    w: Floats  # in the user's units
    rules: LinearConstraints  # about w
    smoothed: Smoothed  # without rules, in training units
    examples: AnyExamples

    def with_trees(self, row: LossRow, rng: np.random.Generator) -> tuple[Floats, Trees | None]:
        """The parameters beside trees, and as many trees as the user asked for, or as held-out rows
        ask for; None for none.
        """
        asked = self.plan.trees
        if self.model.dimension > TRAINING.largest_gram:
            return self.w, None
        part = self.examples.some(COSTS.rows, rng)
        counted = np.flatnonzero(part.weights)
        bins = Bins.of(part.table[counted], self._ranks(), _barred(self.plan))
        codes, signs = bins.codes(part.table), self._signs()
        check_deadline()
        score = (self.model.evaluate(part.table, self.w) - part.shift) / part.scale
        rows = Rows(codes, score, part.y, part.weights, part.offset).part(counted)
        eased, kept = self._eased(rows.centre * part.scale + part.shift)
        if asked is None and counted.size >= COSTS.least:
            asked = wanted_count(self._trials(part, codes, row, rng), kept, bins, signs, row)
        if not asked:
            return self.w, None
        w, rows = (self.w, rows) if asked <= COSTS.few else (eased, rows.eased(kept))
        return w, grown(rows, bins, signs, row, asked).times(part.scale)

    def _in_training_units(self, part: Examples) -> Floats:
        w = self.w / part.scale
        w[0] -= part.shift / part.scale
        return w

    def _eased(self, centre: float) -> tuple[Floats, float]:
        """Parameters that leave a part of the score to trees, nearer by it to a constant, and the
        share of the score that they keep: all of it where a constant breaks a rule.
        """
        eased = COSTS.kept * self.w
        eased[0] += (1.0 - COSTS.kept) * centre
        met = feasible_nearby(eased, self.rules)
        return (self.w, 1.0) if met is None else (met, COSTS.kept)

    def _signs(self) -> NDArray[np.int64]:
        signs = np.zeros(len(self.plan.columns), dtype=np.int64)
        for column, sign in self.plan.monotonic.items():
            signs[column] = sign
        return signs

    def _ranks(self) -> list[Floats | None]:
        """The categories of a column in the order of its own curve; None for numbers."""
        found: list[Floats | None] = []
        for place, column in enumerate(self.plan.columns.columns):
            own = self.model.calibrator_of(place)
            if column.categories is None or own is None:
                found.append(None)
                continue
            table = np.zeros((len(column.categories), len(self.plan.columns)))
            table[:, place] = np.arange(len(table))
            effect = self.model.terms[own].evaluate(table, self.w[self.model.part(own)])
            found.append(np.argsort(np.argsort(effect, kind="stable")).astype(np.float64))
        return found

    def _trials(
        self, part: Examples, codes: NDArray[np.uint8], row: LossRow, rng: np.random.Generator
    ) -> Iterator[Trial]:
        """Rows scored by the model without the held-out ones, which come apart."""
        features, offset = part.features(self.model), part.offset
        loss = None if row.name == "squared" else row
        seen = smoothing.Examples(
            features, part.y, part.weights, loss, part.count, offset=part.offset
        )
        share = part.size / self.examples.size
        fitted, folds = self.smoothed.scaled(1.0 / share), rng.permutation(part.size) % COSTS.folds
        known = self.smoothed.matrix if share == 1.0 else None
        if part.stands_for_another:  # smoothed on other targets: the trained model is nearer
            fitted, known = replace(fitted, w=self._in_training_units(part)), None
        for fold in range(COSTS.trials):
            held = (folds == fold) & (part.weights > 0.0)
            used = (folds != fold) & (part.weights > 0.0)
            check_deadline()
            score = np.asarray(features @ smoothing.fit_without(seen, fitted, held, known))
            rows = Rows(codes, score, part.y, part.weights, offset)
            yield rows.part(used), rows.part(held)
