"""Isotonic and convex regression in many columns."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression

import lighttouch as lt
from lighttouch.estimators import isotonic
from lighttouch.estimators.convex import Points, averaged, tangent_row, tangents
from lighttouch.estimators.isotonic import comparable, in_one_line
from lighttouch.running import OutOfTimeError


def noisy(rows: int = 300, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, columns))
    return X, X[:, 0] ** 2 - X[:, 1] + 0.3 * rng.normal(size=rows)


def test_one_column_is_isotonic_regression():
    X, y = noisy(200, 2)
    x, weights = X[:, 0], np.random.default_rng(1).uniform(0.5, 2.0, 200)
    ours = lt.MonotoneRegressor(tol=1e-9).fit(X[:, :1], y, weights).predict(X[:, :1])
    np.testing.assert_allclose(ours, IsotonicRegression().fit(x, y, weights).predict(x), atol=1e-4)


def test_covers_are_the_transitive_reduction():
    points = np.unique(np.random.default_rng(0).integers(0, 4, (40, 3)).astype(float), axis=0)
    lower, upper = comparable(points, np.ones(3))
    count = len(points)
    less = np.array(
        [[i != j and (points[i] <= points[j]).all() for j in range(count)] for i in range(count)]
    )
    between = np.array([[(less[i] & less[:, j]).any() for j in range(count)] for i in range(count)])
    wanted = {
        (i, j) for i, j in product(range(count), repeat=2) if less[i, j] and not between[i, j]
    }
    assert set(zip(lower.tolist(), upper.tolist(), strict=True)) == wanted


def test_columns_without_sign_must_be_equal():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    lower, upper = comparable(points, np.array([1.0, 0.0]))
    assert (lower.tolist(), upper.tolist()) == ([0], [1])


@pytest.mark.parametrize("signs", [(1.0, 1.0, 1.0), (1.0, -1.0, 0.0), (0.0, 0.0, -1.0)])
def test_one_line_holds_every_order_between_two_points(signs):
    points = np.unique(np.random.default_rng(0).integers(0, 5, (60, 3)).astype(float), axis=0)
    lower, upper = in_one_line(points, np.array(signs))
    group = np.arange(len(points))  # the line that a point is in, and its place there
    place = np.zeros(len(points), dtype=int)
    for low, high in zip(lower, upper, strict=True):
        group[high], place[high] = group[low], place[low] + 1
    for low, high in zip(*comparable(points, np.array(signs)), strict=True):
        assert group[low] == group[high]
        assert place[low] < place[high]


def test_without_time_to_compare_points_the_model_is_monotone_all_the_same(monkeypatch):
    X, y = noisy(400, 3)
    monkeypatch.setattr(isotonic, "comparable", _no_time)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model = lt.MonotoneRegressor(monotonic_cst=[1, -1, 0], time_limit=5.0).fit(X, y)
    monkeypatch.undo()
    assert model.status_ == "time limit"
    assert model.check_constraints(X).violation == 0.0
    assert np.var(model.values_) > 0.0


def _no_time(points: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    raise OutOfTimeError


def test_pairs_are_the_same_in_parts(monkeypatch):
    points = np.unique(np.random.default_rng(1).integers(0, 9, (300, 3)).astype(float), axis=0)
    whole = comparable(points, np.ones(3))
    monkeypatch.setattr(isotonic, "LIMITS", dataclasses.replace(isotonic.LIMITS, comparisons=50))
    np.testing.assert_array_equal(whole, comparable(points, np.ones(3)))


@pytest.mark.parametrize("interpolation", ["middle", "lower", "upper"])
def test_predictions_are_monotone_and_meet_the_fit(interpolation):
    X, y = noisy()
    model = lt.MonotoneRegressor(monotonic_cst=[1, -1, 1], interpolation=interpolation).fit(X, y)
    np.testing.assert_array_equal(model.predict(model.points_), model.values_)
    rng = np.random.default_rng(2)
    rows = rng.uniform(-0.2, 1.2, (20_000, 3))
    more = rows + rng.exponential(0.1, rows.shape) * [1.0, -1.0, 1.0]
    assert (model.predict(more) >= model.predict(rows)).all()
    assert model.check_constraints(X).violation == 0.0


def test_the_fit_is_the_best_of_all_monotone_functions():
    X, y = noisy(60, 2)
    model = lt.MonotoneRegressor(tol=1e-9).fit(X, y)
    rules = model._rules(comparable)
    found = lt.project(y[np.lexsort(X.T[::-1])], rules).w
    np.testing.assert_allclose(model.values_, found, atol=1e-6)


def test_rows_that_bind_are_told_for_every_loss():
    x = np.arange(40.0)
    y = np.where(x < 20.0, x, 40.0 - x)  # the second half can only be flat
    for loss in ("squared", "huber", "absolute", "quantile"):
        model = lt.MonotoneRegressor(loss=loss).fit(x[:, None], y)
        (rule,) = model.constraint_report_.rules
        assert rule.violation == 0.0 and 15 <= rule.binding.size < 39, loss
        assert model.check_constraints().rules[0].binding.size == rule.binding.size


def test_equal_rows_share_a_value():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    y = np.array([0.0, 0.0, 0.0, 0.0, 10.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    mean = lt.MonotoneRegressor().fit(X, y)
    np.testing.assert_allclose(mean.values_, [1.5, 1.5], atol=1e-4)
    median = lt.MonotoneRegressor(loss="absolute").fit(X, y)
    np.testing.assert_allclose(median.values_, [0.0, 1.0], atol=1e-3)


@pytest.mark.parametrize("concave", [False, True])
def test_convex_everywhere(concave):
    X, _ = noisy(250, 2)
    sign = -1.0 if concave else 1.0
    truth = sign * np.square(X - 0.5).sum(axis=1)
    y = truth + 0.05 * np.random.default_rng(1).normal(size=250)
    model = lt.ConvexRegressor(concave=concave).fit(X, y)
    assert model.status_ == "converged"
    assert np.sqrt(np.mean(np.square(model.predict(X) - truth))) < 0.03
    rng = np.random.default_rng(3)
    first, second = rng.uniform(-0.5, 1.5, (2, 20_000, 2))
    bend = model.predict(0.5 * (first + second)) - 0.5 * (
        model.predict(first) + model.predict(second)
    )
    assert (sign * bend).max() < 1e-12
    assert model.check_constraints(X).violation == 0.0


def test_convex_and_monotone():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (150, 2)), columns=["a", "b"])
    y = X.a**2 - X.b + 0.1 * rng.normal(size=150)
    model = lt.ConvexRegressor(monotonic_cst={"a": 1, "b": -1}).fit(X, y)
    rows = pd.DataFrame(rng.uniform(-2.0, 2.0, (20_000, 2)), columns=["a", "b"])
    before = model.predict(rows)
    assert (model.predict(rows.assign(a=rows.a + rng.exponential(0.1, 20_000))) >= before).all()
    assert (model.predict(rows.assign(b=rows.b + rng.exponential(0.1, 20_000))) <= before).all()


def test_stored_and_generated_rows_are_the_same():
    points = np.random.default_rng(0).random((7, 2))
    stored = tangents(points, np.zeros(2))
    generated = lt.GeneratedRows(21, 42, Points(points), tangent_row, 4)
    w = np.random.default_rng(1).normal(size=21)
    np.testing.assert_allclose(generated.values(w), stored.values(w), atol=1e-12)
    tangent_values = [
        w[i] + w[7 + 2 * i : 9 + 2 * i] @ (points[k] - points[i]) - w[k]
        for i in range(7)
        for k in range(7)
        if k != i
    ]
    np.testing.assert_allclose(stored.values(w), tangent_values, atol=1e-12)


def test_many_rows_are_averaged():
    X, y = noisy(2000, 2)
    weights = np.full(2000, 1.0 / 2000)
    points, heights, mass = averaged(X, y, weights, 64)
    assert points.shape == (64, 2) and abs(mass.sum() - 1.0) < 1e-12
    np.testing.assert_allclose(mass @ heights, y.mean())
    np.testing.assert_allclose(mass @ points, X.mean(axis=0))
    assert mass.max() < 2.5 * mass.min()


@pytest.mark.parametrize("model", [lt.MonotoneRegressor(), lt.ConvexRegressor(most_points=50)])
def test_saved_and_loaded(model, tmp_path):
    X, y = noisy(120)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, y).save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.check_constraints(frame).violation == 0.0
    assert again.drift(frame).rows == 120


def test_what_cannot_be():
    X, y = noisy(30)
    with pytest.raises(ValueError, match="interpolation"):
        lt.MonotoneRegressor(interpolation="nearest").fit(X, y)
    with pytest.raises(ValueError, match="loss must be one of"):
        lt.MonotoneRegressor(loss="poisson").fit(X, y)
    with pytest.raises(lt.ConstraintError, match="monotonic_cst"):
        lt.MonotoneRegressor(monotonic_cst=[1, 1]).fit(X, y)
    with pytest.raises(ValueError, match="most_points"):
        lt.ConvexRegressor(most_points=0).fit(X, y)


@pytest.mark.parametrize("level", [0.25, 0.3, 0.9])
def test_a_target_that_is_met_exactly_ends_proven(level):
    """An objective of 0 is the least there is; narrowing rounded kinks gains for ever."""
    X = np.random.default_rng(0).random((5, 2))
    model = lt.MonotoneRegressor(
        loss="quantile", quantile=level, monotonic_cst=[1, 1], time_limit=20.0
    )
    assert model.fit(X, np.zeros(5)).status_ == "converged"
    assert (model.predict(X) == 0.0).all()
