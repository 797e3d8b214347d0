"""--engine and --workers."""

from __future__ import annotations

import argparse
from typing import Any

from lighttouch.errors import DataError


def engine_of(options: argparse.Namespace) -> Any:
    """The engine that is asked for; None for this process."""
    from lighttouch.engines import Processes, Ray

    if options.engine == "none":
        if options.workers is not None:
            raise DataError("--workers needs --engine processes or --engine ray")
        return None
    if options.engine == "processes":
        return Processes(options.workers)
    return Ray(workers=options.workers)
