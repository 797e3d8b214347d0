"""Quantiles that never cross, means of counts and amounts, limits of predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor

import lighttouch as lt
from lighttouch.estimators.regression import mean_of


def spread_out(rows: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 3))
    return X, 2.0 * X[:, 0] + np.sin(4.0 * X[:, 1]) + (0.1 + X[:, 2]) * rng.normal(size=rows)


def test_quantiles_are_in_order_everywhere_and_cover_what_they_say():
    X, y = spread_out()
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = lt.LatticeRegressor(loss="quantile", quantile=levels, monotonic_cst={0: 1}).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == (1500, 5) and model.parameters_.shape[0] == 5
    assert np.abs((y[:, None] <= predicted).mean(axis=0) - levels).max() < 0.02
    width = predicted[:, 4] - predicted[:, 0]
    assert np.corrcoef(width, X[:, 2])[0, 1] > 0.9, "the spread follows the third column"
    anywhere = np.random.default_rng(1).uniform(-0.3, 1.3, (20_000, 3))
    assert np.diff(model.predict(anywhere)).min() >= 0.0
    assert model.score(X, y) > 0.35


@pytest.mark.parametrize("kind", ["quantiles", "thresholds"])
def test_check_tests_the_order_of_outputs_on_predictions(kind):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=300)
    if kind == "quantiles":
        model = lt.LatticeRegressor(loss="quantile", quantile=[0.1, 0.9], lattices=0).fit(X, y)
        turned = "parameters_"
    else:
        model = lt.LatticeClassifier(ordinal=True, lattices=0).fit(X, np.digitize(y, [0.3, 0.7]))
        turned = "thresholds_"
    rule = model.check_constraints(X).rules[-1]
    assert rule.rule == f"predictions on X: {kind} in order"
    assert rule.rows == 300 and rule.violation == 0.0
    setattr(model, turned, getattr(model, turned)[::-1].copy())
    assert model.check_constraints(X).rules[-1].violation > 0.01


def test_quantiles_fitted_alone_do_cross():
    X, y = spread_out(300)
    anywhere = np.random.default_rng(1).uniform(0.0, 1.0, (5000, 3))
    alone = [
        lt.LatticeRegressor(loss="quantile", quantile=level).fit(X, y).predict(anywhere)
        for level in (0.45, 0.5, 0.55)
    ]
    assert np.diff(np.column_stack(alone)).min() < 0.0, "or the test above shows nothing"
    together = lt.LatticeRegressor(loss="quantile", quantile=[0.45, 0.5, 0.55]).fit(X, y)
    assert np.diff(together.predict(anywhere)).min() >= 0.0
    order = next(r for r in together.constraint_report_.rules if r.rule == "quantiles in order")
    assert order.binding.size > 0 and order.broken_without > 0


def test_one_level_in_a_list_is_that_level():
    X, y = spread_out(300)
    listed = lt.LatticeRegressor(loss="quantile", quantile=[0.7]).fit(X, y).predict(X)
    single = lt.LatticeRegressor(loss="quantile", quantile=0.7).fit(X, y).predict(X)
    assert listed.shape == (300, 1)
    assert np.abs(listed[:, 0] - single).mean() < 0.02


@pytest.mark.parametrize("quantile", [[], [0.5, 0.1], [0.5, 0.5], [0.0, 0.5], [0.1, "a"], "0.5"])
def test_levels_that_cannot_be(quantile):
    X, y = spread_out(40)
    with pytest.raises(ValueError, match="quantile must"):
        lt.LatticeRegressor(loss="quantile", quantile=quantile).fit(X, y)


def counts(rows: int = 3000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, 3))
    exposure = rng.uniform(0.2, 3.0, rows)
    mean = 5.0 * np.exp(X[:, 0] + np.sin(4.0 * X[:, 1]))
    return X, exposure, mean, rng.poisson(mean * exposure).astype(float)


def test_poisson_recovers_the_mean_per_exposure():
    X, exposure, mean, y = counts()
    model = lt.LatticeRegressor(loss="poisson", monotonic_cst={0: 1}).fit(X, y, exposure=exposure)
    assert np.sqrt(np.mean(np.square(np.log(model.predict(X) / mean)))) < 0.05
    assert abs(float(model.predict(X) @ exposure) / y.sum() - 1.0) < 1e-3, "the totals agree"
    ignored = lt.LatticeRegressor(loss="poisson").fit(X, y)
    assert np.sqrt(np.mean(np.square(np.log(ignored.predict(X) / mean)))) > 0.2


def test_poisson_without_bends_is_the_generalised_linear_model():
    X, _, _, y = counts(400)
    wide = lt.LatticeRegressor(
        loss="poisson", lattices=None, trees=0, keypoints=2, smoothing=0.0, tol=1e-9
    )
    line = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000).fit(X, y)
    ratio = wide.fit(X, y).predict(X) / line.predict(X)
    assert np.abs(np.log(ratio)).max() < 0.02


@pytest.mark.parametrize("loss", ["gamma", "tweedie", lt.Tweedie(1.7)])
def test_amounts(loss):
    X, exposure, mean, _ = counts()
    rng = np.random.default_rng(1)
    y = rng.gamma(2.0, mean * exposure / 2.0)
    if loss != "gamma":
        y = np.where(rng.random(y.size) < 0.3, 0.0, y / 0.7)
    model = lt.LatticeRegressor(loss=loss, monotonic_cst={0: 1}).fit(X, y, exposure=exposure)
    assert np.sqrt(np.mean(np.square(np.log(model.predict(X) / mean)))) < 0.1
    assert model.predict(np.random.default_rng(2).normal(0.0, 9.0, (1000, 3))).min() > 0.0


def test_targets_in_other_units_give_the_same_model():
    X, exposure, _, y = counts(500)
    first = lt.LatticeRegressor(loss="poisson").fit(X, y, exposure=exposure).predict(X)
    second = lt.LatticeRegressor(loss="poisson").fit(X, y, exposure=10.0 * exposure).predict(X)
    np.testing.assert_allclose(second, first / 10.0, rtol=1e-6)


def test_rules_with_a_log_link_name_their_scale():
    X, _, _, y = counts(600)
    rules = [lt.Convex(2), lt.Supermodular(0, 1)]
    model = lt.LatticeRegressor(loss="poisson", monotonic_cst={0: 1, 1: 1}, shape_constraints=rules)
    told = {rule.rule: rule.scale for rule in model.fit(X, y).constraint_report_.rules}
    assert told == dict.fromkeys(told, "mean")
    free = lt.LatticeRegressor(
        loss="poisson", shape_constraints=[lt.Concave(2), lt.Supermodular(0, 1)]
    )
    told = {rule.rule: rule.scale for rule in free.fit(X, y).constraint_report_.rules}
    assert told == {"Concave(x2)": "log-mean", "Supermodular(x0, x1)": "log-mean"}


def test_convex_logarithms_are_convex_means_and_concave_ones_are_not():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 4.0, 800))
    line = np.linspace(x[0], x[-1], 300)[:, None]
    y = rng.poisson(np.exp(1.2 * x)).astype(float)
    convex = lt.LatticeRegressor(loss="poisson", shape_constraints=[lt.Convex(0)]).fit(
        x[:, None], y
    )
    assert np.diff(convex.predict(line), 2).min() > -1e-7 * y.max()
    concave = lt.LatticeRegressor(loss="poisson", shape_constraints=[lt.Concave(0)])
    predicted = concave.fit(x[:, None], y).predict(line)
    assert np.diff(np.log(predicted), 2).max() < 1e-7
    assert np.diff(predicted, 2).max() > 1e-3


def test_canonical_examples_with_a_log_link():
    X, _, _, y = counts(500)
    where = np.array([[0.5, 0.5, 0.5], [0.1, 0.9, 0.2]])
    model = lt.LatticeRegressor(
        loss="poisson", canonical_examples=(where, [2.0, 30.0]), canonical_margin=0.5
    )
    assert np.abs(model.fit(X, y).predict(where) - [2.0, 30.0]).max() <= 0.5


def test_bad_counts_and_exposures():
    X, exposure, _, y = counts(50)
    with pytest.raises(lt.DataError, match="not be negative"):
        lt.LatticeRegressor(loss="poisson").fit(X, y - 100.0)
    with pytest.raises(lt.DataError, match="be positive"):
        lt.LatticeRegressor(loss="gamma").fit(X, 0.0 * y)
    with pytest.raises(lt.DataError, match="positive somewhere"):
        lt.LatticeRegressor(loss="tweedie").fit(X, 0.0 * y)
    with pytest.raises(lt.DataError, match="exposure must be positive"):
        lt.LatticeRegressor(loss="poisson").fit(X, y, exposure=exposure - 1.0)
    with pytest.raises(lt.DataError, match="50 entries"):
        lt.LatticeRegressor(loss="poisson").fit(X, y, exposure=exposure[:-1])
    with pytest.raises(ValueError, match="log link"):
        lt.LatticeRegressor().fit(X, y, exposure=exposure)
    with pytest.raises(ValueError, match="loss must be one of"):
        lt.ConstrainedLinearRegressor(loss="poisson").fit(X, y)


def test_means_keep_the_order_of_their_logarithms():
    rng = np.random.default_rng(0)
    z = np.sort(
        np.concatenate([rng.uniform(-800, 800, 100_000), rng.uniform(-1e-8, 1e-8, 100_000)])
    )
    mean = mean_of(z)
    assert (np.diff(mean) >= 0.0).all() and mean.min() > 0.0 and np.isfinite(mean).all()
    np.testing.assert_allclose(mean_of(np.array([1.5])), np.exp(1.5), rtol=1e-9)


def test_limits_hold_and_keep_orders():
    X, y = spread_out(800)
    low, high = np.quantile(y, [0.1, 0.9])
    rules = [lt.SlopeBound(1, 3.0), lt.Unimodal(2, 0.5)]
    model = lt.LatticeRegressor(
        monotonic_cst={0: 1}, shape_constraints=rules, output_min=low, output_max=high
    ).fit(X, y)
    predicted = model.predict(np.random.default_rng(3).normal(0.5, 1.0, (20_000, 3)))
    assert predicted.min() == low and predicted.max() == high
    assert model.check_constraints(X).violation == 0.0


@pytest.mark.parametrize(
    ("rule", "limit", "refused"),
    [
        (lt.Convex(0), "output_min", False),
        (lt.Convex(0), "output_max", True),
        (lt.Concave(0), "output_min", True),
        (lt.Concave(0), "output_max", False),
        (lt.EdgeworthTrust(0, 1), "output_min", True),
        (lt.Dominates(0, 1), "output_max", False),
    ],
)
def test_limits_that_would_break_a_rule_are_refused(rule, limit, refused):
    X, y = spread_out(200)
    model = lt.LatticeRegressor(shape_constraints=[rule], **{limit: float(np.median(y))})
    if refused:
        with pytest.raises(lt.ConstraintError, match=limit):
            model.fit(X, y)
        return
    predict = model.fit(X, y).predict
    if isinstance(rule, lt.Convex | lt.Concave):
        line = np.column_stack(
            [np.linspace(X[:, 0].min(), X[:, 0].max(), 300)] + [np.full(300, 0.5)] * 2
        )
        bends = np.diff(predict(line), 2) * (1.0 if isinstance(rule, lt.Convex) else -1.0)
        assert bends.min() > -1e-9


def test_limits_that_cannot_be():
    X, y = spread_out(40)
    for options in (
        {"output_min": 1.0, "output_max": 0.0},
        {"output_min": float("nan")},
        {"output_max": "high"},
        {"output_max": 0.0, "loss": "poisson"},
    ):
        with pytest.raises(ValueError, match="output_"):
            lt.LatticeRegressor(**options).fit(X, np.abs(y))


def test_frames_weights_and_missing_cells_work_with_every_new_loss():
    X, exposure, _, y = counts(400)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["kind"] = np.where(y > y.mean(), "much", "little")
    frame.loc[::7, "b"] = np.nan
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    for loss in ("poisson", "tweedie"):
        model = lt.LatticeRegressor(loss=loss, monotonic_cst={"a": 1})
        model.fit(frame, y, weights, exposure=exposure)
        assert model.check_constraints(frame).violation == 0.0


def test_ordered_classes_are_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1500)
    y = np.digitize(1.5 * x + rng.logistic(size=1500), [-1.0, 0.5, 2.0])

    def minus_likelihood(p):
        cuts = np.concatenate([[-np.inf], np.cumsum(np.append(p[1], np.exp(p[2:]))), [np.inf]])
        above = 1.0 / (1.0 + np.exp(cuts[None, :] - p[0] * x[:, None]))
        chances = above[np.arange(1500), y] - above[np.arange(1500), y + 1]
        return -np.log(chances).mean()

    best = minimize(minus_likelihood, [1.0, -1.0, 0.0, 0.0], method="BFGS").fun
    model = lt.LatticeClassifier(ordinal=True, lattices=None, keypoints=2, smoothing=0.0, tol=1e-9)
    shares = model.fit(x[:, None], y).predict_proba(x[:, None])
    loss = -np.log(shares[np.arange(1500), y]).mean()
    assert best - 1e-3 < loss < best + 1e-3
    np.testing.assert_allclose(np.diff(model.thresholds_), [1.5, 1.5], atol=0.25)
