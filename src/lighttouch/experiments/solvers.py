"""Solvers by name, as the configs write them; one that this version lacks is left out and said to
be.
"""

from __future__ import annotations

from typing import Any

import lighttouch as lt
from lighttouch.signals import Interrupts

DEFAULT = "default"


def build_solver(settings: dict[str, Any]) -> Any:
    """The solver of these settings, its step size decreasing as eta / sqrt(t); None for the
    project's default.
    """
    if settings["kind"] == DEFAULT:
        return None
    given = {name: value for name, value in settings.items() if name not in ("kind", "aggregate")}
    given["step_size"] = lt.InverseSqrt(float(given["step_size"]))
    return getattr(lt, settings["kind"])(**given)


def solve_or_stop(problem: lt.Problem, solver: Any, **options: Any) -> lt.Result:
    """`lt.solve`, except that Ctrl-C raises: the good answer it gives when interrupted would be a
    wrong measurement.
    """
    with Interrupts() as interrupts:
        result = lt.solve(problem, solver, **options)
    if interrupts.raised or result.status is lt.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def is_available(kind: str) -> bool:
    return kind == DEFAULT or hasattr(lt, kind)
