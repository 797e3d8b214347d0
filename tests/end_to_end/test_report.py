"""The report: what it says, that nothing in the data becomes markup, and how it behaves in a real
browser.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.cli import main
from lighttouch.estimators.pairs import RANKED, ndcg
from lighttouch.estimators.rules.shapes import KINDS
from lighttouch.report import Data, accuracy, examine, write_report
from lighttouch.report.accuracy import (
    AREA,
    BRIER,
    LOG_LOSS,
    ROOT,
    SEPARATION,
    TwoClasses,
    difference,
    summary,
)
from lighttouch.report.charts import Series, line_chart
from lighttouch.report.findings import Clock, folds, grouped, prices
from lighttouch.report.limits import LIMITS
from lighttouch.report.markup import Markup, as_json, clipped, fill, number, text
from lighttouch.report.slices import Support, slices, warning
from lighttouch.report.words import SENTENCES, rules_asked

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
        "path",
        "pre",
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
        "Where it comes from",
        "Discrimination and calibration",
        "Two columns together",
        "What the model learnt, column by column",
        "Missing cells",
        "The rules in words",
        "Stability over folds",
        "What training chose",
        "Which rules bind in training",
        "Convergence",
        "Sign-off",
    ]
    assert "The largest violation is exactly 0" in page
    assert len(page.encode()) < 1_000_000


def test_its_numbers_are_those_of_the_model(tmp_path):
    model, data = fitted(list("abcd"))
    write_report(model, tmp_path / "r.html", data, [accuracy(model, data)])
    words = " ".join(read(tmp_path / "r.html").words)
    assert type(model).__name__ in words and "Ranking" not in words
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
            and rule.binding.size >= rule.rows - 1
        )
        along = kind(monotonic_cst={"a": 1}).fit(X, y)
        assert along.constraint_report_.rules[0].violation_without < rule.violation_without
        history = against.history_
        assert len(history) == against.n_iter_ + 1
        assert (np.diff(history.objective) <= 0).all() and (np.diff(history.seconds) >= 0).all()
        assert (np.diff(history.constraint_checks) > 0).all()


def test_a_report_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    X, y = pd.DataFrame({"x": np.arange(20.0)}), np.arange(20.0)
    model = lt.ConstrainedLinearRegressor().fit(X, y)
    path = tmp_path / "r.html"
    path.write_text("the old one")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_report(model, path, Data("rows", X, y))
    assert path.read_text() == "the old one", "nothing is written in place"
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


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
    assert 'aria-label="probability of yes along age"' in page, "the probability beside it"
    assert 'aria-label="probability of yes along pay"' in page
    assert 'aria-label="log-odds of yes along pay"' not in page
    assert "Concave(age): on the log-odds of yes, not on its probability" in page
    assert "The log-odds of yes bends downwards along age" in page
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


def table(rows: int = 240, seed: int = 0):
    """Numbers, categories and missing cells; `a` helps, `b` harms."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.random(rows), "b": rng.random(rows)})
    X["kind"] = rng.choice(["low", "high"], rows)
    y = 2.0 * X["a"] - X["b"] + 0.5 * (X["kind"] == "high") + 0.1 * rng.normal(size=rows)
    X.loc[rng.random(rows) < 0.1, "b"] = np.nan
    return X, y.to_numpy(copy=True)


FAST = {"keypoints": 5, "lattices": 0}


@pytest.mark.parametrize("kind", ["quantiles", "ordered", "classes", "counts", "queries"])
def test_models_with_several_outputs_have_a_report(tmp_path, kind):
    X, y = table()
    if kind == "quantiles":
        model = lt.LatticeRegressor(
            loss="quantile", quantile=[0.1, 0.5, 0.9], monotonic_cst={"a": 1}, **FAST
        ).fit(X, y)
        data, needed = Data("rows", X, y), ["quantile 0.1", "Coverage", "quantiles in order"]
    elif kind == "ordered":
        labels = np.array(["bad", "fair", "good"])[np.digitize(y, [0.3, 1.0])]
        order = ["bad", "fair", "good"]
        model = lt.LatticeClassifier(ordinal=order, monotonic_cst={"a": 1}, **FAST).fit(X, labels)
        data, needed = Data("rows", X, labels), ["above bad", "predicted fair", "exceeding"]
    elif kind == "classes":
        labels = np.array(["bad", "fair", "good"])[np.digitize(y, [0.3, 1.0])]
        model = lt.LatticeClassifier(**FAST).fit(X, labels)
        data, needed = Data("rows", X, labels), ["predicted fair", "Reliability", "good"]
    elif kind == "counts":
        seen = np.random.default_rng(1).poisson(np.exp(y))
        model = lt.LatticeRegressor(
            loss="poisson", shape_constraints=[lt.SlopeBound("a", 3.0)], **FAST
        ).fit(X, seen)
        data, needed = Data("rows", X, seen), ["log-mean along a", "mean along a", "at most 3.0"]
    else:
        queries = np.repeat(np.arange(24), 10)
        grade = np.digitize(y, [0.3, 1.0])
        model = lt.LatticeRanker(monotonic_cst={"a": 1}, **FAST).fit(X, grade, qid=queries)
        data, needed = Data("rows", X, grade, queries), ["NDCG at 10", "never falls when a rises"]
    found = examine(model, data, seconds=0.0)
    write_report(model, tmp_path / "r.html", data, findings=found)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for words in needed:
        assert words in page, words
    assert "nan" not in re.sub(r"[a-z0-9]{64}", "", page.split("<body>")[1].split("<script>")[0])


# --- what it measures


def test_measures_are_those_of_other_libraries():
    from scipy.stats import ks_2samp
    from sklearn import metrics

    rng = np.random.default_rng(0)
    second = rng.random(500) < 0.3
    scores = np.round(rng.normal(size=500) + second, 1)  # with ties
    shares = 1.0 / (1.0 + np.exp(-scores))
    judged = TwoClasses(second, scores, shares)
    found = judged.plain()
    assert found[AREA] == pytest.approx(metrics.roc_auc_score(second, scores), abs=1e-12)
    assert found[BRIER] == pytest.approx(metrics.brier_score_loss(second, shares), abs=1e-12)
    assert found[LOG_LOSS] == pytest.approx(metrics.log_loss(second, shares), abs=1e-12)
    known = ks_2samp(scores[second], scores[~second]).statistic
    assert found[SEPARATION] == pytest.approx(known, abs=1e-12)
    weights = rng.integers(0, 4, 500).astype(float)
    area = metrics.roc_auc_score(second, scores, sample_weight=weights)
    assert judged.measures(weights)[AREA] == pytest.approx(area, abs=1e-12)
    relevance, rank = rng.integers(0, 4, 30).astype(float), rng.normal(size=30)
    known = metrics.ndcg_score([2.0**relevance - 1.0], [rank], k=RANKED)
    assert ndcg(rank, relevance, RANKED) == pytest.approx(known, abs=1e-12)


def test_intervals_are_as_wide_as_theory_says():
    rng = np.random.default_rng(1)
    second = rng.random(2000) < 0.5
    judged = TwoClasses(second, np.where(rng.random(2000) < 0.8, 1.0, -1.0), None)
    found = summary(judged, "rows")
    low, high = found.intervals["accuracy"]
    assert low < found.measures["accuracy"] < high
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 2000), rel=0.2)
    changes, ends = difference(judged, judged)
    assert set(changes.values()) == {0.0} and set(ends.values()) == {(0.0, 0.0)}


def test_a_rule_against_the_data_has_a_price_and_one_along_it_none():
    X, y = table(300)
    train, test = Data("train", X[:200], y[:200]), Data("test", X[200:], y[200:])
    model = lt.LatticeRegressor(
        monotonic_cst={"a": 1, "b": 1}, shape_constraints=[lt.SlopeBound("a", 100.0)], **FAST
    ).fit(train.X, train.y)
    along, against, slack = prices(model, train, test, Clock(60.0))
    assert against.rule == "increasing in b" and against.changes[ROOT] < -0.05
    assert against.intervals[ROOT][1] < 0.0
    assert abs(along.changes[ROOT]) < 1e-3 and set(slack.changes.values()) == {0.0}
    for none in (prices(model, train, None, Clock(60.0)), prices(model, train, test, Clock(0.0))):
        assert all(price.untold and not price.changes for price in none)


@pytest.mark.parametrize("settings", [{"trees": 0}, {"loss": "quantile", "quantile": [0.2, 0.8]}])
def test_a_rule_that_changes_nothing_costs_nothing(settings):
    rng = np.random.default_rng(0)
    Z = rng.random((900, 4))
    t = 3 * Z[:, 0] + np.sin(5 * Z[:, 1]) * Z[:, 2] + 0.2 * rng.normal(size=900)
    train, test = Data("train", Z[:600], t[:600]), Data("test", Z[600:], t[600:])
    model = lt.LatticeRegressor(monotonic_cst={0: 1}, random_state=0, **settings)
    found = prices(model.fit(train.X, train.y), train, test, Clock(60.0))
    assert set(found[0].changes.values()) == {0.0}
    assert all("none can be trained without it" in each.untold for each in found[1:])


def test_a_rule_of_a_convex_model_against_the_data_has_a_price():
    """Its rows hold with equality to rounding only, so that none of them is known to bind."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    y = -2.0 * X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=150)
    train, test = Data("train", X[:100], y[:100]), Data("test", X[100:], y[100:])
    model = lt.ConvexRegressor(monotonic_cst={0: 1}).fit(train.X, train.y)
    _, against = prices(model, train, test, Clock(60.0))
    assert against.changes["R squared"] > 0.5


@pytest.mark.parametrize("kind", [lt.ConvexRegressor, lt.MonotoneRegressor])
def test_models_of_points_have_a_report(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    model = kind(monotonic_cst={0: 1}).fit(X, X[:, 0] + 0.1 * rng.normal(size=60))
    write_report(model, tmp_path / "points.html", Data("train", X, X[:, 0]))
    assert "increasing in x0" in (tmp_path / "points.html").read_text()


def test_no_price_is_the_difference_of_fits_that_did_not_converge(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(200), "b": rng.random(200)})
    y = np.where(X["b"] + 0.3 * rng.normal(size=200) > 0.5, 1, 0)
    data = Data("rows", X, y)
    with pytest.warns(UserWarning, match="iteration limit"):
        model = lt.LatticeClassifier(monotonic_cst={"b": -1}, max_iter=1, tol=1e-12, **FAST).fit(
            X, y
        )
    (price,) = prices(model, data, data, Clock(60.0))
    assert "before it converged" in price.untold and not price.changes
    assert model.constraint_report_.price is None
    assert "the rules cost" not in str(model.constraint_report_)
    write_report(model, tmp_path / "r.html", data, findings=examine(model, data, data, 60.0))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "before it converged" in page and "they cost" not in page


def test_the_cost_of_rules_is_not_claimed_of_fits_that_are_not_proven(tmp_path):
    X, y = table(300)
    rules = {"monotonic_cst": {"b": 1}, "lattices": 0}
    stalled = lt.LatticeRegressor(loss="absolute", **rules).fit(X, y)
    assert stalled.status_ == "stalled" and stalled.constraint_report_.objective_without_rules
    late = lt.LatticeRegressor(**rules).fit(X, y)
    kept = late.constraint_report_
    assert kept.proven and "the rules cost" in str(kept)
    kept = kept.of_training("time limit")  # as after a search that was cut short
    assert kept.price is None and "ended early" in str(kept)
    stalled.save(tmp_path / "stalled.lt")
    for each in (stalled, lt.load(tmp_path / "stalled.lt")):
        for report in (each.constraint_report_, each.check_constraints()):
            assert "neither is proven" in str(report) and "the rules cost" not in str(report)
    write_report(stalled, tmp_path / "r.html", Data("rows", X, y))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "neither is proven" in page and "they cost" not in page


def test_folds_are_models_of_other_rows():
    X, y = table()
    model = lt.LatticeRegressor(**FAST).fit(X, y)
    found = folds(model, Data("rows", X, y), Clock(60.0))
    assert len(found.parts) == found.asked == 5 and sum(each.rows for each in found.parts) == 240
    mean, deviation = found.spread()[ROOT]
    values = [each.measures[ROOT] for each in found.parts]
    assert mean == pytest.approx(np.mean(values)) and deviation == pytest.approx(
        np.std(values, ddof=1)
    )
    assert mean > accuracy(model, Data("rows", X, y)).measures[ROOT] * 0.9
    late = folds(model, Data("rows", X, y), Clock(1e-9))
    assert late.parts == () and "seconds=" in late.untold and "--report-time" in late.untold


def test_groups_are_rows_of_their_own():
    X, y = table()
    model = lt.LatticeRegressor(**FAST).fit(X, y)
    data = Data("rows", X, y, groups={"kind": X["kind"], "b": X["b"]})
    found = examine(model, data, seconds=0.0).groups
    kinds = {each.group: each.accuracy for each in found if each.column == "kind"}
    assert set(kinds) == {"low", "high"}
    chosen = (X["kind"] == "low").to_numpy()
    own = accuracy(model, Data("low", X[chosen], y[chosen])).measures[ROOT]
    assert kinds["low"].measures[ROOT] == pytest.approx(own)
    assert kinds["low"].measures["mean target"] == pytest.approx(y[chosen].mean())
    parts = [each for each in found if each.column == "b"]
    assert len(parts) == 5 and sum(each.accuracy.rows for each in parts) == 240
    assert parts[-1].group == "(missing)"
    many = grouped(pd.Series([f"c{k}" for k in range(40)] * 3))
    assert len(many) == LIMITS.groups and sum(rows.size for _, rows in many) == 120


def test_thin_support_is_told():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(0.0, 1.0, 2000), [3.9, 4.0]])
    support = Support.of(values)
    assert support.counts.sum() == 2002 and support.runs()[-1][2] == 2
    grid = np.linspace(0.0, 4.0, 50)
    assert "2 of 2,002 rows" in warning(support, grid, np.maximum(0.0, grid - 1.0))
    assert warning(support, grid, np.minimum(1.0, grid)) == ""
    far = Support.of(np.append(rng.random(2000), 1e9))
    assert far.beyond > 0 and far.edges[-1] <= 1.0, "one huge cell does not hide the others"
    whole = Support.of(np.repeat(np.arange(5.0), 100))
    assert whole.counts.tolist() == [100] * 5 and whole.runs() == []


def test_the_report_tells_of_thin_support_and_missing_cells(tmp_path):
    X, y = table(400)
    X.loc[:2, "a"] = [6.0, 6.5, 7.0]
    y[:3] = 40.0
    model = lt.LatticeRegressor(monotonic_cst={"a": 1}, **FAST).fit(X, y)
    write_report(model, tmp_path / "r.html", Data("rows", X, y))
    words = " ".join(read(tmp_path / "r.html").words)
    assert re.search(r"Thin support: between .* lie 3 of 400 rows", words)
    assert "cell missing" in words and f"{int(X['b'].isna().sum())}" in words
    view = next(each for each in slices(model, X) if each.name == "b").views[0]
    gone = X.assign(b=np.nan)
    rows = np.sort(np.random.default_rng(0).choice(400, LIMITS.sample, replace=False))
    assert view.missing[0] == pytest.approx(model.predict(gone.iloc[rows]).mean())


def test_models_that_refuse_missing_cells_do_not_say_what_these_count_as(tmp_path):
    X, y = table()
    X = X[["a", "kind"]].assign(kind=1.0 * (X["kind"] == "high"))
    for kind in (lt.ConstrainedLinearRegressor, lt.MonotoneRegressor):
        write_report(kind().fit(X, y), tmp_path / "r.html", Data("rows", X, y))
        words = " ".join(read(tmp_path / "r.html").words)
        assert "refuses rows with missing cells" in words and "average effect" not in words


def test_whole_numbers_in_an_array_are_drawn_like_others():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (240, 3))
    y = X[:, 0] + 2.0 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240)
    rules = {"monotonic_cst": {0: 1}, "categorical_features": [2]}
    found = [
        {each.name: each for each in slices(lt.LatticeRegressor(**rules).fit(table, y), table)}
        for table in (X, X.astype(np.float64))
    ]
    for name in ("x0", "x1", "x2"):
        whole, other = (each[name].views[-1].average for each in found)
        assert np.unique(whole).size == whole.size and np.allclose(whole, other)


def test_held_out_rows_of_one_class_have_a_report_without_a_separation(tmp_path):
    X, y = table()
    second = y > np.median(y)
    model = lt.LatticeClassifier(**FAST).fit(X, second)
    some = Data("held out", X[second], second[second])
    train = Data("rows", X, second)
    found = examine(model, train, some, seconds=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_report(model, tmp_path / "r.html", train, test=some, findings=found)
    words = " ".join(read(tmp_path / "r.html").words)
    assert "even odds" in words and "largest separation" not in words


def test_every_kind_of_rule_has_words():
    assert set(SENTENCES) == set(KINDS)
    X, y = table()
    rules = [
        lt.EdgeworthTrust("a", "b", sign=-1),
        lt.Unimodal("b", 0.5, "peak"),
        lt.CategoryOrder("kind", [("low", "high")]),
    ]
    model = lt.LatticeRegressor(shape_constraints=rules, keypoints=5).fit(X, y)
    words = [rule.words for rule in rules_asked(model)]
    assert words == [
        "The lower b, the more the prediction rises with a.",
        "The prediction rises until 0.5 and falls after it, along b.",
        "The prediction never falls from the first to the second of: low and high (kind).",
    ]
    without = rules_asked(model)[1].without["shape_constraints"]
    assert without == [rules[0], rules[2]]


def test_the_command_line_writes_provenance_and_numbers(tmp_path, monkeypatch, capsys):
    import hashlib

    monkeypatch.chdir(tmp_path)
    X, y = table()
    X.assign(y=y).to_csv("t.csv", index=False)
    (tmp_path / "rules.toml").write_text('increasing = ["a"]  # <rule>\n')
    words = ["--target", "y", "--rules", "rules.toml", "--holdout", "0.3", "--seed", "3"]
    words += ["--by", "kind", "--drop", "kind", "--report-time", "60", "--json"]
    assert main(["train", "t.csv", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    for name in ("t.csv", "t.lt"):
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() in page
    assert lt.load("t.lt").training_record_.created[:10] in page and "<th>seed</th><td>3" in page
    assert "increasing = [&quot;a&quot;]  # &lt;rule&gt;" in page and "--report-time" in page
    found = told["findings"]
    assert found["prices"][0]["rule"] == "increasing in a" and found["prices"][0]["changes"]
    assert len(found["folds"]["parts"]) == 5 and found["folds"]["spread"][ROOT][0] > 0.0
    assert {each["group"] for each in found["groups"]} == {"low", "high"}
    low, high = told["accuracy"][1]["intervals"][ROOT]
    assert low < told["accuracy"][1]["measures"][ROOT] < high
    words = ["--by", "kind", "--holdout", "0.1", "--quick", "--overwrite"]
    assert main(["train", "t.csv", "--target", "y", *words]) == 0
    assert re.search(r"kind = low \(\d+\): too few rows to measure", capsys.readouterr().out)
    assert main(["train", "t.csv", "--target", "y", "--by", "kid", "--overwrite"]) == 2
    assert "did you mean 'kind'" in capsys.readouterr().err


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
    assert seen["keyed"].startswith("false positive rate ")
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
