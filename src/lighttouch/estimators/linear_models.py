"""What the linear estimators share: training under rules, scores, saving."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lighttouch.arrays import Floats, Matrix, dense
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import InfeasibleConstraintsError, ModelFileError
from lighttouch.estimators.blocks import BlockTrainer, Deadline, Penalised
from lighttouch.estimators.endings import warn_unless_converged
from lighttouch.estimators.exact import exactly_feasible
from lighttouch.estimators.fitting import named
from lighttouch.estimators.interrupting import usable_when_interrupted
from lighttouch.estimators.linear_past import Past, column_sizes, ranges, scaled
from lighttouch.estimators.losses import PointLoss
from lighttouch.estimators.proof import ConstraintReport, check_rule, make_report
from lighttouch.estimators.rules import RuleRows, stacked
from lighttouch.estimators.rules.linear_rows import linear_rules
from lighttouch.estimators.rules.reading import read_monotonic
from lighttouch.estimators.saving import SavedEstimator, rows_from, rows_state
from lighttouch.estimators.tables import Column, Columns, refuse_other_columns
from lighttouch.projections import project
from lighttouch.validation import positive, positive_int

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
    _columns: Columns
    _past: Past | None = None

    def _read(self, X: Any, reset: bool) -> Any:
        if not reset and hasattr(self, "_columns"):
            refuse_other_columns(X, self._columns)
        table = validate_data(
            self, X=X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=True
        )
        if reset:
            self._columns = self._names()
        return table

    def _names(self) -> Columns:
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
        loss: PointLoss,
        units: tuple[float, float],
        canonical: list[RuleRows],
    ) -> None:
        self._past = None
        rules = self._read_rules(ranges(X), canonical)
        scale, shift = units
        sizes = column_sizes(X, weights)
        objective = Penalised(scaled(X, sizes), y, weights, loss, self._ridge(sizes.size, y.size))
        stretch = (
            np.concatenate([[1.0], sizes]) / scale
        )  # user's (intercept - shift, coef) times this are the training parameters
        self._minimise(objective, rules, stretch, shift)
        if sizes.size <= MOST_REMEMBERED:
            moved = np.concatenate([[self.intercept_ - shift], self.coef_])
            unused = Past.nothing(sizes, *units).with_ranges(X)
            self._past = unused.with_examples(
                objective.features, y, worth * weights, loss, moved * stretch
            )

    def _train_more(
        self,
        X: Any,
        y: Floats,
        weights: Floats,
        loss: PointLoss,
        units: tuple[float, float],
        canonical: list[RuleRows],
    ) -> None:
        """Rows X with targets in the user's units and weights that add up to what they are worth,
        besides what came before.
        """
        past = self._past
        if past is None:
            past = Past.nothing(column_sizes(X, weights / weights.sum()), *units)
        past = past.with_ranges(X)
        rules = self._read_rules(past.highest - past.lowest, canonical)
        total = past.worth + float(weights.sum())
        features, targets = scaled(X, past.sizes), (y - past.shift) / past.scale
        penalty = sparse.csr_matrix(self._ridge(past.sizes.size, total) + past.bend / total)
        objective = Penalised(features, targets, weights / total, loss, penalty, past.pull / total)
        stretch = np.concatenate([[1.0], past.sizes]) / past.scale
        self._minimise(objective, rules, stretch, past.shift)
        moved = np.concatenate([[self.intercept_ - past.shift], self.coef_])
        self._past = past.with_examples(features, targets, weights, loss, moved * stretch)

    def _read_rules(self, ranges: Floats, canonical: list[RuleRows]) -> list[RuleRows]:
        monotonic = read_monotonic(self.monotonic_cst, self._columns)
        rules = linear_rules(
            self._columns, monotonic, self.shape_constraints, self.constraints, ranges
        )
        return rules + canonical

    def _ridge(self, columns: int, examples: float) -> Any:
        pull = np.concatenate(
            [[0.0], np.full(columns, positive(self.alpha, "alpha", zero=True) / examples)]
        )
        return sparse.csr_matrix(sparse.diags(pull + 1e-10))

    def _minimise(
        self, objective: Penalised, rules: list[RuleRows], stretch: Floats, shift: float
    ) -> None:
        with usable_when_interrupted(), threadpool_limits(1, user_api="blas"):
            w, trained = self._solve(objective, rules, stacked(rules, stretch.size), stretch, shift)
            self.intercept_, self.coef_ = float(w[0]), w[1:].copy()
            self.n_iter_, self.status_, self.history_ = (
                trained.blocks,
                trained.status,
                trained.history,
            )
            self._rules = rules
            self.constraint_report_ = self._report(objective, rules, w, stretch, shift)
        warn_unless_converged(trained.status)

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
        self, objective: Penalised, rules: list[RuleRows], rows: Any, stretch: Floats, shift: float
    ) -> tuple[Floats, Any]:
        limit = None if self.time_limit is None else positive(self.time_limit, "time_limit")
        in_training = _stretched(rows, stretch, shift)
        try:
            start = (
                project(np.zeros(stretch.size), in_training).w
                if rows.count
                else np.zeros(stretch.size)
            )
            trainer = BlockTrainer(
                objective,
                in_training,
                positive(self.tol, "tol"),
                positive_int(self.max_iter, "max_iter"),
                Deadline(limit),
            )
            trained = trainer.train(start)
            w = trained.w / stretch
            w[0] += shift
            return exactly_feasible(w, rows)[0], trained
        except InfeasibleConstraintsError as error:
            raise named(error, rules) from None

    def _report(
        self, objective: Penalised, rules: list[RuleRows], w: Floats, stretch: Floats, shift: float
    ) -> ConstraintReport:
        moved = w.copy()
        moved[0] -= shift
        with_rules = objective.value(moved * stretch)
        if not rules:
            return make_report(rules, w, with_rules, with_rules)
        with threadpool_limits(1, user_api="blas"):
            free = BlockTrainer(
                objective, None, float(self.tol), int(self.max_iter), Deadline(self.time_limit)
            ).train(moved * stretch)
        without = free.w / stretch
        without[0] += shift
        return make_report(rules, w, with_rules, min(with_rules, free.objective), without)

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        return self.scores_of(self._read(X, reset=False))

    @property
    def fitted_columns(self) -> Columns:
        """Names of the columns of the training table."""
        return self._columns

    def read_rows(self, X: Any) -> Floats:
        """Rows of X as plain numbers."""
        return dense(self._read(X, reset=False))

    def scores_of(self, table: Matrix) -> Floats:
        """intercept + table @ coef, for rows of plain numbers.

        Column after column, so that every row is added up in the same order and rounding keeps
        order.
        """
        total = np.full(table.shape[0], self.intercept_)
        by_column = sparse.csc_matrix(table) if sparse.issparse(table) else np.asarray(table)
        for column, weight in enumerate(self.coef_):
            total = total + dense(by_column[:, [column]]).ravel() * weight
        return total

    def check_constraints(self, X: Any = None) -> ConstraintReport:
        """Check every rule again on the stored coefficients.

        Parameters
        ----------
        X : table, optional
            Not needed: for a linear model the coefficients say all there is to say.

        Returns
        -------
        ConstraintReport
            One line per rule.
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
        self._columns = self._names()

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
