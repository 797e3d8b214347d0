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
    """What was measured, and within how many seconds models were trained again for it.

    Attributes
    ----------
    measured : tuple of Accuracy
        On the training rows, then on held-out rows where there are any.
    prices : tuple of Price
        One for each rule: `rule`, `changes` (how much each measure changes on held-out rows without
        the rule), `intervals`, and `untold`, which says why there is no price.
    groups : tuple of Group
        The measures of each group of rows.
    folds : Folds or None
        `parts`, the measures of models trained on all parts of the rows but one, `spread()`, their
        means and standard deviations, and `untold`, which says why there are fewer than asked for.
    seconds : float
        For all models trained again.

    Examples
    --------
    >>> from lighttouch.report import Accuracy, Findings
    >>> found = Findings((Accuracy("held out", 100, {"mean absolute error": 0.25}),))
    >>> found.to_dict()["measured"][0]["rows"]
    100
    """

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
    """Measure a fitted model, and train it again: without each rule, and on parts of its rows.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package.
    train : Data
        The training rows.
    test : Data, default=None
        Held-out rows; without them no rule has a price. Groups are told apart on them, and on the
        training rows where there are none.
    seconds : float, default=20.0
        For all models trained again: half for the prices of the rules, the rest for the parts. What
        does not fit into them is left out, and `untold` says so; 0 trains none.
    expected : float, default=0.0
        How long one training took, so that none is begun that would not end in time.

    Returns
    -------
    Findings
        Accuracy with intervals, prices, groups and folds.

    Raises
    ------
    DataError
        If a target is none of the classifier's classes.

    Examples
    --------
    >>> import numpy as np
    >>> import lighttouch as lt
    >>> from lighttouch.report import Data, examine
    >>> X = np.arange(12.0)[:, None]
    >>> train, test = Data("train", X[::2], X[::2, 0]), Data("held out", X[1::2], X[1::2, 0])
    >>> model = lt.ConstrainedLinearRegressor(monotonic_cst={0: 1}).fit(train.X, train.y)
    >>> found = examine(model, train, test, seconds=0.0)
    >>> [each.name for each in found.measured], found.prices[0].rule, found.prices[0].untold[:17]
    (['train', 'held out'], 'increasing in x0', 'no time was given')
    """
    data = [train] if test is None else [train, test]
    judged = [judge(model, each) for each in data]
    measured = tuple(summary(each, rows.name) for each, rows in zip(judged, data, strict=True))
    groups = by_group(judged[-1], data[-1].groups)
    clock = Clock(seconds, expected)
    priced = prices(model, train, test, clock.half())
    parts = folds(model, train, clock) if seconds > 0.0 else None
    return Findings(measured, tuple(priced), tuple(groups), parts, seconds)
