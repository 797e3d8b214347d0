"""`lighttouch predict`: a saved model on a table of any size, a chunk at a time."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lighttouch.cli import outputs, saved, tables
from lighttouch.cli.engines import engine_of
from lighttouch.cli.speaking import OK, DriftError, Speaker
from lighttouch.cli.tables import Dialect, Writer
from lighttouch.errors import DataError, FileProblem
from lighttouch.estimators.costs import STREAMING
from lighttouch.estimators.record import Drift
from lighttouch.estimators.streaming.reading import Cutter, Piece, files_of, is_several
from lighttouch.files import replacing
from lighttouch.report.models import Model, has_probabilities, is_classifier
from lighttouch.running import ProgressBar, working_with
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame


def run(options: argparse.Namespace) -> int:
    to_screen = options.output is None or str(options.output) == "-"
    if not to_screen:
        inputs = [options.model, options.data]
        if is_several(options.data):
            inputs += files_of(options.data)
        outputs.refuse(options.output, "output", options.overwrite, inputs)
        if options.output.suffix.lower() == ".zip":
            raise FileProblem(
                "predictions cannot be written to .zip; name a .csv, .csv.gz or .parquet file"
            )
    speaker = Speaker(options, stdout_taken=to_screen, aside=True)
    model = saved.load(options.model)
    began = time.perf_counter()
    with tables.standard_input(options.data) as options.data:
        job = _Job(model, options, speaker)
        if to_screen:
            job.write(Writer(sys.stdout, None))
        else:
            with replacing(options.output) as beside:
                job.write(Writer(beside, options.output))
                job.refuse_drift()
            speaker(f"{job.rows:,} predictions in {printable(str(options.output))}")
    found = job.drift()
    if found is not None:
        speaker(f"drift: {printable(str(found))}")
    code = OK
    if to_screen:
        job.refuse_drift()
    return speaker.conclude(
        code,
        rows=job.rows,
        output=None if to_screen else str(options.output),
        model=str(options.model),
        seconds=time.perf_counter() - began,
        drift=None if found is None else found.to_dict(),
    )


class _Job:
    """Predictions of one table, and what is counted on the way."""

    def __init__(self, model: Model, options: argparse.Namespace, speaker: Speaker) -> None:
        self.model, self.options, self.rows = model, options, 0
        record = getattr(model, "training_record_", None)
        self.tally: Any = model.tally() if record is not None and record.columns else None  # type: ignore[attr-defined]
        if options.strict and self.tally is None:
            raise DataError(
                f"--strict needs a record of the training rows, which {options.model} does not "
                "hold: it was saved by an earlier lighttouch; train it again"
            )
        self.bar = ProgressBar(not speaker.silent, "predict ")

    def write(self, writer: Writer) -> None:
        try:
            for part, counted in _predictions(self.model, self.options, self.tally):
                if counted is not None:
                    self.tally.merge(counted)
                writer.append(part)
                self.rows += len(part)
                self.bar.count(self.rows, "rows")
        finally:
            writer.close()
            self.bar.close()

    def drift(self) -> Drift | None:
        return None if self.tally is None else self.tally.drift()

    def refuse_drift(self) -> None:
        """With --strict, raise where the rows have changed by more than is allowed."""
        found = self.drift() if self.options.strict else None
        if found is None:
            return
        reasons = []
        if found.largest > self.options.max_psi:
            reasons.append(
                f"the PSI of {found.worst.name} is {found.largest:.3f} (--max-psi "
                f"{self.options.max_psi:g})"
            )
        for each in found.columns:
            if each.unseen > self.options.max_unseen * found.rows:
                reasons.append(f"{each.unseen:,} rows hold unseen categories of {each.name}")
            if each.outside > self.options.max_outside * found.rows:
                reasons.append(f"{each.outside:,} cells of {each.name} lie outside its range")
        if reasons:
            raise DriftError(
                f"{found.rows:,} rows of {self.options.data} differ from those of training: "
                f"{'; '.join(reasons[:5])}"
            )


def _predictions(
    model: Model, options: argparse.Namespace, tally: Any
) -> Iterator[tuple[DataFrame, Any]]:
    """Predictions in the order of the rows, each part with what was counted of its rows: one file
    after the other, a chunk at a time; or by an engine, several parts at a time.
    """
    dialect, text = Dialect.of(options), saved.text_columns(model)
    several = is_several(options.data)
    part = _Part(model, tuple(options.keep), options.raw, None if tally is None else tally.empty())
    engine = engine_of(options)
    if engine is None:
        for path in files_of(options.data) if several else (options.data,):
            for frame in tables.chunks(path, dialect, as_text=text, empty=several):
                yield part(path, frame)
        return
    pieces = [p for path in files_of(options.data) for p in Cutter(dialect, STREAMING.rows)(path)]
    with working_with(engine) as opened:
        shared = opened.share(part)
        names = [f"{piece.path} from row {piece.first + 1:,} on" for piece in pieces]
        items = [(shared, piece, dialect, tuple(text)) for piece in pieces]
        yield from opened.map(_predicted_piece, items, names)


def _predicted_piece(
    part: _Part, piece: Piece, dialect: Dialect, text: tuple[str, ...]
) -> tuple[DataFrame, Any]:
    return part(piece.path, piece.read(dialect, None, text))


@dataclass(frozen=True)
class _Part:
    """The predictions of some rows of a file; a class, so that it can be sent to workers."""

    model: Any
    keep: tuple[str, ...]
    raw: bool
    tally: Any  # that has counted nothing; None where nothing is counted

    def __call__(self, path: Path, frame: DataFrame) -> tuple[DataFrame, Any]:
        for name in self.keep:
            tables.place(name, frame, "--keep", path)
        out = frame[list(self.keep)].reset_index(drop=True)
        features = saved.features(self.model, frame, path)
        counted = None if self.tally is None else self.tally.empty()
        if counted is not None:
            self.model.count_rows(features, counted)
        for name, values in _columns(self.model, features).items():
            if name in out:
                raise DataError(
                    f"--keep {name} would hide the prediction of the same name; rename that column"
                )
            out.insert(out.shape[1], name, values)
        return (out if self.raw else tables.harmless(out)), counted


def _columns(model: Model, X: object) -> dict[str, Any]:
    values = np.asarray(model.predict(X))
    if values.ndim == 2:
        levels: Any = model.quantile  # type: ignore[attr-defined]
        return {f"quantile_{level:g}": values[:, k] for k, level in enumerate(levels)}
    found: dict[str, Any] = {"prediction": values}
    if is_classifier(model) and len(model.classes_) > 2:
        if has_probabilities(model):
            shares = model.predict_proba(X)
            found |= {f"probability_{c}": shares[:, k] for k, c in enumerate(model.classes_)}
        return found
    if has_probabilities(model):
        found["probability"] = model.predict_proba(X)[:, 1]
    elif is_classifier(model):
        found["score"] = model.decision_function(X)
    return found
