"""Bugs that had names: wild targets, one huge cell, lattices over three columns."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt


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
