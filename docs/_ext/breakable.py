"""Lets code in tables break between the parts of a name, so that tables fit a telephone.

`ConstrainedLinearRegressor` may become three lines there, and a call breaks after its commas. The
breaks are put into the pages when they are written; the search index has the whole names.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
CODE = re.compile(r'(?<=<span class="pre">)[^<]+(?=</span>)')
BREAK = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[(,/_])(?=\w)|(?<=\.)(?=[A-Za-z])")


def let_code_break(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Put <wbr> between the parts of names in the tables of one page."""
    if "body" in context:
        context["body"] = TABLE.sub(_table, context["body"])


def _table(found: re.Match[str]) -> str:
    return CODE.sub(lambda code: BREAK.sub("<wbr>", code[0]), found[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", let_code_break)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
