"""Linear models under rules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import lighttouch as lt


def table(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 4)) * [1, 100, 0.01, 1] + [0, 50, 0, 1], columns=list("abcd"))
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
    model = lt.ConstrainedLinearRegressor(loss=loss, monotonic_cst={"a": 1}, shape_constraints=rules, constraints=([[1, 1, 1, 1]], [0.01]))
    model.fit(X, y)
    a, b, c, d = model.coef_
    assert a >= 0 and b >= c >= 0 and abs(d) <= 0.25 and a + b + c + d <= 0.01
    assert model.constraint_report_.violation == 0.0 and model.check_constraints().violation == 0.0
    assert model.constraint_report_.price > 0


def test_the_constrained_optimum_is_right():
    clarabel = pytest.importorskip("clarabel")
    X, y = table()
    model = lt.ConstrainedLinearRegressor(alpha=0.0, monotonic_cst={"a": 1, "d": 1}, tol=1e-9).fit(X, y)
    F = np.column_stack([np.ones(len(X)), X])
    H, c = F.T @ F / len(X), -F.T @ y / len(X)
    A = sparse.csc_matrix([[0, -1.0, 0, 0, 0], [0, 0, 0, 0, -1.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(H)), c, A, np.zeros(2), [clarabel.NonnegativeConeT(2)], settings).solve()
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
        raised = points.assign(**{name: points[name] + np.spacing(points[name].abs()) * rng.integers(1, 3, 100_000)})
        assert np.all(sign * (model.decision_function(raised) - before) >= 0)
        assert np.all(sign * (model.predict_proba(raised)[:, 1] - chances) >= 0)


def test_canonical_examples_and_sparse_tables():
    X, y = table()
    labels = y > y.mean()
    model = lt.ConstrainedLinearClassifier(canonical_examples=(X.head(3), ~labels[:3]), loss="hinge").fit(X, labels)
    np.testing.assert_array_equal(model.predict(X.head(3)), ~labels[:3])
    regressor = lt.ConstrainedLinearRegressor(canonical_examples=(X.head(1), [0.0]), canonical_margin=0.1).fit(X, y)
    assert abs(regressor.predict(X.head(1))[0]) <= 0.1
    dense = lt.ConstrainedLinearRegressor(monotonic_cst=[1, 0, 0, 0], alpha=0.0, tol=1e-9).fit(X.to_numpy(), y)
    thin = lt.ConstrainedLinearRegressor(monotonic_cst=[1, 0, 0, 0], alpha=0.0, tol=1e-9).fit(sparse.csr_matrix(X.to_numpy()), y)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X.to_numpy())), dense.predict(X.to_numpy()), atol=0.02)


def test_contradictions_and_useless_rules_are_refused():
    X, y = table(50)
    with pytest.raises(lt.InfeasibleConstraintsError, match="contradict"):
        lt.ConstrainedLinearRegressor(constraints=([[1, 0, 0, 0], [-1, 0, 0, 0]], [-1.0, -1.0])).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="linear model"):
        lt.ConstrainedLinearRegressor(shape_constraints=[lt.Convex("a")]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="one column for each"):
        lt.ConstrainedLinearRegressor(constraints=(np.eye(3), np.zeros(3))).fit(X, y)
