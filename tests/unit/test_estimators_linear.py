"""Linear models under rules."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import lighttouch as lt
from lighttouch.estimators.training import warn_about


def table(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(rows, 4)) * [1, 100, 0.01, 1] + [0, 50, 0, 1], columns=list("abcd")
    )
    y = -X.a + 0.02 * X.b + 30 * X.c - 0.5 * X.d + rng.normal(0, 0.5, rows) + 7
    return X, y.to_numpy()


def test_without_rules_it_is_least_squares():
    X, y = table()
    model = lt.ConstrainedLinearRegressor(alpha=0.0).fit(X, y)
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), y, rcond=None)[0]
    np.testing.assert_allclose([model.intercept_, *model.coef_], exact, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
def test_signs_dominance_and_rows_hold_exactly(loss):
    X, y = table()
    rules = [lt.Dominates("b", "c"), lt.SlopeBound("d", 0.25)]
    model = lt.ConstrainedLinearRegressor(
        loss=loss,
        monotonic_cst={"a": 1},
        shape_constraints=rules,
        constraints=([[1, 1, 1, 1]], [0.01]),
    )
    model.fit(X, y)
    a, b, c, d = model.coef_
    assert a >= 0 and b >= c >= 0 and abs(d) <= 0.25 and a + b + c + d <= 0.01
    assert model.constraint_report_.violation == 0.0 and model.check_constraints().violation == 0.0
    assert model.constraint_report_.price > 0


def test_the_constrained_optimum_is_right():
    clarabel = pytest.importorskip("clarabel")
    X, y = table()
    model = lt.ConstrainedLinearRegressor(alpha=0.0, monotonic_cst={"a": 1, "d": 1}, tol=1e-9).fit(
        X, y
    )
    F = np.column_stack([np.ones(len(X)), X])
    H, c = F.T @ F / len(X), -F.T @ y / len(X)
    A = sparse.csc_matrix([[0, -1.0, 0, 0, 0], [0, 0, 0, 0, -1.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(H)), c, A, np.zeros(2), [clarabel.NonnegativeConeT(2)], settings
    ).solve()
    ours = np.concatenate([[model.intercept_], model.coef_])

    def value(w):
        return 0.5 * w @ H @ w + c @ w

    assert value(ours) <= value(np.array(found.x)) + 1e-5 * abs(value(np.array(found.x)))


def test_predictions_rise_to_the_last_bit():
    X, y = table()
    signs = {"a": -1, "b": 1, "c": 1, "d": -1}
    model = lt.ConstrainedLinearClassifier(monotonic_cst=signs).fit(X, y > y.mean())
    rng = np.random.default_rng(1)
    points = pd.DataFrame(rng.normal(size=(100_000, 4)) * [1, 100, 0.01, 1], columns=list("abcd"))
    before, chances = model.decision_function(points), model.predict_proba(points)[:, 1]
    for name, sign in signs.items():
        raised = points.assign(
            **{name: points[name] + np.spacing(points[name].abs()) * rng.integers(1, 3, 100_000)}
        )
        assert np.all(sign * (model.decision_function(raised) - before) >= 0)
        assert np.all(sign * (model.predict_proba(raised)[:, 1] - chances) >= 0)


def test_canonical_examples_and_sparse_tables():
    X, y = table()
    labels = y > y.mean()
    model = lt.ConstrainedLinearClassifier(
        canonical_examples=(X.head(3), ~labels[:3]), loss="hinge"
    ).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X.head(3)), ~labels[:3])
    regressor = lt.ConstrainedLinearRegressor(
        canonical_examples=(X.head(1), [0.0]), canonical_margin=0.1
    ).fit(X, y)
    assert abs(regressor.predict(X.head(1))[0]) <= 0.1
    dense = lt.ConstrainedLinearRegressor(monotonic_cst=[1, 0, 0, 0], alpha=0.0, tol=1e-9).fit(
        X.to_numpy(), y
    )
    thin = lt.ConstrainedLinearRegressor(monotonic_cst=[1, 0, 0, 0], alpha=0.0, tol=1e-9).fit(
        sparse.csr_matrix(X.to_numpy()), y
    )
    np.testing.assert_allclose(
        thin.predict(sparse.csr_matrix(X.to_numpy())), dense.predict(X.to_numpy()), atol=0.02
    )


def test_contradictions_and_useless_rules_are_refused():
    X, y = table(50)
    with pytest.raises(lt.InfeasibleConstraintsError, match="contradict"):
        lt.ConstrainedLinearRegressor(
            constraints=([[1, 0, 0, 0], [-1, 0, 0, 0]], [-1.0, -1.0])
        ).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="linear model"):
        lt.ConstrainedLinearRegressor(shape_constraints=[lt.Convex("a")]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="one column for each"):
        lt.ConstrainedLinearRegressor(constraints=(np.eye(3), np.zeros(3))).fit(X, y)


def parts(X, y, count: int = 5):
    return [(X.iloc[rows], y[rows]) for rows in np.array_split(np.arange(len(X)), count)]


def test_partial_fit_of_squared_errors_is_fit_in_parts():
    X, y = table()
    rules = {
        "monotonic_cst": {"a": 1},
        "shape_constraints": [lt.Dominates("b", "c")],
        "alpha": 0.0,
        "tol": 1e-9,
    }
    whole = lt.ConstrainedLinearRegressor(**rules).fit(X, y)
    grown = lt.ConstrainedLinearRegressor(**rules)
    for rows, targets in parts(X, y):
        assert grown.partial_fit(rows, targets) is grown
        assert (
            grown.constraint_report_.violation == 0.0
            and grown.coef_[0] >= 0
            and grown.coef_[1] >= grown.coef_[2] >= 0
        )
    np.testing.assert_allclose(grown.predict(X), whole.predict(X), atol=1e-3 * y.std())
    once = lt.ConstrainedLinearRegressor(**rules).partial_fit(X, y)
    np.testing.assert_allclose(once.coef_, whole.coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["absolute", "huber", "quantile"])
def test_partial_fit_of_other_losses_ends_near_fit_and_obeys(loss):
    X, y = table(1500)
    whole = lt.ConstrainedLinearRegressor(loss=loss, monotonic_cst={"a": 1}).fit(X, y)
    grown = lt.ConstrainedLinearRegressor(loss=loss, monotonic_cst={"a": 1})
    for rows, targets in parts(X, y):
        assert grown.partial_fit(rows, targets).constraint_report_.violation == 0.0
    assert np.sqrt(np.mean((grown.predict(X) - whole.predict(X)) ** 2)) < 0.05 * y.std()


@pytest.mark.filterwarnings("ignore:training ended")
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_partial_fit_of_classes(loss):
    X, y = table(1500)
    labels = np.where(y > np.median(y), "yes", "no")
    whole = lt.ConstrainedLinearClassifier(loss=loss, monotonic_cst={"a": -1, "b": 1}).fit(
        X, labels
    )
    grown = lt.ConstrainedLinearClassifier(loss=loss, monotonic_cst={"a": -1, "b": 1})
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        grown.partial_fit(X, labels)
    first = labels == "yes"  # batches need not hold both classes
    grown.partial_fit(X[first][:10], labels[first][:10], classes=["no", "yes"])
    for rows, targets in parts(X, labels):
        grown.partial_fit(rows, targets)
        assert grown.constraint_report_.violation == 0.0 and grown.coef_[0] <= 0 <= grown.coef_[1]
    assert grown.score(X, labels) > whole.score(X, labels) - 0.02
    with pytest.raises(ValueError, match="not the same as on the first call"):
        grown.partial_fit(X, labels, classes=["maybe", "yes"])
    with pytest.raises(lt.DataError, match="'perhaps' in row 0"):
        grown.partial_fit(X[:1], ["perhaps"])
    with pytest.raises(lt.DataError, match="exactly 2 classes"):
        lt.ConstrainedLinearClassifier().partial_fit(X[:2], labels[:2], classes=["a", "b", "c"])


def test_partial_fit_weighs_rows_and_does_not_forget_a_fit_silently(tmp_path):
    X, y = table()
    twice = (
        lt.ConstrainedLinearRegressor(alpha=0.0, tol=1e-9)
        .partial_fit(X, y)
        .partial_fit(X[:100], y[:100])
    )
    weights = np.where(np.arange(300) < 100, 2.0, 1.0)
    weighted = lt.ConstrainedLinearRegressor(alpha=0.0, tol=1e-9).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(twice.coef_, weighted.coef_, rtol=1e-5)
    after_fit = (
        lt.ConstrainedLinearRegressor(alpha=0.0, tol=1e-9).fit(X, y).partial_fit(X[:100], y[:100])
    )
    np.testing.assert_allclose(after_fit.coef_, weighted.coef_, rtol=1e-5)
    weighted.save(tmp_path / "model.lt")
    with pytest.raises(ValueError, match="first batch"):
        lt.load(tmp_path / "model.lt").partial_fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_thousands_of_sparse_columns_need_no_factor_and_long_rows_hold_exactly(loss):
    X = sparse.random(800, 4000, density=0.01, format="csr", random_state=0)
    rng = np.random.default_rng(0)
    y = X @ rng.normal(size=4000) + rng.normal(0, 0.1, 800)
    rules = {"monotonic_cst": [1] * 2000 + [0] * 2000, "constraints": (np.ones((1, 4000)), [10.0])}
    kind = lt.ConstrainedLinearRegressor if loss == "squared" else lt.ConstrainedLinearClassifier
    model = kind(loss=loss, alpha=1.0, **rules).fit(X, y if loss == "squared" else y > 0)
    report = model.constraint_report_
    assert report.violation == 0.0 and model.coef_[:2000].min() >= 0.0 and report.price > 0.0
    assert loss != "squared" or 9.99 < model.coef_.sum() <= 10.0, (
        "the row over all coefficients should bind"
    )
    assert model.score(X, y if loss == "squared" else y > 0) > 0.9


def test_both_classifiers_give_the_same_kinds_of_scores():
    X, y = table()
    for kind in (lt.ConstrainedLinearClassifier, lt.LatticeClassifier):
        model = kind(monotonic_cst={"a": 1}).fit(X, y > y.mean())
        scores, chances = model.decision_function(X), model.predict_proba(X)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), chances, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), scores > 0.0)
        np.testing.assert_array_equal(model.scores_of(model.read_rows(X)), scores)
        assert model.fitted_columns.names == list("abcd")
        assert model.constraint_report_.rules[0].scale == "probability"
        with pytest.raises(AttributeError, match="has no attribute"):
            kind(loss="hinge").fit(X, y > y.mean()).predict_log_proba(X)


def test_unfinished_training_is_told_at_the_users_line():
    X, y = table()
    model = lt.ConstrainedLinearRegressor(loss="absolute", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="iteration limit; raise max_iter") as told:
        model.fit(X, y)
    assert told[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="interrupted; the model obeys its rules"):
        warn_about("interrupted")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about("stalled")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_fits_to_smooth_losses_are_proven_and_so_is_what_rules_cost(loss, alpha):
    """An intercept that nothing pulls may lie anywhere, and rounding times anywhere is no bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=300)
    kind = lt.ConstrainedLinearRegressor
    if loss == "logistic":
        kind, y = lt.ConstrainedLinearClassifier, y > 0.0
    model = kind(loss=loss, alpha=alpha, monotonic_cst={0: 1, 1: 1}).fit(X, y)
    assert model.status_ == "converged"
    assert model.constraint_report_.price > 0.0
    assert abs(model.coef_[1]) < 1e-9 < model.coef_[0]
