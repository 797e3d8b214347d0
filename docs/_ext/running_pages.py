"""Runs the ```python blocks of the Markdown pages, in order, and shows what they print.

Each page has variables and a working folder of its own. An exception fails the build. Pages named
in `pages_run_elsewhere` (conf.py) are left alone. Output that a page writes out itself, in a block
without a language right after the code, is not shown a second time.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
LANGUAGE = "python"


def run_page(app: Sphinx, doctree: nodes.document) -> None:
    """Run the code of one page and put its output behind each block."""
    page = app.env.docname
    blocks = [
        each for each in doctree.findall(nodes.literal_block) if each.get("language") == LANGUAGE
    ]
    elsewhere = page in app.config.pages_run_elsewhere or not app.env.doc2path(page).match("*.md")
    if elsewhere or not app.config.run_pages:
        return
    known: dict[str, Any] = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks:
            printed = _run(block.astext(), page, known)
            if printed and not _is_output(block.next_node(descend=False, siblings=True)):
                _show(block, printed)


def _run(code: str, page: str, known: dict[str, Any]) -> str:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(code, page, "exec"), known)
    except Exception as problem:
        LOGGER.warning("code of %s: %s: %s\n%s", page, type(problem).__name__, problem, code)
    return printed.getvalue().rstrip()


def _is_output(node: nodes.Node | None) -> bool:
    return isinstance(node, nodes.literal_block) and node.get("language") in ("none", "default", "")


def _show(block: nodes.literal_block, printed: str) -> None:
    output = nodes.literal_block(printed, printed, language="none", classes=["output"])
    block.parent.insert(block.parent.index(block) + 1, output)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("run_pages", True, "env", bool)
    app.add_config_value("pages_run_elsewhere", {}, "env", dict)
    app.connect("doctree-read", run_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
