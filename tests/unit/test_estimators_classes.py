"""More than two classes: ordered ones under rules, others without."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt

NAMES = np.array(["bad", "fair", "good", "best"], dtype=object)


def graded(rows: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, 3))
    score = 4.0 * X[:, 0] + np.sin(5.0 * X[:, 1]) + rng.logistic(size=rows)
    return X, NAMES[np.digitize(score, [1.0, 2.2, 3.5])]


def ordinal(**options) -> lt.LatticeClassifier:
    return lt.LatticeClassifier(ordinal=list(NAMES), monotonic_cst={0: 1}, **options)


def test_cumulative_probabilities_obey_the_rules():
    X, y = graded()
    model = ordinal().fit(X, y)
    assert model.classes_.tolist() == NAMES.tolist()
    assert (np.diff(model.thresholds_) > 0.0).all()
    rng = np.random.default_rng(1)
    rows = rng.uniform(-0.2, 1.2, (20_000, 3))
    more = rows + np.column_stack([rng.exponential(0.1, 20_000), np.zeros((20_000, 2))])
    above = model.predict_cumulative(rows)
    assert (model.predict_cumulative(more) >= above).all()
    assert (np.diff(above) <= 0.0).all()
    shares = model.predict_proba(rows)
    assert shares.min() >= 0.0 and np.abs(shares.sum(axis=1) - 1.0).max() < 1e-15
    np.testing.assert_array_equal(model.predict(rows), NAMES[np.argmax(shares, axis=1)])
    scales = {rule.scale for rule in model.constraint_report_.rules}
    assert scales == {"cumulative probability"}


def test_predicted_classes_rise_with_an_increasing_column():
    X, y = graded()
    model = ordinal().fit(X, y)
    assert model.status_ == "converged"  # its loss has a conjugate, so that a bound proves it
    place = {name: k for k, name in enumerate(NAMES)}
    line = np.column_stack([np.linspace(0.0, 1.0, 500), np.full(500, 0.3), np.full(500, 0.5)])
    assert (np.diff([place[name] for name in model.predict(line)]) >= 0).all()


def test_ordinal_true_takes_the_sorted_order():
    X, y = graded(300)
    codes = np.array([list(NAMES).index(each) for each in y])
    numbered = lt.LatticeClassifier(ordinal=True, monotonic_cst={0: 1}).fit(X, codes)
    named = ordinal().fit(X, y)
    np.testing.assert_array_equal(numbered.predict_proba(X), named.predict_proba(X))


def test_a_refit_to_more_classes_keeps_nothing_of_the_one_score():
    X, y = graded(300)
    model = lt.LatticeClassifier().fit(X, y == "bad")
    once = lt.LatticeClassifier().fit(X, y)
    assert vars(model.fit(X, y)).keys() == vars(once).keys()
    assert not hasattr(model, "trees_")


def test_two_ordered_classes_are_two_classes():
    X, y = graded(300)
    two = np.where(y == "best", 1, 0)
    first = lt.LatticeClassifier(ordinal=True).fit(X, two)
    second = lt.LatticeClassifier().fit(X, two)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert not hasattr(first, "predict_cumulative")


def test_unordered_classes():
    X, y = graded()
    model = lt.LatticeClassifier().fit(X, y)
    assert model.decision_function(X).shape == (800, 4) and len(model.estimators_) == 4
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.5
    assert not hasattr(model, "predict_cumulative")
    hinge = lt.LatticeClassifier(loss="hinge").fit(X, y)
    assert hinge.predict(X).shape == (800,) and not hasattr(hinge, "predict_proba")


def test_a_listed_class_that_y_lacks_is_refused_and_two_keep_their_order():
    X = np.linspace(0.0, 1.0, 40)[:, None]
    y = np.where(X[:, 0] < 0.5, "c", "a")
    for listed, absent in ((["a", "b", "c"], "b"), (["apple", "c"], "apple")):
        with pytest.raises(lt.DataError, match=f"no row of '{absent}'"):
            lt.LatticeClassifier(ordinal=listed).fit(X, y)
    model = lt.LatticeClassifier(ordinal=["c", "a"], monotonic_cst={0: 1}).fit(X, y)
    assert model.classes_.tolist() == ["c", "a"] and model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1] > 0.5, y == "a")


@pytest.mark.parametrize("make", [ordinal, lt.LatticeClassifier])
def test_saved_and_loaded(make, tmp_path):
    X, y = graded(300)
    model = make().fit(X, y)
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.check_constraints(X).violation == 0.0
    assert again.importances_ == model.importances_
    assert again.get_params()["ordinal"] == model.get_params()["ordinal"]


def test_fitted_again_with_other_classes():
    X, y = graded(300)
    model = ordinal().fit(X, y)
    two = y == "best"
    model.set_params(ordinal=False).fit(X, two)
    assert model.predict_proba(X).shape == (300, 2) and not hasattr(model, "thresholds_")


def test_what_cannot_be():
    X, y = graded(200)
    with pytest.raises(lt.ConstraintError, match="not a convex set"):
        lt.LatticeClassifier(monotonic_cst={0: 1}).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="ordinal=True"):
        lt.LatticeClassifier(shape_constraints=[lt.Convex(0)]).fit(X, y)
    with pytest.raises(lt.DataError, match="ascending order"):
        lt.LatticeClassifier(ordinal=["bad", "good"]).fit(X, y)
    with pytest.raises(ValueError, match="logistic"):
        ordinal(loss="hinge").fit(X, y)
    with pytest.raises(lt.DataError, match="positive weight"):
        lt.LatticeClassifier().fit(X, y, sample_weight=(y != "good").astype(float))
