"""From a table and the options to examples: features, targets, queries or pairs, the task they
make, and what of it is predicted.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.arrays import Indices
from lighttouch.cli import tables
from lighttouch.cli.speaking import say
from lighttouch.cli.tables import Dialect
from lighttouch.errors import DataError
from lighttouch.estimators.parameters import CLASSIFICATION, LINEAR_REGRESSION, LOG_LINK, REGRESSION
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame


BETTER, WORSE = "better_", "worse_"
MOST_CLASSES = 50  # one model is trained for each, or one threshold


@dataclass(frozen=True)
class Examples:
    """Rows to train on or to measure accuracy on; `worse` holds the other half of pairs."""

    X: DataFrame
    y: Any = None  # a Series; None for pairs
    qid: Any = None  # a Series; None if there are no queries
    worse: DataFrame | None = None
    exposure: Any = None  # a Series; None if all rows were observed alike
    groups: DataFrame | None = None  # columns by which accuracy is told apart

    def rows(self, chosen: Indices) -> Examples:
        picked = [
            None if part is None else part.iloc[chosen]
            for part in (self.X, self.y, self.qid, self.worse, self.exposure, self.groups)
        ]
        return Examples(*picked)

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Wanted:
    """Which columns play which part."""

    target: str | None
    qid: str | None
    pairs: bool
    drop: Sequence[str]
    categorical: Sequence[str]
    exposure: str | None = None
    by: Sequence[str] = ()

    def read(self, path: Path, dialect: Dialect) -> Examples:
        frame = tables.read(path, dialect)
        for name in self.drop:
            tables.place(name, frame, "--drop", path, (self.target,))
        unnamed = [name for name in frame.columns if re.fullmatch(r"Unnamed: \d+", str(name))]
        if unnamed:
            say(
                (
                    f"warning: {len(unnamed)} column(s) of {printable(str(path))} without a "
                    "name (row numbers?) are left out"
                ),
                sys.stderr,
            )
        for name in self.by:
            tables.place(name, frame, "--by", path, (self.target,))
        groups = frame[list(self.by)]
        frame = frame.drop(columns=list({*self.drop, *unnamed}))
        found = self._pairs(frame, path) if self.pairs else self._examples(frame, path)
        return replace(found, groups=groups) if self.by else found

    def _examples(self, frame: DataFrame, path: Path) -> Examples:
        if self.target is None:
            names = ", ".join(repr(str(name)) for name in list(frame.columns)[:12])
            raise DataError(
                f"which column should be predicted? Name it with --target; {path} has {names}"
            )
        target = frame[tables.place(self.target, frame, "--target", path)]
        tables.refuse_gaps(target, path, "the target")
        qid = None
        if self.qid is not None:
            qid = frame[tables.place(self.qid, frame, "--qid", path, (self.target,))]
            tables.refuse_gaps(qid, path, "the query")
        parts = (self.target, self.qid, self.exposure)
        exposure = None
        if self.exposure is not None:
            exposure = frame[tables.place(self.exposure, frame, "--exposure", path, (self.target,))]
            tables.require_numbers(frame, self.exposure, path, "the exposure")
            tables.refuse_gaps(exposure, path, "the exposure")
        X = frame.drop(columns=[name for name in parts if name is not None])
        return Examples(self._features(X, path), target, qid, exposure=exposure)

    def _pairs(self, frame: DataFrame, path: Path) -> Examples:
        if self.target is not None or self.qid is not None:
            raise DataError(
                "--pairs needs no --target and no --qid: the better row of each pair is "
                "the one in the better_ columns"
            )
        names = [str(name)[len(BETTER) :] for name in frame.columns if str(name).startswith(BETTER)]
        lacking = [WORSE + name for name in names if WORSE + name not in frame.columns]
        other = [name for name in frame.columns if not str(name).startswith((BETTER, WORSE))]
        if not names or lacking or other:
            told = (
                f"{lacking[0]!r} is missing"
                if lacking
                else f"{other[0]!r} is neither (--drop it)"
                if other
                else "there are none"
            )
            raise DataError(f"{path} must hold pairs in columns better_NAME and worse_NAME: {told}")
        sides = [
            frame[[side + name for name in names]].set_axis(names, axis=1)
            for side in (BETTER, WORSE)
        ]
        better, worse = (self._features(side, path) for side in sides)
        return Examples(better, worse=worse)

    def _features(self, X: DataFrame, path: Path) -> DataFrame:
        if X.shape[1] == 0:
            raise DataError(f"{path} has no column left to learn from beside the target")
        for name in self.categorical:
            tables.place(name, X, "--categorical", path)
        tables.refuse_infinite(X, path)
        tables.refuse_doubtful_text(X, path, self.categorical)
        return X


def task_of(examples: Examples, asked: str, wanted: Wanted, path: Path) -> str:
    """Classification, regression or ranking, checked against the target."""
    if examples.worse is not None or examples.qid is not None:
        if asked not in ("auto", "ranking"):
            raise DataError(
                f"--qid and --pairs make a ranker, but --task is {asked}; leave one of them out"
            )
        if examples.y is not None:
            tables.require_numbers(examples.y.to_frame(), str(wanted.target), path, "the target")
        return "ranking"
    if asked == "ranking":
        raise DataError(
            "ranking needs to know which rows belong together: pass --qid COLUMN, or --pairs"
        )
    values = examples.y.nunique()
    if values == 1 and len(examples) > 1:
        raise DataError(
            f"the target {wanted.target!r} is {examples.y.iloc[0]} in all "
            f"{len(examples):,} rows: there is nothing to learn"
        )
    task = asked if asked != "auto" else "classification" if values == 2 else "regression"
    if task == "regression":
        _require_regression(examples, asked, wanted, path)
    elif values > MOST_CLASSES:
        raise DataError(
            f"classification takes at most {MOST_CLASSES} classes; {wanted.target!r} has "
            f"{values:,} different values"
        )
    return task


def _require_regression(examples: Examples, asked: str, wanted: Wanted, path: Path) -> None:
    values = examples.y.nunique()
    if asked == "auto" and values > 2 and examples.y.dtype.kind not in "iufb" and values <= 50:
        shown = ", ".join(repr(each) for each in sorted(examples.y.unique(), key=str)[:6])
        raise DataError(
            f"the target {wanted.target!r} must hold numbers or two classes; it holds "
            f"{values:,} texts ({shown}). "
            "Pass --task classification for one model per class (without rules), or --ordinal "
            "with the classes in ascending order"
        )
    tables.require_numbers(examples.y.to_frame(), str(wanted.target), path, "the target")
    tables.refuse_infinite(examples.y.to_frame(), path)


def split(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Rows to train on and rows held out; the rows of a query stay together."""
    rng = np.random.default_rng(seed)
    groups = (
        np.arange(len(examples))
        if examples.qid is None
        else np.unique(examples.qid.to_numpy(), return_inverse=True)[1]
    )
    count = int(groups.max()) + 1
    held = max(1, round(share * count))
    if held >= count:
        raise DataError(
            f"--holdout {share:g} leaves nothing to train on: there are only {count} "
            f"{'rows' if examples.qid is None else 'queries'}"
        )
    out = np.isin(groups, rng.permutation(count)[:held])
    return examples.rows(np.flatnonzero(~out)), examples.rows(np.flatnonzero(out))


# -------------------------------------------------------------------------------------------------
# What `train` shall predict: losses, quantiles, ordered classes and limits, as an estimator's
# parameters.


def asked_task(options: argparse.Namespace) -> str:
    """The task, where --loss says it."""
    task: str = options.task
    if task == "auto" and (options.loss in REGRESSION or options.quantile is not None):
        return "regression"
    return task


def predicted(
    options: argparse.Namespace, task: str, y: Any, linear: bool = False
) -> dict[str, Any]:
    """The parameters that the options ask for; only those that were given."""
    found = _losses(options, task, linear)
    if options.ordinal is not None:
        found["ordinal"] = _classes(options.ordinal, y) if options.ordinal else True
    for name in ("output_min", "output_max"):
        if getattr(options, name) is not None:
            found[name] = getattr(options, name)
    only = {"ordinal": "classification", "output_min": "regression", "output_max": "regression"}
    for name, needed in only.items():
        if name in found and (task != needed or linear):
            option = f"--{name.replace('_', '-')}"
            raise DataError(f"{option} is for {needed} with curves and lattices; leave it out")
    return found


def _losses(options: argparse.Namespace, task: str, linear: bool) -> dict[str, Any]:
    """The loss and its levels."""
    loss = options.loss or ("quantile" if options.quantile else None)
    found = {} if loss is None else {"loss": _loss(loss, task, linear)}
    if options.exposure is not None and loss not in LOG_LINK:
        raise DataError(f"--exposure needs --loss {' or '.join(LOG_LINK)}, got {loss or 'none'}")
    if not options.quantile:
        return found
    if loss != "quantile":
        raise DataError(f"--quantile needs --loss quantile, got --loss {loss}")
    levels = options.quantile
    if linear and len(levels) > 1:
        raise DataError("a linear model has one quantile; leave --linear out, or name one level")
    return found | {"quantile": levels[0] if len(levels) == 1 else levels}


def _loss(loss: str, task: str, linear: bool) -> str:
    allowed = {
        "regression": LINEAR_REGRESSION if linear else REGRESSION,
        "classification": CLASSIFICATION,
        "ranking": CLASSIFICATION,
    }[task]
    if loss not in allowed:
        raise DataError(f"--loss must be one of {', '.join(allowed)} for {task}, got {loss}")
    return loss


def _classes(listed: list[str], y: Any) -> list[Any]:
    """The listed classes as the target holds them: as numbers where it does."""
    known = {str(each): each for each in y.unique().tolist()}
    for name in listed:
        if name not in known:
            raise DataError(
                f"--ordinal must list the target's classes, got {name!r}; they are "
                f"{', '.join(sorted(known))}"
            )
    return [known[name] for name in listed]
