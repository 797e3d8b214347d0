"""`lighttouch train`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighttouch.cli import outputs, tables
from lighttouch.cli.examples import Examples, Wanted, split, task_of
from lighttouch.cli.failures import INTERRUPTED, NOT_CONVERGED, OK, say
from lighttouch.cli.rules import Rules, read_rules
from lighttouch.cli.tables import Dialect
from lighttouch.errors import DataError
from lighttouch.files import replacing
from lighttouch.running.interrupts import Interrupts
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame

    from lighttouch.report.models import Model


@dataclass(frozen=True)
class Job:
    """What was asked, read and checked; nothing has been trained yet."""

    task: str
    rules: Rules
    train: Examples
    test: Examples | None
    test_name: str
    model: Path
    report: Path | None


def run(options: argparse.Namespace) -> int:
    speak: Callable[[str], None] = (lambda text: None) if options.quiet else say
    model_path, report_path = _paths(options)
    began = time.perf_counter()
    job = _read(options, model_path, report_path)
    speak(f"Read {len(job.train):,} {'pairs' if job.train.worse is not None else 'rows'} of "
f"{job.train.X.shape[1]} columns "
          f"in {time.perf_counter() - began:.1f} s; task: {job.task}")  # fmt: skip
    estimator = _estimator(options, job)
    speak(f"Training a {type(estimator).__name__} under {_told_rules(job.rules)}")
    began = time.perf_counter()
    _fit(estimator, job)
    seconds = time.perf_counter() - began
    estimator.save(job.model)
    _conclude(options, job, estimator, seconds, speak)
    return _ending(estimator, job)


def _paths(options: argparse.Namespace) -> tuple[Path, Path | None]:
    """Where to write, refused before any work where something would be lost."""
    stem = options.data.name
    for suffix in (*tables.COMPRESSED, *tables.PARQUET, ".csv", ".tsv", ".txt"):
        stem = stem.removesuffix(suffix)
    model = options.output or Path(f"{stem}.lt")
    inputs = [path for path in (options.data, options.test, options.rules) if path is not None]
    outputs.refuse(model, "model", options.overwrite, inputs)
    report = None if options.no_report else (options.report or model.with_suffix(".html"))
    if report is not None:
        outputs.refuse(report, "report", options.overwrite, [*inputs, model])
    return model, report


def _read(options: argparse.Namespace, model: Path, report: Path | None) -> Job:
    if options.test is not None and options.holdout is not None:
        raise DataError(
            "--test and --holdout both say where accuracy is measured; pass one of them"
        )
    rules = read_rules(options.rules, options.increasing, options.decreasing)
    wanted = Wanted(options.target, options.qid, options.pairs, options.drop, options.categorical)
    dialect = Dialect.of(options)
    examples = wanted.read(options.data, dialect)
    task = task_of(examples, options.task, wanted, options.data)
    _check_rule_columns(rules, examples, wanted, options.data)
    test, name = None, ""
    if options.test is not None:
        test, name = wanted.read(options.test, dialect), options.test.name
    elif options.holdout is not None:
        examples, test = split(examples, options.holdout, options.seed)
        name = f"held out ({options.holdout:.0%})"
    return Job(task, rules, examples, test, name, model, report)


def _check_rule_columns(rules: Rules, examples: Examples, wanted: Wanted, path: Path) -> None:
    for name in rules.columns:
        if name == wanted.target:
            raise DataError(
                f"a rule names the target {name!r}; rules are about the columns that predict it"
            )
        tables.place(name, examples.X, "a rule names a column that does not exist:", path)
    for name in rules.monotonic:
        tables.require_numbers(examples.X, name, path, "the increasing or decreasing column")


def _estimator(options: argparse.Namespace, job: Job) -> Any:
    from lighttouch import estimators

    settings: dict[str, Any] = {
        "monotonic_cst": job.rules.monotonic or None,
        "shape_constraints": job.rules.shapes or None,
    }
    settings |= {"time_limit": options.time_limit, "canonical_margin": job.rules.canonical_margin}
    settings["canonical_examples"] = _canonical(options, job)
    if options.linear:
        if job.task == "ranking":
            raise DataError("there is no linear ranker; leave --linear out")
        _require_plain_numbers(job.train.X, options.data)
        linear = {
            "classification": estimators.ConstrainedLinearClassifier,
            "regression": estimators.ConstrainedLinearRegressor,
        }
        return linear[job.task](**settings)
    kinds = {
        "classification": estimators.LatticeClassifier,
        "regression": estimators.LatticeRegressor,
        "ranking": estimators.LatticeRanker,
    }
    settings |= {"categorical_features": options.categorical or None, "random_state": options.seed}
    return kinds[job.task](**settings, verbose=int(not options.quiet and sys.stderr.isatty()))


def _canonical(options: argparse.Namespace, job: Job) -> Any:
    if job.rules.canonical_examples is None:
        return None
    if job.task == "ranking":
        raise DataError(
            "canonical_examples are rows with targets, which a ranker does not have; leave them out"
        )
    wanted = Wanted(options.target, None, False, [], options.categorical)
    dialect = Dialect.of(options)
    given = wanted.read(job.rules.canonical_examples, dialect)
    return _same_columns(given.X, job.train.X, job.rules.canonical_examples), given.y.to_numpy()


def _same_columns(X: DataFrame, like: DataFrame, path: Path) -> DataFrame:
    for name in like.columns:
        tables.place(str(name), X, "the column", path)
    return X[list(like.columns)]


def _require_plain_numbers(X: DataFrame, path: Path) -> None:
    for name in X.columns:
        tables.require_numbers(
            X, name, path, "with --linear every column must hold numbers; the column"
        )
        tables.refuse_gaps(X[name], path, "with --linear no cell may be missing; the column")


def _fit(estimator: Any, job: Job) -> None:
    """Train; the first Ctrl-C or SIGTERM ends training with the best model so far."""
    with warnings.catch_warnings(record=True) as caught, Interrupts():
        warnings.simplefilter("always")
        if job.train.worse is not None:
            estimator.fit_pairs(job.train.X, job.train.worse)
        elif job.task == "ranking":
            estimator.fit(job.train.X, job.train.y.to_numpy(), qid=job.train.qid.to_numpy())
        else:
            estimator.fit(job.train.X, job.train.y.to_numpy())
    for warning in caught:
        if warning.category.__name__ == "UserWarning":
            say(f"warning: {printable(str(warning.message))}", sys.stderr)


def _conclude(
    options: argparse.Namespace,
    job: Job,
    estimator: Model,
    seconds: float,
    speak: Callable[[str], None],
) -> None:
    from lighttouch.report import Data, accuracy, scale_note, write_report

    train = Data("training rows", job.train.X, job.train.y, job.train.qid, job.train.worse)
    test = (
        None
        if job.test is None
        else Data(job.test_name, _test_features(job), job.test.y, job.test.qid, _test_worse(job))
    )
    measured = [accuracy(estimator, each) for each in (train, test) if each is not None]
    speak(f"\n{estimator.constraint_report_}\n")
    if note := scale_note(estimator):
        speak(f"{printable(note)}\n")
    for each in measured:
        speak(printable(str(each)))
    speak(
        f"\n{type(estimator).__name__} {estimator.status_} after {seconds:.1f} s; saved as "
        f"{printable(str(job.model))}"
    )
    if job.report is not None:
        command = f"lighttouch {shlex.join(options.words)}"
        asked = {
            "data": options.data.name,
            "target": options.target,
            "task": job.task,
            "command": command,
        }
        with replacing(job.report) as beside:
            write_report(estimator, beside, train, measured, asked, seconds)
        speak(f"The report: {printable(str(job.report))} (open it in a browser)")
    if job.test is None:
        speak(
            "Accuracy on training rows flatters: pass --test FILE or --holdout 0.2 to "
            "measure it on rows the model has not seen"
        )


def _test_features(job: Job) -> Any:
    assert job.test is not None
    return _same_columns(job.test.X, job.train.X, Path(job.test_name))


def _test_worse(job: Job) -> Any:
    assert job.test is not None
    return (
        None
        if job.test.worse is None
        else _same_columns(job.test.worse, job.train.X, Path(job.test_name))
    )


def _told_rules(rules: Rules) -> str:
    count = len(rules.monotonic) + len(rules.shapes) + (rules.canonical_examples is not None)
    return (
        "no rules (pass --increasing, --decreasing or --rules)"
        if count == 0
        else f"{count} rule{'s' * (count > 1)}"
    )


def _ending(estimator: Model, job: Job) -> int:
    if estimator.status_ in ("converged", "stalled"):
        return OK
    if estimator.status_ == "interrupted":
        say(
            (
                f"interrupted: {printable(str(job.model))} holds the best model so far, and it "
                "obeys every rule"
            ),
            sys.stderr,
        )
        return INTERRUPTED
    say(
        (
            f"training ended at its {estimator.status_}: the model is saved and obeys every "
            "rule, but more training would improve it"
        ),
        sys.stderr,
    )
    return NOT_CONVERGED
