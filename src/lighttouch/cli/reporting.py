"""What `train` does with a trained model: measures it, writes model and report, and tells."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lighttouch.cli import tables
from lighttouch.cli.examples import Examples
from lighttouch.cli.rules import Rules
from lighttouch.cli.speaking import Speaker, ending_in_words, rule_facts
from lighttouch.files import replacing_all
from lighttouch.text import printable

if TYPE_CHECKING:
    from lighttouch.report import Data, Findings


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


def conclude(
    options: argparse.Namespace,
    job: Job,
    estimator: Any,
    seconds: float,
    speaker: Speaker,
    interrupted: bool,
) -> None:
    """Measure, write, tell. After an interrupt no model is trained again."""
    from lighttouch.report import examine
    from lighttouch.report.models import scale_note

    train = _data("training rows", job.train, job)
    test = None if job.test is None else _data(job.test_name, job.test, job)
    allowed = 0.0 if interrupted else seconds_for_refits(options, job)
    findings = examine(estimator, train, test, allowed, seconds)
    _write(options, job, estimator, seconds, train, test, findings)
    speaker(f"\n{estimator.constraint_report_}\n")
    if note := scale_note(estimator):
        speaker(f"{printable(note)}\n")
    for each in findings.measured:
        speaker(printable(str(each)))
    for group in findings.groups:
        few = "" if group.accuracy.measures else "too few rows to measure"
        speaker(printable(f"{group.column} = {group.accuracy}{few}"))
    speaker(f"\n{ending_in_words(estimator, seconds)}; saved as {printable(str(job.model))}")
    if job.report is not None:
        speaker(f"The report: {printable(str(job.report))} (open it in a browser)")
    if job.test is None:
        speaker(
            "Accuracy on training rows flatters: pass --test FILE or --holdout 0.2 to "
            "measure it on rows the model has not seen"
        )
    speaker.facts |= {
        "model": str(job.model),
        "report": None if job.report is None else str(job.report),
        "kind": type(estimator).__name__,
        "columns": job.train.X.shape[1],
        "rules": rule_facts(estimator.constraint_report_),
        "accuracy": [asdict(each) for each in findings.measured],
        "findings": findings.to_dict(),
        "data": estimator.training_record_.data,
    }


def seconds_for_refits(options: argparse.Namespace, job: Job) -> float:
    """A report is worth the default time; without one, only what was asked for."""
    from lighttouch.report.limits import LIMITS

    if options.quick:
        return 0.0
    if options.report_time is not None:
        return float(options.report_time)
    return 0.0 if job.report is None else LIMITS.seconds


def _data(name: str, examples: Examples, job: Job) -> Data:
    """Rows as the report takes them, with the columns of the training table."""
    from lighttouch.report import Data

    def features(X: Any) -> Any:
        return None if X is None else tables.same_columns(X, job.train.X, Path(name))

    groups = {} if examples.groups is None else dict(examples.groups.items())
    return Data(
        name,
        features(examples.X),
        examples.y,
        examples.qid,
        features(examples.worse),
        examples.exposure,
        {str(column): values for column, values in groups.items()},
    )


def _write(
    options: argparse.Namespace,
    job: Job,
    estimator: Any,
    seconds: float,
    train: Data,
    test: Data | None,
    findings: Findings,
) -> None:
    """Model and report: both are written before either replaces what was there."""
    from lighttouch.report import write_report

    to_screen = str(job.model) == "-"
    paths = [path for path in (job.model, job.report) if path is not None and str(path) != "-"]
    with tempfile.TemporaryDirectory(prefix="lighttouch-") as folder, replacing_all(paths) as files:
        saved = Path(folder) / "model.lt" if to_screen else files[0]
        estimator.save(saved)
        if job.report is not None:
            asked = _asked(options, job, estimator) | {"model_sha256": _hash(saved)}
            path = files[-1]
            write_report(estimator, path, train, (), asked, seconds, test=test, findings=findings)
        if to_screen:
            sys.stdout.buffer.write(saved.read_bytes())
            sys.stdout.buffer.flush()


def _asked(options: argparse.Namespace, job: Job, estimator: Any) -> dict[str, Any]:
    """What the report tells of where the model comes from."""
    return {
        "data": options.data.name,
        "data_sha256": _hash(options.data),
        "test_sha256": None if options.test is None else _hash(options.test),
        "target": options.target,
        "task": job.task,
        "seed": options.seed,
        "rules": estimator.training_record_.notes.get("rules"),
        "command": f"lighttouch {shlex.join(options.words)}",
    }


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
