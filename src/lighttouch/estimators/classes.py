"""Scores and probabilities of any number of classes: two, ordered ones, or one model per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import ConstraintError, DataError
from lighttouch.estimators.fitting import Examples
from lighttouch.estimators.outputs import OrderedClasses, Outputs
from lighttouch.estimators.parameters import CLASSIFICATION
from lighttouch.estimators.proof import ConstraintReport, ScaledReports
from lighttouch.estimators.tables import SquaresAbout, Table, Total, mean_target
from lighttouch.estimators.training import NORMAL
from lighttouch.kernels.verbs.losses import LossRow
from lighttouch.losses import loss_of
from lighttouch.validation import one_of

SMALLEST = float(np.finfo(np.float64).tiny)  # keeps logarithms of probabilities finite


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss gives probabilities, as `available_if` asks."""
    if estimator.loss != "logistic":
        raise AttributeError(
            "predict_proba needs loss='logistic'; the hinge loss gives no probabilities"
        )
    return True


def chance(z: Floats) -> Floats:
    """1 / (1 + e^-z), never falling in z to the last bit.

    z is rounded to a multiple of 2^-32 (which changes a probability by less than 1e-10): neighbours
    on that grid give values that differ by far more than the rounding errors of `exp`, so the
    computed values keep their order.
    """
    steps = np.round(np.clip(z, -740.0, 740.0) * 2.0**32) / 2.0**32
    small = np.exp(-np.abs(steps))
    rare = small / (1.0 + small)
    return np.where(steps > 0.0, 1.0 - rare, rare)


def margin_loss(loss: Any) -> LossRow:
    return loss_of(one_of(loss, CLASSIFICATION, "loss"))


class BinaryScores(ScaledReports, ClassifierMixin):  # type: ignore[misc]
    """Two classes, by the sign of a score; with the logistic loss the score is the
    log-odds of the second class.

    A class offers `_scores(X)`. Stands before the class whose reports it labels.
    """

    loss: str
    classes_: NDArray[Any]

    def _labelled(self, report: ConstraintReport) -> ConstraintReport:
        if self.loss == "logistic":
            return report.on_scores("log-odds", "probability")
        return report.on_scores("score")

    def decision_function(self, X: Table) -> Floats:
        """Score rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            Above 0 means the second class, `classes_[1]`.
        """
        return np.asarray(self._scores(X))

    def predict(self, X: Table) -> NDArray[Any]:
        """Classify rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            A member of `classes_` for every row.
        """
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0.0).astype(int)])

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Give the probabilities of the two classes.

        That of the second class is monotone to the last bit where the score is.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n, 2)
            One column per class, in the order of `classes_`.

        Raises
        ------
        AttributeError
            With loss="hinge", which gives no probabilities.
        """
        second = chance(self.decision_function(X))
        return np.column_stack([1.0 - second, second])

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Table) -> Floats:
        """Give the logarithms of the probabilities, accurate also near 0.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n, 2)
            One column per class, in the order of `classes_`.

        Raises
        ------
        AttributeError
            With loss="hinge", which gives no probabilities.
        """
        scores = self.decision_function(X)
        return np.column_stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _is_ordinal(estimator: Any) -> bool:
    if not hasattr(estimator, "thresholds_"):
        raise AttributeError(
            "predict_cumulative needs ordered classes: fit with ordinal=True and more than two"
        )
    return True


class ClassScores(BinaryScores):
    """Two classes by one score, ordered classes by one score and thresholds, any other classes by
    one model of each against the rest.

    A class offers `_scores(X)`; `estimators_` where there is one model per class.
    """

    ordinal: bool | Sequence[Any]
    thresholds_: Floats
    estimators_: list[Any]

    @property
    def _unordered(self) -> bool:
        return hasattr(self, "estimators_")

    def _labelled(self, report: ConstraintReport) -> ConstraintReport:
        if hasattr(self, "thresholds_"):
            return report.on_scores("cumulative log-odds", "cumulative probability")
        return super()._labelled(report)

    def decision_function(self, X: Table) -> Floats:
        """Score rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,), or (n, classes) for more than two classes
            With two classes, above 0 means the second class, `classes_[1]`; with the logistic loss
            it is the log-odds. With more, the class with the largest score is predicted: of
            ordered classes the logarithms of their probabilities, of others the score of each
            class against the rest.
        """
        if self._unordered:
            return np.column_stack([each.decision_function(X) for each in self.estimators_])
        if hasattr(self, "thresholds_"):
            return np.log(np.maximum(self._shares(X), SMALLEST))
        return super().decision_function(X)

    def predict(self, X: Table) -> NDArray[Any]:
        """Classify rows of X.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n,)
            A member of `classes_` for every row: the most probable one.
        """
        check_is_fitted(self, "classes_")
        if len(self.classes_) == 2:
            return super().predict(X)
        return np.asarray(self.classes_[np.argmax(self.decision_function(X), axis=1)])

    @available_if(_is_ordinal)  # type: ignore[untyped-decorator]
    def predict_cumulative(self, X: Table) -> Floats:
        """Give the probabilities that ordered classes are exceeded.

        Rules hold for each of them: where a column is increasing, none ever falls.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n, classes - 1)
            Column k: the probability of a class above `classes_[k]`. Rows never rise.

        Raises
        ------
        AttributeError
            If the classes are not ordered, or there are only two.
        """
        return chance(self._scores(X)[:, None] - self.thresholds_)

    def _shares(self, X: Table) -> Floats:
        """Probabilities of ordered classes."""
        above = self.predict_cumulative(X)
        ends = np.ones((above.shape[0], 1)), np.zeros((above.shape[0], 1))
        return -np.diff(np.hstack([ends[0], above, ends[1]]), axis=1)

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Give the probabilities of the classes.

        Of two classes, that of the second is monotone to the last bit where the score is; of
        ordered ones those of `predict_cumulative` are. Of other classes they are the probabilities
        of each class against the rest, divided by their sum.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n, classes)
            One column per class, in the order of `classes_`.

        Raises
        ------
        AttributeError
            With loss="hinge", which gives no probabilities.
        """
        if hasattr(self, "thresholds_"):
            return self._shares(X)
        if self._unordered:
            alone = np.maximum(chance(self.decision_function(X)), SMALLEST)
            return np.asarray(alone / alone.sum(axis=1, keepdims=True))
        return np.asarray(super().predict_proba(X))

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Table) -> Floats:
        """Give the logarithms of the probabilities.

        Parameters
        ----------
        X : table of shape (n, columns)
            Rows with the columns of the training table.

        Returns
        -------
        array of shape (n, classes)
            One column per class, in the order of `classes_`; with two classes accurate also near
            0.

        Raises
        ------
        AttributeError
            With loss="hinge", which gives no probabilities.
        """
        check_is_fitted(self, "classes_")
        if len(self.classes_) == 2:
            return np.asarray(super().predict_log_proba(X))
        return np.asarray(np.log(np.maximum(self.predict_proba(X), SMALLEST)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def ordered_classes(ordinal: bool | Sequence[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """The classes in the order that `ordinal` names, or sorted."""
    if isinstance(ordinal, bool | np.bool_):
        return classes
    given, held = list(ordinal), classes.tolist()
    if classes.dtype.kind in "iuf":
        given = _as_numbers(given)
    if len(given) != len(held) or any(each not in given for each in held):
        absent = [each for each in given if each not in held]
        raise DataError(
            "ordinal must be True, False or all classes of y in ascending order, got "
            f"{given!r}; y holds {held[:12]!r}"
            + (f" and no row of {absent[0]!r}" if absent else "")
        )
    return np.asarray(classes[[held.index(each) for each in given]])


def _as_numbers(given: list[Any]) -> list[Any]:
    """Names of classes that are numbers, as a command line writes them; others as they are."""
    try:
        return [float(each) for each in given]
    except (TypeError, ValueError):
        return given


def ordinal_examples(table: Floats, codes: Indices, weights: Floats, classes: int) -> Examples:
    """Examples of ordered classes; while the structure is chosen, their standardised numbers stand
    for the log-odds.
    """
    numbers = codes.astype(np.float64)
    mean, spread = ordinal_units(lambda part: part(numbers, weights, None))
    return ordinal_examples_in(mean, spread, table, numbers, weights, classes)


def ordinal_units(total: Total) -> tuple[float, float]:
    """The mean and the spread of the numbers of ordered classes."""
    mean = total(mean_target)
    return mean, float(np.sqrt(total(SquaresAbout(mean)))) or 1.0


def ordinal_examples_in(
    mean: float, spread: float, table: Floats, numbers: Floats, weights: Floats, classes: int
) -> Examples:
    return Examples(
        [(table, 1.0)],
        numbers,
        weights,
        nearby=((numbers - mean) / spread, weights),
        outputs=OrderedClasses(classes),
    )


def refuse_rules(estimator: Any, rules: int, classes: int) -> None:
    """Of unordered classes none can be the one that a rule is about."""
    if rules:
        raise ConstraintError(
            f"rules need two classes or ordered ones, y holds {classes} that are not: "
            "probabilities of unordered classes add up to 1, so what raises one lowers others, "
            "and the models in which a rule holds for one of them are not a convex set. Pass "
            "ordinal=True (--ordinal on the command line) if the classes have an order, or fit one "
            f"{type(estimator).__name__} for the class that the rules are about against the rest"
        )


def together(members: list[Any]) -> tuple[ConstraintReport, str, int]:
    """The report, the status and the iterations of several models."""
    reports = [each.constraint_report_ for each in members]
    total = float(sum(report.objective for report in reports))
    worst = next((each.status_ for each in members if each.status_ not in NORMAL), None)
    stalled = any(each.status_ == "stalled" for each in members)
    status = worst or ("stalled" if stalled else "converged")
    return ConstraintReport((), total, total), status, max(each.n_iter_ for each in members)


def mean_importances(members: list[Any]) -> dict[str, float]:
    """Sizes of effects, averaged over the classes' models, the largest first."""
    total: dict[str, float] = {}
    for each in members:
        for name, size in each.importances_.items():
            total[name] = total.get(name, 0.0) + size / len(members)
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def thresholds_of(w: Floats, outputs: Outputs, dimension: int) -> Floats | None:
    """The trained thresholds of ordered classes; None for other outputs."""
    return w[dimension:] if isinstance(outputs, OrderedClasses) else None
