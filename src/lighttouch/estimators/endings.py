"""What users are told when training did not converge."""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import ConvergenceWarning


def warn_unless_converged(status: str) -> None:
    """Warn, at the user's line, of a model that could fit better."""
    if status == "converged":
        return
    told = (
        "training was interrupted; the model obeys its rules but could fit better"
        if status == "interrupted"
        else f"training ended at its {status}; raise max_iter or time_limit"
    )
    warnings.warn(told, ConvergenceWarning, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """The stack level of the first caller that is not part of lighttouch."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("lighttouch."):
        level, frame = level + 1, frame.f_back
    return level
