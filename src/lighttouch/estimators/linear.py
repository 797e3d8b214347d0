"""Linear models under rules: signs, dominance, orderings, canonical examples, any rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import RegressorMixin

from lighttouch.arrays import Floats, Indices, Matrix
from lighttouch.estimators.classes import BinaryScores, margin_loss
from lighttouch.estimators.linear_base import LinearBase
from lighttouch.estimators.linear_examples import LinearTargets, worth
from lighttouch.estimators.parameters import (
    CLASSES,
    CLASSIFICATION_PARAMETERS,
    COMMON_PARAMETERS,
    LINEAR_ATTRIBUTES,
    LINEAR_PARAMETERS,
    LINEAR_REGRESSION,
    REGRESSION_PARAMETERS,
    CanonicalExamples,
    Checkpoint,
    documented,
)
from lighttouch.estimators.regression import (
    Task,
    Units,
    first_rows,
    regression_loss,
    robust_scale,
    robust_units,
)
from lighttouch.estimators.rules import RuleRows
from lighttouch.estimators.rules.base import MonotonicCst, Rows, Shapes
from lighttouch.estimators.rules.rows import (
    SMALLEST_MARGIN,
    Limits,
    class_limits,
    margin_of,
)
from lighttouch.estimators.streaming.fitting import Codes, InUnits, OpenFiles
from lighttouch.estimators.tables import (
    Table,
    centre_and_scale,
    pair_of_tables,
    positive_labels,
    read_classes,
    read_labels,
    read_targets,
    read_weights,
    refuse_few_classes,
    refuse_many_classes,
    same_length,
    signs_of,
    summed_centre_and_scale,
)
from lighttouch.estimators.training import on_the_clock, share_of_limit
from lighttouch.objectives import Quantile


@documented(COMMON_PARAMETERS | LINEAR_PARAMETERS | REGRESSION_PARAMETERS, LINEAR_ATTRIBUTES)
class ConstrainedLinearRegressor(RegressorMixin, LinearBase):  # type: ignore[misc]
    """Linear regression under rules on its coefficients.

    Columns are scaled for training, and the rules with them; coefficients and rules are in the
    user's units.

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
    >>> y = X @ [1.0, -0.5] + rng.normal(0.0, 0.1, 100)
    >>> model = lt.ConstrainedLinearRegressor(monotonic_cst=[1, 1]).fit(X, y)
    >>> bool(model.coef_[1] >= 0.0), model.constraint_report_.violation
    (True, 0.0)
    """

    def __init__(
        self,
        *,
        loss: str | Quantile = "squared",
        quantile: float = 0.5,
        alpha: float = 1e-3,
        monotonic_cst: MonotonicCst = None,
        shape_constraints: Shapes = None,
        constraints: Rows | None = None,
        canonical_examples: CanonicalExamples = None,
        canonical_margin: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        time_limit: float | None = None,
        checkpoint: Checkpoint = None,
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
        self.checkpoint = checkpoint

    @on_the_clock
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ConstrainedLinearRegressor:
        """Fit coefficients to rows X with targets y.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, columns)
            Finite numbers.
        y : array of shape (n,)
            Finite numbers.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        ConstrainedLinearRegressor
            The estimator itself.

        Raises
        ------
        DataError
            If X, y or the weights cannot be read.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.
        """
        loss = regression_loss(self.loss, self.quantile, LINEAR_REGRESSION)
        table = self._read(X, reset=True)
        targets = read_targets(y, self)
        same_length(table, targets)
        weights = read_weights(sample_weight, X, targets.size)
        shift, scale = self._units(table, targets, weights)
        count = worth(sample_weight, targets.size)
        self._train(
            table,
            (targets - shift) / scale,
            weights,
            count,
            loss,
            (scale, shift),
            self._canonical(centre_and_scale(targets, weights)[1]),
        )
        return self

    def _units(self, table: Any, targets: Floats, weights: Floats) -> tuple[float, float]:
        """Centre and unit of the targets."""

        def first_fit(rows: Indices, wanted: Floats) -> Floats:
            return self._first_fit(table[rows], wanted, weights[rows]).predict(table)

        robust = robust_units(targets, weights, first_fit) if self.loss == "huber" else None
        if robust is None:
            return centre_and_scale(targets, weights)
        return robust.centre, robust.unit

    @on_the_clock
    def partial_fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ConstrainedLinearRegressor:
        """Learn from some more rows; the model obeys every rule after every call.

        Earlier rows are remembered by the quadratic that their loss was where they were learnt:
        exactly, for squared errors. Columns and targets are scaled as the first rows ask.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, columns)
            Finite numbers.
        y : array of shape (n,)
            Finite numbers.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        ConstrainedLinearRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If the model was loaded, or fitted with too many columns to remember its examples.
        """
        loss = regression_loss(self.loss, self.quantile, LINEAR_REGRESSION)
        table = self._read(X, reset=self._first_part())
        targets = read_targets(y, self)
        same_length(table, targets)
        weights = read_weights(sample_weight, X, targets.size)
        if self._past is None:
            shift, scale = self._units(table, targets, weights)
        else:
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

    def _fit_open(self, files: OpenFiles) -> None:
        loss = regression_loss(self.loss, self.quantile, LINEAR_REGRESSION)
        self._take_columns(files)
        shift, scale = summed_centre_and_scale(files.total(LinearTargets(files.weighting)))
        centre, unit = self._units_of(files) or (shift, scale)
        make = LinearTargets(files.weighting, unit, centre)
        self._train_files(files, make, loss, self._canonical(scale))

    def _first_fit(
        self, table: Any, targets: Floats, weights: Floats
    ) -> ConstrainedLinearRegressor:
        limit = share_of_limit(self.time_limit, 2)
        first = ConstrainedLinearRegressor(loss="absolute", time_limit=limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return first.fit(table, targets, weights)

    def _units_of(self, files: OpenFiles) -> tuple[float, float] | None:
        """Centre and unit of targets in files for loss "huber", from some of the rows."""
        if self.loss != "huber":
            return None
        plain = files.examples(InUnits(Task.of("squared", 0.5), Units(), files.weighting))
        some = plain.rows(first_rows(np.arange(plain.size)))
        predicted = self._first_fit(some.table, some.y, some.weights).predict(some.table)
        return robust_scale(some.y, some.weights, predicted)

    def _canonical(self, scale: float) -> list[RuleRows]:
        if self.canonical_examples is None:
            return []
        X, y = pair_of_tables(self.canonical_examples)
        table, wanted = self._read(X, reset=False), read_targets(y, self)
        same_length(table, wanted)
        margin = margin_of(self.canonical_margin, 0.1 * scale)
        limits = Limits("canonical examples", table, wanted - margin, wanted + margin)
        return [limits.rows(_with_intercept)]

    def predict(self, X: Table) -> Floats:
        """Predict for rows of X.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            Predictions, monotone to the last bit in every column.
        """
        return self._scores(X)


@documented(
    COMMON_PARAMETERS | LINEAR_PARAMETERS | CLASSIFICATION_PARAMETERS,
    CLASSES | LINEAR_ATTRIBUTES,
)
class ConstrainedLinearClassifier(BinaryScores, LinearBase):
    """Linear classification into two classes under rules on its coefficients.

    The score is linear in the columns; with the logistic loss it is the log-odds of the second
    class (`classes_[1]`). Signs of coefficients, Dominates and JointlyMonotonic hold for the
    probability as well. RangeDominates, SlopeBound and given rows hold for the log-odds.

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
    >>> y = X @ [1.0, -0.5] + rng.normal(0.0, 0.1, 100) > 0.25
    >>> model = lt.ConstrainedLinearClassifier(monotonic_cst=[1, 1]).fit(X, y)
    >>> bool(model.coef_[1] >= 0.0), model.predict_proba(X).shape
    (True, (100, 2))
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        alpha: float = 1.0,
        monotonic_cst: MonotonicCst = None,
        shape_constraints: Shapes = None,
        constraints: Rows | None = None,
        canonical_examples: CanonicalExamples = None,
        canonical_margin: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
        time_limit: float | None = None,
        checkpoint: Checkpoint = None,
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
        self.checkpoint = checkpoint

    @on_the_clock
    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ConstrainedLinearClassifier:
        """Fit coefficients to rows X with two kinds of labels y.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, columns)
            Finite numbers.
        y : array of shape (n,)
            Labels of any kind; the larger one is the second class.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        ConstrainedLinearClassifier
            The estimator itself.

        Raises
        ------
        DataError
            If X, y or the weights cannot be read, or y does not hold two classes.
        ConstraintError
            If a rule does not fit the columns.
        InfeasibleConstraintsError
            If the rules contradict each other.
        """
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

    @on_the_clock
    def partial_fit(
        self,
        X: Table,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ConstrainedLinearClassifier:
        """Learn from some more rows; the model obeys every rule after every call.

        Earlier rows are remembered by the quadratic that touches their loss where they were learnt.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n, columns)
            Finite numbers.
        y : array of shape (n,)
            Labels, each one of the classes.
        classes : pair of labels, optional
            The two classes; the first call must name them.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        ConstrainedLinearClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If the model was loaded, or fitted with too many columns to remember its examples, or
            the first call names no classes.
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

    def _fit_open(self, files: OpenFiles) -> None:
        loss = margin_loss(self.loss)
        self._take_columns(files)
        classes = files.facts.classes
        refuse_few_classes(type(self).__name__, classes, files.facts.weighted_classes)
        refuse_many_classes(type(self).__name__, classes)
        self.classes_ = classes
        make = LinearTargets(files.weighting, codes=Codes(classes))
        self._train_files(files, make, loss, self._canonical())

    def _canonical(self) -> list[RuleRows]:
        if self.canonical_examples is None:
            return []
        X, y = pair_of_tables(self.canonical_examples)
        table = self._read(X, reset=False)
        positives = positive_labels(y, self.classes_, table)
        margin = margin_of(self.canonical_margin, SMALLEST_MARGIN)
        limits = class_limits("canonical examples", table, positives, margin)
        return [limits.rows(_with_intercept)]


def _with_intercept(table: Matrix) -> Matrix:
    """The features of a linear model: 1, then the columns."""
    return sparse.csr_matrix(
        sparse.hstack([np.ones((table.shape[0], 1)), sparse.csr_matrix(table)])
    )
