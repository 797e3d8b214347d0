"""On which scale the rules of a model hold: the predictions themselves, or a score behind them."""

from __future__ import annotations

from typing import Any

from lighttouch.estimators.proof import ConstraintReport


class ScaledReports:
    """Reports whose rules name their scale; a class offers `_labelled(report)`.

    Stands before the class whose reports it labels.
    """

    _labelled_report: ConstraintReport

    @property
    def constraint_report_(self) -> ConstraintReport:
        """Every rule: rows, largest violation, binding rows, and the scale on which it holds.

        Rules that compare predictions hold for the score and for every increasing function of it,
        such as a probability or a mean. Rules about curvature, slopes and differences hold for the
        score: the log-odds, or the logarithm of the mean.
        """
        return self._labelled_report

    @constraint_report_.setter
    def constraint_report_(self, report: ConstraintReport) -> None:
        self._labelled_report = self._labelled(report)

    def check_constraints(self, X: Any = None) -> ConstraintReport:
        """Check every rule again, on the stored parameters and on predictions.

        Parameters
        ----------
        X : table, optional
            Rows around which the predictions of a lattice model are checked as well, for every
            kind of rule.

        Returns
        -------
        ConstraintReport
            One line per rule, each with the scale on which it holds.
        """
        checked: ConstraintReport = super().check_constraints(X)  # type: ignore[misc]
        return self._labelled(checked)

    def _labelled(self, report: ConstraintReport) -> ConstraintReport:
        return report
