"""Five hundred strings that break pages, as names of columns, categories, classes, targets and
files, in reports that a real browser opens and uses.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lighttouch as lt
from benchmarks.reliability.card import Outcome, note, row
from lighttouch.report import Data, write_report

BREAKERS = (  # out of text, attributes, comments, scripts, styles, templates, JSON
    "", "\"", "'", "`", ">", "\">", "'>", "-->", "]]>", "</title>", "</style>", "</script>",
    "</textarea>", "</svg>", "\\", "\\\"", "\u2028", "\u0000", "{{", "${", "&quot;", "*/", "\n",
    "\r\n\t", "\ufeff",
)  # fmt: skip
PAYLOADS = (
    "<script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>", "<svg/onload=window.hacked=1//", "javascript:window.hacked=1",
    " onmouseover=window.hacked=1 x=", " autofocus onfocus=window.hacked=1 tabindex=0 ",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>", "<body onload=window.hacked=1>",
    ";window.hacked=1;//", "<math><mtext><script>window.hacked=1</script>",
    "<style>*{background:url(http://example.invalid/x)}</style>",
    "<link rel=stylesheet href=http://example.invalid/x>", "<base href=http://example.invalid/>",
    "<meta http-equiv=refresh content='0;url=javascript:window.hacked=1'>",
    "<!--", "<![CDATA[", "=cmd|' /C calc'!A0", "\u202egnp.exe", "Z\u0351\u036ba\u0307l\u0342go",
)  # fmt: skip
STRINGS = tuple(breaker + payload for breaker in BREAKERS for payload in PAYLOADS)
GROUP = 25  # strings in one model
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --enable-logging=stderr --v=0 "
    "--disable-web-security --allow-file-access-from-files"
)
PROBE = """<!doctype html><title>probe</title><pre id=out></pre><script>
const pages = %s, out = [];
function look(at) {
  if (at === pages.length) {
    document.getElementById("out").textContent = "PROBE" + JSON.stringify(out) + "END";
    return;
  }
  const frame = document.createElement("iframe");
  frame.src = pages[at];
  frame.onload = function () {
    const page = frame.contentDocument, view = frame.contentWindow, seen = {};
    try {
      page.querySelectorAll("details").forEach(each => { each.open = true; });
      page.querySelectorAll("figure.chart svg").forEach(svg => {
        const box = svg.getBoundingClientRect();
        const point = { clientX: box.left + box.width / 2, clientY: box.top + 9, bubbles: true };
        svg.dispatchEvent(new view.PointerEvent("pointermove", point));
        svg.dispatchEvent(new view.MouseEvent("mouseover", point));
      });
      page.querySelectorAll("*").forEach(each => { if (each.focus) each.focus(); });
      page.querySelectorAll(".key").forEach(key => key.click());
      seen.scripts = page.scripts.length;
      seen.active = page.querySelectorAll(
        "img,iframe,object,embed,link,base,math,form,[href^='javascript' i],[src]").length;
      seen.handlers = [...page.querySelectorAll("*")].filter(
        each => [...each.attributes].some(a => a.name.toLowerCase().startsWith("on"))).length;
      seen.loaded = view.performance.getEntriesByType("resource").length;
      seen.scripted = page.documentElement.classList.contains("scripted");
      seen.hacked = view.hacked === undefined && window.hacked === undefined ? 0 : 1;
    } catch (error) { seen.error = String(error); }
    out.push(seen);
    frame.remove();
    look(at + 1);
  };
  document.body.appendChild(frame);
}
look(0);
</script>"""
CLEAN = {"scripts": 1, "active": 0, "handlers": 0, "loaded": 0, "scripted": True, "hacked": 0}


def browser() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@row("browser")
def in_a_browser(quick: bool) -> Outcome:
    """No string becomes code, an element or a request; every page's own script works."""
    if browser() is None:
        return 1, 0, "there is no chromium here; apt-get install chromium"
    strings = STRINGS[:: len(STRINGS) // GROUP] if quick else STRINGS
    tried = ok = 0
    worst = ""
    for first in range(0, len(strings), GROUP):
        group = list(strings[first : first + GROUP])
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pages = _pages(group, Path(folder))
            seen = _seen([path for _, path in pages], Path(folder))
        for (string, _), found in zip(pages, seen, strict=True):
            tried, good = tried + 1, found == CLEAN
            ok += good
            worst = worst if good else f"{string!r}: {found}"
            note("browser", tried, ok, worst)
    return tried, ok, worst


def _pages(group: list[str], folder: Path) -> list[tuple[str, Path]]:
    """A report about all strings of a group, and one for each, in a file of its name."""
    rng = np.random.default_rng(0)
    whole = pd.DataFrame({name: rng.random(60) for name in group})
    whole["kind"] = rng.choice(group, 60)
    whole["other " + group[0]] = rng.choice(group[:3], 60)
    classes = np.where(rng.random(60) < 0.5, group[0], group[-1])
    pages = [_report(f"group of {group[0]}", whole, classes, folder, group[0])]
    for name in group:
        X = pd.DataFrame({name: rng.random(40), f"{name} kind": rng.choice([name, "plain"], 40)})
        y = np.where(X[name] + rng.random(40) > 1.0, name, "other")
        pages.append(_report(name, X, y, folder, name))
    return pages


def _report(string: str, X: Any, y: Any, folder: Path, name: str) -> tuple[str, Path]:
    model = lt.LatticeClassifier(lattices=0, keypoints=3, monotonic_cst={X.columns[0]: 1})
    model.fit(X, y)
    stem = folder / f"{len(list(folder.iterdir()))}{name.replace('/', '|').replace(chr(0), '')}"
    path = stem.with_name(stem.name + ".html")
    saved = stem.with_name(stem.name + ".lt")
    model.save(saved)
    assert (lt.load(saved).predict(X) == model.predict(X)).all()
    asked = {"data": name, "target": name, "task": "classification", "command": f"train {name}"}
    write_report(model, path, Data(f"rows of {name}", X, pd.Series(y)), (), asked, 1.0)
    return string, path


def _seen(pages: list[Path], folder: Path) -> list[dict[str, Any]]:
    probe = folder / "probe.html"
    addresses = json.dumps([path.as_uri() for path in pages]).replace("<", "\\u003c")
    probe.write_text(PROBE % addresses, encoding="utf-8")
    words = [browser() or "", *FLAGS.split(), f"--user-data-dir={folder / 'profile'}"]
    words += ["--virtual-time-budget=600000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, check=False)
    found = re.search("PROBE(.*?)END</pre>", done.stdout, re.S)
    assert found, done.stderr[-500:]
    return json.loads(html.unescape(found[1]))
