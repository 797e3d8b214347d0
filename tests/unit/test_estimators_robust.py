"""Bugs that had names: wild targets, one huge cell, lattices over three columns."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.estimators.tables import RowsOf


def wild(rows: int = 600, share: float = 0.01):
    """The truth, and targets of which some are wild."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, 3))
    truth = 2.0 * X[:, 0] + np.sin(6.0 * X[:, 1])
    y = truth + 0.3 * rng.normal(size=rows)
    return X, truth, np.where(rng.random(rows) < share, 1e6, y)


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_wild_targets_do_not_move_robust_losses(loss):
    X, truth, y = wild()
    model = lt.LatticeRegressor(loss=loss, monotonic_cst={0: 1}, lattices=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.2  # 1,243 and 0.5 before
    assert model.check_constraints(X).violation == 0.0


def test_huber_is_between_squares_and_absolute_errors_without_wild_targets():
    X, truth, y = wild(share=0.0)
    fits = {
        loss: lt.LatticeRegressor(loss=loss, lattices=0).fit(X, y) for loss in ("squared", "huber")
    }
    errors = {loss: np.sqrt(np.mean((fit.predict(X) - truth) ** 2)) for loss, fit in fits.items()}
    assert errors["huber"] < 1.3 * errors["squared"]
    assert lt.LatticeRegressor(loss="huber", lattices=0).fit(X, np.ones(600)).predict(X)[0] == 1.0


def test_wild_targets_do_not_move_the_linear_huber():
    X, _, y = wild()
    line = 2.0 * X[:, 0] - X[:, 1] + np.where(y > 1e5, 1e6, 0.1 * y)
    model = lt.ConstrainedLinearRegressor(loss="huber").fit(X, line)
    assert abs(model.coef_[0] - 2.2) < 0.15 and model.coef_[1] < -0.9
    parts = lt.ConstrainedLinearRegressor(loss="huber")
    for rows in np.split(np.arange(600), 3):
        parts.partial_fit(X[rows], line[rows])
    assert abs(parts.coef_[0] - 2.2) < 0.3


def test_one_huge_cell_does_not_delete_its_column():
    rng = np.random.default_rng(0)
    X = rng.random((800, 2))
    y = 2.0 * X[:, 0] + 0.1 * rng.normal(size=800)
    X[0, 0] = 1e9
    model = lt.LatticeRegressor(monotonic_cst={0: 1}, lattices=0).fit(X, y)
    assert model.score(X[1:], y[1:]) > 0.95  # 0.0008 before
    assert model.check_constraints(X).violation == 0.0


def test_rules_about_a_column_with_one_huge_cell_do_not_contradict_each_other():
    """A constant obeys them; rows of slopes that differ by 1e12 say otherwise, by rounding."""
    rng = np.random.default_rng(3)
    X = rng.random((200, 3))
    y = 2.0 * np.sqrt(X[:, 0]) + np.sign((X[:, 1] - 0.5) * (X[:, 2] - 0.5))
    y += 0.4 * rng.standard_normal(200)
    X[7, 0] = 1e12
    model = lt.LatticeRegressor(monotonic_cst={0: -1}, shape_constraints=lt.Concave(0)).fit(X, y)
    assert model.constraint_report_.violation < 1e-9


def test_three_columns_in_a_lattice_are_never_worse_than_two():
    """On data with an interaction of two, and on data with one of three."""
    rng = np.random.default_rng(0)
    X, new = rng.random((900, 4)), np.random.default_rng(1).random((900, 4))
    for power, slack in ((0.0, 1.05), (1.0, 0.95)):
        truth = [
            4.0 * (rows[:, 0] - 0.5) * (rows[:, 1] - 0.5) * (2.0 * rows[:, 2] - 1.0) ** power
            for rows in (X, new)
        ]
        y = truth[0] + 0.1 * rng.normal(size=900)
        errors = [
            np.sqrt(np.mean((fit.predict(new) - truth[1]) ** 2))
            for fit in (lt.LatticeRegressor(columns_per_lattice=k).fit(X, y) for k in (2, 3))
        ]
        assert errors[1] < slack * errors[0], (power, errors)


@pytest.mark.parametrize("sign", [0, 1])
def test_missing_cells_that_interact_have_a_vertex_of_their_own(tmp_path, sign):
    """Where column 0 is missing, column 2 acts the other way round; before, such cells lay in the
    middle of the axis, and the error was twice the noise.
    """

    def table(seed: int):
        rng = np.random.default_rng(seed)
        X, gone = rng.random((1500, 3)), rng.random(1500) < 0.4
        slope = np.where(gone, 2.0, -X[:, 0]) * (X[:, 2] - 0.5)
        truth = X[:, 1] + 0.5 * np.where(gone, 0.0, X[:, 0]) + slope
        X[gone, 0] = np.nan
        return X, truth, truth + 0.1 * rng.normal(size=1500)

    (X, _, y), (new, truth, _) = table(0), table(1)
    model = lt.LatticeRegressor(monotonic_cst={0: sign, 1: 1}).fit(X, y)
    assert np.sqrt(np.mean((model.predict(new) - truth) ** 2)) < 0.04
    assert any(term.gaps for term in model.model_.terms)
    report = model.check_constraints(new)
    assert report.violation == 0.0
    model.save(tmp_path / "m.lt")
    np.testing.assert_array_equal(lt.load(tmp_path / "m.lt").predict(new), model.predict(new))
    explained = model.explain(new)
    np.testing.assert_allclose(explained.scores, model.predict(new), atol=1e-9)


def test_rankers_look_at_the_top_of_the_list():
    """Good rows follow one law, the many others another: curves cannot follow both."""
    from lighttouch.report import Data, accuracy
    from lighttouch.report.accuracy import NDCG

    def table(seed: int):
        rng = np.random.default_rng(seed)
        X = rng.random((1000, 3))
        top = 2.0 + 3.0 * X[:, 1] - 2.0 * X[:, 2]
        score = np.where(X[:, 0] > 0.8, top, 1.5 * X[:, 2] - 0.5 * X[:, 1] + X[:, 0])
        score = score + 0.3 * rng.normal(size=1000)
        grades = np.digitize(score, np.quantile(score, [0.6, 0.8, 0.92, 0.98])).astype(float)
        return X, grades, np.repeat(np.arange(50), 20)

    (X, y, qid), new = table(0), Data("new", *table(1))
    reached = {
        kind: accuracy(
            lt.LatticeRanker(pair_weights=kind, lattices=0).fit(X, y, qid=qid), new
        ).measures[NDCG]
        for kind in ("even", "gain")
    }
    assert reached["gain"] > reached["even"] + 0.01, reached


def test_pairs_count_by_gain_within_queries_of_grades_only():
    from lighttouch.estimators.pairs import weighted_pairs

    relevance = np.array([0.0, 1.0, 4.0, 0.5, 2.0, 7.0])
    qid = np.array([0, 0, 0, 1, 1, 1])
    pairs = weighted_pairs(relevance, qid, np.ones(6), 10, 0, by_gain=True)
    of_query = np.bincount(qid[pairs.better], pairs.weights)
    np.testing.assert_allclose(of_query, 1.0)
    graded = qid[pairs.better] == 0
    gains = 2.0 ** relevance[pairs.better] - 2.0 ** relevance[pairs.worse]
    np.testing.assert_allclose(pairs.weights[graded], (gains / gains[graded].sum())[graded])
    np.testing.assert_allclose(pairs.weights[~graded], 1.0 / 3.0)


def test_rows_that_pairs_repeat_read_like_a_copy():
    table = np.arange(12.0).reshape(4, 3)
    chosen = np.array([3, 0, 3, 1, 1])
    rows = RowsOf(table, chosen)
    copy = table[chosen]
    assert rows.shape == copy.shape
    np.testing.assert_array_equal(np.asarray(rows), copy)
    np.testing.assert_array_equal(rows[:, 1], copy[:, 1])
    np.testing.assert_array_equal(rows[np.array([4, 0])], copy[[4, 0]])
    np.testing.assert_array_equal(np.vstack([rows, rows]), np.vstack([copy, copy]))


REGRESSORS = (
    lt.MonotoneRegressor,
    lt.ConvexRegressor,
    lt.ConstrainedLinearRegressor,
    lt.LatticeRegressor,
)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_the_unit_of_the_targets_does_not_matter_and_extreme_ones_are_refused(kind):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.square(X[:, 0] - 0.3) + X[:, 1] + 0.02 * rng.normal(size=60)
    plain = kind().fit(X, y).predict(X)
    for unit in (1e-140, 1e-42, 1e140):
        np.testing.assert_allclose(kind().fit(X, y * unit).predict(X) / unit, plain, rtol=1e-3)
    with pytest.raises(lt.DataError, match=r"y must lie within .*rescale it"):
        kind().fit(X, y * 1e300)
    for unit in (1e-162, 1e-310):
        with pytest.raises(lt.DataError, match=r"differ by at least 1e-150.*rescale it"):
            kind().fit(X, y * unit)
    assert np.abs(kind().fit(X, np.zeros(60)).predict(X)).max() < 1e-30
