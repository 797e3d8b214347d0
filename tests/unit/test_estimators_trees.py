"""Trees beside curves and lattices: when there are any, under which rules, and what they say."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch import losses
from lighttouch.errors import ModelFileError
from lighttouch.estimators import lattice_base, smoothing, trees
from lighttouch.estimators.judged import Judged
from lighttouch.estimators.penalties import roughness_of
from lighttouch.estimators.trees import (
    COSTS,
    Bins,
    Ground,
    TreeRows,
    Trees,
    Trial,
    boosted,
    grown,
    wanted_count,
)
from lighttouch.losses import loss_of
from lighttouch.running import OutOfTimeError

SQUARED = loss_of("squared")


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def local(rows: int = 3000, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Patches in the space of three columns, each with a height of its own, and a rise."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, columns))
    centres, heights = rng.random((12, 3)), rng.normal(size=12)
    nearest = np.square(X[:, None, :3] - centres).sum(axis=2).argmin(axis=1)
    return X, 2.0 * heights[nearest] + X[:, 3] + 0.1 * rng.normal(size=rows)


def binned(X: np.ndarray) -> tuple[Bins, np.ndarray]:
    bins = Bins.of(X, [None] * X.shape[1], set())
    return bins, bins.codes(X)


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_local_structure_gets_trees_that_predict_better(kind, tmp_path):
    X, y = local()
    test = slice(2400, None)
    if kind == "regressor":
        make, target = lt.LatticeRegressor, y
    else:
        make, target = lt.LatticeClassifier, y > np.median(y)
    rules = {"monotonic_cst": {3: 1}, "lattices": None}
    smooth = make(trees=0, **rules).fit(X[:2400], target[:2400])
    model = make(**rules).fit(X[:2400], target[:2400])
    assert smooth.trees_ is None
    assert model.trees_ is not None and model.trees_.count > 10
    assert model.score(X[test], target[test]) > smooth.score(X[test], target[test]) + 0.03
    assert model.constraint_report_.violation == 0.0
    assert model.check_constraints(X).violation == 0.0
    model.save(tmp_path / "m.lt")
    again = lt.load(tmp_path / "m.lt")
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert again.trees_.count == model.trees_.count


def test_a_hundred_rows_may_have_trees_and_fewer_have_none():
    rng = np.random.default_rng(0)
    X = rng.random((100, 2))
    y = ((X[:, 0] > 0.5) != (X[:, 1] > 0.5)) + 0.01 * rng.normal(size=100)
    model = lt.LatticeRegressor(lattices=None)
    assert model.fit(X, y).trees_ is not None
    assert model.fit(X[:-1], y[:-1]).trees_ is None


@pytest.mark.parametrize("kind", ["classes", "counts"])
def test_rare_events_that_are_not_held_out_do_not_ask_for_trees(kind):
    """Whatever predicts that there are none gains on rows without any: 500 trees did."""
    counts = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(120, 4)), np.zeros(120)
        y[rng.choice(120, 3, replace=False)] = 1.0
        if kind == "classes":
            model = lt.LatticeClassifier(random_state=0).fit(X, y)
        else:
            model = lt.LatticeRegressor(loss="poisson", random_state=0).fit(X, y)
        counts.append(0 if model.trees_ is None else model.trees_.count)
    assert counts == [0] * 8


def test_columns_of_neighbouring_doubles_are_saved_and_loaded(tmp_path):
    """Times in nanoseconds, say: the middle of two neighbouring doubles is one of them."""
    rng = np.random.default_rng(0)
    times = 1.7e18 + 256.0 * rng.integers(0, 40, 600)  # all the doubles there
    X = np.column_stack([times, rng.random(600)])
    y = np.sin(X[:, 0] - 1.7e18) + X[:, 1]
    model = lt.LatticeRegressor(trees=5, monotonic_cst={0: 1}).fit(X, y)
    assert all((np.diff(each) > 0.0).all() for each in model.trees_.bins.edges)
    model.save(tmp_path / "m.lt")
    assert lt.load(tmp_path / "m.lt").predict(X).tobytes() == model.predict(X).tobytes()
    assert model.check_constraints(X).violation == 0.0


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "huber"])
def test_local_structure_of_counts_and_amounts_gets_trees_too(loss, tmp_path):
    X, height = local()
    rng, mean = np.random.default_rng(4), np.exp(0.5 * height)
    y = {
        "poisson": rng.poisson(mean).astype(float),
        "gamma": mean * rng.gamma(5.0, 0.2, mean.size),
        "tweedie": mean * rng.poisson(2.0, mean.size) / 2.0,
        "huber": height + 50.0 * (rng.random(mean.size) < 0.02),
    }[loss]
    first, last = slice(2400), slice(2400, None)
    smooth, model = (
        lt.LatticeRegressor(loss=loss, monotonic_cst={3: 1}, lattices=None, trees=trees)
        for trees in (0, "auto")
    )
    smooth.fit(X[first], y[first])
    model.fit(X[first], y[first])
    assert model.trees_ is not None and model.trees_.count > 10
    truth = height if loss == "huber" else mean

    def error(fitted: lt.LatticeRegressor) -> float:
        return float(np.mean(np.abs(fitted.predict(X[last]) - truth[last])))

    assert error(model) < 0.9 * error(smooth)
    assert model.check_constraints(X).violation == 0.0
    model.save(tmp_path / "m.lt")
    assert lt.load(tmp_path / "m.lt").predict(X).tobytes() == model.predict(X).tobytes()


def test_trees_know_the_exposure():
    """What is predicted is per exposure; neither it nor the trees depend on its unit."""
    X, height = local()
    rng, rate = np.random.default_rng(5), np.exp(0.5 * height)
    exposure = np.exp(rng.normal(size=rate.size))
    y = rng.poisson(rate * exposure).astype(float)
    model = lt.LatticeRegressor(loss="poisson", lattices=None).fit(X, y, exposure=exposure)
    assert model.trees_.count > 10
    predicted = model.predict(X)
    np.testing.assert_allclose(predicted @ exposure, y.sum(), rtol=0.01)
    smooth = lt.LatticeRegressor(loss="poisson", lattices=None, trees=0)
    smooth.fit(X, y, exposure=exposure)
    assert np.mean(np.abs(predicted - rate)) < 0.8 * np.mean(np.abs(smooth.predict(X) - rate))
    longer = lt.LatticeRegressor(loss="poisson", lattices=None).fit(X, y, exposure=7.0 * exposure)
    np.testing.assert_allclose(7.0 * longer.predict(X), predicted, rtol=1e-6)


def test_smooth_data_get_none():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=2000)
    assert lt.LatticeRegressor().fit(X, y).trees_ is None


@pytest.mark.parametrize("sign", [1, -1])
def test_predictions_are_monotone_to_the_last_bit(sign):
    X, y = local()
    X[::7, 1] = np.nan
    model = lt.LatticeRegressor(monotonic_cst={0: sign, 3: sign}, trees=30).fit(X, sign * y)
    assert {0, 3} & set(model.trees_.used)
    rng = np.random.default_rng(1)
    low = rng.uniform(-0.2, 1.2, (100_000, 4))
    low[rng.random(100_000) < 0.1, 1] = np.nan
    high = low.copy()
    high[:, [0, 3]] += rng.exponential(0.05, (100_000, 2))
    assert (sign * (model.predict(high) - model.predict(low)) >= 0.0).all()


def test_columns_of_other_rules_are_not_split():
    X, y = local()
    rules = {"monotonic_cst": {3: 1}, "shape_constraints": [lt.Convex(0), lt.SlopeBound(1, 9.0)]}
    model = lt.LatticeRegressor(**rules, trees=20).fit(X, y)
    assert set(model.trees_.used) <= {2, 3}
    assert model.check_constraints(X).violation <= 1e-9


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda X, y: lt.LatticeRegressor(loss="absolute"), "'absolute' has kinks"),
        (lambda X, y: lt.LatticeRegressor(loss="quantile", quantile=[0.2, 0.8]), "one output"),
        (lambda X, y: lt.LatticeClassifier(ordinal=True), "ordered classes"),
        (lambda X, y: lt.LatticeRegressor(canonical_examples=(X[:2], y[:2])), "canonical_examples"),
        (
            lambda X, y: lt.LatticeRegressor(
                shape_constraints=[lt.SlopeBound(k, 100.0) for k in range(X.shape[1])]
            ),
            "without shape_constraints",
        ),
    ],
    ids=["kinks", "quantiles", "ordered classes", "canonical examples", "rules"],
)
def test_models_that_have_no_trees_say_so_where_some_were_asked_for(make, why):
    X, y = local(400)
    for asked in (0, 5):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make(X, y).set_params(trees=asked)
            labelled = hasattr(model, "ordinal")
            assert model.fit(X, np.digitize(y, [0.5, 2]) if labelled else y).trees_ is None
        told = [str(each.message) for each in caught]
        assert len(told) == (asked > 0), told
        assert all(why in each and "trees=5 has no effect" in each for each in told)
        assert all(each.filename == __file__ for each in caught)


def test_trees_without_splits_are_none():
    X, y = local(15)
    with pytest.warns(UserWarning, match="trees=7 has no effect: no column has a split"):
        model = lt.LatticeRegressor(trees=7).fit(X, y)
    assert model.trees_ is None and "" not in model.explain(X).names


def test_too_many_categories_for_trees_leave_the_search_to_lattices(monkeypatch):
    """Fewer lattices are looked for where trees may follow, and then there were none."""
    X, y = local()
    table = pd.DataFrame(X, columns=list("abcd")).assign(name=[f"n{k % 60}" for k in range(3000)])
    alone = lt.LatticeRegressor(trees=0).fit(table, y).predict(table)
    monkeypatch.setattr(trees, "TRAINING", dataclasses.replace(trees.TRAINING, largest_gram=60))
    model = lt.LatticeRegressor().fit(table, y)
    assert model.trees_ is None
    np.testing.assert_array_equal(model.predict(table), alone)


def test_too_many_columns_for_trees_are_told(monkeypatch):
    X, y = local(400)
    monkeypatch.setattr(trees, "COSTS", replace(COSTS, columns=2))
    monkeypatch.setattr(lattice_base, "TREES", replace(COSTS, columns=2))
    with pytest.warns(UserWarning, match="trees=5 has no effect: .* up to 2 columns"):
        assert lt.LatticeRegressor(trees=5, lattices=0).fit(X, y).trees_ is None


def test_classes_without_order_have_their_own():
    X, y = local(600)
    model = lt.LatticeClassifier(trees=3).fit(X, np.digitize(y, [0.5, 2.0]))
    assert [each.trees_.count for each in model.estimators_] == [3, 3, 3]
    parts = model.explain(X[:50])
    np.testing.assert_allclose(parts.scores, model.scores_of(X[:50]), atol=1e-10)


def test_effects_add_up_to_the_score():
    X, y = local()
    model = lt.LatticeRegressor(trees=25).fit(X, y)
    parts = model.explain(X)
    np.testing.assert_allclose(parts.scores, model.predict(X), atol=1e-10)
    assert model.trees_.used in parts.columns
    assert abs(float(model.trees_.evaluate(X).mean()) - model.trees_.mean) < 1e-9


def test_categories_come_in_the_order_of_their_effect():
    rng = np.random.default_rng(0)
    names = np.array(["d", "b", "a", "c"])
    codes = rng.integers(0, 4, 1500)
    x = rng.random(1500)
    y = codes + 2.0 * ((codes > 1) & (x > 0.7)) + 0.1 * rng.normal(size=1500)
    X = pd.DataFrame({"x": x, "kind": names[codes]})
    model = lt.LatticeRegressor(trees=10).fit(X, y)
    known = model.columns_.columns[1].categories
    ranks = dict(zip(known, model.trees_.bins.ranks[1], strict=True))
    assert ranks == {"d": 0.0, "b": 1.0, "a": 2.0, "c": 3.0}
    unseen = X.head(2).assign(kind=["e", None])
    assert np.isfinite(model.predict(unseen)).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("per_category", [1, 5, 20])
def test_an_identifier_is_not_learnt_by_heart(per_category, seed):
    """The order of many categories tells the targets of the rows that it was fitted to."""
    rng = np.random.default_rng(seed)
    names = np.arange(2000) if per_category == 1 else rng.integers(0, 1000 // per_category, 2000)
    X = pd.DataFrame({"id": [f"i{name}" for name in names], "x": rng.random(2000)})
    y = 2.0 * X["x"].to_numpy() + 0.5 * rng.normal(size=2000)
    auto = lt.LatticeRegressor(random_state=0).fit(X[:1000], y[:1000])
    none = lt.LatticeRegressor(random_state=0, trees=0).fit(X[:1000], y[:1000])
    assert auto.score(X[1000:], y[1000:]) > none.score(X[1000:], y[1000:]) - 0.02 > 0.45


def test_categories_are_ordered_without_the_rows_that_judge(monkeypatch):
    """Held-out rows may not tell the order of the categories, or every tree seems to be right."""
    orders = []
    reordered = Bins.reordered
    monkeypatch.setattr(
        Bins,
        "reordered",
        lambda self, ranks, *rest: (
            orders.append((self.ranks[0], ranks[0])) or reordered(self, ranks, *rest)
        ),
    )
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("abcdefgh"), 800), "x": rng.random(800)})
    lt.LatticeRegressor(random_state=0).fit(X, rng.normal(size=800))
    assert any((before != after).any() for before, after in orders)


def test_columns_in_another_order_are_binned_as_from_the_beginning():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(-1, 9, 500), rng.random(500), rng.integers(0, 3, 500)])
    table[:5, 1] = np.nan
    first = [rng.permutation(9).astype(float), None, np.arange(3.0)]
    other = [rng.permutation(9).astype(float), None, np.array([2.0, 0.0, 1.0])]
    for barred in (set(), {0}, {2}):
        bins = Bins.of(table, first, barred)
        anew = Bins.of(table, other, barred)
        again, codes = bins.reordered(other, table, bins.codes(table))
        assert np.array_equal(codes, anew.codes(table))
        assert all(np.array_equal(a, b) for a, b in zip(again.edges, anew.edges, strict=True))
        same, unchanged = bins.reordered(first, table, codes)
        assert same is bins and unchanged is codes


def test_no_further_part_is_held_out_where_the_first_trees_are_of_no_use():
    """Held-out rows of the opposite kind: every tree raises their loss."""
    X, y = local(400)
    bins, codes = binned(X)
    rows = TreeRows(codes, np.zeros(400), y - y.mean(), np.full(400, 1 / 400))
    opposite = dataclasses.replace(rows, y=-rows.y)
    signs = np.zeros(4, dtype=np.int64)

    def trials():
        yield Trial(bins, rows, opposite)
        raise AssertionError("a second part was held out")

    assert wanted_count(trials(), 0.7, signs, SQUARED) == 0
    assert wanted_count([Trial(bins, rows, rows)], 0.7, signs, SQUARED) > COSTS.few


def test_noisy_categories_stay_barred_when_a_fit_goes_on_from_an_earlier_one(monkeypatch):
    monkeypatch.setattr(trees, "COSTS", dataclasses.replace(COSTS, least_held=2.0))
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"i{k}" for k in rng.integers(0, 50, 1000)], "x": rng.random(1000)})
    y = 2.0 * X["x"].to_numpy() + rng.normal(size=1000)
    model = lt.LatticeRegressor(random_state=0, trees=5, warm_start=True).fit(X, y)
    assert 0 not in model.trees_.used
    assert 0 not in model.fit(X, y).trees_.used


def test_rows_without_weight_count_for_nothing():
    X, y = local(1200)
    weights = np.ones(1200)
    weights[600:] = 0.0
    wild = np.where(weights > 0.0, y, 1e6)
    far = np.where(weights[:, None] > 0.0, X, 50.0 * X)
    whole = lt.LatticeRegressor(trees=5, lattices=None).fit(far, wild, weights)
    part = lt.LatticeRegressor(trees=5, lattices=None).fit(X[:600], y[:600])
    np.testing.assert_allclose(whole.predict(X[:600]), part.predict(X[:600]), atol=1e-6)


@pytest.mark.parametrize("kind", [lt.LatticeRegressor, lt.LatticeClassifier])
def test_features_of_all_rows_are_let_go_before_trees_grow_on_some(kind, monkeypatch):
    X, y = local(rows=1200)
    labels = kind is lt.LatticeClassifier
    few, wide = dataclasses.replace(COSTS, rows=1000), []

    def features_in_memory() -> int:
        return sum(sparse.issparse(o) and o.shape[0] == 1200 for o in gc.get_objects())

    def watched(*arguments):
        wide.append(features_in_memory())
        return wanted_count(*arguments)

    monkeypatch.setattr(trees, "COSTS", few)
    monkeypatch.setattr(trees, "wanted_count", watched)
    gc.collect()
    kind(monotonic_cst={3: 1}, lattices=0).fit(X, y > 0.0 if labels else y)
    assert wide == [0]


def test_files_give_the_same_trees(tmp_path):
    X, y = local(1500)
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,d,y", comments="")
    frame = pd.read_csv(tmp_path / "rows.csv")
    make = {"monotonic_cst": {"d": 1}, "trees": 12, "random_state": 0}
    files = lt.LatticeRegressor(**make).fit_files(tmp_path / "rows.csv", target="y")
    memory = lt.LatticeRegressor(**make).fit(frame[list("abcd")], frame["y"])
    X = frame[list("abcd")]
    np.testing.assert_allclose(files.predict(X), memory.predict(X), atol=1e-6)


def test_the_first_split_is_the_best_of_all():
    """By trying every column and every cut, without bounds."""
    rng = np.random.default_rng(3)
    X, y = rng.random((400, 3)), rng.normal(size=400)
    y += 2.0 * (X[:, 1] > 0.6)
    bins, codes = binned(X)
    rows = TreeRows(codes, np.zeros(400), y, np.full(400, 1.0 / 400))
    signs = np.zeros(3, dtype=np.int64)
    ground = Ground(codes, bins)
    columns, cuts, _ = next(boosted(rows, np.zeros(400), ground, signs, loss_of("squared")))

    def gain(chosen: np.ndarray) -> float:
        pull = COSTS.pull / 400
        return sum(
            (y[part].sum() / 400) ** 2 / (part.sum() / 400 + pull) for part in (chosen, ~chosen)
        )

    found = {
        (c, cut): gain(codes[:, c] <= cut)
        for c in range(3)
        for cut in range(1, 127)
        if 20 <= (codes[:, c] <= cut).sum() <= 380  # a twentieth on each side
    }
    assert max(found, key=found.get) == (columns[0], cuts[0])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_every_tree_lowers_the_training_loss(loss):
    X, y = local(800)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    bins, codes = binned(X)
    rows = TreeRows(codes, np.zeros(800), y, np.full(800, 1.0 / 800))
    row, score, added = loss_of(loss), np.zeros(800), np.zeros(800)
    before = losses.values(row, score, y).mean()
    signs = np.array([1, 0, -1, 0])
    for tree in itertools.islice(boosted(rows, added, Ground(codes, bins), signs, row), 8):
        trees._add_tree(codes, tree, score)
        np.testing.assert_array_equal(added, score)
        after = losses.values(row, score, y).mean()
        assert after < before
        before = after
    whole = grown(rows, bins, signs, row, 8)
    np.testing.assert_allclose(whole.at(codes), score)
    np.testing.assert_allclose(whole.mean, score.mean())
    assert whole.excess(0, 1).max(initial=0.0) == whole.excess(2, -1).max(initial=0.0) == 0.0
    assert whole.excess(1, 1).max() > 0.0  # a column without a rule goes up and down


@pytest.mark.parametrize("digits", [9, 2])
def test_copies_of_a_row_are_held_out_together(digits):
    """Trees know them by heart: of 3,000 rows, each twice, they made three times the error."""
    rng = np.random.default_rng(0)
    X, noise = np.round(rng.random((1000, 3)), digits), rng.normal(size=1000)
    y = 2.0 * X[:, 0] + np.sin(6.0 * X[:, 1]) + noise
    twice, targets = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    folds = trees._folds(twice, targets, rng)
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    assert np.bincount(folds).min() >= 380
    assert lt.LatticeRegressor(random_state=0).fit(twice, targets).trees_ is None


@pytest.mark.parametrize("columns", [1, 3])
def test_rows_that_agree_by_chance_are_held_out_one_by_one(columns):
    """Whole levels would be unknown: of 120 with an effect each, there were no trees."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 120 if columns == 1 else 6, (600, columns)).astype(np.float64)
    y = rng.normal(size=120)[X[:, 0].astype(int)] + 0.1 * rng.normal(size=600)
    folds = trees._folds(X, y, rng)
    assert np.bincount(folds).tolist() == [120] * 5
    assert any(np.unique(folds[X[:, 0] == level]).size > 1 for level in range(6))


def test_tables_of_equal_rows_have_no_trees():
    y = np.random.default_rng(0).normal(size=400)
    assert lt.LatticeRegressor().fit(np.ones((400, 2)), y).trees_ is None
    same = pd.DataFrame({"name": ["a"] * 400})
    assert lt.LatticeClassifier().fit(same, y > 0.0).trees_ is None


def test_different_rows_of_small_numbers_are_told_apart():
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, 8, (20_000, 12)), axis=0).astype(np.float64)
    assert np.unique(trees._keys(rows)).size == len(rows)
    mirrored = np.vstack([rows[:500] + 1.0, -rows[:500] - 1.0, 0.0 * rows[:1], -0.0 * rows[:1]])
    assert np.unique(trees._keys(mirrored)).size == 1001


def test_missing_cells_that_training_had_none_of_are_as_the_median(tmp_path):
    """They went where the lowest values go."""
    rng = np.random.default_rng(0)
    names = np.array([f"a{k:02}" for k in range(12)])
    kinds = rng.integers(0, 12, 3000)
    X = pd.DataFrame({"kind": names[kinds], "u": rng.random(3000), "v": rng.random(3000)})
    patches = np.sign((X["u"] - 0.5) * (X["v"] - 0.5)) * (3.0 + kinds)
    model = lt.LatticeRegressor(lattices=None, trees=40).fit(X, kinds + patches)
    middle = names[np.argsort(model.trees_.bins.ranks[0])[6]]

    def by_trees(table):
        return model.trees_.evaluate(model.read_rows(table))

    for cell in (None, "unknown"):
        np.testing.assert_array_equal(
            by_trees(X.assign(kind=cell)), by_trees(X.assign(kind=middle))
        )
    np.testing.assert_array_equal(
        by_trees(X.assign(u=np.nan)), by_trees(X.assign(u=X["u"].median()))
    )
    model.save(tmp_path / "model.lt")
    gone = X.assign(kind=None, v=np.nan)
    np.testing.assert_array_equal(lt.load(tmp_path / "model.lt").predict(gone), model.predict(gone))


def test_codes_count_the_edges_below():
    bins = Bins((np.array([1.0, 2.0]), np.empty(0)), (None, np.array([0.0])), (0, 0))
    table = np.array([[0.5, 0.0], [1.0, 0.0], [1.5, 1.0], [9.0, 0.0], [np.nan, np.nan]])
    assert bins.codes(table).tolist() == [[1, 0], [1, 0], [2, 0], [3, 0], [0, 0]]


@pytest.mark.parametrize("rows", [1, 255, 256, 257])
def test_codes_of_blocks_of_rows(rows: int) -> None:
    rng = np.random.default_rng(rows)
    table = np.round(rng.normal(size=(rows, 4)), 1)
    table[rng.random(table.shape) < 0.1] = np.nan
    known = np.round(rng.normal(size=(501, 4)), 1)
    known[0, 1] = np.nan
    bins = Bins.of(known, [None] * 4, {2})
    middle = [1 + np.searchsorted(bins.edges[c], np.median(known[:, c])) for c in (0, 3)]
    assert bins.gaps == (middle[0], 0, 0, middle[1])
    want = [
        np.where(np.isnan(column), gap, 1 + np.searchsorted(edges, column)) if edges.size else 0
        for edges, gap, column in zip(bins.edges, bins.gaps, table.T, strict=True)
    ]
    np.testing.assert_array_equal(bins.codes(table), np.stack(np.broadcast_arrays(*want), axis=1))


def test_columns_that_cannot_be_split_change_nothing() -> None:
    X, y = local(rows=600)
    weights = np.full(600, 1 / 600)
    alone = Bins.of(X, [None] * 4, set())
    few = grown(
        TreeRows(alone.codes(X), np.zeros(600), y, weights), alone, np.zeros(4, int), SQUARED, 5
    )
    wide = np.insert(X, [0, 2], 1.0, axis=1)
    both = Bins.of(wide, [None] * 6, {2})  # the former second column; two others are constant
    barred = Bins.of(X, [None] * 4, {1})
    want = grown(
        TreeRows(barred.codes(X), np.zeros(600), y, weights), barred, np.zeros(4, int), SQUARED, 5
    )
    found = grown(
        TreeRows(both.codes(wide), np.zeros(600), y, weights), both, np.zeros(6, int), SQUARED, 5
    )
    assert set(few.used) == {0, 1, 2, 3}
    assert set(want.used) <= {0, 2, 3} and set(found.used) <= {1, 4, 5}
    np.testing.assert_array_equal(found.at(both.codes(wide)), want.at(barred.codes(X)))


def test_trees_that_do_not_overtake_the_first_few_are_given_up() -> None:
    class Slow:
        """A little better with every tree, for ever."""

        weights = np.full(100, 0.01)

        def __init__(self) -> None:
            self.most = 0

        def gain(self, count: int) -> tuple[float, float]:
            self.most = max(self.most, count)
            return -1.0 + 1e-3 * count, 1e-4

    slow = Slow()
    trees._best_count([slow], range(11, 501), known=0.1)
    assert slow.most == COSTS.overtaken
    alone = Slow()
    assert trees._best_count([alone], range(11, 501)).count == alone.most == 500


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_a_fit_without_rows_is_what_fitting_the_others_gives(loss):
    X, y = local(500)
    y = np.where(y > 1.0, 1.0, 0.0 if loss == "poisson" else -1.0)
    near = {"squared": 1e-4, "logistic": 0.02, "poisson": 0.1}
    row = None if loss == "squared" else loss_of(loss)
    offset = X[:, 0] if loss == "poisson" else None
    model = lt.LatticeRegressor(lattices=None, trees=0).fit(X, y).model_
    roughness = roughness_of(model, [False] * 4, 500)
    strengths = np.full(len(roughness.penalties), 1e-2)

    def fit(used: np.ndarray, share: float) -> smoothing.Smoothed:
        weights = np.full(used.sum(), 1.0 / used.sum())
        own = None if offset is None else offset[used]
        part = Judged(model.features(X[used]), y[used], weights, row, 500.0, offset=own)
        start, sweeps = np.zeros(model.dimension), 20
        return smoothing.smooth(part, roughness, strengths / share, start, sweeps, choose=False)

    held = np.arange(500) % 5 == 0
    whole = fit(np.ones(500, dtype=bool), 1.0)
    weights = np.full(500, 1.0 / 500)
    examples = Judged(model.features(X), y, weights, row, 500.0, offset=offset)
    wanted = model.features(X) @ fit(~held, 0.8).w
    apart = np.abs(model.features(X) @ whole.w - wanted).max()
    for known in (None, whole.matrix if offset is None else None):  # or left of that of all rows
        w, score = smoothing.fit_without(examples, whole, held, known)
        assert np.abs(score - wanted).max() <= near[loss] * apart
        np.testing.assert_allclose(model.features(X) @ w, score, rtol=0, atol=1e-12)


def test_damaged_trees_do_not_load():
    X, y = local(400)
    model = lt.LatticeRegressor(trees=3).fit(X, y)
    state = model.trees_.state()
    assert Trees.from_state(None, 4) is None
    assert Trees.from_state(state, 4).count == 3
    bad = [
        state | {"columns": np.full_like(state["columns"], 4)},
        state | {"columns": state["columns"].astype(float)},
        state | {"cuts": state["cuts"].astype(np.int64) + 200},
        state | {"cuts": state["cuts"][:, 1:]},
        state | {"values": np.full_like(state["values"], np.nan)},
        state | {"values": state["values"][:, :100]},
        state | {"edges": state["edges"][:3]},
        state | {"edges": [each[::-1] for each in state["edges"]]},
        state | {"mean": float("inf")},
    ]
    for each in bad:
        with pytest.raises(ModelFileError, match="trees"):
            Trees.from_state(each, 4)


def test_a_number_of_trees_must_be_one():
    X, y = local(100)
    for given in (-1, 2.5, "many"):
        with pytest.raises(ValueError, match="trees"):
            lt.LatticeRegressor(trees=given).fit(X, y)


def test_a_fit_without_time_has_none(monkeypatch):
    X, y = local(1500)
    monkeypatch.setattr(trees, "wanted_count", _no_time)
    model = lt.LatticeRegressor(time_limit=100.0).fit(X, y)
    assert model.trees_ is None and model.status_ == "time limit"


def _no_time(*given: object) -> int:
    raise OutOfTimeError


def test_many_trees_begin_beside_a_part_of_the_score_and_few_beside_all_of_it():
    X, y = local(1500)
    few, many = (
        lt.LatticeRegressor(monotonic_cst={3: 1}, trees=count, random_state=0).fit(X, y)
        for count in (COSTS.few, COSTS.few + 1)
    )
    np.testing.assert_allclose(many.parameters_[1:], COSTS.kept * few.parameters_[1:])
    scores = few.predict(X) - few.trees_.evaluate(X)
    eased = many.predict(X) - many.trees_.evaluate(X)
    np.testing.assert_allclose(eased, COSTS.kept * scores + (1 - COSTS.kept) * scores.mean())
    assert many.constraint_report_.violation == 0.0
    assert many.check_constraints(X).violation == 0.0


def test_a_rule_that_a_constant_breaks_keeps_all_of_the_score():
    X, y = local(1500)
    model = lt.LatticeRegressor(trees=0).fit(X, y).model_
    w = np.zeros(model.dimension)
    w[1] = 1.0
    least = sparse.csr_matrix(-np.eye(1, w.size, 1))  # -w[1] <= b
    for bound, kept in ((-1.0, 1.0), (-0.5, COSTS.kept)):
        rules = lt.LinearConstraints(least, [bound])
        left = trees.WithoutTrees(None, model, w, rules, None, None)
        eased, share = left._eased(2.0)
        assert share == kept and eased[1] == kept
        assert eased[0] == pytest.approx(2.0 * (1.0 - kept))
