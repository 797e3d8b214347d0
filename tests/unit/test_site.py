"""What `make docs` asks of the pages it has built finds what is wrong with them."""

from __future__ import annotations

import pytest

from tools.check_site import (
    EXTENSIONS,
    broken_links,
    loaded_from_elsewhere,
    read,
    sections_of,
    undocumented,
)

API = """
<dl class="py class"><dt class="sig sig-object py" id="own.Thing">Thing</dt><dd>
  <dl class="field-list"><dt class="field-odd">Parameters<span class="colon">:</span></dt></dl>
  <p class="rubric">Examples</p>
  <dl class="py method"><dt class="sig sig-object py" id="own.Thing.do">do</dt><dd>
    <dl class="field-list"><dt class="field-odd">Returns<span class="colon">:</span></dt></dl>
  </dd></dl></dd></dl>
<a href="../guide.html#here">a place</a> <a href="https://example.invalid">elsewhere</a>
<link rel="stylesheet" href="../_static/site.css"> <img src="../_images/a.png">
"""


class Thing:
    """Something.

    Parameters
    ----------
    a : int
        A number.

    Examples
    --------
    >>> 1
    1
    """


class WithReturns(Thing):
    """What only its method has on the page.

    Returns
    -------
    int
        A number.
    """


@pytest.fixture
def site(tmp_path):
    for name, text in {"api/own.html": API, "guide.html": '<h2 id="here">Here</h2>'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def faults(site, public):
    pages = read(site)
    found = [*undocumented(pages, public), *broken_links(pages, site)]
    return found + list(loaded_from_elsewhere(pages, site))


def test_a_site_in_order_has_no_faults(site):
    assert sections_of(Thing) == {"Parameters", "Examples"}
    assert not faults(site, {"own.Thing": Thing, "own.Thing.do": 1})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("own.Other", Thing, "on no API page"), ("own.Thing", WithReturns, "lacks")],
)
def test_a_name_without_its_place_is_found(site, name, value, said):
    (found,) = faults(site, {name: value})
    assert said in found and name in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="nowhere.html">x</a>', "not there"),
        ('<a href="guide.html#there">x</a>', "no such place"),
        ('<script src="https://example.invalid/x.js"></script>', "loads"),
        ('<link rel="stylesheet" href="//example.invalid/x.css">', "loads"),
    ],
)
def test_a_page_that_leads_nowhere_or_needs_the_network_is_found(site, text, said):
    (site / "other.html").write_text(text, "utf-8")
    (found,) = faults(site, {})
    assert said in found and "other.html" in found


def test_a_style_sheet_that_needs_the_network_is_found(site):
    (site / "own.css").write_text("@import url(https://example.invalid/font.css);", "utf-8")
    (found,) = faults(site, {})
    assert "own.css" in found


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("LatticeRegressor", "lighttouch.LatticeRegressor"),
        ("lt.Huber(threshold)", "lighttouch.Huber"),
        ("Findings", "lighttouch.report.Findings"),
        ("check", None),  # also a command
        ("lt.check", "lighttouch.check"),
        ("numpy.ndarray", None),
        ("a @ b", None),
    ],
)
def test_public_names_on_pages_become_links(written, full, monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    import names

    without_torch = [each for each in names.MODULES if each != "lighttouch.torch"]
    monkeypatch.setattr(names, "MODULES", without_torch)  # importing it takes seconds
    assert names.named_on_a_page(written, "lighttouch") == full
