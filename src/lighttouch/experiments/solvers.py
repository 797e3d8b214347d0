"""Solvers by name, as the configs write them; one that this version lacks is left out and said to be."""

from __future__ import annotations

from typing import Any

import lighttouch as lt

DEFAULT = "default"


def build_solver(settings: dict[str, Any]) -> Any:
    """The solver of these settings, its step size decreasing as eta / sqrt(t); None for the project's default."""
    if settings["kind"] == DEFAULT:
        return None
    given = {name: value for name, value in settings.items() if name not in ("kind", "aggregate")}
    given["step_size"] = lt.InverseSqrt(float(given["step_size"]))
    return getattr(lt, settings["kind"])(**given)


def is_available(kind: str) -> bool:
    return kind == DEFAULT or hasattr(lt, kind)
