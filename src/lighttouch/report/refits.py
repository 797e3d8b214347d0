"""Models trained again for the report, within a time: without each rule, and on parts of the rows.

The price of a rule is the difference, on held-out rows, between the model and one with the same
curves and lattices trained without that rule. It is not told where either did not converge.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from lighttouch.arrays import Indices
from lighttouch.estimators.training import NORMAL
from lighttouch.estimators.trees import with_as_many
from lighttouch.report.accuracy import (
    Accuracy,
    Data,
    Interval,
    Judged,
    Measures,
    difference,
    judge,
    summary,
)
from lighttouch.report.limits import LIMITS
from lighttouch.report.models import Model
from lighttouch.report.words import Rule, rules_asked

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
    judged = judge(model, held_out)
    return [_price(model, rule, train, held_out, judged, clock) for rule in rules]


def _price(
    model: Model, rule: Rule, train: Data, held_out: Data, judged: Judged, clock: Clock
) -> Price:
    if rule.without is None:
        return Price(rule.name, untold="it follows from another rule")
    if clock.over:
        return Price(rule.name, untold=clock.told)
    free = _same_terms(model)
    free.set_params(**rule.without)
    ended = _fit(free, train, clock)
    if ended not in NORMAL:
        told = f"training without it ended at its {ended}, before it converged"
        return Price(rule.name, untold=told)
    return Price(rule.name, *difference(judged, judge(free, held_out)))


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
