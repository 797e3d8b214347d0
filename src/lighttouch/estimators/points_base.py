"""What the regressors share whose parameters are values at the training points themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lighttouch.arrays import Floats
from lighttouch.checkpoints import checkpointing
from lighttouch.errors import ModelFileError
from lighttouch.estimators.parameters import Checkpoint
from lighttouch.estimators.proof import ConstraintReport, RuleReport, checked_excess
from lighttouch.estimators.record import RECORD, TrainingRecord
from lighttouch.estimators.rules import read_monotonic
from lighttouch.estimators.rules.base import monotone_label
from lighttouch.estimators.saving import SavedEstimator
from lighttouch.estimators.tables import (
    Column,
    Columns,
    Table,
    read_targets,
    read_weights,
    same_length,
)
from lighttouch.estimators.training import COSTS, ending, has_ended, share_of_limit, warn_about
from lighttouch.interfaces import AnySolver
from lighttouch.objectives import EmpiricalRisk
from lighttouch.problem import Problem
from lighttouch.result import Result, Status
from lighttouch.running import one_blas_thread
from lighttouch.signals import Interrupts
from lighttouch.solve import Progress, solve


@dataclass(frozen=True)
class PointLimits:
    """How many pairs of points are compared, and how they are stored."""

    comparisons: int = 4_000_000
    """Of two points between two looks at the clock: at most 0.05 s. Budget."""

    bytes_per_pair: int = 100
    """Of memory, while the rows are built and solved. Memory."""

    stored_entries: float = 1e7
    """Entries of rows up to which they are stored, in 160 MB; beyond, they are generated. (Of
    generated rows the kernels are compiled in every process, which takes seconds.) Memory."""

    recorded_comparisons: float = 4e7
    """Of rows with points for the distribution of predictions: 0.2 s. Budget."""

    least_pull: float = 1e-9
    """Of slopes to 0, so that the slope of a point that stands alone is defined. Rounding."""


LIMITS = PointLimits()


class PointsRegressor(SavedEstimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression on columns of numbers under rules that couple all training points.

    A class offers `fit`, `_evaluate(rows)` and the names of its fitted arrays.
    """

    arrays: tuple[str, ...] = ()
    """Fitted attributes that a model file keeps."""
    constraint_report_: ConstraintReport
    monotonic_cst: Any
    time_limit: float | None
    checkpoint: Checkpoint

    def _read_examples(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Floats, Floats, Floats]:
        """Rows, targets and weights that add up to 1; rows of weight 0 are left out."""
        rows, targets = validate_data(self, X, dtype=np.float64), read_targets(y, self)
        same_length(rows, targets)
        weights = read_weights(sample_weight, X, targets.size)
        used = weights > 0.0
        return rows[used], targets[used], weights[used]

    @property
    def _columns(self) -> Columns:
        named = hasattr(self, "feature_names_in_")
        names = (
            [str(name) for name in self.feature_names_in_]
            if named
            else [f"x{place}" for place in range(self.n_features_in_)]
        )
        return Columns(tuple(Column(name) for name in names), named)

    def _read_signs(self, default: int) -> Floats:
        """1 for increasing, -1 for decreasing, 0 for neither, for every column."""
        if self.monotonic_cst is None:
            return np.full(self.n_features_in_, float(default))
        given = read_monotonic(self.monotonic_cst, self._columns)
        return np.array([float(given.get(place, 0)) for place in range(self.n_features_in_)])

    def _solved(
        self,
        objective: EmpiricalRisk,
        rules: Any,
        solver: AnySolver,
        start: Floats,
        late: bool = False,
    ) -> Result:
        """`late` says that there was no time for what should be solved."""
        limit = share_of_limit(self.time_limit, 1)
        with (
            Interrupts(deliver=True) as interrupts,
            one_blas_thread(),
            checkpointing(self.checkpoint) as file,
        ):
            if late and file is not None:
                file.leave_off()

            def interrupted(progress: Progress) -> bool:
                return interrupts.raised

            result = solve(
                Problem(objective, rules),
                solver,
                time_limit=limit,
                start=start,
                callback=interrupted,
            )
            if late:
                result = replace(result, status=Status.TIME_LIMIT)
            self.n_iter_ = max(1, result.iterations)
            self.status_ = ending(result)
            self.history_ = result.history
            if self.checkpoint is not None and file is not None and has_ended(self.status_):
                file.remove()
        warn_about(self.status_)
        return result

    @property
    def fitted_columns(self) -> Columns:
        """Names of the columns of the training table."""
        return self._columns

    def read_rows(self, X: Table) -> Floats:
        """Rows of X as numbers."""
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.ascontiguousarray(rows)

    def scores_of(self, table: Floats) -> Floats:
        """Predictions for rows of numbers, as `read_rows` gives them."""
        return self._evaluate(np.ascontiguousarray(table))

    def predict(self, X: Table) -> Floats:
        """Predict for rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table; finite numbers.

        Returns
        -------
        array of shape (n,)
            Predictions, monotone to the last bit where the model is.
        """
        check_is_fitted(self)
        return self._evaluate(self.read_rows(X))

    def _record(self, rows: Floats, targets: Floats) -> None:
        """Every row is compared with every point, so that many points have fewer rows recorded."""
        left = share_of_limit(self.time_limit, 1)
        late = not has_ended(self.status_) or (left is not None and left <= COSTS.shortest)
        some = int(LIMITS.recorded_comparisons / max(1, len(self.points_)))
        recorded = max(RECORD.late_rows, min(RECORD.rows_for(late), some))
        self.training_record_ = TrainingRecord.of(
            self._columns, rows, targets, self.scores_of, recorded
        )

    def _evaluate(self, rows: Floats) -> Floats:
        raise NotImplementedError

    def _swept(self, rows: Floats) -> list[RuleReport]:
        """Every row against the same row with one monotone column raised to its largest value."""
        found = []
        before = self._evaluate(rows)
        for place, sign in enumerate(self.signs_):
            if sign == 0.0:
                continue
            raised = rows.copy()
            raised[:, place] = rows[:, place].max(initial=-np.inf)
            falls = sign * (before - self._evaluate(raised))
            name = monotone_label(self._columns[place].name, int(sign))
            found.append(checked_excess(f"predictions on X {name}", falls))
        return found

    def check_constraints(self, X: Table | None = None) -> ConstraintReport:
        """Check every rule again on the stored parameters.

        Parameters
        ----------
        X : table, optional
            Rows whose predictions are checked as well.

        Returns
        -------
        ConstraintReport
            One line per rule, and one per monotone column of X.
        """
        check_is_fitted(self)
        known = self.constraint_report_
        rules = self._checked_rules()
        if X is not None:
            rules += self._checked_predictions(self.read_rows(X))
        return replace(known, rules=tuple(rules))

    def _checked_rules(self) -> list[RuleReport]:
        raise NotImplementedError

    def _checked_predictions(self, rows: Floats) -> list[RuleReport]:
        return self._swept(rows)

    def _fitted_state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.arrays}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        for name in self.arrays:
            array = state[name]
            if not (isinstance(array, np.ndarray) and np.isfinite(array).all()):
                raise ModelFileError(f"{name} does not belong to the model")
            setattr(self, name, array)
        points = self.points_
        if points.ndim != 2 or points.shape[1] != self.n_features_in_:
            raise ModelFileError("the points do not belong to the model")
