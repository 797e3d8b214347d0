"""`lighttouch train` on several files, or by an engine: rows are never together in memory."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.checkpoints import checkpointing
from lighttouch.cli import outputs, tables, train
from lighttouch.cli.engines import engine_of
from lighttouch.cli.examples import Examples, Wanted, asked_task, task_of
from lighttouch.cli.reporting import Job
from lighttouch.cli.rules import read_rules
from lighttouch.cli.speaking import Speaker, ending_in_words, rule_facts, say
from lighttouch.cli.tables import Dialect
from lighttouch.errors import DataError
from lighttouch.estimators.record import RECORD
from lighttouch.estimators.streaming.fitting import OpenFiles, opened
from lighttouch.estimators.streaming.fitting import Wanted as FilesWanted
from lighttouch.estimators.streaming.reading import files_of, is_several
from lighttouch.estimators.streaming.source import Parts, Shard, Source
from lighttouch.estimators.training import has_ended
from lighttouch.files import replacing_all
from lighttouch.running import working_with
from lighttouch.signals import Interrupts
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame


def is_asked(options: argparse.Namespace) -> bool:
    """Whether the data are several files, or an engine shall read them."""
    return is_several(options.data) or options.engine != "none"


def train_files(options: argparse.Namespace) -> int:
    speaker = Speaker(options, stdout_taken=str(options.output) == "-")
    _refuse_what_needs_memory(options)
    files, model = files_of(options.data), _model_path(options)
    given = [options.test, options.rules, options.earlier, *files]
    inputs = [path for path in given if path is not None]
    outputs.refuse(model, "model", options.overwrite, inputs)
    if options.checkpoint is not None:
        outputs.refuse(options.checkpoint, "checkpoint", True, [*inputs, model])
    with working_with(engine_of(options)) as engine:
        began = time.perf_counter()
        parts = Parts(options.target, None, options.exposure, options.qid, tuple(options.drop))
        check = _Check(tuple(options.categorical))
        asked = FilesWanted(files, parts, Dialect.of(options), not speaker.silent, check)
        rows = opened(asked, options.categorical or None, options.qid is not None)
        job = _job(options, rows, model)
        seconds_reading = time.perf_counter() - began
        speaker(
            f"Read {rows.facts.count:,} rows of {len(rows.columns)} columns in {len(files):,} "
            f"files ({len(rows.shards):,} parts, on {engine.describe()}) in "
            f"{seconds_reading:.1f} s; task: {job.task}"
        )
        estimator = train._estimator(options, job)
        speaker(f"Training a {type(estimator).__name__} under {train._told_rules(job.rules)}")
        # the first Ctrl-C or SIGTERM ends training with the best model so far, which is saved
        with Interrupts(ends_program=True) as interrupts:
            began = time.perf_counter()
            with checkpointing(options.checkpoint) as file:
                _fit(estimator, rows)
            seconds = time.perf_counter() - began
            train._put_on_record(estimator, options, job)
            _conclude(options, job, estimator, seconds, speaker)
            if file is not None and has_ended(estimator.status_):
                file.remove()
            code = train._ending(estimator, job, interrupts)
    speaker.facts |= {"seconds": seconds, "seconds_reading": seconds_reading, "task": job.task}
    speaker.facts |= {"files": len(files), "parts": len(rows.shards)}
    return speaker.conclude(code, status=estimator.status_, rows=rows.facts.count)


def _refuse_what_needs_memory(options: argparse.Namespace) -> None:
    if options.target is None:
        raise DataError("which column should be predicted? Name it with --target")
    if str(options.data) == "-":
        raise DataError("an engine reads files, and standard input is none; name the files")
    for option in ("pairs", "holdout", "report", "by"):
        if getattr(options, option, None):
            raise DataError(
                f"--{option} needs all rows in memory; leave it out, or train on one file without "
                "--engine"
            )


def _model_path(options: argparse.Namespace) -> Path:
    """Named like the folder that the files are in, unless told otherwise."""
    if options.output is not None:
        if str(options.output) == "-":
            raise DataError("a model of several files is written to a file; name it with -o")
        return Path(options.output)
    data: Path = options.data
    folder = data.name if data.is_dir() else data.parent.name
    if not folder or folder == "..":
        raise DataError(f"{data} gives the model no name; name it with -o")
    return Path(f"{folder}.lt")


@dataclass(frozen=True)
class _Check:
    """Text that is doubtful, as in one table; a class, so that it can be sent to workers."""

    categorical: tuple[str, ...]

    def __call__(self, features: DataFrame, path: Path) -> None:
        tables.refuse_infinite(features, path)
        tables.refuse_doubtful_text(features, path, self.categorical)


def _job(options: argparse.Namespace, rows: OpenFiles, model: Path) -> Job:
    """What was asked; some rows, evenly spread, stand for all where the command looks at them."""
    rules = read_rules(options.rules, options.increasing, options.decreasing)
    columns = (options.target, options.qid, False, options.drop, options.categorical)
    wanted = Wanted(*columns, options.exposure)
    some = _some_rows(rows)
    asked = "classification" if options.ordinal is not None else asked_task(options)
    task = task_of(_with_all_labels(some, rows), asked, wanted, options.data)
    train._check_rule_columns(rules, some, wanted, options.data)
    test, name = None, ""
    if options.test is not None:
        test, name = train.read_test(options, wanted, some), options.test.name
    return Job(task, rules, some, test, name, model, None)


def _with_all_labels(some: Examples, rows: OpenFiles) -> Examples:
    """For choosing the task: targets that some rows lack count too."""
    import pandas

    facts = rows.facts
    known = some.y if facts.many else pandas.Series(facts.classes, name=some.y.name)
    return Examples(some.X, known, some.qid, None, some.exposure)


def _some_rows(rows: OpenFiles) -> Examples:
    import pandas

    count, parts = rows.facts.count, rows.reader.source.parts
    step = max(1, count // RECORD.rows)
    starts = np.concatenate([[0], np.cumsum(rows.rows)[:-1]])
    items = list(zip(rows.shards, (-starts % step).tolist(), strict=True))
    task = partial(_frame_of, rows.reader.source, step)
    frame = pandas.concat(rows.passes.map(task, items, "taking a sample of the rows"))

    def column(name: str | None) -> Any:
        return None if name is None else frame[name]

    X = frame[list(rows.reader.source.features)]
    return Examples(X, column(parts.target), column(parts.query), None, column(parts.exposure))


def _frame_of(source: Source, step: int, item: tuple[Shard, int]) -> DataFrame:
    import pandas

    shard, first = item
    rows = pandas.concat([frame for _, frame in source.frames(shard)])
    return rows.iloc[first::step].copy()  # a view would keep all of them


def _fit(estimator: Any, rows: OpenFiles) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator._fit_open(rows)
    told = [w.message for w in caught if w.category in (UserWarning, RuntimeWarning)]
    for text in dict.fromkeys(str(each) for each in told):
        say(f"warning: {printable(text)}", sys.stderr)


def _conclude(
    options: argparse.Namespace, job: Job, estimator: Any, seconds: float, speaker: Speaker
) -> None:
    from lighttouch.report import Data, accuracy
    from lighttouch.report.models import scale_note

    some, test = job.train, job.test
    name = f"of the training rows, {len(some):,} evenly spread"
    measured = [accuracy(estimator, Data(name, some.X, some.y, some.qid, None, some.exposure))]
    if test is not None:
        data = Data(job.test_name, test.X, test.y, test.qid, None, test.exposure)
        measured.append(accuracy(estimator, data))
    with replacing_all([job.model]) as besides:
        estimator.save(besides[0])
    speaker(f"\n{estimator.constraint_report_}\n")
    if note := scale_note(estimator):
        speaker(f"{printable(note)}\n")
    for each in measured:
        speaker(printable(str(each)))
    speaker(
        f"\n{ending_in_words(estimator, seconds)}; saved as {printable(str(job.model))}. "
        "No report: it is drawn from rows in memory"
    )
    speaker.facts |= {
        "model": str(job.model),
        "report": None,
        "kind": type(estimator).__name__,
        "columns": job.train.X.shape[1],
        "rules": rule_facts(estimator.constraint_report_),
        "accuracy": [asdict(each) for each in measured],
        "data": estimator.training_record_.data,
    }
