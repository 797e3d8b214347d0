"""The proof: for every rule its rows, the largest violation, the rows that bind, what the rules
cost, and on which scale they hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.rules import RuleRows
from lighttouch.estimators.training import NORMAL
from lighttouch.text import printable

if TYPE_CHECKING:
    import pandas as pd

BINDING = 1e-7  # slack below this share of the parameters' size counts as none
SMALLEST = 1e-300  # keeps that share positive where all parameters are 0


@dataclass(frozen=True)
class RuleReport:
    """One rule: its rows, how badly the worst is broken, and which hold with equality.

    Attributes
    ----------
    rule : str
        What the rule is called, such as "Convex(age)".
    rows : int
        How many rows about the parameters the rule is.
    violation : float
        The largest violation of any row; 0 where none is broken.
    binding : array of int
        The rows that hold with equality.
    broken_without, violation_without : int, float or None
        The same of the model trained without rules: rows broken and largest violation. None where
        that was not computed.
    about_order : bool
        Whether the rule only compares predictions, so that it also holds for every increasing
        function of them.
    scale : str
        What the rule holds for: "prediction"; in a classifier "log-odds", or "probability" (which
        includes the log-odds); without probabilities "score"; with a log link "log-mean", or "mean"
        (which includes the log-mean).
    exponential : bool
        Whether the rule also holds for the exponential of predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from lighttouch.report import RuleReport
    >>> RuleReport("Convex(age)", rows=18, violation=0.0, binding=np.array([3, 4])).binding.size
    2
    """

    rule: str
    rows: int
    violation: float
    binding: Indices
    broken_without: int | None = None
    violation_without: float | None = None
    about_order: bool = False
    scale: str = "prediction"
    exponential: bool = False


@dataclass(frozen=True)
class ConstraintReport:
    """Every rule, and the training objective with the rules and without them.

    `constraint_report_` of a fitted estimator is one, and `check_constraints` returns one.

    Attributes
    ----------
    rules : tuple of RuleReport
        One report per rule.
    objective : float
        The training objective of the model.
    objective_without_rules : float or None
        That of the model trained without rules; None where that was not computed, or where one of
        the two trainings ended early.
    proven : bool
        Whether both are proven to be within the tolerance of the optimum. If not, both have stopped
        improving: they are probably near it.

    Examples
    --------
    >>> import numpy as np
    >>> from lighttouch.report import ConstraintReport, RuleReport
    >>> rule = RuleReport("Convex(age)", rows=18, violation=0.0, binding=np.array([3, 4]))
    >>> report = ConstraintReport((rule,), objective=0.5, objective_without_rules=0.25)
    >>> report.rows, report.violation, report.price
    (18, 0.0, 0.25)
    >>> print(report)
    rule             rows   binding  violation
    Convex(age)        18         2  0
    objective 0.5, without rules 0.25: the rules cost 0.25
    """

    rules: tuple[RuleReport, ...]
    objective: float
    objective_without_rules: float | None
    proven: bool = True

    @property
    def rows(self) -> int:
        """The rows of all rules together."""
        return sum(rule.rows for rule in self.rules)

    @property
    def violation(self) -> float:
        """The largest violation of any row; 0 after the exact finish."""
        return max((rule.violation for rule in self.rules), default=0.0)

    @property
    def price(self) -> float | None:
        """How much the rules raise the training objective; None where that was not computed. Only
        where both trainings are `proven` is it known to be what the rules cost.
        """
        return (
            None
            if self.objective_without_rules is None
            else self.objective - self.objective_without_rules
        )

    def of_training(self, status: str) -> ConstraintReport:
        """The report of a training that ended so: what the rules cost is not known of one that
        ended early.
        """
        early = status not in NORMAL
        without = None if early and self.rules else self.objective_without_rules
        return replace(self, objective_without_rules=without, proven=status == "converged")

    def on_scores(
        self, score: str, image: str | None = None, exponential: bool = False
    ) -> ConstraintReport:
        """The report of a model whose rules are about a score, such as log-odds.

        Rules that are about order also hold for its increasing `image`, such as a probability; if
        the image is the exponential of the score, a few more do.
        """
        scales = (
            image if image and (rule.about_order or (exponential and rule.exponential)) else score
            for rule in self.rules
        )
        rules = (replace(rule, scale=s) for rule, s in zip(self.rules, scales, strict=True))
        return replace(self, rules=tuple(rules))

    def to_frame(self) -> pd.DataFrame:
        """One line per rule; needs pandas.

        Returns
        -------
        DataFrame
            With the columns `rule`, `rows`, `violation`, `binding` (how many rows hold with
            equality) and `scale`.
        """
        import pandas as pd

        columns = ["rule", "rows", "violation", "binding", "scale"]
        lines = [(r.rule, r.rows, r.violation, r.binding.size, r.scale) for r in self.rules]
        return pd.DataFrame(lines, columns=columns)

    def __str__(self) -> str:
        width = max([len(printable(rule.rule)) for rule in self.rules] + [4])
        scaled = any(rule.scale != "prediction" for rule in self.rules)
        lines = [f"{'rule':<{width}}  {'rows':>8}  {'binding':>8}  violation"]
        lines[0] += "  holds for" if scaled else ""
        for rule in self.rules:
            counts = f"{rule.rows:>8,}  {rule.binding.size:>8,}"
            end = f"{rule.violation:<9g}  {rule.scale}" if scaled else f"{rule.violation:g}"
            lines.append(f"{printable(rule.rule):<{width}}  {counts}  {end}")
        return "\n".join([*lines, self._price_in_words()])

    def _price_in_words(self) -> str:
        if self.objective_without_rules is None:
            return (
                f"objective {self.objective:.6g} (what the rules add to it is not known: a "
                "training without them was not made, or one of the two ended early)"
            )
        both = f"objective {self.objective:.6g}, without rules {self.objective_without_rules:.6g}"
        if self.proven or not self.rules:
            return f"{both}: the rules cost {self.price:.3g}"
        return (
            f"{both} (both have stopped improving, probably near their optima; neither is proven, "
            "so what the rules add is not known exactly)"
        )


def make_report(
    rules: list[RuleRows],
    w: Floats,
    objective: float,
    without: float | None,
    free: Floats | None = None,
) -> ConstraintReport:
    """`without` and `free` are the objective and the parameters of the model trained without
    rules.
    """
    checked = tuple(check_rule(rule, w, free) for rule in rules)
    return ConstraintReport(checked, float(objective), None if without is None else float(without))


def checked_again(report: ConstraintReport, rules: list[RuleRows], w: Floats) -> ConstraintReport:
    """The report with its rules checked on other parameters."""
    found = [check_rule(rule, w) for rule in rules]
    checked = (
        replace(old, violation=new.violation, binding=new.binding)
        for old, new in zip(report.rules, found, strict=True)
    )
    return replace(report, rules=tuple(checked))


def checked_excess(
    label: str, excess: Floats, about_order: bool = False, slack: float = 0.0
) -> RuleReport:
    """A rule whose inequalities are broken by `excess`, where that is positive; up to `slack` below
    0 they hold with equality.
    """
    worst = max(0.0, float(excess.max(initial=0.0)))
    equal = np.flatnonzero((excess >= -slack) & (excess <= slack))
    return RuleReport(label, int(excess.size), worst, equal, about_order=about_order)


def check_rule(rule: RuleRows, w: Floats, free: Floats | None = None) -> RuleReport:
    """A rule checked on the parameters w, and on `free`, those trained without rules."""
    if rule.count == 0:
        none = np.zeros(0, dtype=np.int64)
        return RuleReport(
            rule.label, 0, 0.0, none, about_order=rule.about_order, exponential=rule.exponential
        )
    values = _excess(rule, w)
    found = RuleReport(
        rule.label,
        rule.count,
        max(0.0, float(values.max())),
        np.flatnonzero(values >= -_slack(w)),
        about_order=rule.about_order,
        exponential=rule.exponential,
    )
    if free is None:
        return found
    values = _excess(rule, free)
    broken = int((values > _slack(free)).sum())
    return replace(found, broken_without=broken, violation_without=max(0.0, float(values.max())))


def _excess(rule: RuleRows, w: Floats) -> Floats:
    return np.asarray(rule.A @ w) - rule.b


def _slack(w: Floats) -> float:
    """The slack that counts as none, given parameters whose first is the intercept."""
    return BINDING * max(float(np.abs(w[1:]).max(initial=0.0)), SMALLEST)


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
