"""The report: what it says, that nothing in the data becomes markup, and how it behaves in a real
browser.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.report import Data, accuracy, write_report
from lighttouch.report.charts import Series, line_chart
from lighttouch.report.markup import Markup, as_json, clipped, fill, number, text
from lighttouch.report.slices import slices

pd = pytest.importorskip("pandas")

BROWSER = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
in_browser = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here; apt-get install chromium"
)
HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "</style></title><script>window.hacked=1</script>",
    "\" onmouseover=\"window.hacked=1\" x=\"",
    "' autofocus onfocus='window.hacked=1",
    "<svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "a\u2028b\u202ec\x07\x1b[31m\x00\n",
    "<!--",
    "&lt;b&gt;",
    "=1+1",
]  # fmt: skip
TAGS = set(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "h1",
        "h2",
        "h3",
        "p",
        "section",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "code",
        "figure",
        "button",
        "svg",
        "g",
        "text",
        "line",
        "polyline",
        "circle",
        "rect",
        "figcaption",
        "span",
        "details",
        "summary",
        "footer",
        "script",
    ]
)


def fitted(names: list[str], seed: int = 0):
    """A classifier over numbers and one column of categories, rules on the first two columns."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.random(250) for name in names[:-1]})
    frame[names[-1]] = rng.choice(HOSTILE[:4], 250)
    label = np.where(
        frame[names[0]] - frame[names[1]] + 0.3 * rng.normal(size=250) > 0, HOSTILE[0], HOSTILE[1]
    )
    model = lt.LatticeClassifier(monotonic_cst={names[0]: 1, names[1]: -1}, max_iter=8).fit(
        frame, label
    )
    return model, Data("training " + HOSTILE[0], frame, label)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    model, data = fitted(HOSTILE)
    asked = {
        "data": HOSTILE[1],
        "target": HOSTILE[2],
        "task": "classification",
        "command": "lighttouch train " + HOSTILE[3],
    }
    write_report(model, path, data, [accuracy(model, data)], asked, 1.0)
    return path


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


def read(path):
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


# --- what it says


def test_the_verdict_comes_first_and_the_sections_follow(hostile):
    page = hostile.read_text(encoding="utf-8")
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "All 2 rules hold",
        "What was asked",
        "What was chosen",
        "Accuracy",
        "Convergence and violation",
        "Which rules bind, and what they cost",
        "What the model learnt, column by column",
    ]
    assert "The largest violation is exactly 0" in page
    assert len(page.encode()) < 1_000_000


def test_its_numbers_are_those_of_the_model(tmp_path):
    model, data = fitted(list("abcd"))
    write_report(model, tmp_path / "r.html", data, [accuracy(model, data)])
    words = " ".join(read(tmp_path / "r.html").words)
    report = model.check_constraints()
    for rule in report.rules:
        assert rule.rule in words and f"{rule.rows:,}" in words
    assert f"{report.rows:,} inequalities" in words
    assert number(float(np.mean(model.predict(data.X) == data.y))) in words
    assert number(model.constraint_report_.objective, 5) in words


def test_a_broken_rule_is_not_hidden(tmp_path):
    model, data = fitted(list("abcd"))
    part = model.model_.part(model.model_.calibrator_of(0))
    model.parameters_[part] = model.parameters_[part][::-1].copy()
    write_report(model, tmp_path / "r.html", data)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "1 of 2 rules are broken" in page and "BROKEN" in page and "exactly 0" not in page


def test_history_and_what_a_free_model_would_break_are_measured():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.random(300), "b": rng.random(300)})
    y = np.where(X["a"] + 0.2 * rng.normal(size=300) > 0.5, 1, 0)
    for kind in (lt.LatticeClassifier, lt.ConstrainedLinearClassifier):
        against = kind(monotonic_cst={"a": -1}).fit(X, y)
        (rule,) = against.constraint_report_.rules
        assert (
            rule.broken_without > 0
            and rule.violation_without > 0.1
            and rule.binding.size == rule.rows
        )
        along = kind(monotonic_cst={"a": 1}).fit(X, y)
        assert along.constraint_report_.rules[0].violation_without < rule.violation_without
        history = against.history_
        assert len(history) == against.n_iter_ + 1
        assert (np.diff(history.objective) <= 0).all() and (np.diff(history.seconds) >= 0).all()
        assert (np.diff(history.constraint_checks) > 0).all()


def test_rules_about_differences_are_shown_on_the_log_odds(tmp_path):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"age": rng.random(300), "pay": rng.random(300)})
    y = np.where(X["age"] - X["age"] ** 2 + 0.1 * rng.normal(size=300) > 0.15, "yes", "no")
    model = lt.LatticeClassifier(
        monotonic_cst={"pay": 1}, shape_constraints=[lt.Concave("age")], max_iter=8
    ).fit(X, y)
    write_report(model, tmp_path / "r.html", Data("rows", X, y))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Concave(age), on the log-odds" in page
    assert 'aria-label="log-odds of yes along age"' in page
    assert 'aria-label="probability of yes along pay"' in page
    assert "Concave(age): on the log-odds of yes, not on its probability" in page
    assert page.count("<td data-label='on the'>log-odds</td>") == 1
    drawn = next(each for each in slices(model, X) if each.name == "age")
    even = drawn.typical[np.isin(drawn.values, np.linspace(*drawn.values[[0, -1]], 24))]
    assert (np.diff(even, 2) <= 1e-12).all()


@pytest.mark.parametrize("kind", ["lattice", "linear", "texts"])
def test_slices_are_the_models_own_predictions(kind):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.random(200), "b": rng.random(200)})
    y = X["a"] ** 2 + 0.1 * rng.normal(size=200)
    if kind == "texts":
        X["c"] = pd.Categorical(rng.choice(["low", "high", None], 200))
    estimator = lt.ConstrainedLinearRegressor if kind == "linear" else lt.LatticeRegressor
    model = estimator(monotonic_cst={"a": 1}).fit(X, y)
    first = slices(model, X)[0]
    row = X.iloc[[0] * first.values.size].reset_index(drop=True)
    for name in "ab":
        row[name] = X[name].quantile(0.5, interpolation="lower")
    if kind == "texts":
        row["c"] = pd.Categorical([X["c"].mode()[0]] * len(row))
    row["a"] = first.values
    np.testing.assert_array_equal(first.typical, model.predict(row))
    assert (np.diff(first.typical) >= 0.0).all() and (np.diff(first.average) >= 0.0).all()


@pytest.mark.parametrize(
    "kind", ["linear", "regressor", "ranker", "no rules", "loaded", "many columns"]
)
def test_every_kind_of_model_has_a_report(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((150, 45 if kind == "many columns" else 3))).rename(
        columns=lambda place: f"c{place}"
    )
    y = X["c0"] - X["c1"] ** 2 + 0.1 * rng.normal(size=150)
    rules = {"monotonic_cst": {"c0": 1}}
    if kind == "linear":
        model, data = lt.ConstrainedLinearRegressor(**rules).fit(X, y), Data("rows", X, y)
    elif kind == "ranker":
        model, data = (
            lt.LatticeRanker(**rules).fit_pairs(X[:75], X[75:]),
            Data("pairs", X[:75], worse=X[75:]),
        )
    else:
        lattices = 0 if kind == "many columns" else "auto"
        model = lt.LatticeRegressor(
            **({} if kind == "no rules" else rules), keypoints=5, lattices=lattices
        ).fit(X, y)
        data = Data("rows", X, y)
    if kind == "loaded":
        model.save(tmp_path / "m.lt")
        model = lt.load(tmp_path / "m.lt")
    write_report(model, tmp_path / "r.html", data, [accuracy(model, data)])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 1_000_000
    assert ("No rules were asked for" if kind == "no rules" else "The rule holds") in page
    if kind == "many columns":
        assert "5 more columns are not drawn" in page


# --- nothing in the data becomes markup


def test_hostile_names_become_text(hostile):
    reader = read(hostile)
    assert set(reader.tags) <= TAGS
    assert reader.tags.count("script") == 1
    assert not [
        name
        for name, _ in reader.attributes
        if name.startswith("on") or name in ("src", "href", "autofocus", "srcdoc")
    ]
    words = " ".join(reader.words)
    for name in HOSTILE[:7]:
        assert name in words
    assert "a\\u2028b\\u202ec\\x07\\x1b[31m\\x00\\n" in words
    page = hostile.read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u2028\u2029\u202e]", page)
    assert (
        "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
    )


def test_text_has_one_door():
    assert text("<a href='x'>&\"") == "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;"
    assert text("\x1b\u202e\ud800") == "\\x1b\\u202e\\ud800"
    assert clipped("<" * 30, 5) == "&lt;" * 4 + "…"
    packed = as_json({"<!--": ["</script>", "\u2028&'"]})
    assert not set("<>&'\u2028") & set(packed) and json.loads(packed) == {
        "<!--": ["</script>", "\u2028&'"]
    }


def test_a_template_escapes_what_it_is_given():
    assert fill("<b>{name}</b>", name="<i>") == "<b>&lt;i&gt;</b>"
    assert fill("<b>{inside}</b>", inside=fill("<i>{x:.1f}</i>", x=2)) == "<b><i>2.0</i></b>"
    assert fill("{s.name}{a}", {"s": Series("<i>", ())}, a="&") == "&lt;i&gt;&amp;"
    assert isinstance(fill("{x}", x=Markup("<i>")), Markup)


def test_charts_survive_flat_and_single_points():
    for x, y in (
        ([1.0], [2.0]),
        ([0.0, 1.0], [3.0, 3.0]),
        ([0.0, 1e-9], [1e12, -1e12]),
        ([5.0, 5.0], [0.0, 0.0]),
    ):
        page = line_chart("t", x, [Series("s", y)], "x", "y")
        assert "nan" not in page and "inf" not in page.replace("information", "")


# --- in a browser

PROBE = """<!doctype html><title>probe</title>
<iframe id=f width=390 height=900 src="%s"></iframe><pre id=out></pre><script>
document.getElementById("f").onload = function () {
  var out = {}, frame = this, page = frame.contentDocument, view = frame.contentWindow;
  try {
    out.scripted = page.documentElement.classList.contains("scripted");
    out.hacked = view.hacked === undefined ? null : view.hacked;
    out.scripts = page.scripts.length; out.images = page.images.length;
    out.charts = page.querySelectorAll("figure.chart").length;
    out.overflow = page.documentElement.scrollWidth - 390;
    out.background = view.getComputedStyle(page.body).backgroundColor;
    out.readouts = [];
    page.querySelectorAll("figure.chart").forEach(function (figure) {
      if (figure.closest("details")) figure.closest("details").open = true;
      var svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
      var at = { clientX: box.left + 0.6 * box.width, clientY: box.top + 20, bubbles: true };
      svg.dispatchEvent(new view.PointerEvent("pointermove", at));
      out.readouts.push(figure.querySelector(".readout").textContent);
    });
    var key = page.querySelector(".key");
    var line = key.closest("figure").querySelector('.series[data-series="0"]');
    key.click();
    out.hidden = [key.getAttribute("aria-pressed"), view.getComputedStyle(line).display];
    key.click();
    out.again = [key.getAttribute("aria-pressed"), view.getComputedStyle(line).display];
    var svg = page.querySelector("figure.chart svg");
    svg.dispatchEvent(new view.PointerEvent("pointerleave"));
    svg.dispatchEvent(new view.KeyboardEvent("keydown", { key: "ArrowLeft" }));
    out.keyed = svg.closest("figure").querySelector(".readout").textContent;
    out.hackedAfter = view.hacked === undefined ? null : view.hacked;
  } catch (error) { out.error = String(error); }
  document.getElementById("out").textContent = "PROBE" + JSON.stringify(out) + "END";
};
</script>"""


def chromium(profile, *words):
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update "
        "--disable-sync --hide-scrollbars --enable-logging=stderr --v=0 "
        "--disable-web-security --allow-file-access-from-files"
    )
    words = [BROWSER, *flags.split(), f"--user-data-dir={profile}", *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)


def probe(page, tmp_path, *words):
    """What a script outside the report sees when it opens the report and uses it."""
    (tmp_path / "probe.html").write_text(PROBE % page.as_uri(), encoding="utf-8")
    done = chromium(
        tmp_path / "profile",
        *words,
        "--virtual-time-budget=4000",
        "--dump-dom",
        (tmp_path / "probe.html").as_uri(),
    )
    found = re.search("PROBE(.*?)END</pre>", done.stdout, re.S)
    assert found, done.stdout[-2000:] + done.stderr[-2000:]
    plain = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(plain), complaints


@in_browser
def test_it_works_in_a_browser_and_hostile_names_do_nothing(hostile, tmp_path):
    seen, complaints = probe(hostile, tmp_path, "--blink-settings=preferredColorScheme=1")
    assert "error" not in seen, seen
    assert complaints == []
    assert seen["scripted"] is True
    assert seen["hacked"] is None and seen["hackedAfter"] is None
    assert seen["scripts"] == 1 and seen["images"] == 0
    assert seen["charts"] > len(HOSTILE)
    assert all(words.strip() for words in seen["readouts"])
    assert seen["hidden"] == ["false", "none"] and seen["again"] == ["true", "inline"]
    assert seen["keyed"].startswith("seconds ")
    assert seen["overflow"] <= 0, "the page is wider than a phone"
    assert seen["background"] == "rgb(245, 246, 248)"


@in_browser
def test_dark_mode_and_print(hostile, tmp_path):
    seen, complaints = probe(hostile, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert seen["background"] == "rgb(18, 22, 28)" and complaints == []
    paper = tmp_path / "report.pdf"
    chromium(
        tmp_path / "other", f"--print-to-pdf={paper}", "--no-pdf-header-footer", hostile.as_uri()
    )
    content = paper.read_bytes()
    assert content.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", content)) >= 2
