"""Many categories with slopes of their own along another column: when a model has them, and that
they keep every rule.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt
from lighttouch.estimators import growing, structure
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.penalties import _lattice_rows
from lighttouch.estimators.structure import Leftover, Screen
from lighttouch.report import Data, write_report


def panel(
    shops: int = 40, each: int = 15, spread: float = 1.0, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Shops whose sales rise at a pace of their own, more or less `spread`."""
    rng = np.random.default_rng(seed)
    level, pace = rng.normal(size=shops), 1.0 + spread * np.abs(rng.normal(size=shops))
    shop = rng.permutation(np.repeat(np.arange(shops), each))
    month, price = rng.random((2, shop.size))
    y = level[shop] + pace[shop] * (month - 0.5) - price**2 + 0.1 * rng.normal(size=shop.size)
    return pd.DataFrame({"shop": [f"s{s}" for s in shop], "month": month, "price": price}), y


def with_slopes(model) -> list[tuple[int, ...]]:
    return [term.columns for term in model.model_.terms if term.unordered]


def error(model, X: pd.DataFrame, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(model.predict(X) - y))))


def test_every_category_has_its_own_slope_where_the_data_ask_for_it():
    X, y = panel()
    model = lt.LatticeRegressor(random_state=0).fit(X[:450], y[:450])
    alike = lt.LatticeRegressor(random_state=0, lattices=0).fit(X[:450], y[:450])
    assert with_slopes(model) == [(0, 1)]
    assert error(model, X[450:], y[450:]) < 0.15, "of which 0.1 are noise"
    assert error(alike, X[450:], y[450:]) > 0.2
    counted = lt.LatticeRegressor(random_state=0, lattices=1).fit(X[:450], y[:450])
    assert with_slopes(counted) == [(0, 1)], "chosen for what slopes explain, and so has them"
    assert error(counted, X[450:], y[450:]) < 0.15


@pytest.mark.parametrize("seed", range(3))
def test_categories_of_the_same_slope_have_none(seed):
    X, y = panel(spread=0.0, seed=seed)
    assert not with_slopes(lt.LatticeRegressor(random_state=0).fit(X, y))


@pytest.mark.parametrize("kind", ["regressor", "classifier", "counts", "quantiles"])
def test_slopes_keep_monotone_rules_after_saving(kind, tmp_path):
    X, y = panel(spread=2.0)
    y[X["shop"] == "s3"] -= 4.0 * X.loc[X["shop"] == "s3", "month"]  # against the rule
    rules = {"monotonic_cst": {"month": 1, "price": -1}, "random_state": 0}
    if kind == "classifier":
        X, y = panel(each=150, spread=8.0)
        y = y + np.random.default_rng(0).logistic(size=y.size) > 0.0
        model = lt.LatticeClassifier(**rules)
    elif kind == "counts":
        y = np.random.default_rng(0).poisson(np.exp(2.0 + y / 3.0))
        model = lt.LatticeRegressor(loss="poisson", **rules)
    elif kind == "quantiles":
        model = lt.LatticeRegressor(loss="quantile", quantile=[0.2, 0.8], **rules)
    else:
        model = lt.LatticeRegressor(**rules)
    model.fit(X, y)
    assert with_slopes(model) == [(0, 1)]
    assert model.check_constraints(X).violation == 0.0
    model.save(tmp_path / "model.lt")
    loaded = lt.load(tmp_path / "model.lt")
    rng = np.random.default_rng(1)
    rows = X.sample(20_000, replace=True, random_state=0).reset_index(drop=True)
    rows["month"], rows["price"] = 1.4 * rng.random((2, len(rows))) - 0.2
    score = loaded.predict if kind != "classifier" else loaded.decision_function
    for column, sign in (("month", 1.0), ("price", -1.0)):
        moved = rows.assign(**{column: rows[column] + rng.random(len(rows))})
        assert (sign * (score(moved) - score(rows)) >= 0.0).all()
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_unseen_categories_have_the_average_slope_and_missing_ones_their_own():
    X, y = panel()
    model = lt.LatticeRegressor(random_state=0, trees=0).fit(X, y)
    new = pd.DataFrame({"shop": "new", "month": [0.0, 1.0], "price": 0.5})
    low, high = model.predict(new)
    slopes = [np.diff(model.predict(new.assign(shop=f"s{s}")))[0] for s in range(40)]
    assert high - low == pytest.approx(np.mean(slopes), abs=0.1)
    missing = X["shop"] == "s7"
    gone = X.assign(shop=X["shop"].where(~missing))
    known = lt.LatticeRegressor(random_state=0, trees=0).fit(gone, y)
    assert with_slopes(known) == [(0, 1)]
    assert error(known, gone[missing], y[missing]) < 0.15


def test_few_categories_ordered_ones_and_rules_about_them_have_no_slopes_of_their_own():
    X, y = panel(shops=LIMITS.finest)
    assert not with_slopes(lt.LatticeRegressor(random_state=0).fit(X, y))
    X, y = panel()
    order = lt.CategoryOrder("shop", [("s0", "s1")])
    model = lt.LatticeRegressor(random_state=0, shape_constraints=[order]).fit(X, y)
    assert not with_slopes(model)


def test_lattices_of_categories_share_their_room(monkeypatch):
    limits = replace(LIMITS, most_apart=200)
    for module in (structure, growing):
        monkeypatch.setattr(module, "LIMITS", limits)
    rng = np.random.default_rng(0)
    X, y = panel(each=40)
    town = rng.integers(0, 50, len(y))
    X["town"], X["rain"] = [f"t{t}" for t in town], rng.random(len(y))
    y = y + 2.0 * rng.normal(size=50)[town] * X["rain"].to_numpy()
    y += (X["shop"].str[1:].astype(int) / 20.0 - 1.0) * (1.0 + 2.0 * X["month"])
    model = lt.LatticeRegressor(random_state=0).fit(X, y)
    assert len(with_slopes(model)) == 1
    parameters = sum(term.size for term in model.model_.terms if term.unordered)
    assert parameters <= 200
    lattices = [term.columns for term in model.model_.terms if not term.calibrator]
    assert {(0, 1), (3, 4)} <= set(lattices), "without room for slopes, categories share vertices"


def test_slopes_do_not_depend_on_the_order_of_categories():
    rows = _lattice_rows((30, 3), (), (0,)).toarray()
    order = np.random.default_rng(0).permutation(30)
    w = np.random.default_rng(1).normal(size=(30, 3))
    assert np.square(rows @ w.ravel()).sum() == pytest.approx(
        np.square(rows @ w[order].ravel()).sum()
    )
    assert np.linalg.matrix_rank(rows) == 90
    flat, steep = np.outer(np.ones(30), [1.0, 1.0, 1.0]), np.outer(np.ones(30), [-1.0, 0.0, 1.0])
    assert np.square(rows @ steep.ravel()).sum() > 10.0 * np.square(rows @ flat.ravel()).sum()


def test_the_screen_tests_one_slope_per_category():
    """What noise explains is one unit per category, and a slope adds its own square."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 100, 20_000), rng.random((20_000, 2))])
    slopes = rng.normal(size=100)
    noise = rng.normal(size=20_000)
    residual = noise + slopes[table[:, 0].astype(int)] * (table[:, 1] - 0.5)
    left = Leftover(residual, np.full(20_000, 1.0 / 20_000), 1.0)
    gains = Screen([(table, 1.0)], 20_000.0).gains_apart(0, 100, [1, 2], left)
    assert gains[0, 2].freedom == gains[0, 1].freedom == 99.0
    assert gains[0, 2].explained == pytest.approx(100.0, abs=45.0)
    expected = 100.0 + 200.0 * float(np.square(slopes).sum()) / 12.0
    assert gains[0, 1].explained == pytest.approx(expected, rel=0.15)


def test_files_find_the_same_slopes(tmp_path):
    X, y = panel()
    X.assign(sales=y).to_csv(tmp_path / "sales.csv", index=False)
    whole = lt.LatticeRegressor(random_state=0).fit(X, y)
    parts = lt.LatticeRegressor(random_state=0).fit_files(tmp_path / "sales.csv", target="sales")
    assert with_slopes(parts) == with_slopes(whole) == [(0, 1)]
    assert parts.predict(X) == pytest.approx(whole.predict(X), abs=0.02)


def test_a_model_with_slopes_is_explained_and_goes_on(tmp_path):
    X, y = panel()
    model = lt.LatticeRegressor(random_state=0, warm_start=True).fit(X, y)
    explained = model.explain(X)
    assert explained.scores == pytest.approx(model.predict(X))
    write_report(model, tmp_path / "report.html", Data("training rows", X, y))
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    assert with_slopes(model.fit(X, y)) == [(0, 1)]


def test_a_report_says_how_many_of_the_categories_it_shows(tmp_path):
    X, y = panel()
    model = lt.LatticeRegressor(random_state=0).fit(X, y)
    write_report(model, tmp_path / "report.html", Data("training rows", X, y))
    page = (tmp_path / "report.html").read_text()
    assert "The 14 most common of 40 categories of shop are shown." in page


def test_a_rare_value_of_the_other_column_counts():
    """One row of 300 in every category: its slope is seen, however rare it is."""
    category, rare = np.repeat(np.arange(30.0), 300), np.tile(np.arange(300.0) == 0.0, 30)
    residual = np.where(rare, 5.0, 0.0) * np.repeat(np.arange(30) % 2 - 0.5, 300)
    left = Leftover(residual, np.full(9000, 1.0 / 9000), 1.0)
    gains = Screen([(np.column_stack([category, rare]), 1.0)], 9000.0).gains_apart(0, 30, [1], left)
    assert gains[0, 1].freedom == 29.0
    assert gains[0, 1].explained == pytest.approx(30 * 2.5**2 * 299 / 300)
