"""Shape constraints by column name: each holds on the parameters with no violation, and on
predictions.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt

COLUMNS = ["a", "b", "c", "d"]


def table(rows: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Targets that argue against every rule below."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(0, 2, (rows, 4)), columns=COLUMNS)
    y = (
        0.5 * X.a
        + 2.0 * X.b
        - X.a * X.b
        + np.sin(3 * X.c)
        + 1.2 * X.d * X.a
        - X.d * X.b
        + rng.normal(0, 0.3, rows)
    )
    return X, y.to_numpy()


def moved(X: pd.DataFrame, **amounts: float) -> pd.DataFrame:
    return X.assign(**{name: X[name] + amount for name, amount in amounts.items()})


def inside(X: pd.DataFrame, room: float) -> pd.DataFrame:
    low, high = X.min(), X.max()
    return X[((X > low + room) & (X < high - room)).all(axis=1)]


TOLERANCE = 1e-9  # differences of predictions carry rounding errors that single predictions do not
CHECKS = {
    "Edgeworth": (
        lt.EdgeworthTrust("a", "b"),
        lambda f, X: f(moved(X, a=0.1, b=0.1)) - f(moved(X, b=0.1)) - f(moved(X, a=0.1)) + f(X),
    ),
    "Edgeworth, lower": (
        lt.EdgeworthTrust("a", "d", sign=-1),
        lambda f, X: -(f(moved(X, a=0.1, d=0.1)) - f(moved(X, a=0.1)) - f(moved(X, d=0.1)) + f(X)),
    ),
    "trapezoid, low end": (
        lt.TrapezoidTrust("a", "b"),
        lambda f, X: f(X.assign(a=-9.0)) - f(moved(X, b=0.1).assign(a=-9.0)),
    ),
    "trapezoid, high end": (
        lt.TrapezoidTrust("a", "b"),
        lambda f, X: f(moved(X, b=0.1).assign(a=9.0)) - f(X.assign(a=9.0)),
    ),
    "dominance": (lt.Dominates("a", "b"), lambda f, X: f(moved(X, a=1e-3)) - f(moved(X, b=1e-3))),
    "range dominance": (
        lt.RangeDominates("a", "b"),
        lambda f, X: (
            f(X.assign(a=9.0)) - f(X.assign(a=-9.0)) - f(X.assign(b=9.0)) + f(X.assign(b=-9.0))
        ),
    ),
    "joint": (lt.JointlyMonotonic("a", "d"), lambda f, X: f(moved(X, a=0.05, d=0.05)) - f(X)),
    "supermodular": (
        lt.Supermodular("b", "d"),
        lambda f, X: f(moved(X, b=0.1, d=0.1)) - f(moved(X, d=0.1)) - f(moved(X, b=0.1)) + f(X),
    ),
    "submodular": (
        lt.Submodular("a", "d"),
        lambda f, X: -f(moved(X, a=0.1, d=0.1)) + f(moved(X, d=0.1)) + f(moved(X, a=0.1)) - f(X),
    ),
    "convex": (lt.Convex("c"), lambda f, X: f(moved(X, c=0.05)) + f(moved(X, c=-0.05)) - 2 * f(X)),
    "concave": (
        lt.Concave("c"),
        lambda f, X: 2 * f(X) - f(moved(X, c=0.05)) - f(moved(X, c=-0.05)),
    ),
    "valley": (
        lt.Unimodal("c", 0.8),
        lambda f, X: np.where(
            X.c < 0.7, f(X) - f(moved(X, c=0.1)), np.where(X.c > 0.8, f(moved(X, c=0.1)) - f(X), 0)
        ),
    ),
    "peak": (
        lt.Unimodal("c", 1.2, "peak"),
        lambda f, X: np.where(
            X.c < 1.1, f(moved(X, c=0.1)) - f(X), np.where(X.c > 1.2, f(X) - f(moved(X, c=0.1)), 0)
        ),
    ),
    "slope": (lt.SlopeBound("b", 0.3), lambda f, X: 0.03 - np.abs(f(moved(X, b=0.1)) - f(X))),
}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lattices": "single"},
        {"lattices": "single", "lattice_size": 3, "interpolation": "hypercube"},
    ],
)
def test_shape_holds_on_parameters_and_predictions(name, options):
    rule, least = CHECKS[name]
    X, y = table()
    model = lt.LatticeRegressor(shape_constraints=[rule], **options).fit(X, y)
    assert model.constraint_report_.violation == 0.0
    assert model.constraint_report_.rows > 0
    points = inside(table(3000, seed=5)[0], 0.16)
    assert least(model.predict, points).min() >= -TOLERANCE
    free = lt.LatticeRegressor(**options).fit(X, y)
    if name not in ("range dominance", "supermodular", "submodular", "joint"):
        assert least(free.predict, points).min() < -1e-3, (
            "the data should argue against the rule, or the test shows nothing"
        )


def test_several_rules_together():
    X, y = table()
    rules = [
        lt.EdgeworthTrust("a", "b"),
        lt.Dominates("b", "a"),
        lt.Convex("c"),
        lt.JointlyMonotonic("d", "c"),
    ]
    model = lt.LatticeRegressor(monotonic_cst={"d": -1}, shape_constraints=rules).fit(X, y)
    report = model.check_constraints()
    assert report.violation == 0.0
    assert [rule.rule for rule in report.rules][:1] == ["decreasing in d"]


def test_category_order():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"size": rng.choice(["S", "M", "L", "other"], 300), "x": rng.uniform(size=300)}
    )
    y = X["size"].map({"S": 1.0, "M": 0.0, "L": -1.0, "other": 5.0}) * (0.5 + X.x) + rng.normal(
        0, 0.1, 300
    )
    rule = lt.CategoryOrder("size", [("S", "M"), ("M", "L")])
    for options in ({}, {"lattices": "single"}):
        model = lt.LatticeRegressor(shape_constraints=[rule], **options).fit(X, y)
        assert model.constraint_report_.violation == 0.0
        s, m, large = (model.predict(X.assign(size=size)) for size in "SML")
        assert np.all(s <= m) and np.all(m <= large)
        assert model.predict(X.assign(size="other")).mean() > 3


def test_rules_that_cannot_be_are_refused():
    X, y = table(50)
    with pytest.raises(lt.ConstraintError, match="decreasing"):
        lt.LatticeRegressor(
            monotonic_cst={"a": -1}, shape_constraints=[lt.Dominates("a", "b")]
        ).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="known mode"):
        lt.Unimodal("c", None)
    with pytest.raises(lt.ConstraintError, match="two different"):
        lt.LatticeRegressor(shape_constraints=[lt.Supermodular("a", "a")]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="single"):
        lt.LatticeRegressor(
            shape_constraints=[lt.SlopeBound("a", 1.0), lt.EdgeworthTrust("a", "b")]
        ).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="rules such as"):
        lt.LatticeRegressor(shape_constraints=["convex"]).fit(X, y)
    with pytest.raises(lt.ConstraintError, match="column of numbers"):
        lt.LatticeRegressor(shape_constraints=[lt.Convex("a")], categorical_features=["a"]).fit(
            X.round(), y
        )


def test_classifier_and_ranker_take_shapes_too():
    X, y = table()
    rules = [lt.EdgeworthTrust("a", "b"), lt.Convex("c")]
    classifier = lt.LatticeClassifier(shape_constraints=rules).fit(X, y > 0.5)
    ranker = lt.LatticeRanker(shape_constraints=rules, pairs_per_query=200).fit(
        X, y, qid=np.arange(400) // 40
    )
    for model in (classifier, ranker):
        assert model.constraint_report_.violation == 0.0


@pytest.mark.parametrize("name", CHECKS)
def test_a_classifier_says_on_which_scale_a_shape_holds(name):
    rule, least = CHECKS[name]
    X, y = table()
    model = lt.LatticeClassifier(shape_constraints=[rule]).fit(X, y > np.median(y))
    points = inside(table(3000, seed=5)[0], 0.16)
    assert least(model.decision_function, points).min() >= -TOLERANCE
    told = {line.rule.split("(")[0]: line.scale for line in model.constraint_report_.rules}
    again = {line.rule.split("(")[0]: line.scale for line in model.check_constraints().rules}
    assert told == again and told[type(rule).__name__] in ("log-odds", "probability")
    if told[type(rule).__name__] == "probability":
        assert least(lambda X: model.predict_proba(X)[:, 1], points).min() >= -TOLERANCE


def test_concave_log_odds_are_not_called_a_concave_probability():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(18, 80, 1500), "z": rng.normal(size=1500)})
    odds = np.exp(3 - ((X.age - 50) / 10) ** 2 + X.z)
    y = np.where(rng.random(1500) < odds / (1 + odds), "good", "bad")
    model = lt.LatticeClassifier(monotonic_cst={"z": 1}, shape_constraints=[lt.Concave("age")])
    model.fit(X, y)
    line = pd.DataFrame({"age": np.linspace(X.age.min(), X.age.max(), 200), "z": 0.0})
    assert np.diff(model.decision_function(line), 2).max() < TOLERANCE
    assert np.diff(model.predict_proba(line)[:, 1], 2).max() > 1e-4
    assert [rule.scale for rule in model.constraint_report_.rules] == ["probability", "log-odds"]
    assert "holds for" in str(model.constraint_report_)
    assert model.constraint_report_.to_frame()["scale"].tolist() == ["probability", "log-odds"]
    hinge = lt.LatticeClassifier(loss="hinge", monotonic_cst={"z": 1}).fit(X, y)
    assert hinge.constraint_report_.rules[0].scale == "score"
    regressor = lt.LatticeRegressor(monotonic_cst={"z": 1}).fit(X, odds)
    assert regressor.constraint_report_.rules[0].scale == "prediction"
    assert "holds for" not in str(regressor.constraint_report_)


@pytest.mark.parametrize("name", CHECKS)
def test_check_looks_at_predictions_for_every_kind_of_rule(name):
    rule, _ = CHECKS[name]
    X, y = table()
    model = lt.LatticeClassifier(shape_constraints=[rule]).fit(X, y > np.median(y))
    report = model.check_constraints(table(2000, seed=5)[0])
    told = [line for line in report.rules if line.rule.startswith("predictions on X: ")]
    assert len(told) == 1 and told[0].rows >= 2000 and told[0].violation == 0.0
    assert told[0].scale == {line.rule: line.scale for line in report.rules}[told[0].rule[18:]]
    subsets = None if name == "slope" else [("a", "b"), ("c", "d"), ("a", "d"), ("b", "d")]
    free = lt.LatticeClassifier(lattices=subsets, smoothing=1e-4).fit(X, y > np.median(y))
    free._rules = model._rules
    broken = [line.violation for line in free.check_constraints(X).rules[-1:]]
    assert broken[0] > 1e-3, "a model without the rule must be found out"
    noise = np.random.default_rng(1).normal(size=model.parameters_.shape)
    damaged = []
    for changed in (model.parameters_ + noise, model.parameters_ - noise):
        model.parameters_ = changed
        damaged.append(model.check_constraints(X).rules[-1].violation)
    assert max(damaged) > 1e-3, "a model whose parameters were changed must be found out"


@pytest.mark.parametrize("rule", [lt.Dominates("a", "b"), lt.JointlyMonotonic("a", "b")])
def test_check_moves_columns_within_their_own_ranges(rule):
    """Axes in a common unit are as long as the wider column's; beyond its own range a column's
    curve is flat, where the rule is not meant.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0.0, 1.0, 300), "b": rng.uniform(0.0, 9.0, 300)})
    y = 3.0 * X["a"] + 0.2 * X["b"] + 0.1 * rng.normal(size=300)
    model = lt.LatticeRegressor(shape_constraints=[rule], keypoints=5).fit(X, y)
    assert model.check_constraints(X).violation == 0.0
