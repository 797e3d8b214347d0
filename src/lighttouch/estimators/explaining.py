"""Why a prediction is what it is: the score as a sum of effects of columns and of interactions.

A lattice holds the effects of its columns beside their interaction, and constants can lie in any
term. The effects are made unique by the functional analysis of variance (Hoeffding 1948; for trees,
Lengerich et al. 2020): averaged over the training rows, with columns taken as independent, every
effect is 0 along each of its columns. What all effects average to is the intercept.

`Explained` are the methods by which lattice models explain themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats
from lighttouch.estimators.examples import AnyExamples
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.outputs import Outputs
from lighttouch.estimators.tables import Columns, read_table
from lighttouch.estimators.trees import Trees, with_as_many
from lighttouch.lattice import Lattice
from lighttouch.validation import positive_int

if TYPE_CHECKING:
    import pandas as pd

Subset = tuple[int, ...]
Effects = dict[Subset, Floats]
Background = list[list[Floats]]
"""Of every term and each of its axes: how much of the training rows each vertex holds."""

SAMPLED_ROWS = 5_000  # of the training rows, for the background
EXPLAINED_ROWS = 2_000  # of them, for importances: sizes within 3%
LATE_ROWS = 500  # for both where the time limit is over: a few milliseconds, sizes within 6%
WHOLE_LATTICE = 4  # columns of a lattice up to which all interactions in it are told apart
TIMES = " x "


@dataclass(frozen=True)
class Explanation:
    """The score of every row as a sum: an intercept and the effects of columns and interactions.

    Attributes
    ----------
    names : tuple of str
        What each effect is of: a column, or columns joined by " x ".
    columns : tuple of tuples of int
        The same, by the positions of the columns.
    intercept : float, or array of shape (outputs,)
        The average score of the training rows, as if their columns were independent.
    contributions : array of shape (n, effects), or (n, effects, outputs)
        How much each effect moves the score of each row away from the intercept.
    scale : str
        What the score is: "prediction", "log-odds", "log-mean", ...; with `output_min` or
        `output_max` "prediction before limits", say: `predict` then cuts it off.
    """

    names: tuple[str, ...]
    columns: tuple[Subset, ...]
    intercept: Any
    contributions: Floats
    scale: str

    @property
    def scores(self) -> Floats:
        """The intercept plus all contributions of each row: the score, but for rounding."""
        return np.asarray(self.intercept + self.contributions.sum(axis=1))

    @property
    def importances(self) -> dict[str, float]:
        """The mean size of each effect over the rows, the largest first."""
        sizes = np.abs(self.contributions).mean(
            axis=tuple(k for k in range(self.contributions.ndim) if k != 1)
        )
        order = np.argsort(-sizes, kind="stable")
        return {self.names[k]: float(sizes[k]) for k in order}

    def to_frame(self) -> pd.DataFrame:
        """One line per row and one column per effect, the intercept first, as a pandas DataFrame.

        Raises
        ------
        ValueError
            If there are several outputs.
        """
        import pandas as pd

        if self.contributions.ndim != 2:
            raise ValueError(
                "to_frame needs a single output, got "
                f"{self.contributions.shape[2]}; take contributions[:, :, k]"
            )
        frame = pd.DataFrame(self.contributions, columns=list(self.names))
        frame.insert(0, "intercept", float(self.intercept), allow_duplicates=True)
        return frame

    def __str__(self) -> str:
        lines = [f"{name}: {size:.4g}" for name, size in list(self.importances.items())[:12]]
        many = f"{len(self.contributions):,} rows, {len(self.names)} effects on the {self.scale}"
        return "\n".join([f"{many}; mean sizes:", *lines])


def background_of(model: AdditiveModel, table: Floats, weights: Floats) -> Background:
    """The share of the training rows at every vertex of every axis, by interpolation."""
    return [[mass / mass.sum() for mass in term.masses(table, weights)] for term in model.terms]


def even_background(model: AdditiveModel) -> Background:
    """For models that were saved without one."""
    return [[np.full(size, 1.0 / size) for size in term.lattice.sizes] for term in model.terms]


def effects_of(
    model: AdditiveModel,
    background: Background,
    w: Floats,
    table: Floats,
    trees: Trees | None = None,
) -> tuple[float, Effects]:
    """The intercept, and the effect of every subset of columns on every row. Trees are one effect,
    of all columns that they split.
    """
    parts = _parts_of(model, background, w)
    values = AdditiveModel(parts.terms).evaluate_terms(table, parts.theta)
    intercept, effects = float(w[0] + parts.means.sum()), dict[Subset, Floats]()
    for place, term in enumerate(model.terms):
        left, known = values[:, place] - parts.means[place], dict[Subset, Floats]()
        for axes, column in parts.smaller[place]:
            effect = values[:, column] - parts.means[place]
            for part, other in known.items():
                if set(part) < set(axes):
                    effect -= other
            known[axes] = effect
            left -= effect
        known[tuple(range(len(term.columns)))] = left  # so that they add up to the term
        for axes, effect in known.items():
            subset = tuple(sorted(term.columns[axis] for axis in axes))
            effects[subset] = effects[subset] + effect if subset in effects else effect
    if trees is not None:
        intercept += trees.mean
        effect = trees.evaluate(table) - trees.mean
        effects[trees.used] = effects.get(trees.used, 0.0) + effect
    return intercept, effects


@dataclass(frozen=True)
class _Parts:
    """The terms of a model, and after them what each is along some of its axes, averaged over the
    others.
    """

    terms: list[Term]
    theta: Floats  # of all of them, after an intercept of 0
    means: Floats  # of every term of the model
    smaller: list[list[tuple[Subset, int]]]  # of every term: axes, and which of the terms it is


def _parts_of(model: AdditiveModel, background: Background, w: Floats) -> _Parts:
    terms, thetas = list(model.terms), [np.zeros(1), w[1:]]
    means, smaller = np.zeros(len(terms)), list[list[tuple[Subset, int]]]()
    for place, term in enumerate(model.terms):
        values, shares = w[model.part(place)].reshape(term.lattice.sizes), background[place]
        means[place] = _averaged(values, shares, ())
        smaller.append([])
        for axes in _smaller_subsets(tuple(range(len(term.columns)))):
            smaller[-1].append((axes, len(terms)))
            sizes = tuple(term.lattice.sizes[axis] for axis in axes)
            columns = tuple(term.columns[axis] for axis in axes)
            maps = tuple(term.maps[axis] for axis in axes)
            terms.append(Term(columns, maps, Lattice(sizes, "hypercube")))
            thetas.append(_averaged(values, shares, axes).ravel())
    return _Parts(terms, np.concatenate(thetas), means, smaller)


def _smaller_subsets(axes: Subset) -> Iterator[Subset]:
    """Not empty and not all; of many axes only single ones and pairs."""
    most = len(axes) - 1 if len(axes) <= WHOLE_LATTICE else 2
    for size in range(1, most + 1):
        yield from combinations(axes, size)


def _averaged(values: Floats, shares: list[Floats], kept: Subset) -> Floats:
    """The values averaged along all axes but those that are kept."""
    for axis in reversed(range(values.ndim)):
        if axis not in kept:
            values = np.tensordot(values, shares[axis], axes=([axis], [0]))
    return values


def explanation(
    parts: list[tuple[float, Effects]], names: list[str], rows: int, scale: str
) -> Explanation:
    """One explanation of one or several outputs."""
    subsets = sorted({key for _, effects in parts for key in effects}, key=lambda s: (len(s), s))
    nothing = np.zeros(rows)
    tables = [
        np.column_stack([effects.get(subset, nothing) for subset in subsets])
        if subsets
        else np.zeros((rows, 0))
        for _, effects in parts
    ]
    labels = tuple(TIMES.join(names[column] for column in subset) for subset in subsets)
    if len(parts) == 1:
        return Explanation(labels, tuple(subsets), parts[0][0], tables[0], scale)
    intercepts = np.array([intercept for intercept, _ in parts])
    return Explanation(labels, tuple(subsets), intercepts, np.stack(tables, axis=2), scale)


@dataclass(frozen=True)
class Band:
    """A column's own effect, and how far it would vary on other data of the same kind.

    Attributes
    ----------
    column : str
        The column's name.
    values : array
        Its values, or the codes of its categories.
    effect : array
        The fitted effect there, on the model's score.
    lower, upper : arrays
        Between them lie the effects of the given share of the refits.
    """

    column: str
    values: Floats
    effect: Floats
    lower: Floats
    upper: Floats


def bands_of(model: Any, refits: list[Any], level: float) -> list[Band]:
    """One band per column with a curve, from its effect in the model and in every refit.

    Effects are compared at the keypoints of the model's own curve, each as its model centres it.
    """
    ends = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    found = []
    for column, name in enumerate(model.columns_.names):
        place = model.model_.calibrator_of(column)
        if place is None:
            continue
        values = model.model_.terms[place].maps[0].keypoints
        table = np.full((values.size, len(model.columns_)), np.nan)
        table[:, column] = values
        effect, *others = (own_effect(each, column, table) for each in (model, *refits))
        low, high = np.quantile(np.array(others), ends, axis=0)
        found.append(Band(name, values, effect, low, high))
    return found


def read_level(level: object) -> float:
    """A share strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}")
    return float(level)


def refuse_several_outputs(found: Explanation) -> None:
    if found.contributions.ndim != 2:
        raise ValueError(
            "curve_bands needs a model with a single score, got one with "
            f"{found.contributions.shape[2]}; fit one model for each"
        )


def own_effect(model: Any, column: int, table: Floats) -> Floats:
    """The effect of a column by itself; it depends on no other column."""
    found = model._explained(table)
    if (column,) not in found.columns:
        return np.zeros(len(table))
    return np.asarray(found.contributions[:, found.columns.index((column,))])


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
        counted = np.flatnonzero(weights)
        some = counted[:: -(-counted.size // EXPLAINED_ROWS)]
        self.importances_ = self._explained(table[some]).importances

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
            score (for a classifier the log-odds, with a log link the logarithm of the mean),
            before `output_min` and `output_max` cut it off; `scale` names it.
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
                refit = with_as_many(clone(self), self)
                again.append(refit.fit(X, y, given * drawn, **fit_params))
        return bands_of(self, again, share)
