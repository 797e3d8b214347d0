"""`Single backticks` around a public name link to its API page, in docstrings and on the pages.

In docstrings any name is a link. On the Markdown pages, where words such as `check` are also
commands and options, classes and what is written with `lt.` in front are, and on a page about one
module all its names.
"""

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
LINKS_NOWHERE = (nodes.title, nodes.reference, pending_xref)


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
    return [link_to(full, code, rawtext)], []


def link_to(full: str, code: nodes.literal, rawtext: str = "") -> pending_xref:
    """Make a link to the place of a public name of some code."""
    return pending_xref(
        rawtext, code, refdomain="py", reftype="obj", reftarget=full, refexplicit=True, refwarn=True
    )


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make links of the public names on a Markdown page, except in headings and other links."""
    page = app.env.docname
    if not app.env.doc2path(page).match("*.md"):
        return
    home = app.config.names_of_pages.get(page, "lighttouch")
    for code in list(doctree.findall(nodes.literal)):
        full = named_on_a_page(code.astext(), home)
        if full is not None and not isinstance(code.parent, LINKS_NOWHERE):
            code.replace_self(link_to(full, code.deepcopy()))


def named_on_a_page(text: str, home: str) -> str | None:
    """The full name of a public name, which may be called: `lt.Huber(threshold)`."""
    written = re.fullmatch(r"(?P<module>(?:\w+\.)*)(?P<name>\w+)(?:\(.*\))?", text, re.DOTALL)
    if written is None:
        return None
    way = written["module"] + written["name"]
    own = f"{home}.{way}"
    if home != "lighttouch" and own in public_objects():
        return own
    plain = not written["module"] and not written["name"][0].isupper()  # may be an option, a word
    return None if plain else public_names().get(way)


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
    app.add_config_value("names_of_pages", {}, "env", dict)
    app.connect("doctree-read", link_names)
    app.connect("autodoc-process-docstring", escape_bars, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
