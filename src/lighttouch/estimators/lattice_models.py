"""Regression, classification and ranking with calibrators and lattices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lighttouch.errors import DataError
from lighttouch.estimators.fitting import Examples
from lighttouch.estimators.lattice_base import LatticeBase, limits
from lighttouch.estimators.losses import chance, margin_loss, regression_loss
from lighttouch.estimators.model import AdditiveModel
from lighttouch.estimators.pairs import pairs_of_the_same_query, pairs_within_queries
from lighttouch.estimators.rules import RuleRows
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import as_table
from lighttouch.estimators.targets import (
    centre_and_scale,
    read_labels,
    read_targets,
    read_weights,
    same_length,
)
from lighttouch.validation import positive

Floats = NDArray[np.float64]


class LatticeRegressor(RegressorMixin, LatticeBase):  # type: ignore[misc]
    """Regression that obeys rules about columns, exactly.

    The prediction is an intercept, plus a piecewise-linear curve for every column, plus small
    lattices over columns that interact. All parameters are fitted together: one convex problem,
    whose answer obeys every rule with no violation.

    Parameters
    ----------
    loss : "squared", "absolute", "huber" (threshold: one standard deviation of y) or "quantile"
    quantile : the level of the quantile loss
    monotonic_cst : dict of column name (or position) to -1, 0 or 1, or one number a column
    shape_constraints : list of rules such as lt.Convex("age") or lt.EdgeworthTrust("rating",
    "n_reviews")
    canonical_examples : (X, y): the prediction for these rows must lie within `canonical_margin` of
    y
    canonical_margin : in units of y; None: a tenth of the standard deviation of y
    categorical_features : names or positions of columns to treat as categories although they hold
    numbers (text always is)
    keypoints : the most keypoints of a column's curve, at quantiles
    lattices : "auto" (where columns interact), "random", "single" (one lattice over all columns), a
    number, or a list of column subsets
    lattice_size : vertices along each axis of a lattice, or "auto"
    columns_per_lattice : how many columns share a lattice, unless subsets are given
    interpolation : "simplex", "hypercube" or "auto" (hypercube up to three columns)
    smoothing : "auto" (generalised cross-validation), a number, or a pair for (curves, lattices)
    max_iter, tol, time_limit : when to stop: quadratic blocks, relative gain of a block, seconds
    random_state : seed of what is random (subsets with lattices="random")
    verbose : whether to show a progress bar

    Attributes
    ----------
    constraint_report_ : rows, violation (0) and binding rows of every rule, and the price of the
    rules
    parameters_, model_ : the parameters and the pieces they belong to
    n_features_in_, feature_names_in_, n_iter_, status_, smoothing_
    """

    def __init__(
        self,
        *,
        loss: Any = "squared",
        quantile: float = 0.5,
        monotonic_cst: Any = None,
        shape_constraints: Any = None,
        canonical_examples: Any = None,
        canonical_margin: float | None = None,
        categorical_features: Any = None,
        keypoints: int = 20,
        lattices: Any = "auto",
        lattice_size: Any = "auto",
        columns_per_lattice: int = 2,
        interpolation: str = "auto",
        smoothing: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LatticeRegressor:
        """Fit the model to rows X with targets y."""
        loss = regression_loss(self.loss, self.quantile)
        plan = self._plan(X)
        targets = read_targets(y, self)
        same_length(X, targets)
        weights = read_weights(sample_weight, X, targets.size)
        shift, scale = centre_and_scale(targets, weights)
        examples = Examples(
            [(plan.columns.read(as_table(X)), 1.0)],
            (targets - shift) / scale,
            weights,
            scale,
            shift,
        )
        self._train(plan, examples, loss, self._canonical(plan, scale))
        return self

    def _canonical(self, plan: Plan, scale: float) -> Any:
        if self.canonical_examples is None:
            return None
        X, y = self.canonical_examples
        table, label = self._canonical_rows(plan, X, "canonical examples")
        wanted = read_targets(y, self)
        same_length(table, wanted)
        margin = (
            0.1 * scale
            if self.canonical_margin is None
            else positive(self.canonical_margin, "canonical_margin")
        )

        def rows(model: AdditiveModel) -> list[RuleRows]:
            return [limits(label, model, table, wanted - margin, wanted + margin)]

        return rows

    def predict(self, X: Any) -> Floats:
        """Predictions, monotone to the last bit where the model is."""
        return self._scores(X)


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(
            "predict_proba needs loss='logistic'; the hinge loss gives no probabilities"
        )
    return True


class LatticeClassifier(ClassifierMixin, LatticeBase):  # type: ignore[misc]
    """Classification into two classes that obeys rules about columns, exactly.

    Rules are about the score, and so about the probability of the second class (`classes_[1]`).
    More than two classes are refused: probabilities that add up to 1 cannot all be monotone in the
    same column without ceasing to be a convex problem. Parameters are those of LatticeRegressor,
    except `loss`: "logistic" or "hinge". Canonical examples are rows X with labels y that the model
    must classify right, with a score of at least `canonical_margin` (None: 0.001) on the right
    side.
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        monotonic_cst: Any = None,
        shape_constraints: Any = None,
        canonical_examples: Any = None,
        canonical_margin: float | None = None,
        categorical_features: Any = None,
        keypoints: int = 20,
        lattices: Any = "auto",
        lattice_size: Any = "auto",
        columns_per_lattice: int = 2,
        interpolation: str = "auto",
        smoothing: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LatticeClassifier:
        """Fit the model to rows X with two kinds of labels y."""
        loss = margin_loss(self.loss)
        plan = self._plan(X)
        same_length(X, *([] if y is None else [y]))
        self.classes_, signs = read_labels(y, self, sample_weight)
        weights = read_weights(sample_weight, X, signs.size)
        examples = Examples([(plan.columns.read(as_table(X)), 1.0)], signs, weights)
        self._train(plan, examples, loss, self._canonical(plan))
        return self

    def _canonical(self, plan: Plan) -> Any:
        if self.canonical_examples is None:
            return None
        X, y = self.canonical_examples
        table, label = self._canonical_rows(plan, X, "canonical examples")
        labels = np.asarray(y)
        same_length(table, labels)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise DataError(
                f"canonical examples: {labels[unknown][0]!r} is not one of the classes "
                f"{list(self.classes_)}"
            )
        positives = labels == self.classes_[1]
        margin = (
            1e-3
            if self.canonical_margin is None
            else positive(self.canonical_margin, "canonical_margin")
        )

        def rows(model: AdditiveModel) -> list[RuleRows]:
            parts = [(table[positives], margin, None), (table[~positives], None, -margin)]
            full = [(part, least, most) for part, least, most in parts if part.shape[0]]
            return [
                limits(
                    f"{label} of class {self.classes_[int(least is not None)]}",
                    model,
                    part,
                    None if least is None else np.full(part.shape[0], least),
                    None if most is None else np.full(part.shape[0], most),
                )
                for part, least, most in full
            ]

        return rows

    def decision_function(self, X: Any) -> Floats:
        """Scores: above 0 means the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The class of every row."""
        check_is_fitted(self, "parameters_")
        return self.classes_[(self._scores(X) > 0.0).astype(int)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes; that of the second is monotone to the last bit where
        the score is.
        """
        second = chance(self._scores(X))
        return np.column_stack([1.0 - second, second])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, accurate also near 0."""
        scores = self._scores(X)
        return np.column_stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class LatticeRanker(LatticeBase):
    """Scores that order rows within queries, under rules about columns.

    `fit(X, y, qid=...)` learns from all pairs of rows of a query whose labels differ (at most
    `pairs_per_query` of them, drawn with `random_state`); every query counts the same, however many
    pairs it has. `fit_pairs(better, worse)` learns from given pairs. Parameters are those of
    LatticeRegressor, except `loss`: "logistic" or "hinge" of the difference of scores. Canonical
    examples are (better, worse): pairs that must be ordered, by `canonical_margin`.
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        pairs_per_query: int = 500,
        monotonic_cst: Any = None,
        shape_constraints: Any = None,
        canonical_examples: Any = None,
        canonical_margin: float | None = None,
        categorical_features: Any = None,
        keypoints: int = 20,
        lattices: Any = "auto",
        lattice_size: Any = "auto",
        columns_per_lattice: int = 2,
        interpolation: str = "auto",
        smoothing: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.pairs_per_query = pairs_per_query
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None) -> LatticeRanker:
        """Learn from rows X with relevance y; only rows of the same query (`qid`; None: all are one
        query) are compared.
        """
        plan = self._plan(X)
        relevance = read_targets(y, self)
        same_length(X, relevance)
        weights = read_weights(sample_weight, X, relevance.size)
        table = plan.columns.read(as_table(X))
        better, worse = pairs_within_queries(
            relevance, qid, self.pairs_per_query, self.random_state
        )
        pair_weights = (
            weights[better] * weights[worse] / pairs_of_the_same_query(better, qid, relevance.size)
        )
        total = float(pair_weights.sum())
        if better.size == 0 or total == 0.0:
            return self._train_pairs(plan, table[:1], table[:1], np.ones(1))
        used, place = np.unique(np.concatenate([better, worse]), return_inverse=True)
        source = table[used], [place[: better.size], place[better.size :]]
        return self._train_pairs(plan, table[better], table[worse], pair_weights / total, source)

    def fit_pairs(self, better: Any, worse: Any, sample_weight: Any = None) -> LatticeRanker:
        """Learn from pairs: row i of `better` should score above row i of `worse`."""
        plan = self._plan(better)
        same_length(better, worse)
        first, second = plan.columns.read(as_table(better)), plan.columns.read(as_table(worse))
        return self._train_pairs(
            plan, first, second, read_weights(sample_weight, better, first.shape[0])
        )

    def _train_pairs(
        self, plan: Plan, better: Floats, worse: Floats, weights: Floats, source: Any = None
    ) -> LatticeRanker:
        rows = None if source is None else source[0].shape[0]
        examples = Examples(
            [(better, 1.0), (worse, -1.0)],
            np.ones(better.shape[0]),
            weights,
            independent=rows,
            source=source,
        )
        self._train(plan, examples, margin_loss(self.loss), self._canonical(plan))
        return self

    def _canonical(self, plan: Plan) -> Any:
        if self.canonical_examples is None:
            return None
        tables = [
            self._canonical_rows(plan, X, "canonical examples")[0] for X in self.canonical_examples
        ]
        same_length(*tables)
        margin = (
            1e-3
            if self.canonical_margin is None
            else positive(self.canonical_margin, "canonical_margin")
        )

        def rows(model: AdditiveModel) -> list[RuleRows]:
            better, worse = (model.features(table) for table in tables)
            return [
                RuleRows("canonical examples", worse - better, np.full(tables[0].shape[0], -margin))
            ]

        return rows

    def predict(self, X: Any) -> Floats:
        """Scores; only their order within a query matters."""
        return self._scores(X)
