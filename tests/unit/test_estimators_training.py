"""Training through `solve`: the model is the same at every size, endings say what was proven."""

from __future__ import annotations

import dataclasses
import functools
import warnings
import weakref

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch import losses
from lighttouch.cholesky import Cholesky
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.estimators import examples, fitting, smoothing, training
from lighttouch.estimators.judged import Judged
from lighttouch.estimators.penalties import roughness_of
from lighttouch.estimators.rules.rows import no_moves
from lighttouch.running import OutOfTimeError
from lighttouch.solvers.quadratic_model import gram


def data(count: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(count, 3))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(0, 0.2, count)


def model(**options):
    return lt.LatticeRegressor(monotonic_cst={1: 1, 2: 1}, **options)


def without_factor(monkeypatch) -> None:
    """Smoothing is judged as for a model that is too large to factor."""
    monkeypatch.setattr(fitting, "COSTS", dataclasses.replace(training.COSTS, largest_gram=0))


def sampling(monkeypatch) -> None:
    """Examples are sampled, as for millions of rows."""
    costs = dataclasses.replace(training.COSTS, advantage=0.0)
    monkeypatch.setattr(training, "COSTS", costs)


def test_smoothing_is_chosen_alike_with_and_without_a_factor(monkeypatch):
    X, y = data()
    y = y + np.sin(6 * X[:, 1]) * X[:, 2]  # so that curves and lattices bend
    small = model().fit(X, y)
    without_factor(monkeypatch)
    large = model().fit(X, y)
    for ours, theirs in zip(large.smoothing_, small.smoothing_, strict=True):
        assert 0.03 < ours / theirs < 35.0, "at most three places apart on a grid of half powers"
    assert large.score(X, y) == pytest.approx(small.score(X, y), abs=0.01)


@pytest.mark.parametrize("size", [lambda patch: None, without_factor, sampling])
def test_smoothing_is_never_ignored(monkeypatch, size):
    size(monkeypatch)
    X, y = data()
    for bad in ("much", -1.0, (1.0, np.nan)):
        with pytest.raises(ValueError, match="smoothing must"):
            model(smoothing=bad).fit(X, y)
    rough, stiff = (model(smoothing=each).fit(X, y) for each in (1e-5, 1e3))
    assert rough.smoothing_ == (1e-5, 1e-5) and stiff.smoothing_ == (1e3, 1e3)
    straight = model(smoothing=1e3, lattices=0, trees=0).fit(X, y)
    grid = np.column_stack([np.linspace(0.1, 0.9, 9), np.full(9, 0.5), np.full(9, 0.5)])
    bend = np.abs(np.diff(straight.predict(grid), n=2)).max()
    assert bend < 0.02 < np.abs(np.diff(rough.predict(grid), n=2)).max()


def test_sampling_minimises_the_same_objective_and_prices_the_rules(monkeypatch):
    X, y = data()
    monkeypatch.setattr(fitting, "moves_of", lambda model, *_: no_moves(model.dimension))
    exact = model().fit(X, y)
    monkeypatch.undo()  # sampling makes no moves by itself
    sampling(monkeypatch)
    sampled = model().fit(X, y)
    assert sampled.smoothing_ == exact.smoothing_
    ours, theirs = sampled.constraint_report_, exact.constraint_report_
    assert ours.violation == 0.0 and ours.objective == pytest.approx(theirs.objective, rel=0.01)
    assert ours.price is not None and 0.0 <= ours.price < 0.01
    assert sampled.status_ in ("converged", "stalled")


@pytest.mark.parametrize(
    "kind", [lt.LatticeRegressor, lt.LatticeClassifier, lt.ConstrainedLinearRegressor]
)
def test_rows_without_weight_count_for_nothing(kind):
    """Neither for the search nor for trees, wherever their cells lie."""
    rng = np.random.default_rng(0)
    X = rng.random((800, 3))
    y = np.sin(6.0 * X[:, 0]) * X[:, 1] + (X[:, 2] > 0.5) * (X[:, 1] > 0.3)
    y = y > 0.5 if kind is lt.LatticeClassifier else y
    others = rng.random((500, 3)) + np.array([0.0, 100.0, 0.0])
    padded = np.vstack([X, others]), np.append(y, y[:500])
    weights = np.append(np.ones(800), np.zeros(500))
    plain = kind().fit(X, y, sample_weight=np.ones(800))
    with_padding = kind().fit(*padded, sample_weight=weights)
    np.testing.assert_allclose(scores(with_padding, X), scores(plain, X), atol=1e-8)
    if kind is not lt.ConstrainedLinearRegressor:
        assert with_padding.trees_.count == plain.trees_.count > 0


def scores(fitted, X):
    return fitted.predict_proba(X)[:, 1] if hasattr(fitted, "classes_") else fitted.predict(X)


def test_only_a_proven_ending_is_called_converged_and_a_normal_one_does_not_warn():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model().fit(X, y).status_ == "converged"
        kinked = model(loss="absolute", tol=1e-5).fit(X, y)
    assert kinked.status_ == "stalled"
    with pytest.warns(UserWarning, match="iteration limit"):
        assert model(loss="absolute", max_iter=2).fit(X, y).status_ == "iteration limit"
    with pytest.warns(UserWarning, match="time limit"):
        late = model(loss="absolute", tol=1e-300, max_iter=10**6, time_limit=0.05).fit(X, y)
    assert late.status_ == "time limit" and late.constraint_report_.violation == 0.0


@pytest.mark.filterwarnings("ignore:training ended")
def test_a_time_limit_also_ends_the_search_for_interactions():
    X = np.random.default_rng(0).random((300, 3))
    y = 10.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    limited = lt.LatticeRegressor(time_limit=1e-6).fit(X, y)
    assert limited.status_ == "time limit"
    assert all(len(term.columns) == 1 for term in limited.model_.terms)
    assert any(len(term.columns) == 2 for term in lt.LatticeRegressor().fit(X, y).model_.terms)


@pytest.mark.filterwarnings("ignore:training ended")
@pytest.mark.parametrize("kind", [lt.LatticeRegressor, lt.LatticeClassifier])
def test_a_time_limit_within_the_first_curves_still_gives_a_model(monkeypatch, kind):
    def late(*_):
        raise OutOfTimeError("late")

    monkeypatch.setattr("lighttouch.estimators.growing.Growth.search", late)
    X, y = data(300)
    y = y if kind is lt.LatticeRegressor else y > np.median(y)
    model = kind(monotonic_cst={1: 1}, time_limit=60.0).fit(X, y)
    assert model.status_ == "time limit" and model.constraint_report_.violation == 0.0
    assert np.isfinite(model.predict(X)).all() and model.score(X, y) > 0.3


def test_squared_errors_of_many_rows_are_trained_by_their_sums(monkeypatch):
    X, y = data(1200)
    model = lt.LatticeRegressor(monotonic_cst={1: 1}, random_state=0)
    whole = model.fit(X, y).predict(X)
    report = model.constraint_report_
    in_parts(monkeypatch)
    summed = lt.LatticeRegressor(monotonic_cst={1: 1}, random_state=0).fit(X, y)
    assert summed.status_ == "converged"
    np.testing.assert_allclose(summed.predict(X), whole, atol=1e-6)
    np.testing.assert_allclose(summed.constraint_report_.objective, report.objective, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_smooth_losses_of_many_rows_are_trained_by_parts(monkeypatch, loss):
    X, y = data(1200)
    if loss == "logistic":
        kind, more, predict = lt.LatticeClassifier, {}, "predict_proba"
        y = y > np.median(y)
    else:
        kind, more, predict = lt.LatticeRegressor, {"loss": loss}, "predict"
        y = np.round(np.exp(y - y.mean()))
    make = functools.partial(kind, monotonic_cst={1: 1}, tol=1e-10, random_state=0, **more)
    weights = np.where(np.arange(1200) < 400, 0.0, 1.0)  # whole parts without examples
    model = make().fit(X, y, sample_weight=weights)
    whole, report = getattr(model, predict)(X), model.constraint_report_
    in_parts(monkeypatch)
    parts = make().fit(X, y, sample_weight=weights)
    assert parts.status_ == model.status_ == "converged"
    np.testing.assert_allclose(getattr(parts, predict)(X), whole, rtol=2e-3)
    np.testing.assert_allclose(parts.constraint_report_.objective, report.objective, rtol=1e-6)
    np.testing.assert_allclose(
        parts.constraint_report_.objective_without_rules, report.objective_without_rules, rtol=1e-6
    )


def test_rules_that_zero_obeys_do_not_contradict_each_other(monkeypatch):
    """Rounding may say so, where their entries differ by 1e12."""

    def contradicted(*given):
        raise InfeasibleConstraintsError("no point satisfies rows 0, 1", [0, 1])

    monkeypatch.setattr(training, "project", contradicted)
    rows, w = np.array([[1.0, -2.0, 1.0], [-1.0, 0.5, 1.0]]), np.array([1.0, 0.0, 2.0])
    met, left = training.exactly_feasible(w, lt.LinearConstraints(rows, np.zeros(2)))
    np.testing.assert_array_equal(met, w)
    assert left == 3.0
    with pytest.raises(InfeasibleConstraintsError):
        training.exactly_feasible(w, lt.LinearConstraints(rows, np.array([0.0, -1.0])))


@pytest.mark.parametrize("loss", ["absolute", "hinge", "huber"])
def test_few_entries_of_many_parameters_are_not_sampled(loss):
    """A step costs as much as there are parameters: 250,000 rows took eight times as long."""
    rng, places = np.random.default_rng(0), np.arange(29)
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)

    def chosen(parameters: int) -> bool:
        X = np.zeros((50, parameters))
        X[:, places * (parameters // 29)] = 1.0
        risk = lt.EmpiricalRisk(sparse.csr_matrix(X), y, loss=loss)
        assert risk.dimension == parameters and risk.cost == 29
        return training.sampling_is_faster(Many(risk))

    assert chosen(29) == (loss != "huber") and not chosen(640)


class Many:
    """A risk of five million rows like its own."""

    def __init__(self, risk: lt.EmpiricalRisk) -> None:
        self.risk, self.examples = risk, 5_000_000

    def __getattr__(self, name: str) -> object:
        return getattr(self.risk, name)


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_rules_hold_exactly_in_any_unit(unit):
    """Projections round as numbers near 1 do: parameters near 1e-9 broke rules by 1e-20."""
    rng = np.random.default_rng(0)
    A = np.eye(30)[:-1] - np.eye(30)[1:] + 0.3 * np.eye(30)[[4] * 29]
    A, b = np.vstack([A, np.eye(30)[:1]]), np.zeros(30)
    b[-1] = 1e6 * unit  # far from broken
    w = unit * np.cumsum(rng.normal(0.1, 1.0, 30))
    met, left = training.exactly_feasible(w, lt.LinearConstraints(A, b))
    assert left == 0.0 and np.max(A @ met - b) <= 0.0
    assert np.abs(met - w).max() < 10.0 * np.abs(w).max()


def test_features_in_parts_are_those_of_the_whole(monkeypatch):
    X, y = data(1200)
    model = lt.LatticeRegressor(monotonic_cst={1: 1}, lattices=[[0, 1]], random_state=0).fit(X, y)
    rows = examples.Examples([(X, 1.0)], y, np.full(1200, 1.0 / 1200))
    whole = rows.features_at_need(model.model_)
    in_parts(monkeypatch)
    parts = rows.features_at_need(model.model_)
    assert isinstance(whole, sparse.csr_matrix)
    assert isinstance(parts, examples.FeaturesInParts)
    rng = np.random.default_rng(0)
    w, v, weights = rng.normal(size=whole.shape[1]), rng.normal(size=1200), rng.random(1200)
    some = v > 0.3
    np.testing.assert_allclose(parts @ w, whole @ w, rtol=1e-12)
    np.testing.assert_allclose(parts.T @ v, whole.T @ v, atol=1e-12)
    np.testing.assert_allclose(parts.gram(weights), gram(whole, weights), atol=1e-10)
    np.testing.assert_allclose(parts[some] @ w, whole[some] @ w, rtol=1e-12)
    there, back = parts.there_and_back(w, lambda z, here: v[here] * z)
    np.testing.assert_allclose(there, whole @ w, rtol=1e-12)
    np.testing.assert_allclose(back, whole.T @ (v * there), atol=1e-12)


def test_trees_are_chosen_alike_where_features_come_in_parts(monkeypatch):
    X, y = data(1200)
    y = y + (X[:, 0] > 0.3) * (X[:, 1] > 0.6)
    whole = lt.LatticeRegressor(random_state=0).fit(X, y)
    in_parts(monkeypatch)
    parts = lt.LatticeRegressor(random_state=0).fit(X, y)
    assert whole.trees_ is not None and parts.trees_.count == whole.trees_.count
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-6)


def test_trees_beside_labels_are_chosen_alike_where_features_come_in_parts(monkeypatch):
    X, y = data(1200)
    labels = y + 3.0 * ((X[:, 0] > 0.5) != (X[:, 1] > 0.5)) > 2.5
    whole = lt.LatticeClassifier(lattices=None, random_state=0, tol=1e-9).fit(X, labels)
    in_parts(monkeypatch)
    parts = lt.LatticeClassifier(lattices=None, random_state=0, tol=1e-9).fit(X, labels)
    assert whole.trees_ is not None and parts.trees_.count == whole.trees_.count
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("longer", [1.0, 60.0])
def test_the_slope_that_is_remembered_is_that_of_the_accepted_point(monkeypatch, longer):
    """A step that is too long is halved: its slope, found in the same pass, is not that there."""
    X, y = data(1200)
    labels = np.where(y > np.median(y), 1.0, -1.0)
    model = lt.LatticeRegressor(lattices=None, trees=0).fit(X, y).model_
    rows = examples.Examples([(X, 1.0)], labels, np.full(1200, 1.0 / 1200))
    in_parts(monkeypatch)
    features = rows.features_at_need(model)
    asked = Judged(features, labels, rows.weights, losses.loss_of("logistic"), 1200)
    roughness = roughness_of(model, [False] * 3, 1200)
    strengths, start = np.full(len(roughness.penalties), 1e-3), np.zeros(model.dimension)
    H, c = asked.quadratic(start)
    step = longer * smoothing.factored(H.copy, roughness, strengths).solved(c)
    w = smoothing.accepted(asked, roughness, strengths, start, step)
    assert np.array_equal(w, step) == (longer == 1.0)
    slopes = losses.quadratic(asked.row, features @ w, labels, 0.0)[0]
    np.testing.assert_allclose(
        asked.slope(w, slopes), features.T @ (rows.weights * slopes), atol=1e-12
    )


def test_a_part_of_the_features_is_gone_before_the_next_one_is_made(monkeypatch):
    """Two of them at once are twice the memory."""
    X, y = data(1200)
    model = lt.LatticeRegressor(lattices=None, trees=0).fit(X, y).model_
    rows = examples.Examples([(X, 1.0)], y, np.full(1200, 1.0 / 1200))
    in_parts(monkeypatch)
    features, whole = rows.features_at_need(model), model.features(X)
    made, entries = [], type(model).entries

    def watched(self, table):
        assert all(each() is None for each in made)
        places, values = entries(self, table)
        made.append(weakref.ref(values))
        return places, values

    monkeypatch.setattr(type(model), "entries", watched)
    w, v = np.linspace(-1.0, 1.0, model.dimension), np.linspace(0.0, 2.0, 1200)
    np.testing.assert_allclose(features @ w, whole @ w, atol=1e-12)
    np.testing.assert_allclose(features.back(v), whole.T @ v, atol=1e-9)
    features.there_and_back(w, lambda z, here: z)
    assert len(made) > 6


def in_parts(monkeypatch) -> None:
    """Features are made for at most 500 examples at once."""
    most = dict.fromkeys(("squared_entries", "whole_entries", "part_entries"), 3000.0)
    few = dataclasses.replace(examples.LIMITS, **most)
    monkeypatch.setattr(examples, "LIMITS", few)
    monkeypatch.setattr(examples.Examples, "score_problem", _only_some(500))


def _only_some(most: int):
    """Fails where the features of all examples are asked for at once."""
    asked = examples.Examples.score_problem

    def score_problem(self, *given):
        if len(given) > 2:  # with a penalty: what is trained
            assert self.size <= most
        return asked(self, *given)

    return score_problem


def test_warnings_reach_programs_without_a_module():
    """As notebooks and servers run them, by `exec`: looking for the caller's name failed."""
    program = """
import warnings
import numpy as np, lighttouch as lt
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    X = np.arange(40.0)[:, None]
    lt.LatticeRegressor(max_iter=1, tol=1e-300, loss="absolute").fit(X, np.sin(X[:, 0]))
"""
    names: dict[str, object] = {}
    exec(compile(program, "program", "exec"), names)
    assert [str(each.message) for each in names["said"]]


def test_less_smoothing_is_tried_only_where_it_is_less(monkeypatch):
    """And the first held-out rows decide where they are clear."""
    rng = np.random.default_rng(0)
    X = rng.random((900, 2))
    y = np.where(X[:, 0] + X[:, 1] > 1.0, 1.0, -1.0)
    model = lt.LatticeRegressor(lattices=None, trees=0).fit(X, y).model_
    roughness = roughness_of(model, [False, False], 900.0)
    logistic = losses.loss_of("logistic")
    labels = Judged(model.features(X), y, np.full(900, 1 / 900), logistic, 900.0)
    calls = []
    held_out = smoothing._held_out

    def counted(*arguments):
        calls.append(arguments[2])
        return held_out(*arguments)

    monkeypatch.setattr(smoothing, "_held_out", counted)
    start = np.zeros(model.dimension)
    for strength, tried in ((1e-6, False), (1e-3, True)):
        strengths = np.full(len(roughness.penalties), strength)
        fitted = smoothing.smooth(labels, roughness, strengths, start, 6, choose=False)
        fitted = dataclasses.replace(fitted, terms=np.ones(strengths.size))
        calls.clear()
        found = smoothing.loosened(labels, fitted, 5)
        assert bool(calls) == tried
        assert (found is not fitted) == tried
    assert len(calls) < (1 + len(smoothing.SMOOTHING.looser)) * smoothing.SMOOTHING.folds


@pytest.mark.parametrize(("rarer", "tried"), [(8, False), (40, True)])
def test_with_few_rows_of_the_rarer_class_no_less_smoothing_is_tried(monkeypatch, rarer, tried):
    """Of a table with seven in training, the log loss on other rows was .78, and .28 so."""
    rng = np.random.default_rng(1)
    X = rng.random((300, 3))
    score = X[:, 0] + X[:, 1]
    labels = score >= np.sort(score)[-rarer]
    asked = []
    held_out = smoothing._held_out
    monkeypatch.setattr(smoothing, "_held_out", lambda *a: asked.append(1) or held_out(*a))
    for y in (labels, ~labels):
        asked.clear()
        lt.LatticeClassifier(trees=0).fit(X, y)
        assert bool(asked) == tried


def test_steps_with_one_matrix_learn_from_the_slopes():
    """Six steps on a logistic loss with the matrix of the start come a hundred times as near to the
    minimum as the same steps uncorrected.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = np.where(X @ rng.normal(size=8) + rng.logistic(size=400) > 0.0, 1.0, -1.0)

    def slope(w):
        return X.T @ (-y / (1.0 + np.exp(y * (X @ w)))) / 400 + 1e-3 * w

    factor = Cholesky.of(0.25 * X.T @ X / 400 + 1e-3 * np.eye(8))
    left = []
    for corrected in (True, False):
        w, steps = np.zeros(8), smoothing.Steps(factor)
        for _ in range(6):
            w = w + (steps if corrected else smoothing.Steps(factor)).at(w, slope(w))
        left.append(float(np.linalg.norm(slope(w))))
    assert left[0] <= 0.01 * left[1]


def test_less_smoothing_is_tried_for_rankings_too(monkeypatch):
    """Their pairs are of one class, better minus worse."""
    rng = np.random.default_rng(0)
    X, qid = rng.random((600, 3)), np.repeat(np.arange(30), 20)
    asked = []
    held_out = smoothing._held_out
    monkeypatch.setattr(smoothing, "_held_out", lambda *a: asked.append(1) or held_out(*a))
    lt.LatticeRanker(random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2, qid=qid)
    assert asked
