"""Regression and classification with curves and lattices."""

from __future__ import annotations

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from lighttouch.arrays import Floats
from lighttouch.estimators.binary import BinaryScores
from lighttouch.estimators.fitting import Examples
from lighttouch.estimators.lattice_base import LatticeBase
from lighttouch.estimators.losses import margin_loss, regression_loss
from lighttouch.estimators.pairs import RandomState
from lighttouch.estimators.parameters import (
    CLASSES,
    CLASSIFICATION_PARAMETERS,
    COMMON_PARAMETERS,
    LATTICE_ATTRIBUTES,
    LATTICE_PARAMETERS,
    REGRESSION_PARAMETERS,
    CanonicalExamples,
    Lattices,
    Smoothing,
    documented,
)
from lighttouch.estimators.rules.base import MonotonicCst, Shapes
from lighttouch.estimators.rules.canonical import (
    SMALLEST_MARGIN,
    CanonicalRules,
    Limits,
    class_limits,
    margin_of,
)
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import ColumnNames, Table, as_table
from lighttouch.estimators.targets import (
    centre_and_scale,
    positive_labels,
    read_labels,
    read_targets,
    read_weights,
    same_length,
)
from lighttouch.objectives import Quantile


@documented(COMMON_PARAMETERS | LATTICE_PARAMETERS | REGRESSION_PARAMETERS, LATTICE_ATTRIBUTES)
class LatticeRegressor(RegressorMixin, LatticeBase):  # type: ignore[misc]
    """Regression that obeys rules about columns, exactly.

    The prediction is an intercept, plus a piecewise-linear curve for every column, plus small
    lattices over columns that interact. All parameters are fitted together: one convex problem,
    whose answer obeys every rule with no violation.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

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

    def __init__(
        self,
        *,
        loss: str | Quantile = "squared",
        quantile: float = 0.5,
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

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LatticeRegressor:
        """Fit the model to rows X with targets y.

        Parameters
        ----------
        X : table of shape (n, columns)
            A NumPy array or a pandas or polars frame; missing cells and text are allowed.
        y : array of shape (n,)
            Finite numbers.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

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

    def _canonical(self, plan: Plan, scale: float) -> CanonicalRules | None:
        if self.canonical_examples is None:
            return None
        X, y = self.canonical_examples
        table, label = self._canonical_rows(plan, X, "canonical examples")
        wanted = read_targets(y, self)
        same_length(table, wanted)
        margin = margin_of(self.canonical_margin, 0.1 * scale)
        return CanonicalRules((Limits(label, table, wanted - margin, wanted + margin),))

    def predict(self, X: Table) -> Floats:
        """Predict for rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            Predictions, monotone to the last bit where the model is.
        """
        return self._scores(X)


@documented(
    COMMON_PARAMETERS | LATTICE_PARAMETERS | CLASSIFICATION_PARAMETERS,
    CLASSES | LATTICE_ATTRIBUTES,
)
class LatticeClassifier(BinaryScores, LatticeBase):
    """Classification into two classes that obeys rules about columns, exactly.

    Rules are about the score, which with the logistic loss is the log-odds of the second class
    (`classes_[1]`). Rules that compare predictions hold for the probability as well: monotone
    columns, Dominates, JointlyMonotonic, Unimodal, TrapezoidTrust, CategoryOrder. Rules about
    curvature, slopes and differences hold for the log-odds only: Convex, Concave, SlopeBound,
    EdgeworthTrust, Supermodular, Submodular, RangeDominates. `constraint_report_` names the scale
    of every rule.

    More than two classes are refused: probabilities that add up to 1 cannot all be monotone in the
    same column without ceasing to be a convex problem.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = np.where(X[:, 0] + rng.normal(0.0, 0.3, 200) > 0.5, "good", "bad")
    >>> model = lt.LatticeClassifier(monotonic_cst={0: 1}, shape_constraints=[lt.Concave(1)])
    >>> low, high = model.fit(X, y).predict_proba([[0.2, 0.5], [0.8, 0.5]])[:, 1]
    >>> bool(low <= high)
    True
    >>> [rule.scale for rule in model.constraint_report_.rules]
    ['probability', 'log-odds']
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
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

    def fit(
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LatticeClassifier:
        """Fit the model to rows X with two kinds of labels y.

        Parameters
        ----------
        X : table of shape (n, columns)
            A NumPy array or a pandas or polars frame; missing cells and text are allowed.
        y : array of shape (n,)
            Labels of any kind; the larger one is the second class.
        sample_weight : array of shape (n,), optional
            The weight of every row; all equal by default.

        Returns
        -------
        LatticeClassifier
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
        plan = self._plan(X)
        same_length(X, *([] if y is None else [y]))
        self.classes_, signs = read_labels(y, self, sample_weight)
        weights = read_weights(sample_weight, X, signs.size)
        examples = Examples([(plan.columns.read(as_table(X)), 1.0)], signs, weights)
        self._train(plan, examples, loss, self._canonical(plan))
        return self

    def _canonical(self, plan: Plan) -> CanonicalRules | None:
        if self.canonical_examples is None:
            return None
        X, y = self.canonical_examples
        table, label = self._canonical_rows(plan, X, "canonical examples")
        positives = positive_labels(y, self.classes_, table)
        margin = margin_of(self.canonical_margin, SMALLEST_MARGIN)
        classes = ((self.classes_[1], positives), (self.classes_[0], ~positives))
        return CanonicalRules(
            tuple(
                class_limits(f"{label} of class {name}", table[chosen], positives[chosen], margin)
                for name, chosen in classes
                if chosen.any()
            )
        )
