"""The proof: for every rule its rows, the largest violation, the rows that bind, and what the rules
cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.estimators.rules import RuleRows
from lighttouch.text import printable

Floats = NDArray[np.float64]
BINDING = 1e-7  # slack below this share of the parameters' size counts as none


@dataclass(frozen=True)
class RuleReport:
    """One rule: how many rows, how badly the worst is broken (0: none is), and which hold with
    equality.

    `broken_without` and `violation_without` say the same of the model trained without rules (None:
    not computed).
    """

    rule: str
    rows: int
    violation: float
    binding: NDArray[np.int64]
    broken_without: int | None = None
    violation_without: float | None = None


@dataclass(frozen=True)
class ConstraintReport:
    """Every rule, and the training objective with the rules and without them (None: not
    computed).
    """

    rules: tuple[RuleReport, ...]
    objective: float
    objective_without_rules: float | None

    @property
    def rows(self) -> int:
        return sum(rule.rows for rule in self.rules)

    @property
    def violation(self) -> float:
        """The largest violation of any row; 0 after the exact finish."""
        return max((rule.violation for rule in self.rules), default=0.0)

    @property
    def price(self) -> float | None:
        """How much the rules raise the training objective."""
        return (
            None
            if self.objective_without_rules is None
            else self.objective - self.objective_without_rules
        )

    def to_frame(self) -> Any:
        """One line a rule, as a pandas DataFrame."""
        import pandas as pd

        lines = [
            {"rule": r.rule, "rows": r.rows, "violation": r.violation, "binding": r.binding.size}
            for r in self.rules
        ]
        return pd.DataFrame(lines, columns=["rule", "rows", "violation", "binding"])

    def __str__(self) -> str:
        width = max([len(printable(rule.rule)) for rule in self.rules] + [4])
        lines = [f"{'rule':<{width}}  {'rows':>8}  {'binding':>8}  violation"]
        for rule in self.rules:
            lines.append(
                f"{printable(rule.rule):<{width}}  {rule.rows:>8,}  {rule.binding.size:>8,}  "
                f"{rule.violation:g}"
            )
        if self.objective_without_rules is None:
            lines.append(
                f"objective {self.objective:.6g} (without rules: not computed for a model "
                "of this size)"
            )
        else:
            without = f"without rules {self.objective_without_rules:.6g}"
            lines.append(
                f"objective {self.objective:.6g}, {without}: the rules cost {self.price:.3g}"
            )
        return "\n".join(lines)


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


def check_rule(rule: RuleRows, w: Floats, free: Floats | None = None) -> RuleReport:
    """Recomputed from the parameters."""
    if free is not None and rule.count:
        excess = np.asarray(rule.A @ free) - rule.b
        broken = excess > BINDING * max(float(np.abs(free[1:]).max(initial=0.0)), 1e-300)
        return replace(
            check_rule(rule, w),
            broken_without=int(broken.sum()),
            violation_without=max(0.0, float(excess.max())),
        )
    if rule.count == 0:
        return RuleReport(rule.label, 0, 0.0, np.zeros(0, dtype=np.int64))
    values = np.asarray(rule.A @ w) - rule.b
    slack = BINDING * max(float(np.abs(w[1:]).max(initial=0.0)), 1e-300)
    return RuleReport(
        rule.label, rule.count, max(0.0, float(values.max())), np.flatnonzero(values >= -slack)
    )
