"""Ranking with curves and lattices."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.arrays import Floats
from lighttouch.errors import DataError
from lighttouch.estimators.classes import margin_loss
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.lattice_base import LatticeBase
from lighttouch.estimators.pairs import (
    RandomState,
    ndcg_of_queries,
    pair_examples,
    query_numbers,
    read_seed,
    weighted_pairs,
)
from lighttouch.estimators.parameters import (
    COMMON_PARAMETERS,
    LATTICE_ATTRIBUTES,
    LATTICE_PARAMETERS,
    RANKING_PARAMETERS,
    CanonicalExamples,
    Checkpoint,
    Lattices,
    Smoothing,
    documented,
)
from lighttouch.estimators.rules.base import MonotonicCst, Shapes
from lighttouch.estimators.rules.rows import (
    SMALLEST_MARGIN,
    CanonicalRules,
    Ordered,
    margin_of,
)
from lighttouch.estimators.streaming.fitting import OpenFiles, PairsOfShard, paired
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import (
    ColumnNames,
    Table,
    as_table,
    read_targets,
    read_weights,
    same_length,
)
from lighttouch.estimators.training import on_the_clock
from lighttouch.validation import one_of


@documented(COMMON_PARAMETERS | LATTICE_PARAMETERS | RANKING_PARAMETERS, LATTICE_ATTRIBUTES)
class LatticeRanker(LatticeBase):
    """Scores that order rows within queries, under rules about columns.

    `fit(X, y, qid=...)` learns from pairs of rows of a query whose labels differ; every query
    counts the same, however many pairs it has. `fit_pairs(better, worse)` learns from given pairs.
    Rules are about the score.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Raises
    ------
    DataError
        From `fit`, if the table or the targets cannot be used: empty, or no numbers where
        numbers must be.
    ValueError
        From `fit`, if table and targets have different lengths.
    ConstraintError
        From `fit`, if a rule names no column of the table or does not fit its column.
    InfeasibleConstraintsError
        From `fit`, if the rules contradict each other; the message names them.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((100, 2))
    >>> relevance = np.round(3.0 * X[:, 0])
    >>> model = lt.LatticeRanker(monotonic_cst={0: 1})
    >>> scores = model.fit(X, relevance, qid=np.repeat(np.arange(10), 10)).predict(X)
    >>> bool(scores[np.argmax(X[:, 0])] > scores[np.argmin(X[:, 0])])
    True
    """

    _other_parts = ("qid",)
    _whole_files = True

    def __init__(
        self,
        *,
        loss: str = "logistic",
        pairs_per_query: int = 500,
        pair_weights: str = "even",
        monotonic_cst: MonotonicCst = None,
        shape_constraints: Shapes = None,
        canonical_examples: CanonicalExamples = None,
        canonical_margin: float | None = None,
        categorical_features: ColumnNames | None = None,
        keypoints: int | str = "auto",
        lattices: Lattices = "auto",
        lattice_size: int | str = "auto",
        columns_per_lattice: int | str = "auto",
        interpolation: str = "auto",
        smoothing: Smoothing = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        time_limit: float | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: Checkpoint = None,
    ) -> None:
        self.loss = loss
        self.pairs_per_query = pairs_per_query
        self.pair_weights = pair_weights
        self.monotonic_cst = monotonic_cst
        self.shape_constraints = shape_constraints
        self.canonical_examples = canonical_examples
        self.canonical_margin = canonical_margin
        self.categorical_features = categorical_features
        self.keypoints = keypoints
        self.lattices = lattices
        self.lattice_size = lattice_size
        self.columns_per_lattice = columns_per_lattice
        self.interpolation = interpolation
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint

    @on_the_clock
    def fit(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> LatticeRanker:
        """Learn from rows X with relevance y.

        Parameters
        ----------
        X : table of shape (n, columns)
            A NumPy array or a pandas or polars frame; missing cells and text are allowed.
        y : array of shape (n,)
            The relevance of every row, the more the better.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.
        qid : array of shape (n,), optional
            The query of every row; only rows of the same query are compared. By default all rows
            are one query.

        Returns
        -------
        LatticeRanker
            The estimator itself.

        Raises
        ------
        DataError
            If X, y, the weights or the queries cannot be read.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.
        """
        plan = self._plan(X)
        relevance = read_targets(y, self)
        same_length(X, relevance)
        weights = read_weights(sample_weight, X, relevance.size)
        table = plan.columns.read(as_table(X))
        most, by_gain = self.pairs_per_query, self._by_gain()
        pairs = weighted_pairs(relevance, qid, weights, most, self.random_state, by_gain)
        total = float(pairs.weights.sum())
        if total == 0.0:
            warnings.warn(
                "no two rows of the same query differ in relevance, so there is nothing to learn "
                "from; check qid and y",
                UserWarning,
                stacklevel=2,
            )
            return self._train_pairs(plan, table[:1], table[:1], np.ones(1))
        self._train_on(plan, pair_examples(table, pairs, total))
        return self

    @on_the_clock
    def fit_pairs(
        self, better: Table, worse: Table, sample_weight: ArrayLike | None = None
    ) -> LatticeRanker:
        """Learn from pairs of rows.

        Parameters
        ----------
        better, worse : tables of shape (n, columns)
            Row i of `better` should score above row i of `worse`.
        sample_weight : array of shape (n,), optional
            The weight of every pair; all equal by default.

        Returns
        -------
        LatticeRanker
            The estimator itself.
        """
        plan = self._plan(better)
        same_length(better, worse)
        first, second = plan.columns.read(as_table(better)), plan.columns.read(as_table(worse))
        return self._train_pairs(
            plan, first, second, read_weights(sample_weight, better, first.shape[0])
        )

    def _by_gain(self) -> bool:
        return one_of(self.pair_weights, ("gain", "even"), "pair_weights") == "gain"

    def _train_pairs(
        self, plan: Plan, better: Floats, worse: Floats, weights: Floats
    ) -> LatticeRanker:
        ones = np.ones(better.shape[0])
        self._train_on(plan, Examples([(better, 1.0), (worse, -1.0)], ones, weights))
        return self

    def _train_on(self, plan: Plan, examples: AnyExamples) -> None:
        self._train(plan, examples, margin_loss(self.loss), self._canonical(plan))

    def _fit_open(self, files: OpenFiles) -> None:
        plan, most = self._plan_of(files.columns), self.pairs_per_query
        seed = read_seed(self.random_state)
        make = PairsOfShard(most, seed, files.weighting, by_gain=self._by_gain())
        examples = paired(files, make)
        self._take_names(files.columns)
        self._train_on(plan, examples)

    def _canonical(self, plan: Plan) -> CanonicalRules | None:
        if self.canonical_examples is None:
            return None
        label = "canonical examples"
        better, worse = (self._canonical_rows(plan, X, label)[0] for X in self.canonical_examples)
        same_length(better, worse)
        margin = margin_of(self.canonical_margin, SMALLEST_MARGIN)
        return CanonicalRules((Ordered(label, better, worse, margin),))

    def predict(self, X: Table) -> Floats:
        """Score rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            Scores; only their order within a query matters.
        """
        return self._scores(X)

    def score(
        self,
        X: Table,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
    ) -> float:
        """Measure how good the order of rows is: the mean NDCG of their queries.

        The normalised discounted cumulative gain of the first ten rows of a query, with gains
        2^y - 1 (y itself above 30). Queries without a relevant row are left out.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.
        y : array of shape (n,)
            Their relevance, not negative.
        sample_weight : array of shape (n,), optional
            The weight of every row; a query has the mean weight of its rows.
        qid : array of shape (n,), optional
            The query of every row. By default all rows are one query.

        Returns
        -------
        float
            At most 1, for the best order; NaN if no row is relevant.

        Raises
        ------
        DataError
            If a relevance is negative, or `qid` does not fit X.
        """
        scores, relevance = self.predict(X), read_targets(y, self)
        same_length(scores, relevance)
        if (relevance < 0.0).any():
            raise DataError(
                f"NDCG needs relevance that is not negative, got {relevance.min():g}; shift y"
            )
        queries = query_numbers(qid, relevance.size)
        total = np.bincount(queries, read_weights(sample_weight, X, relevance.size))
        weights = total / np.bincount(queries)
        gains = ndcg_of_queries(scores, relevance, queries)
        known = ~np.isnan(gains) & (weights > 0.0)
        return float(np.average(gains[known], weights=weights[known])) if known.any() else math.nan
