"""What the linear estimators share: training under rules, scores, saving."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from lighttouch.arrays import Floats, Matrix, dense
from lighttouch.checkpoints import checkpointing
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import InfeasibleConstraintsError, ModelFileError
from lighttouch.estimators.fitting import named
from lighttouch.estimators.linear_examples import (
    LEAST_RIDGE,
    LinearFiles,
    LinearTargets,
    QuadraticSummary,
    column_sizes,
    ranges,
    refuse_other_than_numbers,
    scaled,
)
from lighttouch.estimators.proof import ConstraintReport, check_rule, make_report
from lighttouch.estimators.record import RECORD, TrainingRecord
from lighttouch.estimators.rules import RuleRows, stacked
from lighttouch.estimators.rules.base import linear_rules, read_monotonic
from lighttouch.estimators.saving import SavedEstimator, rows_from, rows_state
from lighttouch.estimators.streaming.fitting import FitsFiles, OpenFiles
from lighttouch.estimators.tables import Column, Columns, known_columns, numeric_table
from lighttouch.estimators.training import (
    Risk,
    Settings,
    ending,
    exactly_feasible,
    has_ended,
    loss_row_of,
    train,
    train_without_rules,
    warn_about,
)
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import given_as
from lighttouch.objectives import EmpiricalRisk
from lighttouch.result import Result
from lighttouch.running import one_blas_thread
from lighttouch.signals import Interrupts
from lighttouch.validation import positive, positive_int

MOST_REMEMBERED = (
    1000  # columns whose examples `fit` keeps a summary of, for partial_fit to go on from
)


class LinearBase(FitsFiles, SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """intercept + x . coef, with rules on coef in the user's units; columns are scaled for training
    and the rules with them.
    """

    coef_: Floats
    intercept_: float
    constraint_report_: ConstraintReport
    _columns: Columns
    _past: QuadraticSummary | None = None

    def _read(self, X: Any, reset: bool) -> Any:
        if not reset and hasattr(self, "_columns"):
            X = known_columns(X, self._columns)
        X = numeric_table(X)
        table = validate_data(
            self, X=X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=True
        )
        if reset:
            self._columns = self._names()
        # rows one after the other, as in files: sums round by the order of what is added
        return table if sparse.issparse(table) else np.ascontiguousarray(table)

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
        loss: LossRow,
        units: tuple[float, float],
        canonical: list[RuleRows],
    ) -> None:
        self._past = None
        rules = self._read_rules(ranges(X), canonical)
        sizes = column_sizes(X, weights)
        ridge = self._ridge(sizes.size, int(np.count_nonzero(weights)))
        objective = EmpiricalRisk(
            scaled(X, sizes),
            y,
            given_as(loss),
            sample_weight=weights,
            roughness=ridge,
            l2=LEAST_RIDGE,
            copy=False,
        )
        p = self._minimise_scaled(objective, rules, sizes, units)
        recorded = RECORD.rows_for(not has_ended(self.status_))
        self.training_record_ = TrainingRecord.of(self._columns, X, y, self.scores_of, recorded)
        if sizes.size <= MOST_REMEMBERED:
            unused = QuadraticSummary.nothing(sizes, *units).with_ranges(X)
            self._past = unused.with_examples(objective.X, y, worth * weights, loss, p)

    def _minimise_scaled(
        self, objective: Risk, rules: list[RuleRows], sizes: Floats, units: tuple[float, float]
    ) -> Floats:
        """Train on columns divided by their sizes; the training parameters."""
        scale, shift = units
        # the user's (intercept - shift, coef) times this are the training parameters
        stretch = np.concatenate([[1.0], sizes]) / scale
        self._minimise(objective, rules, stretch, shift)
        moved = np.concatenate([[self.intercept_ - shift], self.coef_])
        return moved * stretch

    def _train_files(
        self,
        files: OpenFiles,
        make: LinearTargets,
        loss: LossRow,
        canonical: list[RuleRows],
    ) -> None:
        """The same on rows in files, with targets of the shards in training units."""
        self._past = None
        linear = LinearFiles(files, make)
        rules = self._read_rules(linear.highest - linear.lowest, canonical)
        sizes = linear.column_sizes()
        ridge = self._ridge(sizes.size, sum(files.facts.weighted))
        objective = linear.objective(sizes, loss, ridge)
        units = make.units
        p = self._minimise_scaled(objective, rules, sizes, units)
        self.training_record_ = linear.record(self._columns, self.scores_of)
        if sizes.size <= MOST_REMEMBERED:
            self._past = linear.summary(QuadraticSummary.nothing(sizes, *units), loss, p)

    def _take_columns(self, files: OpenFiles) -> None:
        """Names of columns that all hold numbers, in every row."""
        refuse_other_than_numbers(files)
        self._take_names(files.columns)
        self._columns = files.columns

    def _train_more(
        self,
        X: Any,
        y: Floats,
        weights: Floats,
        loss: LossRow,
        units: tuple[float, float],
        canonical: list[RuleRows],
    ) -> None:
        """Rows X with targets in the user's units and weights that add up to what they are worth,
        besides what came before.
        """
        past = self._past
        if past is None:
            past = QuadraticSummary.nothing(column_sizes(X, weights / weights.sum()), *units)
        past = past.with_ranges(X)
        rules = self._read_rules(past.highest - past.lowest, canonical)
        total = past.worth + float(weights.sum())
        features, targets = scaled(X, past.sizes), (y - past.shift) / past.scale
        # the objective is a mean over the new examples; what came before counts by its share
        new = float(weights.sum())
        before, target = past.as_penalty()
        ridge = math.sqrt(total / new) * self._ridge(past.sizes.size, total)
        D = sparse.vstack([ridge, sparse.csr_matrix(before / math.sqrt(new))], format="csr")
        t = np.concatenate([np.zeros(ridge.shape[0]), target / math.sqrt(new)])
        objective = EmpiricalRisk(
            features,
            targets,
            given_as(loss),
            sample_weight=weights,
            roughness=(D, t),
            l2=LEAST_RIDGE,
            copy=False,
        )
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
        """Rows D of the ridge ||D w||^2 / 2, which leaves the intercept alone."""
        pull = np.full(columns, positive(self.alpha, "alpha", zero=True) / examples)
        return sparse.csr_matrix(sparse.diags(np.sqrt(np.append(0.0, pull))))

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
        self, objective: Risk, rules: list[RuleRows], stretch: Floats, shift: float
    ) -> None:
        """A signal ends training early; with a usable model, it then goes on its way."""
        with (
            Interrupts(deliver=True) as interrupts,
            one_blas_thread(),
            checkpointing(self.checkpoint) as file,
        ):
            settings = self._settings(loss_row_of(objective), interrupts)
            w, result = self._solve(objective, rules, stretch, shift, settings)
            self.intercept_, self.coef_ = float(w[0]), w[1:].copy()
            self.n_iter_, self.status_ = max(1, result.iterations), ending(result)
            self.history_ = result.history
            self._rules = rules
            report = self._report(objective, rules, w, stretch, shift, result, settings)
            self.constraint_report_ = report.of_training(self.status_)
            warn_about(self.status_)
            if self.checkpoint is not None and file is not None and has_ended(self.status_):
                file.remove()

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
        objective: Risk,
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
        objective: Risk,
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
        checked = tuple(check_rule(rule, w) for rule in self._rules)
        return replace(self.constraint_report_, rules=checked)

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
