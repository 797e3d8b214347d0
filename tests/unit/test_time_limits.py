"""What is left out once the time is over. Clocks are made up or limits over: nothing is timed."""

from __future__ import annotations

import dataclasses
import time
import warnings

import numpy as np
import pytest
from scipy import sparse as sp

import lighttouch as lt
from lighttouch.constraints import base
from lighttouch.estimators import fitting, growing, smoothing, training
from lighttouch.estimators.structure import Screen
from lighttouch.interior.pivoting import quadratic_minimum
from lighttouch.result import Status
from lighttouch.running import OutOfTimeError, out_of_time, within
from lighttouch.signals import Interrupts
from lighttouch.solvers.quadratic_model import gram

OVER = 1e-9  # seconds: a limit that is over at once


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still unless told: `clock[0]` are its seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def data(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, 3))
    return X, 10.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 3.0 * X[:, 2] + 0.1 * rng.random(rows)


def counted(monkeypatch, owner, name: str) -> list[str]:
    calls, whole = [], getattr(owner, name)

    def noting(*given, **named):
        calls.append(name)
        return whole(*given, **named)

    monkeypatch.setattr(owner, name, noting)
    return calls


def settings(limit: float | None) -> training.Settings:
    return training.Settings("squared", 1e-6, 9, limit, np.random.default_rng(0), Interrupts())


def test_a_fit_whose_time_is_over_leaves_out_what_is_optional(monkeypatch):
    X, y = data()
    optional = [
        counted(monkeypatch, Screen, "gains"),
        counted(monkeypatch, growing.Growth, "fit"),
        counted(monkeypatch, fitting, "moves_of"),
        counted(monkeypatch, smoothing, "loosened"),
    ]
    fits = counted(monkeypatch, smoothing, "smooth")
    model = lt.LatticeRegressor(monotonic_cst=[0, 0, 1], time_limit=OVER).fit(X, y)
    assert fits == ["smooth"] and not any(optional)
    assert model.status_ == "time limit" and model.n_iter_ == 1
    assert model.check_constraints(X).violation == 0.0
    assert model.score(X, y) > 0.5  # curves, and not the mean that training would begin with
    assert model.constraint_report_.price is None  # the fit without rules is optional too
    assert model.importances_ and model.training_record_.rows == 400
    lt.LatticeRegressor(monotonic_cst=[0, 0, 1]).fit(X, y)
    assert len(fits) > 1 and all(optional[:3])


def test_a_search_that_was_cut_short_claims_no_cost_of_rules(monkeypatch):
    def late(*given):
        raise OutOfTimeError

    X, y = data()
    monkeypatch.setattr(fitting, "grow", late)
    model = lt.LatticeRegressor(monotonic_cst=[0, 0, 1], time_limit=60.0).fit(X, y)
    assert model.status_ == "time limit" and model.constraint_report_.price is None


def test_without_time_for_all_rows_a_part_is_trained_on(monkeypatch, tmp_path):
    X, y = data()
    y = 1000.0 + 50.0 * y  # in other units than those of training
    monkeypatch.setattr(fitting.structure, "rows_to_search", lambda *_: 100)
    none = dataclasses.replace(training.COSTS, shortest=OVER)  # not even time for a short step
    monkeypatch.setattr(training, "COSTS", none)
    sizes = []
    under_rules = fitting._fit_under_rules

    def noting(model, rules, moves, examples, *rest):
        sizes.append(examples.size)
        return under_rules(model, rules, moves, examples, *rest)

    monkeypatch.setattr(fitting, "_fit_under_rules", noting)
    late = lt.LatticeRegressor(monotonic_cst=[0, 0, 1], time_limit=OVER).fit(X, y)
    whole = lt.LatticeRegressor(monotonic_cst=[0, 0, 1]).fit(X, y)
    assert sizes == [100, 400] and late.training_record_.rows == 400
    assert late.score(X, y) > 0.3 and whole.status_ == "converged"
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,y", comments="")
    files = lt.LatticeRegressor(monotonic_cst=[0, 0, 1], time_limit=OVER)
    files.fit_files(tmp_path / "rows.csv", target="y")
    assert sizes[2] == 100 and files.status_ == "time limit"
    np.testing.assert_allclose(files.parameters_, late.parameters_)


def test_as_many_rows_are_trained_on_as_there_is_time_for(monkeypatch):
    """The search ended in time, but training on all rows would not."""
    X, y = data(4000)
    monkeypatch.setattr(fitting.structure, "rows_to_search", lambda *_: 200)
    rows, trained = [], fitting.train

    def noting(objective, *rest):
        rows.append(objective.examples)
        return trained(objective, *rest)

    monkeypatch.setattr(fitting, "train", noting)
    monkeypatch.setattr(fitting, "_share_in_time", lambda *given: 0.25)
    model = lt.LatticeClassifier(monotonic_cst=[1, 0, 0], time_limit=100.0).fit(X, y > 0.0)
    assert rows == [1000]
    assert model.status_ == "time limit"
    assert model.check_constraints(X).violation == 0.0


@pytest.mark.parametrize(
    ("left", "rest", "summed", "share"),
    [
        (10.0, 4.0, False, 1.0),
        (2.0, 4.0, False, 0.25),
        (2.0, 4.0, True, 1.0),
        (-1.0, 4.0, False, 0),
    ],
)
def test_the_share_of_rows_that_there_is_time_for(clock, left, rest, summed, share):
    growth = growing.Growth(None, None, None, None, 3000, np.random.default_rng(0))
    growth.rest = rest
    squares = np.eye(2) if summed else None
    smoothed = smoothing.Smoothed(np.zeros(2), None, np.zeros(1), squares=squares)
    assert fitting._share_in_time(growth, settings(left), smoothed) == share


def test_a_warm_start_without_time_gives_a_model():
    X, y = data()
    model = lt.LatticeRegressor(monotonic_cst=[1, 0, 0], warm_start=True).fit(X, y)
    model.set_params(time_limit=OVER).fit(X, y)
    assert model.status_ == "time limit" and model.check_constraints(X).violation == 0.0


def test_no_checkpoint_is_left_of_a_fit_that_its_limit_cut_short(tmp_path):
    """The same call with more time would solve another problem, and refuse it."""
    X, y = data()
    path = tmp_path / "fit.ltc"
    kept = {"checkpoint": path, "monotonic_cst": [1, 0, 0]}
    assert lt.LatticeRegressor(time_limit=OVER, **kept).fit(X, y).status_ == "time limit"
    assert not path.exists()
    again = lt.LatticeRegressor(**kept).fit(X, y)
    np.testing.assert_array_equal(
        again.predict(X), lt.LatticeRegressor(monotonic_cst=[1, 0, 0]).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("layout", ["groups", "other rows"])
def test_matrices_of_many_rows_look_at_the_clock(layout):
    X = sp.random(5000, 40, 0.2, format="csr", random_state=0)
    if layout == "groups":
        X = sp.csr_matrix(
            (np.ones(10_000), np.tile([0, 1], 5000), np.arange(0, 10_001, 2)), shape=(5000, 2)
        )
    weights = np.random.default_rng(0).random(5000)
    wanted = (X.T @ sp.diags(weights) @ X).toarray()
    np.testing.assert_allclose(gram(X, weights), wanted, rtol=1e-12, atol=1e-12)
    with within(0.0), pytest.raises(OutOfTimeError):
        gram(X, weights)


def test_rules_that_need_lattices_hold_where_no_time_is_left():
    X, y = data(200)
    rules = [lt.EdgeworthTrust(0, 1), lt.Convex(2)]
    model = lt.LatticeRegressor(
        monotonic_cst=[1, 0, 0], shape_constraints=rules, time_limit=OVER
    ).fit(X, y)
    assert model.status_ == "time limit"
    assert (0, 1) in [term.columns for term in model.model_.terms]
    assert model.check_constraints(X).violation == 0.0


@pytest.mark.parametrize("sweeps", [1, 4])
def test_smoothing_ends_after_a_step_once_the_time_is_over(monkeypatch, sweeps):
    X, y = data(100)
    steps = counted(monkeypatch, smoothing, "accepted")
    monkeypatch.setattr(growing, "CURVE_SWEEPS", sweeps)
    lt.LatticeRegressor(lattices=0, time_limit=OVER).fit(X, y)
    assert len(steps) == 1


def test_screening_looks_at_the_clock_between_subsets(monkeypatch):
    rng = np.random.default_rng(0)
    table, residual = rng.random((50, 4)), rng.normal(size=50)
    screen = Screen([(table, 1.0)], 50.0)
    left = growing.Leftover(residual, np.full(50, 0.02), 1.0)
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3)]
    whole = screen.gains(pairs, (2, 3), left)
    monkeypatch.setattr(
        "lighttouch.estimators.structure.LIMITS",
        growing.LIMITS.__class__(screened_at_once=1.0),
    )
    asked: list[int] = []
    assert screen.gains(pairs, (2, 3), left, lambda: bool(asked.append(1))) == whole
    assert len(asked) == len(pairs)
    assert screen.gains(pairs, (2, 3), left, lambda: True) == {}


def test_one_clock_runs_from_the_first_line_of_a_fit(clock):
    seen = []

    @training.on_the_clock
    def outer():
        clock[0] += 2.0  # reading a table: its record will take half as long
        seen.append(settings(5.0).left)
        seen.append(training.share_of_limit(5.0, 3))
        inner()
        clock[0] += 9.0
        seen.append(settings(5.0).left)
        seen.append(training.share_of_limit(5.0, 3))

    @training.on_the_clock
    def inner():
        seen.append(settings(5.0).left)

    outer()
    assert seen == [2.0, 1.0, 5.0, -11.5, training.COSTS.shortest]
    assert training.share_of_limit(None, 3) is None
    late = settings(1.0)
    assert not late.over and late.ending_so_far is None
    clock[0] += 1.0
    assert late.over and late.ending_so_far is Status.TIME_LIMIT
    assert 0.0 < late.seconds_to_train <= 2.0 * training.COSTS.shortest


def test_stages_of_a_fit_end_before_the_limit_by_what_the_rest_needs(clock):
    whole = settings(10.0)
    for kept, until in ((0.0, 10.0), (2.0, 8.0), (99.0, 5.0)):  # at most half of the limit
        with whole.limited(kept):
            clock[0] = 100.0 + until - 0.5
            assert not out_of_time()
            clock[0] = 100.0 + until
            assert out_of_time()
        clock[0] = 100.0
    with settings(None).limited(2.0):
        clock[0] += 1e9
        assert not out_of_time()


def test_classes_divide_the_time_that_is_left(monkeypatch):
    X, y = data(150)
    given = []
    fit_one = lt.LatticeClassifier._train

    def noting(self, *rest):
        given.append(self.time_limit)
        return fit_one(self, *rest)

    monkeypatch.setattr(lt.LatticeClassifier, "_train", noting)
    labels = np.digitize(y, [0.5, 2.5])
    model = lt.LatticeClassifier(lattices=0, time_limit=300.0).fit(X, labels)
    assert given[0] == pytest.approx(100.0, rel=0.05)
    assert given == sorted(given) and given[-1] > 200.0  # what the first ones left over
    assert all(each.time_limit == 300.0 for each in model.estimators_)
    late = lt.LatticeClassifier(lattices=0, time_limit=OVER).fit(X, labels)
    assert late.status_ == "time limit"
    assert {each.status_ for each in late.estimators_} == {"time limit"}
    assert np.allclose(late.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: lt.LatticeRegressor(loss="huber", **more),
        lambda **more: lt.LatticeRegressor(loss="quantile", quantile=[0.1, 0.9], **more),
        lambda **more: lt.LatticeRegressor(lattices="single", **more),
        lambda **more: lt.LatticeClassifier(ordinal=True, **more),
        lambda **more: lt.ConstrainedLinearRegressor(loss="huber", monotonic_cst=[1, 1, 1], **more),
        lt.LatticeRanker,
    ],
)
def test_every_kind_of_fit_gives_a_model_when_its_time_is_over(make):
    X, y = data(120)
    model = make(time_limit=OVER).fit(X, np.digitize(y, [0.5, 2.5]))
    assert model.status_ == "time limit" and np.isfinite(model.predict(X)).all()
    assert model.check_constraints(X).violation == 0.0


def test_quadratic_steps_begin_no_step_when_the_time_is_over():
    rng = np.random.default_rng(0)
    risk = lt.EmpiricalRisk(rng.normal(size=(40, 6)), rng.normal(size=40))
    problem = lt.Problem(risk, lt.ordering(6))
    start = np.arange(6.0)
    result = lt.solve(problem, lt.QuadraticSteps(), time_limit=OVER, start=start)
    assert result.status is Status.TIME_LIMIT and result.iterations == 0
    np.testing.assert_array_equal(result.w, start)


def test_the_path_of_an_interior_point_asks_before_every_step(monkeypatch):
    asked: list[int] = []
    H, c, A = np.eye(3), np.array([3.0, 2.0, 1.0]), lt.ordering(3).A
    monkeypatch.setattr("lighttouch.interior.path.check_deadline", lambda: asked.append(1))
    found = quadratic_minimum(H, c, A, np.zeros(2), c, 1e-12)
    assert found is not None and len(asked) > 2
    np.testing.assert_allclose(found.w, 2.0, atol=1e-5)

    def stop() -> None:
        raise OutOfTimeError

    monkeypatch.setattr("lighttouch.interior.path.check_deadline", stop)
    with pytest.raises(OutOfTimeError):
        quadratic_minimum(H, c, A, np.zeros(2), c, 1e-12)


@pytest.mark.parametrize("limit", [0.1, 0.3, 1.0])
def test_constraints_in_python_are_not_called_once_the_time_is_over(clock, limit):
    """50 calls of 0.05 s say whether a point is feasible: there is time for none but the first."""

    def value(j, w):
        clock[0] += 0.05
        return float(w @ w) - 1.0 - j

    rng = np.random.default_rng(0)
    rules = lt.ConvexConstraints(5, 50, value, lambda j, w: 2.0 * w)
    problem = lt.Problem(
        lt.EmpiricalRisk(rng.normal(size=(50, 5)), 9.0 * rng.normal(size=50)), rules
    )
    lt.solve(problem, time_limit=0.02)  # looks at the first point
    began = clock[0]
    result = lt.solve(problem, lt.Automatic(1e-12), time_limit=limit)
    assert clock[0] - began <= limit + 0.2 + 0.05
    assert result.status is Status.TIME_LIMIT and result.violation == 0.0
    assert "the best point that was looked at" in result.projection


def test_the_largest_violation_of_a_point_takes_one_pass(monkeypatch):
    rules = lt.LinearConstraints(np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([0.0, 1.0]))
    passes = counted(monkeypatch, base.RecordConstraints, "_values")
    point = np.array([1.0, 1.0])
    plain = rules.violation(point), rules.largest_relative(point)
    assert len(passes) == 2
    monkeypatch.setattr(base, "NOTED_PASS", 0.0)
    monkeypatch.setattr(base, "NOTED_PER_PARAMETER", 0.0)
    assert (rules.violation(point), rules.largest_relative(point)) == plain
    assert (rules.violation(point), rules.largest_relative(point)) == plain == (7.0, 7.0 / 5.0)
    assert len(passes) == 3
    assert rules.violation(np.zeros(2)) == 0.0 and len(passes) == 4


def test_a_shorter_limit_outside_stays_in_force(clock):
    with within(1.0), within(5.0):
        clock[0] += 1.0
        assert out_of_time()
    assert not out_of_time()


def test_looks_at_points_take_their_share_of_the_time_only(monkeypatch, clock):
    looks, steps = [], []

    def slow_look(problem, w):
        looks.append(len(steps))
        clock[0] += 0.5  # as many rows may take
        return True

    step = lt.FullTouch.advance

    def slow_step(*given):
        steps.append(given)
        clock[0] += 1.0
        return step(*given)

    monkeypatch.setattr("lighttouch.driving.is_broken", slow_look)
    monkeypatch.setattr(lt.FullTouch, "advance", slow_step)
    rows = lt.LinearConstraints([[1.0, 0.0]], [1.0])
    problem = lt.Problem(lt.EmpiricalRisk([[1.0, 2.0]], [1.0], loss="squared"), rows)
    lt.solve(problem, lt.FullTouch(1.0, 0.1), time_limit=100.0, seed=0)
    before_the_end = [step for step in looks if step < len(steps)]
    assert len(steps) >= 70
    assert len(before_the_end) <= 3


@pytest.mark.parametrize("solver", [lt.Automatic(1e-6), lt.LightTouch(1.0, 0.01, 2)])
def test_a_run_whose_time_was_over_before_it_began_can_be_resumed(solver, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    risk = lt.EmpiricalRisk(X, X @ [1.0, 3.0, 2.0, 4.0])
    rules = lt.ordering(4)
    whole = lt.solve(lt.Problem(risk, rules), solver, iterations=200, seed=3)

    def late(*_):
        raise OutOfTimeError

    with monkeypatch.context() as patched:
        patched.setattr(type(solver), "init", late)
        cut = lt.solve(lt.Problem(risk, rules), solver, iterations=200, seed=3)
    assert cut.status is lt.Status.TIME_LIMIT and cut.iterations == 0
    again = lt.solve(lt.Problem(risk, rules), solver, iterations=200, resume=cut.state)
    assert again.status is whole.status
    np.testing.assert_array_equal(again.w, whole.w)
