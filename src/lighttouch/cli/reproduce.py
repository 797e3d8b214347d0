"""`lighttouch reproduce`: the paper's experiments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lighttouch.cli.speaking import INTERRUPTED, OK, Speaker, say
from lighttouch.estimators.streaming.reading import refuse_unreadable
from lighttouch.experiments.reproduce import reproduce


def run(options: argparse.Namespace) -> int:
    for part in options.data.split(",") if options.data else ():
        refuse_unreadable(Path(part.strip()))
    asked = (
        options.scale,
        options.only,
        options.data,
        options.output,
        not (options.quiet or options.json),
        options.seeds,
    )
    try:
        done = reproduce(*asked, resume=not options.fresh, workers=options.workers)
    except KeyboardInterrupt:
        say(
            "\ninterrupted: what was measured is kept, and the same command goes on from here",
            sys.stderr,
        )
        return INTERRUPTED
    speaker = Speaker(options)
    speaker(f"{done}\n\nrows, pictures and provenance: {done.folder}")
    return speaker.conclude(OK, folder=str(done.folder), summary=str(done))
