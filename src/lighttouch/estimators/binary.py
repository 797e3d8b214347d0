"""What classifiers of two classes share: scores, classes, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from lighttouch.arrays import Floats
from lighttouch.estimators.losses import chance
from lighttouch.estimators.proof import ConstraintReport, ScaledReports
from lighttouch.estimators.tables import Table


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss gives probabilities, as `available_if` asks."""
    if estimator.loss != "logistic":
        raise AttributeError(
            "predict_proba needs loss='logistic'; the hinge loss gives no probabilities"
        )
    return True


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
