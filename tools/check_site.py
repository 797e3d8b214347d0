"""What `make docs` asks of the pages it has built, besides what Sphinx asks.

- Every public name has a place on an API page, with each section that its docstring has. (That the
  docstrings have all they need, and that their examples run, is what the tests of docstrings say.)
- Every link within the site leads to a page and a place on it that are there.
- No page loads anything from elsewhere.

    python tools/check_site.py docs/_build/html
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

EXTENSIONS = Path(__file__).parents[1] / "docs" / "_ext"
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Examples")
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
NOT_LOADED = {"canonical", "next", "prev", "index", "search", "author", "copyright"}  # rel of links


class Page(HTMLParser):
    """One page as this check sees it: its anchors, its links, what it loads, what it documents."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.sections: dict[str, set[str]] = {}
        self._objects: list[str] = []  # the documented objects around this place; "" is other lists
        self._heading: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        classes = told.get("class", "").split()
        self.anchors |= {told[key] for key in ("id", "name") if key in told}
        if tag == "a" and "href" in told:
            self.links.add(told["href"])
        elif tag in LOADED and LOADED[tag] in told and told.get("rel") not in NOT_LOADED:
            self.loads.add(told[LOADED[tag]])
        if tag == "dl":
            self._objects.append("")
        elif tag == "dt" and "sig" in classes and "id" in told:
            self._objects[-1] = told["id"]
            self.sections[told["id"]] = set()
        elif tag == "dt" or (tag == "p" and "rubric" in classes):
            self._heading = ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("dt", "p") and self._heading is not None:
            around = next((each for each in reversed(self._objects) if each), None)
            if around is not None:
                self.sections[around].add(self._heading.strip().rstrip(":"))
            self._heading = None
        elif tag == "dl":
            self._objects.pop()

    def handle_data(self, data: str) -> None:
        if self._heading is not None:
            self._heading += data


def read(site: Path) -> dict[str, Page]:
    """Every page by its path within the site."""
    paths = sorted(site.rglob("*.html"))
    return {str(path.relative_to(site)): Page(path.read_text("utf-8")) for path in paths}


def undocumented(pages: dict[str, Page], public: dict[str, Any]) -> Iterator[str]:
    """Public names without a place on an API page, or without a section of their docstring."""
    shown: dict[str, set[str]] = {}
    for path, page in pages.items():
        if path.startswith("api/"):
            shown |= page.sections
    for name, value in public.items():
        if name not in shown:
            yield f"{name} is on no API page"
        elif lacking := sorted(sections_of(value) - shown[name]):
            yield f"{name} lacks on its API page: {', '.join(lacking)}"


def sections_of(value: Any) -> set[str]:
    """The sections that a name's docstring has; names of plain values have none of their own."""
    if not callable(value):
        return set()
    lines = (inspect.getdoc(value) or "").splitlines()
    pairs = pairwise(lines)
    return {title for title, line in pairs if title in SECTIONS and line == "-" * len(title)}


def broken_links(pages: dict[str, Page], site: Path) -> Iterator[str]:
    """Links within the site that lead nowhere."""
    for path, page in pages.items():
        for link in sorted(page.links):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (site / path).parent / unquote(to.path) if to.path else site / path
            name = str(target.resolve().relative_to(site.resolve()))
            place = unquote(to.fragment)
            if not target.exists():
                yield f"{path} links to {link}, which is not there"
            elif place and name in pages and place not in pages[name].anchors:
                yield f"{path} links to {link}: the page has no such place"


def loaded_from_elsewhere(pages: dict[str, Page], site: Path) -> Iterator[str]:
    """What a browser would fetch from the network when it shows the site."""
    for path, page in pages.items():
        for address in sorted(page.loads):
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                yield f"{path} loads {address}"
    for sheet in sorted(site.rglob("*.css")):
        for address in re.findall(
            r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')\s]+)", sheet.read_text("utf-8")
        ):
            yield f"{sheet.relative_to(site)} loads {address}"


def main() -> int:
    """Say every fault; the exit code is whether there is one."""
    site = Path(sys.argv[1])
    sys.path.insert(0, str(EXTENSIONS))
    from names import public_objects

    pages, public = read(site), public_objects()
    faults = [*undocumented(pages, public), *broken_links(pages, site)]
    faults += loaded_from_elsewhere(pages, site)
    print("\n".join(faults) or f"{len(pages)} pages and {len(public)} public names are in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
