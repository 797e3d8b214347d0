"""`lighttouch train`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighttouch.checkpoints import checkpointing
from lighttouch.cli import outputs, saved, tables
from lighttouch.cli.examples import Examples, Wanted, asked_task, predicted, split, task_of
from lighttouch.cli.reporting import Job, conclude
from lighttouch.cli.rules import Rules, read_rules
from lighttouch.cli.speaking import INTERRUPTED, NOT_CONVERGED, OK, Speaker, say
from lighttouch.cli.tables import Dialect
from lighttouch.errors import DataError
from lighttouch.estimators.training import has_ended
from lighttouch.running import Stopwatch
from lighttouch.signals import Interrupts
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame

    from lighttouch.report.models import Model


def run(options: argparse.Namespace) -> int:
    from lighttouch.cli.train_files import is_asked, train_files  # which use what is here

    if is_asked(options):
        return train_files(options)
    speaker = Speaker(options, stdout_taken=str(options.output) == "-")
    model_path, report_path = _paths(options)
    began = time.perf_counter()
    with tables.standard_input(options.data) as options.data:
        job = _read(options, model_path, report_path)
        seconds_reading = time.perf_counter() - began
        speaker(
            f"Read {len(job.train):,} {'pairs' if job.train.worse is not None else 'rows'} of "
            f"{job.train.X.shape[1]} columns in {seconds_reading:.1f} s; task: {job.task}"
        )
        estimator = _estimator(options, job)
        speaker(f"Training a {type(estimator).__name__} under {_told_rules(job.rules)}")
        # the first Ctrl-C or SIGTERM ends training with the best model so far, which is saved
        with Interrupts(ends_program=True) as interrupts:
            watch = Stopwatch()
            with checkpointing(options.checkpoint) as file:
                _fit(estimator, job)
            seconds = watch.seconds
            _put_on_record(estimator, options, job)
            conclude(options, job, estimator, seconds, speaker, interrupts.raised)
            if file is not None and has_ended(estimator.status_):
                file.remove()
            code = _ending(estimator, job, interrupts)
    speaker.facts |= {"seconds": seconds, "seconds_reading": seconds_reading, "task": job.task}
    return speaker.conclude(code, status=estimator.status_, rows=len(job.train))


def _put_on_record(estimator: Any, options: argparse.Namespace, job: Job) -> None:
    """What only the command knows of where the model comes from."""
    notes = {
        "seed": options.seed,
        "task": job.task,
        "target": options.target,
        "command": f"lighttouch {shlex.join(options.words)}",
        "rules": None if options.rules is None else options.rules.read_text(encoding="utf-8"),
    }
    estimator.training_record_ = replace(estimator.training_record_, notes=notes)


def _paths(options: argparse.Namespace) -> tuple[Path, Path | None]:
    """Where to write, refused before any work where something would be lost."""
    stem = options.data.name
    for suffix in (*tables.COMPRESSED, *tables.PARQUET, ".csv", ".tsv", ".txt"):
        stem = stem.removesuffix(suffix)
    if str(options.data) == "-":
        if options.output is None:
            raise DataError("a table from standard input has no name: name the model with -o")
        stem = "standard input"
    model = options.output or Path(f"{stem}.lt")
    given = (options.data, options.test, options.rules, options.earlier)
    inputs = [path for path in given if path is not None]
    to_screen = str(model) == "-"
    if not to_screen:
        outputs.refuse(model, "model", options.overwrite, inputs)
    if options.checkpoint is not None:
        outputs.refuse(options.checkpoint, "checkpoint", True, [*inputs, model])
    none = options.no_report or (to_screen and options.report is None)
    report = None if none else (options.report or model.with_suffix(".html"))
    if report is not None:
        outputs.refuse(report, "report", options.overwrite, [*inputs, model])
    return model, report


def _read(options: argparse.Namespace, model: Path, report: Path | None) -> Job:
    if options.test is not None and options.holdout is not None:
        raise DataError(
            "--test and --holdout both say where accuracy is measured; pass one of them"
        )
    rules = read_rules(options.rules, options.increasing, options.decreasing)
    parts = (options.target, options.qid, options.pairs, options.drop, options.categorical)
    wanted = Wanted(*parts, options.exposure, options.by)
    dialect = Dialect.of(options)
    examples = wanted.read(options.data, dialect)
    asked = "classification" if options.ordinal is not None else asked_task(options)
    task = task_of(examples, asked, wanted, options.data)
    _check_rule_columns(rules, examples, wanted, options.data)
    test, name = None, ""
    if options.test is not None:
        test, name = read_test(options, wanted, examples), options.test.name
    elif options.holdout is not None:
        examples, test = split(examples, options.holdout, options.seed)
        name = f"held out ({options.holdout:.0%})"
    return Job(task, rules, examples, test, name, model, report)


def read_test(options: argparse.Namespace, wanted: Wanted, train: Examples) -> Examples:
    """The rows of --test, with the columns of the training table."""
    found = wanted.read(options.test, Dialect.of(options))
    return replace(found, X=tables.same_columns(found.X, train.X, options.test))


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
    if options.trees is not None:
        if options.linear or job.task == "ranking":
            raise DataError("linear models and rankers have no trees; leave --trees out")
        settings["trees"] = options.trees
    if options.linear:
        if options.earlier is not None:
            raise DataError("a linear model needs no start: leave --from or --linear out")
        if job.task == "ranking":
            raise DataError("there is no linear ranker; leave --linear out")
        _require_plain_numbers(job.train.X, options.data)
        settings |= predicted(options, job.task, job.train.y, linear=True)
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
    shown = not (options.quiet or options.json)
    settings |= predicted(options, job.task, job.train.y)
    estimator = kinds[job.task](**settings, verbose=int(shown))
    return estimator if options.earlier is None else _started(estimator, options.earlier)


def _started(estimator: Any, path: Path) -> Any:
    """The earlier model with the settings of this one, to start from."""
    earlier: Any = saved.load(path)
    if type(earlier) is not type(estimator):
        raise DataError(
            f"--from {path} holds a {type(earlier).__name__}, and this is a "
            f"{type(estimator).__name__}; name a model of the same kind"
        )
    return earlier.set_params(**estimator.get_params(deep=False) | {"warm_start": True})


def _canonical(options: argparse.Namespace, job: Job) -> Any:
    if job.rules.canonical_examples is None:
        return None
    if job.task == "ranking":
        raise DataError(
            "canonical_examples are rows with targets, which a ranker does not have; leave them out"
        )
    drop = [] if options.exposure is None else [options.exposure]
    wanted = Wanted(options.target, None, False, drop, options.categorical)
    dialect = Dialect.of(options)
    given = wanted.read(job.rules.canonical_examples, dialect)
    path = job.rules.canonical_examples
    return tables.same_columns(given.X, job.train.X, path), given.y.to_numpy()


def _require_plain_numbers(X: DataFrame, path: Path) -> None:
    for name in X.columns:
        tables.require_numbers(
            X, name, path, "with --linear every column must hold numbers; the column"
        )
        tables.refuse_gaps(X[name], path, "with --linear no cell may be missing; the column")


def _fit(estimator: Any, job: Job) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if job.train.worse is not None:
            estimator.fit_pairs(job.train.X, job.train.worse)
        elif job.task == "ranking":
            estimator.fit(job.train.X, job.train.y.to_numpy(), qid=job.train.qid.to_numpy())
        else:
            exposure = job.train.exposure
            more = {} if exposure is None else {"exposure": exposure.to_numpy()}
            estimator.fit(job.train.X, job.train.y.to_numpy(), **more)
    told = [w.message for w in caught if w.category in (UserWarning, RuntimeWarning)]
    for text in dict.fromkeys(str(each) for each in told):
        say(f"warning: {printable(text)}", sys.stderr)


def _told_rules(rules: Rules) -> str:
    count = len(rules.monotonic) + len(rules.shapes) + (rules.canonical_examples is not None)
    return (
        "no rules (pass --increasing, --decreasing or --rules)"
        if count == 0
        else f"{count} rule{'s' * (count > 1)}"
    )


def _ending(estimator: Model, job: Job, interrupts: Interrupts) -> int:
    if estimator.status_ in ("converged", "stalled"):
        return interrupts.exit_code if interrupts.raised else OK
    if interrupts.raised or estimator.status_ == "interrupted":
        say(
            (
                f"interrupted: {printable(str(job.model))} holds the best model so far, and it "
                "obeys every rule"
            ),
            sys.stderr,
        )
        return interrupts.exit_code if interrupts.raised else INTERRUPTED
    say(
        (
            f"training ended at its {estimator.status_}: the model is saved and obeys every "
            "rule, but more training would improve it"
        ),
        sys.stderr,
    )
    return NOT_CONVERGED
