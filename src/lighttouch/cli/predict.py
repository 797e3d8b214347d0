"""`lighttouch predict`: a saved model on a table of any size, a chunk at a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lighttouch.cli import outputs, saved, tables
from lighttouch.cli.failures import OK, FileProblem, say
from lighttouch.cli.tables import Dialect, Writer
from lighttouch.errors import DataError
from lighttouch.files import replacing
from lighttouch.report.models import Model, has_probabilities, is_classifier
from lighttouch.text import printable

if TYPE_CHECKING:
    from pandas import DataFrame


def run(options: argparse.Namespace) -> int:
    if options.output is not None:
        outputs.refuse(options.output, "output", options.overwrite, [options.model, options.data])
        if options.output.suffix.lower() == ".zip":
            raise FileProblem(
                "predictions cannot be written to .zip; name a .csv, .csv.gz or .parquet file"
            )
    model = saved.load(options.model)
    parts = _predictions(model, options)
    if options.output is None:
        _write(parts, Writer(sys.stdout, None))
        return OK
    with replacing(options.output) as beside:
        count = _write(parts, Writer(beside, options.output))
    if not options.quiet:
        say(f"{count:,} predictions in {printable(str(options.output))}", sys.stderr)
    return OK


def _write(parts: Iterator[DataFrame], writer: Writer) -> int:
    count = 0
    try:
        for part in parts:
            writer.append(part)
            count += len(part)
    finally:
        writer.close()
    return count


def _predictions(model: Model, options: argparse.Namespace) -> Iterator[DataFrame]:
    dialect = Dialect.of(options)
    for part in tables.chunks(options.data, dialect, as_text=saved.text_columns(model)):
        for name in options.keep:
            tables.place(name, part, "--keep", options.data)
        out = part[list(options.keep)].reset_index(drop=True)
        for name, values in _columns(model, saved.features(model, part, options.data)).items():
            if name in out:
                raise DataError(
                    f"--keep {name} would hide the prediction of the same name; rename that column"
                )
            out.insert(out.shape[1], name, values)
        yield out if options.raw else tables.harmless(out)


def _columns(model: Model, X: object) -> dict[str, Any]:
    found: dict[str, Any] = {"prediction": model.predict(X)}
    if has_probabilities(model):
        found["probability"] = model.predict_proba(X)[:, 1]
    elif is_classifier(model):
        found["score"] = model.decision_function(X)
    return found
