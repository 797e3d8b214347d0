"""What an experiment is given and what it gives back."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lighttouch.experiments.claims import Findings
from lighttouch.experiments.units import Laboratory, Unit

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Setting:
    """The scale, the problem at that scale, the experiment's config, the number of seeds (None: the
    config's) and who runs units.
    """

    scale: str
    problem: dict[str, Any]
    config: dict[str, Any]
    seeds: int | None
    laboratory: Laboratory


@dataclass(frozen=True)
class Measured:
    """The units that ran, tables of rows by name, and the numbers that claims speak of."""

    units: list[Unit]
    tables: dict[str, list[dict[str, Any]]]
    findings: Findings
    notes: list[str] = field(default_factory=list)


def read_config(experiment: str) -> dict[str, Any]:
    with open(HERE / experiment / "config.toml", "rb") as file:
        return tomllib.load(file)


def problem_settings(scale: str) -> dict[str, Any]:
    with open(HERE / "problem.toml", "rb") as file:
        settings: dict[str, Any] = tomllib.load(file)[scale]
    return settings
