"""What the lattice estimators share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from lighttouch.errors import DataError, ModelFileError
from lighttouch.estimators.fitting import Examples, Fitted, fit
from lighttouch.estimators.model import AdditiveModel, Term
from lighttouch.estimators.proof import ConstraintReport, check_rule
from lighttouch.estimators.rules import RuleRows, all_rules
from lighttouch.estimators.rules.reading import read_monotonic, read_shapes
from lighttouch.estimators.saving import (
    SavedEstimator,
    bound_from,
    bound_state,
    columns_from,
    columns_state,
    rows_from,
    rows_state,
)
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import Columns, as_table, learn_columns, read_table
from lighttouch.estimators.training import Settings, ending, warn_about
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import given_as
from lighttouch.running import Interrupts, one_blas_thread
from lighttouch.validation import one_of, positive, positive_int

Floats = NDArray[np.float64]


class LatticeBase(SavedEstimator, BaseEstimator):  # type: ignore[misc]
    """Calibrators and lattices fitted together under the rules; subclasses say what is
    minimised.
    """

    columns_: Columns
    model_: AdditiveModel
    parameters_: Floats
    constraint_report_: ConstraintReport

    def _plan(self, X: Any) -> Plan:
        columns = learn_columns(self, X, self.categorical_features)
        monotonic = read_monotonic(self.monotonic_cst, columns)
        shapes = read_shapes(self.shape_constraints, columns, monotonic)
        size = (
            self.lattice_size
            if self.lattice_size == "auto"
            else positive_int(self.lattice_size, "lattice_size", least=2)
        )
        return Plan(
            columns=columns,
            monotonic=monotonic,
            shapes=shapes,
            keypoints=_number_or_auto(self.keypoints, "keypoints"),
            lattices=0 if self.lattices is None else self.lattices,
            lattice_size=size,
            columns_per_lattice=_number_or_auto(self.columns_per_lattice, "columns_per_lattice"),
            interpolation=one_of(
                self.interpolation, ("auto", "simplex", "hypercube"), "interpolation"
            ),
        )

    def _settings(self, loss: LossRow, interrupts: Interrupts) -> Settings:
        seed = (
            check_random_state(self.random_state).randint(2**31 - 1)
            if self.random_state is not None
            else 0
        )
        return Settings(
            loss=given_as(loss),
            tolerance=positive(self.tol, "tol"),
            max_iter=positive_int(self.max_iter, "max_iter"),
            time_limit=(
                None if self.time_limit is None else positive(self.time_limit, "time_limit")
            ),
            rng=np.random.default_rng(seed),
            interrupts=interrupts,
            verbose=bool(self.verbose),
        )

    def _train(self, plan: Plan, examples: Examples, loss: LossRow, canonical: Any = None) -> None:
        """A signal ends training early; with a usable model, it then goes on its way."""
        _warn_about_constant_columns(plan, examples.table)
        with Interrupts(deliver=True) as interrupts:
            settings = self._settings(loss, interrupts)
            with one_blas_thread():  # the same bits for any number of threads
                fitted = fit(plan, examples, settings, self.smoothing, canonical)
            self._keep(plan, fitted, canonical)
            warn_about(self.status_)

    def _keep(self, plan: Plan, fitted: Fitted, canonical: Any) -> None:
        self.columns_, self.model_, self.parameters_ = plan.columns, fitted.model, fitted.w
        self.constraint_report_ = fitted.report
        self.smoothing_ = fitted.smoothing
        self.n_iter_ = max(1, fitted.result.iterations)
        self.status_ = ending(fitted.result)
        self.history_ = fitted.result.history
        self._rules = (
            plan.monotonic,
            plan.shapes,
            [] if canonical is None else canonical(fitted.model),
        )

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "parameters_")
        return self.scores_of(read_table(self, X, self.columns_))

    @property
    def fitted_columns(self) -> Columns:
        """Names and kinds of the columns of the training table."""
        return self.columns_

    def read_rows(self, X: Any) -> Floats:
        """Rows of X as plain numbers: categories as codes, missing cells as NaN."""
        return self.columns_.read(as_table(X))

    def scores_of(self, table: Floats) -> Floats:
        """Scores of rows of plain numbers, as `read_rows` gives them."""
        return self.model_.evaluate(table, self.parameters_)

    def check_constraints(self, X: Any = None) -> ConstraintReport:
        """Check every rule again on the stored parameters.

        Parameters
        ----------
        X : table, optional
            Rows whose predictions are checked for monotonicity as well: each row is compared with
            the same row, one monotonic column raised to the column's largest value in X.

        Returns
        -------
        ConstraintReport
            One line per rule, and one per monotonic column of X.
        """
        check_is_fitted(self, "parameters_")
        monotonic, shapes, canonical = self._rules
        rules: list[RuleRows] = (
            all_rules(self.model_, self.columns_.names, monotonic, shapes) + canonical
        )
        checked = [check_rule(rule, self.parameters_) for rule in rules]
        if X is not None:
            checked += self._swept(read_table(self, X, self.columns_), monotonic)
        known = self.constraint_report_
        return ConstraintReport(tuple(checked), known.objective, known.objective_without_rules)

    def _swept(self, table: Floats, monotonic: dict[int, int]) -> list[Any]:
        rows = []
        before = self.model_.evaluate(table, self.parameters_)
        for column, sign in monotonic.items():
            raised = table.copy()
            present = ~np.isnan(table[:, column])
            raised[present, column] = table[present, column].max(initial=-np.inf)
            falls = sign * (before - self.model_.evaluate(raised, self.parameters_))
            label = f"predictions on X monotone in {self.columns_[column].name}"
            rows.append(
                check_rule(
                    RuleRows(label, sparse.csr_matrix(falls.reshape(-1, 1)), np.zeros(falls.size)),
                    np.ones(1),
                )
            )
        return rows

    def _canonical_rows(self, plan: Plan, X: Any, label: str) -> tuple[Floats, str]:
        table = as_table(X)
        given = table.shape[1]
        if given != len(plan.columns):
            raise DataError(f"{label} must have the {len(plan.columns)} columns of X, got {given}")
        return plan.columns.read(table), label

    def _fitted_state(self) -> dict[str, Any]:
        monotonic, shapes, canonical = self._rules
        return {
            "columns": columns_state(self.columns_),
            "pieces": [piece.state() for piece in self.model_.terms],
            "parameters": self.parameters_,
            "smoothing": list(self.smoothing_),
            "monotonic": [[column, sign] for column, sign in monotonic.items()],
            "shapes": [bound_state(shape) for shape in shapes],
            "canonical": [rows_state(rule) for rule in canonical],
        }

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        self.columns_ = columns_from(state["columns"])
        self.model_ = AdditiveModel([Term.from_state(piece) for piece in state["pieces"]])
        self.parameters_ = state["parameters"]
        if (
            self.parameters_.shape != (self.model_.dimension,)
            or not np.isfinite(self.parameters_).all()
        ):
            raise ModelFileError("the parameters do not belong to the model")
        self.smoothing_ = (float(state["smoothing"][0]), float(state["smoothing"][1]))
        monotonic = {int(column): int(sign) for column, sign in state["monotonic"]}
        self._rules = (
            monotonic,
            [bound_from(shape) for shape in state["shapes"]],
            [rows_from(rule) for rule in state["canonical"]],
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _number_or_auto(given: Any, name: str) -> int | None:
    """A number of at least 2, or None for "auto"."""
    return None if isinstance(given, str) and given == "auto" else positive_int(given, name, least=2)


def _warn_about_constant_columns(plan: Plan, table: Floats) -> None:
    constant = []
    for place, column in enumerate(plan.columns.columns):
        present = table[~np.isnan(table[:, place]), place]
        if present.size == 0 or (table.shape[0] > 1 and present.min() == present.max()):
            constant.append(column.name)
    if constant and table.shape[0] > 1:
        shown = ", ".join(repr(name) for name in constant[:5]) + (
            " ..." if len(constant) > 5 else ""
        )
        warnings.warn(
            f"columns without two different values have no effect: {shown}",
            UserWarning,
            stacklevel=4,
        )
