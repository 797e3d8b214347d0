"""Every loss and option: 100,000 random points and single increases find no broken rule, after
saving and in single precision too.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch.estimators import training

RULES = [1, -1, 1, 0]  # columns 0 and 1 as the data are, column 2 against them
COLUMNS = 4


def table(rows: int = 500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(1, 5, rows),
            rng.lognormal(3, 1, rows),
            rng.uniform(0, 30, rows),
            rng.normal(size=rows),
        ]
    )
    y = (
        X[:, 0] * np.tanh(X[:, 3])
        - 0.5 * np.log(X[:, 1])
        - 0.1 * X[:, 2]
        + 0.02 * X[:, 0] * X[:, 2]
        + rng.normal(0, 0.7, rows)
    )
    return X, y


CASES = {
    f"regressor {loss}": lt.LatticeRegressor(loss=loss, quantile=0.7)
    for loss in ("squared", "absolute", "huber", "quantile")
}
CASES |= {f"classifier {loss}": lt.LatticeClassifier(loss=loss) for loss in ("logistic", "hinge")}
CASES |= {
    f"ranker {loss}": lt.LatticeRanker(loss=loss, pairs_per_query=60)
    for loss in ("logistic", "hinge")
}
CASES |= {
    f"linear {loss}": lt.ConstrainedLinearRegressor(loss=loss)
    for loss in ("squared", "absolute", "huber", "quantile")
}
CASES |= {
    f"linear {loss}": lt.ConstrainedLinearClassifier(loss=loss) for loss in ("logistic", "hinge")
}
CASES |= {
    f"options {options}": lt.LatticeRegressor(**options)
    for options in (
        {"lattices": 0},
        {"lattices": "random", "random_state": 3},
        {"lattices": "single"},
        {"lattices": "single", "interpolation": "hypercube", "lattice_size": 3},
        {"lattices": [(0, 1), (2, 3)], "lattice_size": 5},
        {"columns_per_lattice": 3},
        {"smoothing": 0.0, "keypoints": 5},
        {"interpolation": "simplex"},
        {"max_iter": 1, "loss": "absolute"},
        {"shape_constraints": [lt.EdgeworthTrust(0, 3), lt.Dominates(0, 2), lt.Unimodal(3, 0.2)]},
    )
}
CASES |= {
    "regressor poisson": lt.LatticeRegressor(loss="poisson"),
    "regressor gamma": lt.LatticeRegressor(loss="gamma", output_max=1.5),
    "regressor tweedie": lt.LatticeRegressor(loss=lt.Tweedie(1.3)),
    "regressor three quantiles": lt.LatticeRegressor(loss="quantile", quantile=[0.1, 0.5, 0.9]),
    "regressor within limits": lt.LatticeRegressor(output_min=-1.0, output_max=0.5),
    "classifier of ordered classes": lt.LatticeClassifier(ordinal=True),
    "isotonic": lt.MonotoneRegressor(),
    "isotonic medians": lt.MonotoneRegressor(loss="absolute", interpolation="lower"),
    "convex": lt.ConvexRegressor(most_points=60),
    "concave": lt.ConvexRegressor(concave=True, most_points=60),
}


def fitted(model, X: np.ndarray, y: np.ndarray):
    isotonic = isinstance(model, lt.MonotoneRegressor)  # equal values of a free column are rare
    model.set_params(monotonic_cst=[1, -1, 1, 1] if isotonic else RULES)
    if isinstance(model, lt.LatticeRanker):
        return model.fit(X, np.digitize(y, np.quantile(y, [0.5, 0.8])), qid=np.arange(len(y)) // 10)
    if getattr(model, "ordinal", False):
        return model.fit(X, np.digitize(y, np.quantile(y, [0.3, 0.7])))
    if getattr(model, "loss", None) == "poisson":
        return model.fit(X, np.maximum(0.0, np.round(y)), exposure=1.0 + (X[:, 3] > 0.0))
    if getattr(model, "loss", None) == "gamma" or isinstance(
        model.get_params().get("loss"), lt.Tweedie
    ):
        return model.fit(X, np.exp(0.3 * y))
    return model.fit(X, y > np.median(y) if hasattr(model, "decision_function") else y)


def outputs(model):
    """Everything a user may look at, as functions of the rows."""
    if not hasattr(model, "decision_function"):
        return [model.predict]
    if hasattr(model, "thresholds_"):
        return [model.predict_cumulative]
    chances = (
        [lambda rows: model.predict_proba(rows)[:, 1]] if hasattr(model, "predict_proba") else []
    )
    return [model.decision_function, *chances]


def broken(predict, X: np.ndarray, points: int, kind: type, seed: int) -> int:
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    rows = (
        rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), (points, COLUMNS))
    ).astype(kind)
    at_data = rng.random(points) < 0.2
    rows[at_data] = X[rng.integers(len(X), size=int(at_data.sum()))]
    before = predict(rows)
    found = 0
    for column, sign in enumerate(RULES):
        if sign:
            raised = rows.copy()
            step = np.where(
                rng.random(points) < 0.5,
                np.spacing(np.abs(rows[:, column])),
                rng.exponential(X[:, column].std(), points),
            )
            raised[:, column] = (rows[:, column] + step).astype(kind)
            after = predict(raised)
            found += int(np.sum(np.diff(after) < 0)) if after.shape[1:] == (3,) else 0  # quantiles
            found += int(np.sum(sign * (after - before) < 0)) + int(
                np.sum(sign * (after.astype(kind) - before.astype(kind)) < 0)
            )
    return found


@pytest.mark.filterwarnings("ignore:training ended")
@pytest.mark.parametrize("case", CASES)
def test_no_point_of_a_hundred_thousand_breaks_a_rule(case, tmp_path):
    X, y = table()
    model = fitted(CASES[case], X, y)
    assert model.constraint_report_.violation == 0.0 and model.constraint_report_.rows >= 3
    assert any(rule.binding.size for rule in model.constraint_report_.rules), (
        "the data should press against a rule"
    )
    low, high = model.get_params().get("output_min"), model.get_params().get("output_max")
    if high is not None:
        assert model.predict(X).max() == high and (low is None or model.predict(X).min() == low)
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    assert again.check_constraints(X).violation == 0.0
    for first, second in zip(outputs(model), outputs(again), strict=True):
        np.testing.assert_array_equal(first(X), second(X))
    for place, predict in enumerate(outputs(again)):
        assert broken(predict, X, 50_000, np.float64, seed=2 * place) == 0
        assert broken(predict, X, 50_000, np.float32, seed=2 * place + 1) == 0


@pytest.mark.parametrize("case", ["regressor absolute", "classifier hinge", "classifier logistic"])
def test_the_price_of_the_rules_is_of_the_loss_that_is_trained(case):
    """Not of squared errors, by which the structure is chosen."""
    X, y = table()
    report = fitted(CASES[case], X, y).constraint_report_
    free = CASES[case].set_params(monotonic_cst=None)
    alone = free.fit(X, y if case.startswith("regressor") else y > np.median(y))
    assert report.price > 0.005
    assert abs(report.objective_without_rules / alone.constraint_report_.objective - 1.0) < 0.02


def test_rows_that_share_no_parameter_are_met_apart(monkeypatch):
    """A term that obeys its rules is left alone, to the bit, and the others are projected alone."""
    asked = []
    plain = training.project
    monkeypatch.setattr(training, "project", lambda v, rows: asked.append(v.size) or plain(v, rows))
    bend = np.array([[1.0, -2.0, 1.0, 0.0], [0.0, 1.0, -2.0, 1.0]])  # concave
    A = sparse.block_diag([bend, bend, bend], format="csr")
    rules = lt.LinearConstraints(A, np.zeros(6))
    rng = np.random.default_rng(0)
    w = np.concatenate([[0.0, 1.0, 1.5, 1.7], rng.normal(size=4) ** 2, [0.0, 0.0, 0.1, 0.3]])
    found, left = training.exactly_feasible(w, rules)
    assert left == 0.0 and training.violation(found, rules) == 0.0
    np.testing.assert_array_equal(found[:4], w[:4])
    np.testing.assert_allclose(found, plain(w, rules).w, atol=1e-9)
    assert asked and set(asked) == {4}


def test_a_conflict_is_named_by_the_rows_of_all_terms():
    A = sparse.csr_matrix([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0], [0.0, 0.0, -1.0, -2.0]])
    rules = lt.LinearConstraints(A, [0.0, -1.0, -1.0])
    with pytest.raises(lt.InfeasibleConstraintsError) as caught:
        training.exactly_feasible(np.zeros(4), rules)
    assert sorted(caught.value.rows) == [1, 2]
