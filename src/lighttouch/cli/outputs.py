"""Output files: refused before the work starts if writing them would fail or destroy something."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lighttouch.errors import FileProblem


def refuse(path: Path, what: str, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise if writing to `path` would destroy something or cannot succeed."""
    if path.is_dir():
        raise FileProblem(f"the {what} {path} is a folder; name a file")
    if any(_same(path, other) for other in inputs):
        raise FileProblem(f"the {what} {path} is also an input of this command; name another file")
    if path.exists() and not overwrite:
        raise FileProblem(
            f"the {what} {path} exists already; name another file, or pass --overwrite"
        )
    if not path.parent.is_dir():
        raise FileProblem(f"the {what} {path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise FileProblem(
            f"the {what} {path} cannot be written: no permission to write to the folder "
            f"{path.parent}"
        )


def _same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return first.absolute() == second.absolute()
