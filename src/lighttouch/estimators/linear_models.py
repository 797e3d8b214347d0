"""Linear models under rules: signs, dominance, orderings, canonical examples, any rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from lighttouch.constraints import LinearConstraints
from lighttouch.errors import DataError, InfeasibleConstraintsError, ModelFileError
from lighttouch.estimators.checks import (
    centre_and_scale,
    read_monotonic,
    read_targets,
    read_weights,
    same_length,
)
from lighttouch.estimators.columns import Column, Columns, refuse_other_columns
from lighttouch.estimators.feasible_rounding import exactly_feasible
from lighttouch.estimators.fitting import named
from lighttouch.estimators.labels import read_classes, read_labels, signs_of
from lighttouch.estimators.linear_rules import linear_rules
from lighttouch.estimators.losses import chance, margin_loss, regression_loss
from lighttouch.estimators.report import ConstraintReport, check_rule, make_report
from lighttouch.estimators.rules import RuleRows, stacked
from lighttouch.estimators.saving import SavedEstimator, rows_from, rows_state
from lighttouch.estimators.scaling import column_sizes, ranges, scaled, worth
from lighttouch.estimators.summary import QuadraticSummary
from lighttouch.estimators.training import (
    Settings,
    ending,
    train,
    train_without_rules,
    warn_about,
)
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import given_as
from lighttouch.objectives import EmpiricalRisk
from lighttouch.result import Result
from lighttouch.running.interrupts import Interrupts
from lighttouch.running.threads import one_blas_thread
from lighttouch.validation import positive, positive_int

Floats = NDArray[np.float64]
ROUNDING = 1e-9
MOST_REMEMBERED = (
    1000  # columns whose examples `fit` keeps a summary of, for partial_fit to go on from
)


class LinearBase(SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """intercept + x . coef, with rules on coef in the user's units; columns are scaled for training
    and the rules with them.
    """

    coef_: Floats
    intercept_: float
    constraint_report_: ConstraintReport
    _past: QuadraticSummary | None = None

    def _read(self, X: Any, reset: bool) -> Any:
        if not reset and hasattr(self, "_columns"):
            refuse_other_columns(X, self._columns)
        return validate_data(
            self, X=X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=True
        )

    def _names(self, X: Any) -> Columns:
        named = hasattr(self, "feature_names_in_")
        names = (
            [str(n) for n in self.feature_names_in_]
            if named
            else [f"x{k}" for k in range(self.n_features_in_)]
        )
        return Columns(tuple(Column(name) for name in names), named)

    def _train(
        self,
        X: Any,
        y: Floats,
        weights: Floats,
        worth: float,
        loss: LossRow,
        units: tuple[float, float],
        canonical: Any,
    ) -> None:
        self._past = None
        rules = self._read_rules(X, ranges(X), canonical)
        scale, shift = units
        sizes = column_sizes(X, weights)
        ridge = self._ridge(sizes.size, int(np.count_nonzero(weights)))
        objective = EmpiricalRisk(
            scaled(X, sizes), y, given_as(loss), sample_weight=weights, roughness=ridge
        )
        stretch = (
            np.concatenate([[1.0], sizes]) / scale
        )  # user's (intercept - shift, coef) times this are the training parameters
        self._minimise(objective, rules, stretch, shift)
        if sizes.size <= MOST_REMEMBERED:
            moved = np.concatenate([[self.intercept_ - shift], self.coef_])
            unused = QuadraticSummary.nothing(sizes, *units).with_ranges(X)
            self._past = unused.with_examples(
                objective.X, y, worth * weights, loss, moved * stretch
            )

    def _train_more(
        self,
        X: Any,
        y: Floats,
        weights: Floats,
        loss: LossRow,
        units: tuple[float, float],
        canonical: Any,
    ) -> None:
        """Rows X with targets in the user's units and weights that add up to what they are worth,
        besides what came before.
        """
        past = self._past
        if past is None:
            past = QuadraticSummary.nothing(column_sizes(X, weights / weights.sum()), *units)
        past = past.with_ranges(X)
        rules = self._read_rules(X, past.highest - past.lowest, canonical)
        total = past.worth + float(weights.sum())
        features, targets = scaled(X, past.sizes), (y - past.shift) / past.scale
        # the objective is a mean over the new examples; what came before counts by its share
        new = float(weights.sum())
        before, target = past.as_penalty()
        ridge = math.sqrt(total / new) * self._ridge(past.sizes.size, total)
        D = sparse.vstack([ridge, sparse.csr_matrix(before / math.sqrt(new))], format="csr")
        t = np.concatenate([np.zeros(ridge.shape[0]), target / math.sqrt(new)])
        objective = EmpiricalRisk(
            features, targets, given_as(loss), sample_weight=weights, roughness=(D, t)
        )
        stretch = np.concatenate([[1.0], past.sizes]) / past.scale
        self._minimise(objective, rules, stretch, past.shift)
        moved = np.concatenate([[self.intercept_ - past.shift], self.coef_])
        self._past = past.with_examples(features, targets, weights, loss, moved * stretch)

    def _read_rules(self, X: Any, ranges: Floats, canonical: Any) -> list[RuleRows]:
        self._columns = self._names(X)
        monotonic = read_monotonic(self.monotonic_cst, self._columns)
        rules = linear_rules(
            self._columns, monotonic, self.shape_constraints, self.constraints, ranges
        )
        return rules + (canonical() if canonical else [])

    def _ridge(self, columns: int, examples: float) -> Any:
        """Rows D of the ridge ||D w||^2 / 2."""
        pull = np.concatenate(
            [[0.0], np.full(columns, positive(self.alpha, "alpha", zero=True) / examples)]
        )
        return sparse.csr_matrix(sparse.diags(np.sqrt(pull + 1e-10)))

    def _settings(self, loss: LossRow, interrupts: Interrupts) -> Settings:
        return Settings(
            loss=given_as(loss),
            tolerance=positive(self.tol, "tol"),
            max_iter=positive_int(self.max_iter, "max_iter"),
            time_limit=(
                None if self.time_limit is None else positive(self.time_limit, "time_limit")
            ),
            rng=np.random.default_rng(0),
            interrupts=interrupts,
        )

    def _minimise(
        self, objective: EmpiricalRisk, rules: list[RuleRows], stretch: Floats, shift: float
    ) -> None:
        """A signal ends training early; with a usable model, it then goes on its way."""
        with Interrupts(deliver=True) as interrupts, one_blas_thread():
            settings = self._settings(objective.loss_row, interrupts)
            w, result = self._solve(objective, rules, stretch, shift, settings)
            self.intercept_, self.coef_ = float(w[0]), w[1:].copy()
            self.n_iter_, self.status_ = max(1, result.iterations), ending(result)
            self.history_ = result.history
            self._rules = rules
            self.constraint_report_ = self._report(
                objective, rules, w, stretch, shift, result, settings
            )
            warn_about(self.status_, stacklevel=4)

    def _first_part(self) -> bool:
        """Whether there is nothing to go on from; refused where something was learnt that is not
        remembered.
        """
        if self._past is None and hasattr(self, "coef_"):
            raise ValueError(
                "partial_fit cannot go on from a loaded model, or from fit with more than "
                f"{MOST_REMEMBERED} columns, which keep no "
                "summary of their examples; call partial_fit from the first batch on, or on a clone"
            )
        return self._past is None

    def _solve(
        self,
        objective: EmpiricalRisk,
        rules: list[RuleRows],
        stretch: Floats,
        shift: float,
        settings: Settings,
    ) -> tuple[Floats, Result]:
        rows = stacked(rules, stretch.size)
        try:
            nothing = np.zeros(stretch.size)
            result = train(objective, _stretched(rows, stretch, shift), nothing, settings)
            w = result.w / stretch
            w[0] += shift
            return exactly_feasible(w, rows)[0], result
        except InfeasibleConstraintsError as error:
            raise named(error, rules) from None

    def _report(
        self,
        objective: EmpiricalRisk,
        rules: list[RuleRows],
        w: Floats,
        stretch: Floats,
        shift: float,
        result: Result,
        settings: Settings,
    ) -> ConstraintReport:
        moved = w.copy()
        moved[0] -= shift
        with_rules = objective.value(moved * stretch)
        if not rules:
            return make_report(rules, w, with_rules, with_rules)
        free = train_without_rules(objective, result, settings)
        if free is None:
            return make_report(rules, w, with_rules, None)
        without = free.w / stretch
        without[0] += shift
        return make_report(rules, w, with_rules, min(with_rules, free.objective), without)

    def _scores(self, X: Any) -> Floats:
        """Column after column, so that every row is added up in the same order and rounding keeps
        order.
        """
        check_is_fitted(self, "coef_")
        table = self._read(X, reset=False)
        total = np.full(table.shape[0], self.intercept_)
        if sparse.issparse(table):
            table = sparse.csc_matrix(table)
        for column, weight in enumerate(self.coef_):
            values = (
                table[:, [column]].toarray().ravel() if sparse.issparse(table) else table[:, column]
            )
            total = total + values * weight
        return total

    def check_constraints(self, X: Any = None) -> ConstraintReport:
        """Check every rule again on the stored coefficients (for a linear model that says all there
        is to say about predictions).
        """
        check_is_fitted(self, "coef_")
        w = np.concatenate([[self.intercept_], self.coef_])
        known = self.constraint_report_
        return ConstraintReport(
            tuple(check_rule(rule, w) for rule in self._rules),
            known.objective,
            known.objective_without_rules,
        )

    def _fitted_state(self) -> dict[str, Any]:
        return {
            "coef": self.coef_,
            "intercept": self.intercept_,
            "rules": [rows_state(rule) for rule in self._rules],
        }

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        self.coef_, self.intercept_ = state["coef"], float(state["intercept"])
        if self.coef_.shape != (self.n_features_in_,) or not np.isfinite(self.coef_).all():
            raise ModelFileError("the coefficients do not belong to the model")
        self._rules = [rows_from(rule) for rule in state["rules"]]
        self._columns = self._names(None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _stretched(rows: Any, stretch: Floats, shift: float) -> Any:
    """Rules about the user's parameters as rules about the training parameters."""
    if rows.count == 0:
        return rows
    intercept = np.asarray(rows.A[:, [0]].todense()).ravel()
    A = sparse.csr_matrix(rows.A @ sparse.diags(1.0 / stretch))
    b = rows.b - shift * intercept
    size = np.maximum(np.asarray(abs(A).max(axis=1).todense()).ravel(), 1e-300)
    return LinearConstraints(sparse.csr_matrix(sparse.diags(1.0 / size) @ A), b / size)


class ConstrainedLinearRegressor(RegressorMixin, LinearBase):  # type: ignore[misc]
    """Linear regression under rules on its coefficients.

    Parameters
    ----------
    loss : "squared", "absolute", "huber" (threshold: one standard deviation of y) or "quantile"
    quantile : the level of the quantile loss
    alpha : ridge, in examples' worth of pull on coefficients of standardised columns
    monotonic_cst : dict of column name (or position) to -1, 0 or 1, or one number a column: the
    signs of coefficients
    shape_constraints : lt.Dominates(a, b): coef[a] >= coef[b] >= 0 · lt.RangeDominates(a, b): the
        same, times the columns' ranges · lt.JointlyMonotonic(a, b): coef[a] + coef[b] >= 0 ·
        lt.SlopeBound(a, limit): abs(coef[a]) <= limit
    constraints : (A, b) or lt.LinearConstraints: A @ coef <= b
    canonical_examples : (X, y): the prediction for these rows must lie within `canonical_margin` of
    y
    canonical_margin : in units of y; None: a tenth of the standard deviation of y
    max_iter, tol, time_limit : when to stop: quadratic blocks, relative gain of a block, seconds

    Attributes
    ----------
    coef_, intercept_, constraint_report_, n_features_in_, feature_names_in_, n_iter_, status_
    """

    def __init__(
        self,
        *,
        loss: Any = "squared",
        quantile: float = 0.5,
        alpha: float = 1e-3,
        monotonic_cst: Any = None,
        shape_constraints: Any = None,
        constraints: Any = None,
        canonical_examples: Any = None,
        canonical_margin: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.loss = loss
        self.quantile = quantile
        self.alpha = alpha
        self.monotonic_cst = monotonic_cst
        self.shape_constraints = shape_constraints
        self.constraints = constraints
        self.canonical_examples = canonical_examples
        self.canonical_margin = canonical_margin
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedLinearRegressor:
        """Fit coefficients to rows X with targets y."""
        loss = regression_loss(self.loss, self.quantile)
        table = self._read(X, reset=True)
        targets = read_targets(y, self)
        same_length(table, targets)
        weights = read_weights(sample_weight, X, targets.size)
        shift, scale = centre_and_scale(targets, weights)
        count = worth(sample_weight, targets.size)
        self._train(
            table,
            (targets - shift) / scale,
            weights,
            count,
            loss,
            (scale, shift),
            self._canonical(scale),
        )
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedLinearRegressor:
        """Learn from some more rows; the model obeys every rule after every call.

        Earlier rows are remembered by the quadratic that their loss was where they were learnt:
        exactly, for squared errors. Columns and targets are scaled as the first rows ask.
        """
        loss = regression_loss(self.loss, self.quantile)
        table = self._read(X, reset=self._first_part())
        targets = read_targets(y, self)
        same_length(table, targets)
        weights = read_weights(sample_weight, X, targets.size)
        shift, scale = centre_and_scale(targets, weights)
        if self._past is not None:
            scale, shift = self._past.scale, self._past.shift
        self._train_more(
            table,
            targets,
            weights * worth(sample_weight, targets.size),
            loss,
            (scale, shift),
            self._canonical(scale),
        )
        return self

    def _canonical(self, scale: float) -> Any:
        if self.canonical_examples is None:
            return None
        rows, y = self.canonical_examples
        wanted = read_targets(y, self)
        margin = (
            0.1 * scale
            if self.canonical_margin is None
            else positive(self.canonical_margin, "canonical_margin")
        )

        def rules() -> list[RuleRows]:
            features = _with_intercept(self._read(rows, reset=False))
            same_length(features, wanted)
            b = np.concatenate([wanted + margin, margin - wanted])
            room = ROUNDING * (1.0 + np.abs(b))
            return [
                RuleRows(
                    "canonical examples",
                    sparse.vstack([features, -features], format="csr"),
                    b - room,
                )
            ]

        return rules

    def predict(self, X: Any) -> Floats:
        """Predictions, monotone to the last bit in every column."""
        return self._scores(X)


def _with_intercept(table: Any) -> Any:
    return sparse.csr_matrix(
        sparse.hstack([np.ones((table.shape[0], 1)), sparse.csr_matrix(table)])
    )


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(
            "predict_proba needs loss='logistic'; the hinge loss gives no probabilities"
        )
    return True


class ConstrainedLinearClassifier(ClassifierMixin, LinearBase):  # type: ignore[misc]
    """Linear classification into two classes under rules on its coefficients.

    Parameters are those of ConstrainedLinearRegressor, except `loss`: "logistic" or "hinge".
    Canonical examples are rows X with labels y that the model must classify right, with a score of
    at least `canonical_margin` (None: 0.001) on the right side.
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        alpha: float = 1.0,
        monotonic_cst: Any = None,
        shape_constraints: Any = None,
        constraints: Any = None,
        canonical_examples: Any = None,
        canonical_margin: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        time_limit: float | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.monotonic_cst = monotonic_cst
        self.shape_constraints = shape_constraints
        self.constraints = constraints
        self.canonical_examples = canonical_examples
        self.canonical_margin = canonical_margin
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedLinearClassifier:
        """Fit coefficients to rows X with two kinds of labels y."""
        loss = margin_loss(self.loss)
        table = self._read(X, reset=True)
        same_length(table, *([] if y is None else [y]))
        self.classes_, signs = read_labels(y, self, sample_weight)
        weights = read_weights(sample_weight, X, signs.size)
        self._train(
            table,
            signs,
            weights,
            worth(sample_weight, signs.size),
            loss,
            (1.0, 0.0),
            self._canonical(),
        )
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> ConstrainedLinearClassifier:
        """Learn from some more rows; the model obeys every rule after every call. The first call
        must name the two `classes`.

        Earlier rows are remembered by the quadratic that touches their loss where they were learnt.
        """
        loss = margin_loss(self.loss)
        first = self._first_part()
        known = read_classes(classes, None if first else self.classes_, self)
        table = self._read(X, reset=first)
        same_length(table, *([] if y is None else [y]))
        signs = signs_of(y, known, self)
        self.classes_ = known
        weights = read_weights(sample_weight, X, signs.size) * worth(sample_weight, signs.size)
        self._train_more(table, signs, weights, loss, (1.0, 0.0), self._canonical())
        return self

    def _canonical(self) -> Any:
        if self.canonical_examples is None:
            return None
        rows, y = self.canonical_examples
        labels = np.asarray(y)
        unknown = ~np.isin(labels, self.classes_)
        if unknown.any():
            raise DataError(
                f"canonical examples: {labels[unknown][0]!r} is not one of the classes "
                f"{list(self.classes_)}"
            )
        margin = (
            1e-3
            if self.canonical_margin is None
            else positive(self.canonical_margin, "canonical_margin")
        )

        def rules() -> list[RuleRows]:
            features = _with_intercept(self._read(rows, reset=False))
            same_length(features, labels)
            signed = sparse.diags(np.where(labels == self.classes_[1], -1.0, 1.0)) @ features
            return [
                RuleRows(
                    "canonical examples",
                    sparse.csr_matrix(signed),
                    np.full(labels.size, -margin - ROUNDING),
                )
            ]

        return rules

    def decision_function(self, X: Any) -> Floats:
        """Scores: above 0 means the second class."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The class of every row."""
        check_is_fitted(self, "coef_")
        return self.classes_[(self._scores(X) > 0.0).astype(int)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the two classes."""
        second = chance(self._scores(X))
        return np.column_stack([1.0 - second, second])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
