"""Classification with curves and lattices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from lighttouch.arrays import Floats, Indices
from lighttouch.checkpoints import checkpointing
from lighttouch.errors import ModelFileError
from lighttouch.estimators.classes import (
    ClassScores,
    chance,
    margin_loss,
    mean_importances,
    ordered_classes,
    ordinal_examples,
    ordinal_units,
    refuse_rules,
    thresholds_of,
    together,
)
from lighttouch.estimators.examples import AnyExamples, Examples
from lighttouch.estimators.explaining import Explanation, effects_of, explanation
from lighttouch.estimators.lattice_base import LatticeBase
from lighttouch.estimators.outputs import OrderedClasses, Outputs
from lighttouch.estimators.pairs import RandomState
from lighttouch.estimators.parameters import (
    CLASSIFICATION_PARAMETERS,
    COMMON_PARAMETERS,
    LATTICE_ATTRIBUTES,
    LATTICE_PARAMETERS,
    MANY_CLASSES,
    CanonicalExamples,
    Checkpoint,
    Lattices,
    Smoothing,
    documented,
)
from lighttouch.estimators.proof import ConstraintReport
from lighttouch.estimators.record import RECORD
from lighttouch.estimators.rules.base import MonotonicCst, Shapes
from lighttouch.estimators.rules.rows import (
    SMALLEST_MARGIN,
    CanonicalRules,
    class_limits,
    margin_of,
)
from lighttouch.estimators.saving import columns_from, columns_state, report_from, report_state
from lighttouch.estimators.streaming.fitting import Codes, OneClass, OpenFiles, OrderedLabels
from lighttouch.estimators.structure import Plan
from lighttouch.estimators.tables import (
    ColumnNames,
    Table,
    as_table,
    pair_of_tables,
    positive_labels,
    read_class_codes,
    read_weights,
    refuse_few_classes,
    same_length,
)
from lighttouch.estimators.training import has_ended, on_the_clock, share_of_limit
from lighttouch.kernels.verbs.losses import LossRow

OF_ONE_SCORE = (  # what one model for each of several classes has not
    "model_",
    "parameters_",
    "trees_",
    "smoothing_",
    "history_",
    "_rules",
    "_outputs",
    "_background",
)


@documented(
    COMMON_PARAMETERS | LATTICE_PARAMETERS | CLASSIFICATION_PARAMETERS,
    MANY_CLASSES | LATTICE_ATTRIBUTES,
)
class LatticeClassifier(ClassScores, LatticeBase):
    """Classification that obeys rules about columns, exactly.

    Rules are about the score, which with the logistic loss is the log-odds of the second class
    (`classes_[1]`). Rules that compare predictions hold for the probability as well: monotone
    columns, Dominates, JointlyMonotonic, Unimodal, TrapezoidTrust, CategoryOrder. Rules about
    curvature, slopes and differences hold for the log-odds only: Convex, Concave, SlopeBound,
    EdgeworthTrust, Supermodular, Submodular, RangeDominates. `constraint_report_` names the scale
    of every rule.

    Ordered classes (`ordinal=True`) share one score, with ordered thresholds between them: the
    proportional-odds model. Rules are then about the log-odds, and the probabilities, of exceeding
    a class, for every class alike.

    More than two classes without an order have one model each, against the rest, and take no
    rules: their probabilities add up to 1, so what raises one lowers others, and the models in
    which a rule holds for one of them are not a convex set.

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
        ordinal: bool | Sequence[Any] = False,
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
        self.ordinal = ordinal
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
        self, X: Table, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LatticeClassifier:
        """Fit the model to rows X with labels y.

        Parameters
        ----------
        X : table of shape (n, columns)
            A NumPy array or a pandas or polars frame; missing cells and text are allowed.
        y : array of shape (n,)
            Labels of any kind; of two, the larger one is the second class.
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
            If a rule does not fit the columns, or there are more than two classes without order.
        InfeasibleConstraintsError
            If the rules contradict each other.
        """
        loss = self._loss()
        plan = self._plan(X)
        same_length(X, *([] if y is None else [y]))
        self.classes_, codes = read_class_codes(y, self, sample_weight)
        weights = read_weights(sample_weight, X, codes.size)
        self._forget()
        codes = self._take_order()[codes]
        if self.classes_.size > 2:
            return self._fit_many(plan, X, codes, weights, sample_weight)
        signs = np.where(codes == 1, 1.0, -1.0)
        examples = Examples([(plan.columns.read(as_table(X)), 1.0)], signs, weights)
        self._train(plan, examples, loss, self._canonical(plan))
        return self

    def _fit_many(
        self, plan: Plan, X: Table, codes: Indices, weights: Floats, sample_weight: Any
    ) -> LatticeClassifier:
        """More than two classes: ordered, or one model per class."""
        count = self.classes_.size
        table = plan.columns.read(as_table(X))
        if self.ordinal is False:

            def fitted(copy: LatticeClassifier, code: int) -> LatticeClassifier:
                return copy.fit(X, codes == code, sample_weight)

            everything = Examples([(table, 1.0)], codes.astype(np.float64), weights)
            self._fit_each(plan, fitted, everything)
            return self
        self._train(plan, ordinal_examples(table, codes, weights, count), self._loss())
        return self

    def _fit_each(
        self,
        plan: Plan,
        fitted: Callable[[LatticeClassifier, int], LatticeClassifier],
        examples: AnyExamples,
    ) -> None:
        """One model per class; `fitted(copy, code)` trains a copy for one of them."""
        count = self.classes_.size
        rules = len(plan.monotonic) + len(plan.shapes) + (self.canonical_examples is not None)
        refuse_rules(self, rules, count)
        for name in OF_ONE_SCORE:
            self.__dict__.pop(name, None)
        self.columns_ = plan.columns
        with checkpointing(self.checkpoint) as file:
            self.estimators_ = [self._fit_one(fitted, code) for code in range(count)]
        self.constraint_report_, self.status_, self.n_iter_ = together(self.estimators_)
        self.importances_ = mean_importances(self.estimators_)
        recorded = RECORD.rows_for(not has_ended(self.status_))
        self.training_record_ = examples.record(plan.columns, self.recorded_scores, recorded)
        if self.checkpoint is not None and file is not None and has_ended(self.status_):
            file.remove()

    def _fit_one(
        self, fitted: Callable[[LatticeClassifier, int], LatticeClassifier], code: int
    ) -> LatticeClassifier:
        """One of the classes; those to come share what is left of the time limit."""
        limit = share_of_limit(self.time_limit, self.classes_.size - code)
        copy: LatticeClassifier = clone(self).set_params(checkpoint=None, time_limit=limit)
        on_the_clock(fitted)(copy, code).set_params(time_limit=self.time_limit)
        return copy

    def _take_order(self) -> Indices:
        """Put classes into the order that is asked for; where each sorted one is then."""
        many = self.classes_.size > 2 and self.ordinal is not False
        if many and (self.loss != "logistic" or self.canonical_examples is not None):
            raise ValueError(
                "ordered classes need loss='logistic' and no canonical_examples; with two classes "
                "both are possible"
            )
        ordered = ordered_classes(self.ordinal, self.classes_)
        self.classes_ = ordered
        return np.argsort(ordered)

    def _loss(self) -> LossRow:
        return margin_loss(self.loss)

    def _forget(self) -> None:
        """What an earlier fit left."""
        for name in ("thresholds_", "estimators_"):
            self.__dict__.pop(name, None)

    def _fit_open(self, files: OpenFiles) -> None:
        loss, plan = self._loss(), self._plan_of(files.columns)
        self.classes_ = files.facts.classes
        refuse_few_classes(type(self).__name__, self.classes_, files.facts.weighted_classes)
        self._take_names(files.columns)
        self._forget()
        codes, weighting = Codes(files.facts.classes, self._take_order()), files.weighting
        if self.classes_.size == 2:
            examples = files.examples(OneClass(codes, 1, weighting))
            self._train(plan, examples, loss, self._canonical(plan))
        elif self.ordinal is False:

            def fitted(copy: LatticeClassifier, code: int) -> LatticeClassifier:
                copy.classes_ = np.array([False, True])
                copy._take_names(files.columns)
                copy._train(plan, files.examples(OneClass(codes, code, weighting)), loss)
                return copy

            self._fit_each(plan, fitted, files.examples(OneClass(codes, 0, weighting)))
        else:
            mean, spread = ordinal_units(files.total(codes))
            make = OrderedLabels(codes, mean, spread, weighting)
            outputs = OrderedClasses(self.classes_.size)
            examples = files.examples(make, outputs, stands_for_another=True)
            self._train(plan, examples, loss)

    def scores_of(self, table: Floats) -> Floats:
        """Scores of rows of plain numbers, as `read_rows` gives them; of unordered classes, one
        column each.
        """
        if not hasattr(self, "estimators_"):
            return super().scores_of(table)
        return np.column_stack([each.scores_of(table) for each in self.estimators_])

    def _image(self, scores: Floats) -> Floats:
        if hasattr(self, "thresholds_"):
            return chance(scores[:, None] - self.thresholds_)
        return chance(scores) if self.loss == "logistic" else scores

    def _score_name(self) -> str:
        if hasattr(self, "thresholds_"):
            return "cumulative log-odds"
        return "log-odds" if self.loss == "logistic" else "score"

    def _explained(self, table: Floats) -> Explanation:
        if not hasattr(self, "estimators_"):
            return super()._explained(table)
        parts = [
            effects_of(each.model_, each._background, each.parameters_, table, each.trees_)
            for each in self.estimators_
        ]
        return explanation(parts, self.columns_.names, table.shape[0], self._score_name())

    def _take(self, w: Floats, outputs: Outputs) -> None:
        super()._take(w, outputs)
        thresholds = thresholds_of(w, outputs, self.model_.dimension)
        if thresholds is not None:
            self.thresholds_ = thresholds

    def _trained(self) -> Floats:
        return np.concatenate([super()._trained(), getattr(self, "thresholds_", np.zeros(0))])

    def _fitted_state(self) -> dict[str, Any]:
        if not hasattr(self, "estimators_"):
            return super()._fitted_state()
        members = [
            each._fitted_state() | {"report": report_state(each.constraint_report_)}
            for each in self.estimators_
        ]
        importances = [list(self.importances_), list(self.importances_.values())]
        return {
            "columns": columns_state(self.columns_),
            "classes": members,
            "importances": importances,
        }

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        if "classes" not in state:
            super()._restore_fitted(state)
            return
        self.columns_ = columns_from(state["columns"])
        self.estimators_ = [self._member(each) for each in state["classes"]]
        self.importances_ = dict(zip(*state["importances"], strict=True))
        if len(self.estimators_) != self.classes_.size:
            raise ModelFileError("the models do not belong to the classes")

    def _member(self, state: dict[str, Any]) -> LatticeClassifier:
        """One class against the rest, from its state."""
        member = type(self)(**self.get_params(deep=False))
        member.classes_ = np.array([False, True])
        member.n_features_in_, member.n_iter_ = self.n_features_in_, self.n_iter_
        if hasattr(self, "feature_names_in_"):
            member.feature_names_in_ = self.feature_names_in_
        member.status_ = self.status_
        member.constraint_report_ = report_from(state["report"])
        member._restore_fitted(state)
        return member

    def check_constraints(self, X: Table = None) -> ConstraintReport:
        """Check every rule again, on the stored parameters and on predictions.

        Parameters
        ----------
        X : table, optional
            Rows around which predictions are checked as well, for every kind of rule.

        Returns
        -------
        ConstraintReport
            One line per rule, each with the scale on which it holds; none for unordered classes.
        """
        if hasattr(self, "estimators_"):
            return self.constraint_report_
        return super().check_constraints(X)

    def _canonical(self, plan: Plan) -> CanonicalRules | None:
        if self.canonical_examples is None:
            return None
        X, y = pair_of_tables(self.canonical_examples)
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
