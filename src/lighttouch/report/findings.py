"""Everything the report measures, as numbers: accuracy, by group too, prices of rules, and models
trained on parts of the rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from lighttouch.arrays import Floats, Indices
from lighttouch.estimators.training import NORMAL
from lighttouch.estimators.trees import with_as_many
from lighttouch.report.accuracy import (
    Accuracy,
    Data,
    Interval,
    Judged,
    Measures,
    Numbers,
    TwoClasses,
    bootstrap,
    difference,
    judge,
    summary,
)
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import Model
from lighttouch.report.words import Rule, rules_asked


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


# -------------------------------------------------------------------------------------------------
# Measures by group: how good a model is for the rows of each value of a column.


MISSING, OTHERS = "(missing)", "(all others)"


@dataclass(frozen=True)
class Group:
    """One value of a column: its rows, and the measures there where there are enough rows."""

    column: str
    group: str
    accuracy: Accuracy


def by_group(judged: Judged, columns: dict[str, Any]) -> list[Group]:
    """The measures of the rows of every group of each column, with intervals.

    Besides the usual measures: the mean prediction and the mean target (of two classes: the mean
    probability, the share of the second class and the share of rows that are predicted so).
    """
    found = []
    for name, values in columns.items():
        for group, rows in grouped(values):
            found.append(Group(name, group, _measured(judged, group, rows)))
    return found


def _measured(judged: Judged, name: str, rows: Indices) -> Accuracy:
    if rows.size < LIMITS.least_group:
        return Accuracy(name, int(rows.size), {})
    few = judged.only(rows)
    if few is None:
        return Accuracy(name, int(rows.size), {})
    measures = _means(few) | few.plain()
    return Accuracy(name, int(rows.size), measures, bootstrap(few.units, few.measures))


def _means(judged: Judged) -> dict[str, float]:
    if isinstance(judged, TwoClasses):
        found = {"share of the second class": float(judged.second.mean())}
        if judged.shares is not None:
            found["mean probability"] = float(judged.shares.mean())
        return found | {"predicted as second": float((judged.scores > 0.0).mean())}
    if isinstance(judged, Numbers):
        means = float(judged.truth.mean()), float(judged.predicted.mean())
        return {"mean target": means[0], "mean prediction": means[1]}
    return {}


def grouped(values: object) -> list[tuple[str, Indices]]:
    """The rows of each group: values, or quarters of numbers with many values."""
    cells = np.asarray(values)
    absent = _absent(cells)
    if cells.dtype.kind in "fiu" and np.unique(cells[~absent]).size > LIMITS.groups:
        found = _quarters(cells.astype(np.float64), absent)
    else:
        found = _values(cells, absent)
    if absent.any():
        found.append((MISSING, np.flatnonzero(absent)))
    return found


def _absent(cells: Any) -> Any:
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    if cells.dtype.kind == "O":
        return np.array([_is_nothing(each) for each in cells.tolist()], dtype=bool)
    return np.zeros(cells.shape, dtype=bool)


def _is_nothing(cell: object) -> bool:
    """None, NaN, or pandas' NA, which is not equal to itself either."""
    return cell is None or type(cell).__name__ == "NAType" or cell != cell  # noqa: PLR0124


def _quarters(cells: Floats, absent: Any) -> list[tuple[str, Indices]]:
    cuts = np.unique(np.quantile(cells[~absent], [0.0, 0.25, 0.5, 0.75, 1.0]))
    place = np.clip(np.searchsorted(cuts, cells, side="right") - 1, 0, max(0, cuts.size - 2))
    found = []
    for k in range(max(1, cuts.size - 1)):
        rows = np.flatnonzero((place == k) & ~absent)
        below = "" if k >= cuts.size - 2 else "below "
        found.append((f"{cuts[k]:g} to {below}{cuts[min(k + 1, cuts.size - 1)]:g}", rows))
    return found


def _values(cells: Any, absent: Any) -> list[tuple[str, Indices]]:
    names = np.array([str(each) for each in cells.tolist()], dtype=object)
    kinds, place, counts = np.unique(
        names[~absent].astype(str), return_inverse=True, return_counts=True
    )
    rows = np.flatnonzero(~absent)
    order = np.argsort(-counts, kind="stable")
    shown = order if order.size <= LIMITS.groups else order[: LIMITS.groups - 1]
    found = [(str(kinds[k]), rows[place == k]) for k in shown]
    if shown.size < order.size:
        found.append((OTHERS, rows[~np.isin(place, shown)]))
    return found


# -------------------------------------------------------------------------------------------------
# Models trained again for the report, within a time: without each rule, and on parts of the rows.
#
# The price of a rule is the difference, on held-out rows, between two models with the curves and
# lattices of the fitted one, trained again alike: with every rule, and without that one. It is not
# told where either did not converge.


MORE_TIME = "examine(seconds=...) in Python, --report-time on the command line"


@dataclass(frozen=True)
class Price:
    """What one rule costs: how much each measure changes on held-out rows without it.

    `untold` says why there is no price.
    """

    rule: str
    changes: Measures = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    untold: str = ""


@dataclass(frozen=True)
class Folds:
    """The measures of models trained on all parts but one, on that part; `untold` says why fewer
    were trained than asked for.
    """

    asked: int
    parts: tuple[Accuracy, ...] = ()
    untold: str = ""

    def spread(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation over the parts, of every measure."""
        names = self.parts[0].measures if self.parts else {}
        found = {}
        for name in names:
            values = [each.measures[name] for each in self.parts if name in each.measures]
            deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            found[name] = (float(np.mean(values)), deviation)
        return found


class Clock:
    """Seconds that are left for refits; none is begun that would likely take longer."""

    def __init__(self, seconds: float, expected: float = 0.0, told: float | None = None) -> None:
        self.seconds = seconds if told is None else told
        self._until, self._expected = time.perf_counter() + seconds, expected

    @property
    def left(self) -> float:
        return self._until - time.perf_counter()

    @property
    def over(self) -> bool:
        return self.left <= self._expected

    def half(self) -> Clock:
        """Half of what is left, as a clock of its own."""
        return Clock(0.5 * max(0.0, self.left), self._expected, self.seconds)

    def took(self, seconds: float) -> None:
        self._expected = seconds

    @property
    def told(self) -> str:
        if self.seconds <= 0.0:
            return f"no time was given to models trained again ({MORE_TIME})"
        return (
            f"the {self.seconds:g} seconds for all models trained again do not suffice "
            f"({MORE_TIME})"
        )


def prices(model: Model, train: Data, held_out: Data | None, clock: Clock) -> list[Price]:
    """One price per rule that was asked for, in its order."""
    rules = rules_asked(model)
    if held_out is None:
        told = "there are no held-out rows: give test= in Python, --holdout or --test to train"
        return [Price(rule.name, untold=told) for rule in rules]
    if model.status_ not in NORMAL:
        told = f"the model's own training ended at its {model.status_}, before it converged"
        return [Price(rule.name, untold=told) for rule in rules]
    priced = any(rule.without is not None for rule in rules)
    whole = _again(model, {}, train, held_out, clock) if priced else ""
    return [_price(model, rule, whole, train, held_out, clock) for rule in rules]


def _price(
    model: Model, rule: Rule, whole: Judged | str, train: Data, held_out: Data, clock: Clock
) -> Price:
    """`whole` is the model trained again with every rule, or why there is none."""
    if rule.without is None:
        return Price(rule.name, untold=rule.stays)
    if isinstance(whole, str):
        return Price(rule.name, untold=whole)
    free = (
        _again(model, rule.without, train, held_out, clock) if _binds(model, rule.name) else whole
    )
    if isinstance(free, str):
        return Price(rule.name, untold=free)
    return Price(rule.name, *difference(whole, free))


def _binds(model: Any, name: str) -> bool:
    """Whether a rule may change the model. The minimum of a convex objective stays where it is
    without rows that do not bind; what the rules keep trees from is not counted, and of models
    that were not compared with one without rules nothing is known.
    """
    rules = [rule for rule in model.constraint_report_.rules if rule.rule == name]
    idle = all(not rule.binding.size and rule.broken_without is not None for rule in rules)
    return not idle or getattr(model, "trees_", None) is not None


def _again(
    model: Model, without: dict[str, Any], train: Data, held_out: Data, clock: Clock
) -> Judged | str:
    """The model trained again with other parameters, on held-out rows; or why that has no end."""
    if clock.over:
        return clock.told
    again = _same_terms(model)
    again.set_params(**without)
    ended = _fit(again, train, clock)
    if ended not in NORMAL:
        told = "without it" if without else "again with every rule"
        return f"training {told} ended at its {ended}, before it converged"
    return judge(again, held_out)


def _same_terms(model: Any) -> Any:
    """An unfitted copy that takes the fitted model's curves and lattices, where it can."""
    free = clone(model)
    if "warm_start" in free.get_params(deep=False) and hasattr(model, "model_"):
        free.set_params(warm_start=True)
        for name in ("columns_", "model_", "parameters_"):
            setattr(free, name, getattr(model, name))
    return with_as_many(free, model)


def _fit(estimator: Any, data: Data, clock: Clock) -> str:
    """Train within the time that is left; how it ended."""
    began = time.perf_counter()
    known = estimator.get_params(deep=False)
    quiet: dict[str, Any] = {"verbose": 0} if "verbose" in known else {}
    if "checkpoint" in known:
        quiet["checkpoint"] = None
    own = known.get("time_limit")
    estimator.set_params(**quiet, time_limit=min(clock.left, own or clock.left))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if data.worse is not None:
            estimator.fit_pairs(data.X, data.worse)
        else:
            more = {
                name: np.asarray(each)
                for name, each in (("qid", data.qid), ("exposure", data.exposure))
                if each is not None
            }
            estimator.fit(data.X, np.asarray(data.y), **more)
    clock.took(time.perf_counter() - began)
    return str(estimator.status_)


def folds(model: Model, data: Data, clock: Clock) -> Folds:
    """Cross-validation of the whole training, structure included."""
    asked = min(LIMITS.folds, _units(data))
    if asked < 2:
        return Folds(asked, untold="there are too few rows")
    found: list[Accuracy] = []
    for number, (rest, part) in enumerate(_split(data, asked), 1):
        if clock.over:
            return Folds(asked, tuple(found), clock.told)
        again: Any = clone(model)
        if "warm_start" in again.get_params(deep=False):
            again.set_params(warm_start=False)
        try:
            ended = _fit(again, rest, clock)
        except ValueError as error:  # a fold may lack a class, say
            return Folds(asked, tuple(found), f"a part could not be trained on: {error}")
        if ended not in NORMAL:
            told = f"training on a part ended at its {ended}, before it converged"
            return Folds(asked, tuple(found), told)
        found.append(summary(judge(again, part), f"part {number}", intervals=False))
    return Folds(asked, tuple(found))


def _units(data: Data) -> int:
    return len(data.X) if data.qid is None else int(np.unique(np.asarray(data.qid)).size)


def _split(data: Data, parts: int) -> Iterator[tuple[Data, Data]]:
    """Rows (or queries) dealt out at random; always the same."""
    rng = np.random.default_rng(0)
    unit = (
        np.arange(len(data.X))
        if data.qid is None
        else np.unique(np.asarray(data.qid), return_inverse=True)[1]
    )
    dealt = rng.permutation(int(unit.max()) + 1)[unit] % parts
    for part in range(parts):
        yield (
            rows_of(data, np.flatnonzero(dealt != part)),
            rows_of(data, np.flatnonzero(dealt == part)),
        )


def rows_of(data: Data, rows: Indices) -> Data:
    """Some rows, as data of their own."""
    return Data(
        data.name,
        _rows(data.X, rows),
        _rows(data.y, rows),
        _rows(data.qid, rows),
        _rows(data.worse, rows),
        _rows(data.exposure, rows),
        {name: _rows(each, rows) for name, each in data.groups.items()},
    )


def _rows(table: Any, rows: Indices) -> Any:
    if table is None:
        return None
    return table.iloc[rows] if hasattr(table, "iloc") else np.asarray(table)[rows]
