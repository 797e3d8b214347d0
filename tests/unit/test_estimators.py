"""Lattice models: rules hold exactly on parameters and predictions, on every loss and option."""

from __future__ import annotations

import copy
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import lighttouch as lt
from lighttouch.estimators.classes import chance
from lighttouch.estimators.tables import Columns


def table(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "rating": rng.uniform(1, 5, rows),
            "reviews": rng.exponential(50, rows).round(),
            "price": rng.lognormal(3, 1, rows),
            "age": rng.uniform(0, 30, rows),
            "kind": rng.choice(["low", "mid", "high"], rows),
        }
    )
    effect = X["kind"].map({"low": 0.0, "mid": 0.4, "high": 0.5})
    y = (
        X.rating * np.tanh(X.reviews / 40)
        - 0.5 * np.log(X.price)
        + 0.01 * (X.age - 12) ** 2
        + effect
        + rng.normal(0, 1.0, rows)
    )
    X.loc[rng.random(rows) < 0.05, "age"] = np.nan
    X.loc[rng.random(rows) < 0.05, "kind"] = None
    return X, y.to_numpy()


MONOTONIC = {"rating": 1, "reviews": 1, "price": -1}


def falls(
    predict,
    X: pd.DataFrame,
    monotonic: dict[str, int],
    points: int,
    seed: int = 0,
    kind: type = np.float64,
) -> int:
    """How many single-coordinate increases break a rule, on random points in and around the
    training range.
    """
    rng = np.random.default_rng(seed)
    wide = X.sample(points, replace=True, random_state=seed).reset_index(drop=True)
    for name in monotonic:
        low, high = X[name].min(), X[name].max()
        wide[name] = rng.uniform(
            low - 0.1 * (high - low), high + 0.1 * (high - low), points
        ).astype(kind)
    before = predict(wide)
    broken = 0
    for name, sign in monotonic.items():
        raised = wide.copy()
        tiny = rng.random(points) < 0.5
        step = np.where(
            tiny, np.spacing(np.abs(wide[name].to_numpy())), rng.exponential(X[name].std(), points)
        )
        raised[name] = (wide[name] + step).astype(kind)
        broken += int(np.sum(sign * (predict(raised) - before) < 0))
    return broken


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
def test_regression_keeps_rules_on_every_loss(loss):
    X, y = table()
    model = lt.LatticeRegressor(loss=loss, quantile=0.8, monotonic_cst=MONOTONIC).fit(X, y)
    assert model.constraint_report_.violation == 0.0
    assert model.check_constraints(X).violation == 0.0
    assert model.constraint_report_.price >= 0.0
    assert falls(model.predict, X, MONOTONIC, 5000) == 0
    if loss == "quantile":
        assert 0.74 < np.mean(y <= model.predict(X)) < 0.86


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_classification_keeps_rules_on_every_loss(loss):
    X, y = table()
    labels = np.where(y > np.median(y), "yes", "no")
    model = lt.LatticeClassifier(loss=loss, monotonic_cst=MONOTONIC).fit(X, labels)
    assert model.constraint_report_.violation == 0.0
    assert model.score(X, labels) > 0.75
    assert falls(model.decision_function, X, MONOTONIC, 5000) == 0
    if loss == "logistic":
        assert falls(lambda rows: model.predict_proba(rows)[:, 1], X, MONOTONIC, 5000) == 0
    else:
        assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    "options",
    [
        {"lattices": 0},
        {"lattices": "random", "random_state": 3},
        {"lattices": "single"},
        {"lattices": "single", "interpolation": "hypercube"},
        {"lattices": [("rating", "reviews"), ("price", "age", "kind")]},
        {"lattices": 3, "lattice_size": 3},
        {"columns_per_lattice": 3},
        {"smoothing": 0.0, "keypoints": 5},
        {"smoothing": (1e-3, 1e-1), "interpolation": "simplex"},
    ],
)
def test_every_option_keeps_rules(options):
    X, y = table(300)
    model = lt.LatticeRegressor(monotonic_cst=MONOTONIC, **options).fit(X, y)
    assert model.constraint_report_.violation == 0.0
    assert falls(model.predict, X, MONOTONIC, 4000) == 0
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.75


def test_a_hundred_thousand_points_find_no_violation_also_after_saving_and_in_single_precision(
    tmp_path,
):
    X, y = table(600)
    model = lt.LatticeRegressor(monotonic_cst=MONOTONIC).fit(X, y)
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    assert falls(model.predict, X, MONOTONIC, 100_000) == 0
    assert falls(again.predict, X, MONOTONIC, 20_000, seed=1, kind=np.float32) == 0
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert again.check_constraints().violation == 0.0


def test_rules_bind_when_the_data_argue_against_them():
    X, y = table()
    model = lt.LatticeRegressor(monotonic_cst={"rating": -1}).fit(X, y)
    report = model.constraint_report_
    assert report.violation == 0.0 and report.rules[0].binding.size > 0 and report.price > 0.01
    assert falls(model.predict, X, {"rating": -1}, 5000) == 0
    assert "decreasing in rating" in str(report) and len(report.to_frame()) == 1


def test_monotonic_cst_as_an_array_is_the_same_as_by_name():
    X, y = table(200)
    by_name = lt.LatticeRegressor(monotonic_cst=MONOTONIC).fit(X, y)
    by_place = lt.LatticeRegressor(monotonic_cst=[1, 1, -1, 0, 0]).fit(X, y)
    np.testing.assert_array_equal(by_name.predict(X), by_place.predict(X))


def test_frames_of_every_kind_and_arrays_agree():
    polars = pytest.importorskip("polars")
    X, y = table(200)
    numeric = X[["rating", "reviews", "price"]]
    expected = lt.LatticeRegressor().fit(numeric, y)
    from_polars = lt.LatticeRegressor().fit(polars.from_pandas(numeric), y)
    from_array = lt.LatticeRegressor().fit(numeric.to_numpy(), y)
    np.testing.assert_array_equal(
        expected.predict(numeric), from_polars.predict(polars.from_pandas(numeric))
    )
    np.testing.assert_array_equal(expected.predict(numeric), from_array.predict(numeric.to_numpy()))
    mixed = lt.LatticeRegressor().fit(polars.from_pandas(X), y)
    np.testing.assert_array_equal(
        lt.LatticeRegressor().fit(X, y).predict(X), mixed.predict(polars.from_pandas(X))
    )
    assert list(from_polars.feature_names_in_) == ["rating", "reviews", "price"]


def test_an_array_of_doubles_is_read_where_it_lies_and_never_written_to():
    """A copy of a million rows took half of a fit's memory."""
    rng = np.random.default_rng(0)
    X = rng.random((700, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X) @ [1.0, -1.0, 2.0, 0.0] + 0.1 * rng.normal(size=700)
    given, new = X.copy(), rng.random((50, 4))
    assert Columns.learn(X).read(X) is X
    model = lt.LatticeRegressor(monotonic_cst={0: 1}, random_state=0).fit(X, y)
    model.predict(X), model.explain(X), model.check_constraints(X)
    np.testing.assert_array_equal(X, given)
    before = model.predict(new)
    fixed = given.copy()
    fixed.setflags(write=False)
    for other in (fixed, np.asfortranarray(given), given.tolist()):
        again = clone(model).fit(other, y)
        np.testing.assert_array_equal(again.predict(new), before)
    X[:] = 0.0  # the model keeps nothing of it
    np.testing.assert_array_equal(model.predict(new), before)


def test_unseen_and_missing_categories_share_a_documented_bucket():
    X, y = table()
    model = lt.LatticeRegressor().fit(X, y)
    unseen, missing = X.head(5).copy(), X.head(5).copy()
    unseen["kind"], missing["kind"] = "never seen", None
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


def test_missing_numbers_are_learnt_where_there_were_some_and_average_elsewhere():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 2))
    X[:100, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 5.0, X[:, 0]) + X[:, 1]
    model = lt.LatticeRegressor(lattices=0).fit(X, y)
    assert abs(model.predict([[np.nan, 0.5]])[0] - 5.5) < 0.1
    assert abs(model.predict([[0.5, np.nan]])[0] - 1.0) < 0.1


def test_ranker_learns_queries_and_pairs_and_keeps_rules():
    X, y = table(500)
    numeric = X[["rating", "reviews", "price"]]
    query = np.repeat(np.arange(50), 10)
    relevance = np.digitize(y, np.quantile(y, [0.5, 0.8]))
    for loss in ("logistic", "hinge"):
        model = lt.LatticeRanker(loss=loss, monotonic_cst=MONOTONIC).fit(
            numeric, relevance, qid=query
        )
        scores = model.predict(numeric)
        right = [
            np.mean(
                np.subtract.outer(scores[q], scores[q])[
                    np.subtract.outer(relevance[q], relevance[q]) > 0
                ]
                > 0
            )
            for q in np.split(np.arange(500), 50)
            if np.ptp(relevance[q]) > 0
        ]
        assert np.mean(right) > 0.75
        lists = np.split(np.arange(500), 50)
        wanted = [ndcg_score([2.0 ** relevance[q] - 1.0], [scores[q]], k=10) for q in lists]
        known = [found for found, q in zip(wanted, lists, strict=True) if relevance[q].any()]
        assert model.score(numeric, relevance, qid=query) == pytest.approx(np.mean(known))
        weights = (query < 25).astype(float)
        half = model.score(numeric[:250], relevance[:250], qid=query[:250])
        assert model.score(numeric, relevance, weights, qid=query) == pytest.approx(half)
        assert math.isnan(model.score(numeric, np.zeros(500), qid=query))
        with pytest.raises(lt.DataError, match="not negative"):
            model.score(numeric, -relevance, qid=query)
        assert model.constraint_report_.violation == 0.0
        assert falls(model.predict, numeric, MONOTONIC, 3000) == 0
    better, worse = numeric[y > 0].head(100), numeric[y <= 0].head(100)
    pairs = lt.LatticeRanker().fit_pairs(better.iloc[:90], worse.iloc[:90])
    assert np.mean(pairs.predict(better.iloc[:90]) > pairs.predict(worse.iloc[:90])) > 0.7


def test_canonical_examples_are_kept():
    X, y = table(300)
    labels = y > np.median(y)
    hard = X.iloc[:6]
    wrong = ~labels[:6]
    model = lt.LatticeClassifier(canonical_examples=(hard, wrong), smoothing=1e-4).fit(X, labels)
    np.testing.assert_array_equal(model.predict(hard), wrong)
    assert model.constraint_report_.violation == 0.0
    assert (model.check_constraints().rules[-1].rows) > 0
    wanted = y[:5] + 1.0
    regressor = lt.LatticeRegressor(
        canonical_examples=(X.iloc[:5], wanted), canonical_margin=0.01
    ).fit(X, y)
    assert np.all(np.abs(regressor.predict(X.iloc[:5]) - wanted) <= 0.01)


def test_contradictory_rules_are_named():
    X, y = table(200)
    two = X.iloc[[0, 0]]
    with pytest.raises(lt.InfeasibleConstraintsError, match="canonical examples"):
        lt.LatticeRegressor(canonical_examples=(two, [0.0, 5.0]), canonical_margin=0.1).fit(X, y)


def test_columns_that_do_not_exist_are_answered_with_the_nearest():
    X, y = table(100)
    told = (
        "monotonic_cst must name columns of X, but 'ratin' is not a column; did you mean 'rating'?"
    )
    with pytest.raises(lt.ConstraintError, match=re.escape(told)):
        lt.LatticeRegressor(monotonic_cst={"ratin": 1}).fit(X, y)
    with pytest.raises(lt.ConstraintError, match=r"categorical_features .* did you mean 'kind'"):
        lt.LatticeRegressor(categorical_features=["kin"]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="column 9 does not exist: the positions are 0"):
        lt.LatticeRegressor(monotonic_cst={9: 1}).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="did you mean 'reviews'"):
        lt.LatticeRegressor(shape_constraints=[lt.EdgeworthTrust("rating", "review")]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="text such as"):
        lt.LatticeRegressor(monotonic_cst={"kind": 1}).fit(X, y)
    model = lt.LatticeRegressor().fit(X, y)
    with pytest.raises(lt.DataError, match="did you mean 'raiting'"):
        model.predict(X.rename(columns={"rating": "raiting"}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda X: X.assign(price=np.where(np.arange(len(X)) == 7, np.inf, X.price)),
            "'price'.*first at row 7",
        ),
        (
            lambda X: X.assign(price=np.where(np.arange(len(X)) == 7, 1e200, X.price)),
            "'price'.*row 7",
        ),
        (lambda X: X.assign(price=pd.Timestamp("2020-01-01")), "'price'.*datetime64"),
        (
            lambda X: X.assign(price=[*X.price[:-1], "1,5"]),
            "'price' mixes numbers and text.*row 99 holds '1,5'",
        ),
        (lambda X: X.assign(price=X.price + 0j), "'price'|[Cc]omplex"),
    ],
)
def test_bad_cells_are_named(change, words):
    X, y = table(100)
    with pytest.raises((lt.DataError, TypeError), match=words):
        lt.LatticeRegressor().fit(change(X), y)


@pytest.mark.parametrize("kind", [object, "string", "category"])
def test_missing_labels_are_counted_and_the_first_is_named(kind):
    X, y = table(100)
    labels = pd.Series(np.where(y > 0, "good", "bad"), dtype=object)
    labels[17], labels[30] = np.nan, None
    told = "y must hold a label in every row: 2 are missing .* first at row 17"
    for given in (labels.astype(kind), labels.astype(kind).array, labels.to_list()):
        with pytest.raises(lt.DataError, match=told):
            lt.LatticeClassifier().fit(X, given)
    linear = lt.ConstrainedLinearClassifier()
    with pytest.raises(lt.DataError, match=told):
        linear.partial_fit(X[["rating"]], labels.astype(kind), classes=["good", "bad"])


def test_text_in_a_numeric_column_at_prediction_is_named():
    X, y = table(100)
    model = lt.LatticeRegressor().fit(X, y)
    bad = X.astype({"price": object})
    bad.loc[3, "price"] = "12 EUR"
    with pytest.raises(lt.DataError, match="'price' must hold numbers, got '12 EUR' in row 3"):
        model.predict(bad)


def test_degenerate_tables():
    X, y = table(50)
    constant = X.assign(price=3.0, age=np.nan)
    with pytest.warns(UserWarning, match="'price', 'age'"):
        model = lt.LatticeRegressor(monotonic_cst={"price": 1}).fit(constant, y)
    assert np.isfinite(model.predict(constant)).all()
    one = lt.LatticeRegressor().fit(X.head(1), y[:1])
    assert one.predict(X.head(1))[0] == pytest.approx(y[0])
    with pytest.raises(lt.DataError, match="2 classes"):
        lt.LatticeClassifier().fit(X, np.ones(50))
    with pytest.raises(lt.DataError, match="zero everywhere"):
        lt.LatticeRegressor().fit(X, y, sample_weight=np.zeros(50))
    with pytest.raises(lt.DataError, match="columns 0 and 1"):
        lt.LatticeRegressor().fit(pd.DataFrame(np.ones((5, 2)), columns=["a", "a"]), np.arange(5.0))


def test_two_runs_clones_pickles_and_copies_predict_the_same_bits():
    X, y = table(200)
    model = lt.LatticeRegressor(monotonic_cst=MONOTONIC, lattices="random", random_state=4).fit(
        X, y
    )
    expected = model.predict(X)
    for other in (clone(model).fit(X, y), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(X), expected)


def test_pipelines_and_searches():
    X, y = table(150)
    chain = make_pipeline(FunctionTransformer(), lt.LatticeRegressor(monotonic_cst=MONOTONIC))
    search = GridSearchCV(chain, {"latticeregressor__keypoints": [4, 10]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.2


def test_time_limit_gives_a_usable_model_and_says_so():
    X, y = table(300)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = lt.LatticeRegressor(loss="absolute", monotonic_cst=MONOTONIC, time_limit=1e-3).fit(
            X, y
        )
    assert model.constraint_report_.violation == 0.0


def test_verbose_shows_progress(capsys):
    X, y = table(100)
    lt.LatticeClassifier(verbose=1).fit(X, y > 0)
    assert "100%" in capsys.readouterr().err


def test_sample_weight_moves_the_fit():
    X = np.zeros((4, 1))
    X[2:] = 1.0
    y = np.array([0.0, 1.0, 0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = lt.LatticeRegressor(smoothing=0.0).fit(X, y, sample_weight=[9, 1, 1, 9])
    low, high = model.predict([[0.0], [1.0]])
    assert low < 0.35 and high > 0.65


def test_chance_never_falls():
    rng = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 40.0, 700.0):
        z = np.sort(rng.normal(0, scale, 200_000))
        p = chance(z)
        assert np.all(np.diff(p) >= 0) and p.min() >= 0 and p.max() <= 1
    z = np.linspace(-30, 30, 1001)
    np.testing.assert_allclose(chance(z), 1 / (1 + np.exp(-z)), rtol=1e-9)
