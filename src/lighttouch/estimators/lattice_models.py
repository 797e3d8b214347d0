"""Regression with curves and lattices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.lattice_base import LatticeBase
from lighttouch.estimators.outputs import Levels, Means
from lighttouch.estimators.pairs import RandomState
from lighttouch.estimators.parameters import (
    COMMON_PARAMETERS,
    LATTICE_ATTRIBUTES,
    LATTICE_PARAMETERS,
    LATTICE_REGRESSION_PARAMETERS,
    LOG_LINK,
    CanonicalExamples,
    Checkpoint,
    Lattices,
    Smoothing,
    documented,
)
from lighttouch.estimators.proof import ConstraintReport, ScaledReports
from lighttouch.estimators.regression import (
    OutputLimits,
    RobustUnits,
    Task,
    Units,
    explained_pinball,
    first_rows,
    read_exposure,
    robust_scale,
    robust_units,
    within_margin,
)
from lighttouch.estimators.rules.base import MonotonicCst, Shapes
from lighttouch.estimators.rules.rows import (
    CanonicalRules,
    margin_of,
)
from lighttouch.estimators.streaming.fitting import FirstFit, InUnits, OpenFiles, Targets
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import (
    ColumnNames,
    Table,
    as_table,
    centre_and_scale,
    pair_of_tables,
    read_targets,
    read_weights,
    same_length,
    summed_centre_and_scale,
)
from lighttouch.estimators.training import on_the_clock, share_of_limit
from lighttouch.objectives import Huber, Quantile, Tweedie


@documented(
    COMMON_PARAMETERS | LATTICE_PARAMETERS | LATTICE_REGRESSION_PARAMETERS, LATTICE_ATTRIBUTES
)
class LatticeRegressor(ScaledReports, RegressorMixin, LatticeBase):  # type: ignore[misc]
    """Regression that obeys rules about columns, exactly.

    The prediction is an intercept, plus a piecewise-linear curve for every column, plus small
    lattices over columns that interact. All parameters are fitted together: one convex problem,
    whose answer obeys every rule with no violation.

    With a list as `quantile` there is one column of predictions per level, in order everywhere:
    the levels share their terms, and no parameter of a level is above that of the next.

    Rules are about the prediction. With a log link (loss "poisson", "gamma", "tweedie") they are
    about the logarithm of the mean. Rules that compare predictions, and Convex, then hold for the
    mean as well; Supermodular and EdgeworthTrust do where both columns are monotone, with signs
    that agree; Concave, Submodular, RangeDominates and SlopeBound hold for the log-mean only.
    `constraint_report_` names the scale of every rule.

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
    >>> X = rng.random((200, 2))
    >>> y = X[:, 0] + np.sin(3.0 * X[:, 1]) + rng.normal(0.0, 0.1, 200)
    >>> model = lt.LatticeRegressor(monotonic_cst={0: 1}, shape_constraints=[lt.Concave(1)])
    >>> low, high = model.fit(X, y).predict([[0.2, 0.5], [0.8, 0.5]])
    >>> bool(low <= high), model.constraint_report_.violation
    (True, 0.0)
    """

    _other_parts = ("exposure",)

    def __init__(
        self,
        *,
        loss: str | Quantile | Huber | Tweedie = "squared",
        quantile: float | Sequence[float] = 0.5,
        monotonic_cst: MonotonicCst = None,
        shape_constraints: Shapes = None,
        output_min: float | None = None,
        output_max: float | None = None,
        canonical_examples: CanonicalExamples = None,
        canonical_margin: float | None = None,
        categorical_features: ColumnNames | None = None,
        keypoints: int | str = "auto",
        lattices: Lattices = "auto",
        lattice_size: int | str = "auto",
        columns_per_lattice: int | str = "auto",
        interpolation: str = "auto",
        trees: int | str = "auto",
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
        self.quantile = quantile
        self.monotonic_cst = monotonic_cst
        self.shape_constraints = shape_constraints
        self.output_min = output_min
        self.output_max = output_max
        self.canonical_examples = canonical_examples
        self.canonical_margin = canonical_margin
        self.categorical_features = categorical_features
        self.keypoints = keypoints
        self.lattices = lattices
        self.lattice_size = lattice_size
        self.columns_per_lattice = columns_per_lattice
        self.interpolation = interpolation
        self.trees = trees
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
        exposure: ArrayLike | None = None,
    ) -> LatticeRegressor:
        """Fit the model to rows X with targets y.

        Parameters
        ----------
        X : table of shape (n, columns)
            A NumPy array or a pandas or polars frame; missing cells and text are allowed.
        y : array of shape (n,)
            Finite numbers; not negative with loss "poisson" or "tweedie", positive with "gamma".
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.
        exposure : array of shape (n,), optional
            For losses with a log link: how long, or how much of, each row was observed. The mean
            of y is then exposure times what `predict` gives.

        Returns
        -------
        LatticeRegressor
            The estimator itself.

        Raises
        ------
        DataError
            If X, y or the weights cannot be read; the message names the cell.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.
        """
        task, plan = self._task(), self._plan(X)
        limits = self._checked_limits(task, plan)
        targets = read_targets(y, self)
        same_length(X, targets)
        weights = read_weights(sample_weight, X, targets.size)
        table = plan.columns.read(as_table(X))
        observed = read_exposure(exposure, targets.size)
        robust = self._robust_units(plan, table, targets, weights)
        examples = task.examples(table, targets, weights, observed, robust)
        scale = centre_and_scale(targets, weights)[1]
        self._limits = limits  # before training: an interrupted model must predict
        self._train(plan, examples, task.loss, self._canonical(plan, scale, task.loss.log_link))
        return self

    def _robust_units(
        self, plan: Plan, table: Floats, targets: Floats, weights: Floats
    ) -> RobustUnits | None:
        """Units of the targets for loss "huber"; None for every other loss."""
        if self.loss != "huber":
            return None

        def first_fit(rows: Indices, wanted: Floats) -> Floats:
            return self._first_fit(plan, table[rows], wanted, weights[rows]).predict(table)

        return robust_units(targets, weights, first_fit)

    def _first_fit(
        self, plan: Plan, table: Floats, targets: Floats, weights: Floats
    ) -> LatticeRegressor:
        """Curves under the absolute loss."""
        kinds = [k for k, column in enumerate(plan.columns.columns) if column.categorical]
        curves = LatticeRegressor(
            loss="absolute",
            lattices=0,
            categorical_features=kinds or None,
            time_limit=share_of_limit(self.time_limit, 2),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return curves.fit(table, targets, weights)

    def _first_of(self, plan: Plan, task: Task, files: OpenFiles) -> FirstFit | None:
        """Robust units of targets in files for loss "huber", from some of the rows."""
        if self.loss != "huber":
            return None
        plain = files.examples(InUnits(task, Units(), files.weighting))
        some = plain.rows(first_rows(np.arange(plain.size)))
        model = self._first_fit(plan, some.table, some.y, some.weights)
        found = robust_scale(some.y, some.weights, model.predict(some.table))
        return None if found is None else FirstFit(model, *found)

    def _task(self) -> Task:
        return Task.of(self.loss, self.quantile)

    def _checked_limits(self, task: Task, plan: Plan) -> OutputLimits:
        limits = OutputLimits.of(self.output_min, self.output_max, task.loss.log_link)
        limits.refuse_rules_that_clipping_breaks(plan.shapes)
        return limits

    def _fit_open(self, files: OpenFiles) -> None:
        task, plan = self._task(), self._plan_of(files.columns)
        limits = self._checked_limits(task, plan)
        total = files.total(Targets(task))
        units = task.units(total, files.reader.source.parts.exposure is not None)
        first = self._first_of(plan, task, files)
        if first is not None:
            units = Units(first.unit, first.centre)
        examples = files.examples(
            InUnits(task, units, files.weighting, first),
            task.outputs,
            scale=units.scale,
            shift=units.shift,
            stands_for_another=task.loss.log_link or first is not None,
        )
        asked = self.canonical_examples is not None
        scale = summed_centre_and_scale(total)[1] if asked else units.scale
        self._take_names(files.columns)
        self._limits = limits
        self._train(plan, examples, task.loss, self._canonical(plan, scale, task.loss.log_link))

    def _canonical(self, plan: Plan, scale: float, log_link: bool) -> CanonicalRules | None:
        if self.canonical_examples is None:
            return None
        X, y = pair_of_tables(self.canonical_examples)
        table, label = self._canonical_rows(plan, X, "canonical examples")
        wanted = read_targets(y, self)
        same_length(table, wanted)
        margin = margin_of(self.canonical_margin, 0.1 * scale)
        limits = within_margin(label, table, wanted, margin, log_link)
        return CanonicalRules((limits,))

    def predict(self, X: Table) -> Floats:
        """Predict for rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,), or (n, levels) with a list of quantiles
            Predictions, monotone to the last bit where the model is. With a log link they are
            means per unit of exposure, and positive.
        """
        scores = self._scores(X)
        return self._limits.predictions(scores)

    def score(self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Measure how much better than a constant the predictions are.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        float
            R squared; with a list of quantiles, the same for the pinball loss: 1 minus its ratio
            to that of the quantiles of y.
        """
        check_is_fitted(self, "parameters_")
        if not isinstance(self._outputs, Levels):
            return float(super().score(X, y, sample_weight))
        targets = read_targets(y, self)
        weights = read_weights(sample_weight, X, targets.size)
        return explained_pinball(self.predict(X), targets, self._outputs.levels, weights)

    def _image(self, scores: Floats) -> Floats:
        return self._limits.predictions(scores)

    def _score_name(self) -> str:
        name = "log-mean" if isinstance(self._outputs, Means) else "prediction"
        return name if self._limits.none else f"{name} before limits"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in LOG_LINK or isinstance(self.loss, Tweedie)
        return tags

    def _labelled(self, report: ConstraintReport) -> ConstraintReport:
        if not Task.of(self.loss, self.quantile).loss.log_link:
            return report
        return report.on_scores("log-mean", "mean", exponential=True)

    def _fitted_state(self) -> dict[str, Any]:
        return super()._fitted_state() | {"limits": self._limits.state()}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        super()._restore_fitted(state)
        self._limits = OutputLimits.from_state(state.get("limits"))
