"""Rules from flags and from a TOML file."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lighttouch.errors import ConstraintError, FileProblem
from lighttouch.estimators.rules import ShapeConstraint
from lighttouch.estimators.rules.shapes import KINDS
from lighttouch.text import did_you_mean

KEYS = ("increasing", "decreasing", "rule", "canonical_examples", "canonical_margin")


@dataclass
class Rules:
    """Everything asked for."""

    monotonic: dict[str, int] = field(default_factory=dict)
    shapes: list[ShapeConstraint] = field(default_factory=list)
    canonical_examples: Path | None = None
    canonical_margin: float | None = None

    @property
    def columns(self) -> list[str]:
        named = [str(column) for shape in self.shapes for column in shape.columns]
        return list(dict.fromkeys([*self.monotonic, *named]))

    def add(self, names: list[str], sign: int) -> None:
        for name in names:
            if self.monotonic.get(name, sign) != sign:
                raise ConstraintError(
                    f"column {name!r} cannot be both increasing and decreasing; keep one of the two"
                )
            self.monotonic[name] = sign


def read_rules(path: Path | None, increasing: list[str], decreasing: list[str]) -> Rules:
    rules = Rules() if path is None else _from_file(path)
    rules.add(increasing, 1)
    rules.add(decreasing, -1)
    return rules


def _from_file(path: Path) -> Rules:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileProblem(f"the rules {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeError) as error:
        raise ConstraintError(f"the rules {path} are not TOML: {error}") from None
    for key in content:
        if key not in KEYS:
            raise ConstraintError(f"{path}: {key!r} is not known there{did_you_mean(key, KEYS)}")
    rules = Rules(canonical_margin=content.get("canonical_margin"))
    rules.add(_names(content, "increasing", path), 1)
    rules.add(_names(content, "decreasing", path), -1)
    listed = content.get("rule", [])
    if not isinstance(listed, list):
        raise ConstraintError(f"{path}: write every rule under [[rule]], with two brackets")
    if not all(isinstance(each, dict) for each in listed):
        raise ConstraintError(f"{path}: write every rule under [[rule]], with kind = ...")
    rules.shapes = [_shape(each, number, path) for number, each in enumerate(listed, 1)]
    if "canonical_examples" in content:
        rules.canonical_examples = path.parent / str(content["canonical_examples"])
    return rules


def _names(content: dict[str, Any], key: str, path: Path) -> list[str]:
    given = content.get(key, [])
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ConstraintError(f"{path}: {key} must be a list of column names, got {given!r}")
    return given


def _shape(given: dict[str, Any], number: int, path: Path) -> ShapeConstraint:
    place = f"{path}, rule {number}"
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConstraintError(
            f"{place}: kind must be one of {', '.join(KINDS)}; got "
            f"{kind!r}{did_you_mean(str(kind), KINDS)}"
        )
    known = {each.name: each for each in dataclasses.fields(KINDS[kind])}
    for name in given:
        if name != "kind" and name not in known:
            raise ConstraintError(
                f"{place}: {kind} has no {name!r}{did_you_mean(name, known)}; it has "
                f"{', '.join(known)}"
            )
    needed = [
        n
        for n, each in known.items()
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    lacking = [name for name in needed if name not in given]
    if lacking:
        raise ConstraintError(f"{place}: {kind} also needs {', '.join(lacking)}")
    try:
        return KINDS[kind](**{name: value for name, value in given.items() if name != "kind"})
    except ConstraintError as error:
        raise ConstraintError(f"{place}: {error}") from None
