"""Writes the API pages: one page per family of public names, from their docstrings.

Every name shows its signature, its docstring, its methods and the gallery pieces that use it. The
build fails if a public name is in no family, or in two.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from names import public_objects
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

FOLDER = "api"
LIST = Path(__file__).parents[1] / "families.toml"


@dataclass(frozen=True)
class Family:
    """One page: its file, its title, a sentence or two, and the names in order."""

    file: str
    title: str
    about: str
    names: list[str]
    members: list[str] = field(default_factory=list)
    module: str = "lighttouch"


def families() -> tuple[Family, ...]:
    """What docs/families.toml says."""
    told = tomllib.loads(LIST.read_text("utf-8"))["family"]
    return tuple(Family(**each) for each in told)


def missing_or_double() -> list[str]:
    """Public names that are in no family or in two, and names that are not public."""
    wanted = set(public_objects())
    given = Counter(f"{each.module}.{name}" for each in families() for name in each.names)
    return sorted((wanted ^ set(given)) | {name for name, times in given.items() if times > 1})


def page(family: Family) -> str:
    """The reStructuredText of one family."""
    parts = [_heading(family.title, "="), family.about, _listed(family)]
    return "\n\n".join([*parts, *(_entry(family, name) for name in family.names)]) + "\n"


def index(told: tuple[Family, ...]) -> str:
    """The page that lists the families."""
    lines = [_heading("API", "="), "Every public name, from its docstring, one page per family."]
    lines.append(":doc:`/reference` has the same names on one page, a line each.")
    lines += [f":doc:`{each.file}`\n   {_listed(each)}" for each in told]
    files = "\n".join(each.file for each in told)
    return "\n\n".join([*lines, f".. toctree::\n   :hidden:\n\n{_indent(files)}"]) + "\n"


def _listed(family: Family) -> str:
    return ", ".join(f":py:obj:`~{family.module}.{name}`" for name in family.names)


def _entry(family: Family, name: str) -> str:
    full = f"{family.module}.{name}"
    value = getattr(importlib.import_module(family.module), name)
    parts = [_heading(name, "-")]
    if inspect.isclass(value):
        members = ", ".join(each for each in family.members if _is_ours(value, each))
        kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        parts.append(f".. {kind}:: {full}" + (f"\n   :members: {members}" if members else ""))
    elif callable(value):
        parts.append(f".. autofunction:: {full}")
    else:
        parts.append(f".. autodata:: {full}")
    parts.append(f".. minigallery:: {full}")
    return "\n\n".join(parts)


def _is_ours(value: type, member: str) -> bool:
    """Whether this package wrote it: scikit-learn's docstrings link to scikit-learn's pages."""
    wrote = next((each for each in value.__mro__ if member in vars(each)), None)
    return wrote is not None and wrote.__module__.startswith("lighttouch")


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def _indent(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def write_pages(app: Sphinx) -> None:
    """Write each page that has changed, and remove those of families that are gone."""
    if wrong := missing_or_double():
        raise ConfigError(f"docs/families.toml must hold each public name once: {wrong}")
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    texts = {family.file: page(family) for family in families()} | {"index": index(families())}
    for path in folder.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages, priority=900)  # after the gallery
    return {"parallel_read_safe": True, "parallel_write_safe": True}
