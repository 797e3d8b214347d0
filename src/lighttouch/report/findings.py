"""Everything the report measures, as numbers: accuracy, prices of rules, groups, folds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lighttouch.report.accuracy import Accuracy, Data, judge, summary
from lighttouch.report.groups import Group, by_group
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import Model
from lighttouch.report.refits import Clock, Folds, Price, folds, prices


@dataclass(frozen=True)
class Findings:
    """What was measured, and within how many seconds models were trained again for it."""

    measured: tuple[Accuracy, ...]
    prices: tuple[Price, ...] = ()
    groups: tuple[Group, ...] = ()
    folds: Folds | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        told = asdict(self)
        if self.folds is not None:
            told["folds"]["spread"] = self.folds.spread()
        return told


def examine(
    model: Model,
    train: Data,
    test: Data | None = None,
    seconds: float = LIMITS.seconds,
    expected: float = 0.0,
) -> Findings:
    """Measure a fitted model, and train it again within `seconds` in all: without each rule, judged
    on the rows of `test`, and on parts of the training rows.

    `expected` is how long one training took. Accuracy is measured on the training rows and on
    `test`, by groups on `test` where there is one.
    """
    data = [train] if test is None else [train, test]
    judged = [judge(model, each) for each in data]
    measured = tuple(summary(each, rows.name) for each, rows in zip(judged, data, strict=True))
    groups = by_group(judged[-1], data[-1].groups)
    clock = Clock(seconds, expected)
    priced = prices(model, train, test, clock.half())
    parts = folds(model, train, clock) if seconds > 0.0 else None
    return Findings(measured, tuple(priced), tuple(groups), parts, seconds)
