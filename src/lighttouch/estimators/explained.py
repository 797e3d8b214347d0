"""The methods by which lattice models explain themselves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats
from lighttouch.estimators.examples import AnyExamples
from lighttouch.estimators.explaining import (
    LATE_ROWS,
    SAMPLED_ROWS,
    Background,
    Band,
    Explanation,
    background_of,
    bands_of,
    effects_of,
    explanation,
    read_level,
    refuse_several_outputs,
)
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.outputs import Outputs
from lighttouch.estimators.tables import Columns, read_table
from lighttouch.estimators.trees import Trees
from lighttouch.validation import positive_int


class Explained:
    """Effects of columns and interactions, their sizes, and bands around them."""

    columns_: Columns
    model_: AdditiveModel
    trees_: Trees | None
    importances_: dict[str, float]
    _outputs: Outputs
    _background: Background

    def _trained(self) -> Floats:
        """All trained parameters."""
        raise NotImplementedError

    def _learn_importances(self, examples: AnyExamples, late: bool = False) -> None:
        """The effects' averages and sizes on (a part of) the training rows; on fewer where the time
        limit is over.
        """
        chosen, most = np.arange(examples.table_size), LATE_ROWS if late else SAMPLED_ROWS
        if chosen.size > most:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(chosen.size, most, replace=False))
        table, weights = examples.table_rows(chosen)
        weights = weights if weights.any() else np.ones(weights.size)
        weights = weights / weights.sum()
        self._background = background_of(self.model_, table, weights)
        counted = weights > 0.0
        self.importances_ = self._explained(table[counted]).importances

    def _explained(self, table: Floats) -> Explanation:
        scores = self._outputs.scores(self._trained(), self.model_.dimension)
        parts = [effects_of(self.model_, self._background, w, table, self.trees_) for w in scores]
        return explanation(parts, self.columns_.names, table.shape[0], self._score_name())

    def _score_name(self) -> str:
        """What the scores are."""
        return "score"

    def explain(self, X: Any) -> Explanation:
        """Split the score of every row into effects of columns and of interactions.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        Explanation
            `contributions`, one column for each of `names`; with `intercept` they add up to the
            score (for a classifier the log-odds, with a log link the logarithm of the mean).
        """
        check_is_fitted(self, "columns_")
        return self._explained(read_table(self, X, self.columns_))

    def curve_bands(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        refits: int = 20,
        level: float = 0.9,
        seed: int = 0,
        **fit_params: Any,
    ) -> list[Band]:
        """Say how far each column's effect would vary, by the bootstrap (Efron 1979).

        The whole model is fitted again and again, each time to rows drawn from X with replacement.

        Parameters
        ----------
        X : table of shape (n, columns)
            The training table.
        y : array of shape (n,)
            The training targets.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.
        refits : int, default 20
            How many times; every one takes as long as `fit`.
        level : float, default 0.9
            The share of refits that lie within a band.
        seed : int, default 0
            Of the draws.
        **fit_params : dict
            What else `fit` was given, such as exposure.

        Returns
        -------
        list of Band
            One per column that has an effect of its own: its values, the effect, and the band.
        """
        check_is_fitted(self, "columns_")
        table = read_table(self, X, self.columns_)
        share = read_level(level)
        refuse_several_outputs(self._explained(table[:1]))
        rng = np.random.default_rng(seed)
        given = np.ones(len(table)) if sample_weight is None else np.asarray(sample_weight, float)
        again = []
        for _ in range(positive_int(refits, "refits", least=2)):
            drawn = rng.multinomial(len(table), np.full(len(table), 1.0 / len(table)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                again.append(clone(self).fit(X, y, given * drawn, **fit_params))
        return bands_of(self, again, share)
