"""`lighttouch predict`: a saved model on a table of any size, a chunk at a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from lighttouch.cli import outputs, saved, tables
from lighttouch.cli.failures import OK, FileProblem, say
from lighttouch.cli.tables import Dialect, Writer
from lighttouch.errors import DataError
from lighttouch.files import replacing
from lighttouch.text import printable


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


def _write(parts: Iterator[Any], writer: Writer) -> int:
    count = 0
    try:
        for part in parts:
            writer.append(part)
            count += len(part)
    finally:
        writer.close()
    return count


def _predictions(model: Any, options: argparse.Namespace) -> Iterator[Any]:
    dialect = Dialect.of(options)
    for part in tables.chunks(options.data, dialect, as_text=saved.text_columns(model)):
        for name in options.keep:
            tables.place(name, part, "--keep", options.data)
        out = part[list(options.keep)].reset_index(drop=True)
        for name, values in _columns(model, saved.features(model, part, options.data)).items():
            out.insert(
                out.shape[1], name, values, allow_duplicates=False
            ) if name not in out else _refuse_clash(name)
        yield out if options.raw else tables.harmless(out)


def _refuse_clash(name: str) -> None:
    raise DataError(f"--keep {name} would hide the prediction of the same name; rename that column")


def _columns(model: Any, X: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"prediction": model.predict(X)}
    if hasattr(model, "classes_"):
        found |= (
            {"probability": model.predict_proba(X)[:, 1]}
            if hasattr(model, "predict_proba")
            else {"score": model.decision_function(X)}
        )
    return found
