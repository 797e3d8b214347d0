"""The role of `single backticks` in docstrings: a link to a public name, and else code."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

MODULES = (
    "lighttouch",
    "lighttouch.lattice",
    "lighttouch.theory",
    "lighttouch.report",
    "lighttouch.torch",
)


@cache
def public_objects() -> dict[str, Any]:
    """Every public name with its module, and what it is; what two modules share is named once."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            known = any(value is other for other in found.values())
            if not inspect.ismodule(value) and not (callable(value) and known):
                found[f"{module}.{name}"] = value
    return found


@cache
def public_names() -> dict[str, str]:
    """Every way to write a public name, and its full name. The first module that has it wins."""
    found: dict[str, str] = {}
    for full in public_objects():
        written = full.removeprefix("lighttouch.")
        for way in (full, f"lt.{written}", written, written.rpartition(".")[2]):
            found.setdefault(way, full)
    return found


def name_role(
    role: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = (),
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """A link to the page of a public name; anything else is shown as code."""
    code = nodes.literal(text, text)
    full = public_names().get(text.removesuffix("()"))
    if full is None:
        return [code], []
    link = pending_xref(
        rawtext, code, refdomain="py", reftype="obj", reftarget=full, refexplicit=True, refwarn=True
    )
    return [link], []


def escape_bars(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """|x| is an absolute value in our docstrings, not a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]*`)", line)  # text, code, text, ...
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", name_role)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
