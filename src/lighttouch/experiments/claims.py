"""The paper's claims as numbers, and whether the measured ones agree."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Findings = dict[str, float | None]


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, the number it stands for and the bounds that number must keep.

    `small` holds other bounds for the small scale, where the problem is too small for the paper's.
    """

    name: str
    says: str
    where: str
    finding: str
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    small: tuple[float | None, float | None] | None = None

    def bounds(self, scale: str) -> tuple[float | None, float | None]:
        return (
            self.small
            if scale == "small" and self.small is not None
            else (self.at_least, self.at_most)
        )


@dataclass(frozen=True)
class Verdict:
    """A claim beside what was measured: whether the paper's own number holds, and whether this
    scale's bounds do.
    """

    claim: Claim
    measured: float | None
    holds: bool
    as_expected: bool

    @property
    def words(self) -> str:
        if self.measured is None:
            return "not reached"
        return "holds" if self.holds else "DOES NOT HOLD"


def read_claims(path: Path) -> list[Claim]:
    with open(path, "rb") as file:
        tables = tomllib.load(file)
    return [_claim(name, table) for name, table in tables.items()]


def _claim(name: str, table: dict[str, Any]) -> Claim:
    small = table.pop("small", None)
    bounds = None if small is None else (small.get("at_least"), small.get("at_most"))
    return Claim(name=name, small=bounds, **table)


def judge(claims: list[Claim], findings: Findings, scale: str) -> list[Verdict]:
    """A verdict for every claim whose finding was measured (a finding of None was looked for and
    not reached).
    """
    return [
        _verdict(claim, findings[claim.finding], scale)
        for claim in claims
        if claim.finding in findings
    ]


def _verdict(claim: Claim, measured: float | None, scale: str) -> Verdict:
    return Verdict(
        claim,
        measured,
        _within(measured, claim.at_least, claim.at_most),
        _within(measured, *claim.bounds(scale)),
    )


def _within(measured: float | None, at_least: float | None, at_most: float | None) -> bool:
    if at_least is None and at_most is None:
        return True
    return (
        measured is not None
        and (at_least is None or measured >= at_least)
        and (at_most is None or measured <= at_most)
    )


def wanted(claim: Claim, scale: str = "full") -> str:
    """The bounds in words."""
    at_least, at_most = claim.bounds(scale)
    words = [
        f"{sign} {shown(value)}"
        for sign, value in (("≥", at_least), ("≤", at_most))
        if value is not None
    ]
    return " and ".join(words) + claim.unit if words else "-"


def shown(value: float | None) -> str:
    if value is None:
        return "not reached"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value if abs(value) > 1e-9 else 0.0:.3g}"
