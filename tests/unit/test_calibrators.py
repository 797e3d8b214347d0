"""Keypoints, positions and curves of single columns."""

from __future__ import annotations

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.estimators.model import InputMap, quantile_keypoints, whole_positions


def test_keypoints_cut_into_equal_parts_and_keep_the_ends():
    values = np.arange(101.0)
    np.testing.assert_array_equal(
        quantile_keypoints(values, np.ones(101), 5)[[0, -1]], [0.0, 100.0]
    )
    assert quantile_keypoints(values, np.ones(101), 5).size == 5
    assert quantile_keypoints(np.array([np.nan, 3.0]), np.ones(2), 5).tolist() == [3.0]
    assert quantile_keypoints(np.array([np.nan]), np.ones(1), 5).size == 1
    assert quantile_keypoints(np.array([1.0, 2.0, 9.0]), np.array([1.0, 1.0, 0.0]), 5).tolist() == [
        1.0,
        2.0,
    ]


def test_a_heavy_value_leaves_keypoints_for_the_rest():
    values = np.concatenate([np.zeros(9000), np.arange(1.0, 1001.0)])
    keypoints = quantile_keypoints(values, np.ones(values.size), 20)
    assert keypoints.size >= 18 and keypoints[0] == 0.0 and np.diff(keypoints[1:]).max() < 150


def test_positions_keep_order_to_the_last_bit():
    rng = np.random.default_rng(0)
    axis = whole_positions(np.unique(rng.normal(size=20)))
    values = np.sort(
        np.concatenate(
            [rng.normal(size=100_000), axis.keypoints, np.nextafter(axis.keypoints, np.inf)]
        )
    )
    assert np.all(np.diff(axis(values)) >= 0)
    np.testing.assert_array_equal(axis(axis.keypoints), np.arange(axis.keypoints.size))
    bent = InputMap(axis.keypoints, np.sort(rng.uniform(size=axis.keypoints.size)), 0.5)
    assert np.all(np.diff(bent(values)) >= 0)
    assert bent(np.array([np.nan]))[0] == 0.5


@pytest.mark.parametrize("sign", [1, -1])
def test_one_column_is_isotonic_regression_with_keypoints(sign):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(300, 1))
    y = sign * np.sqrt(x[:, 0]) + rng.normal(0, 0.2, 300)
    model = lt.LatticeRegressor(monotonic_cst=[sign]).fit(x, y)
    grid = np.linspace(0, 1, 1001).reshape(-1, 1)
    assert np.all(sign * np.diff(model.predict(grid)) >= 0)
    assert np.sqrt(np.mean((model.predict(grid) - sign * np.sqrt(grid[:, 0])) ** 2)) < 0.06


def test_outside_the_training_range_is_clamped():
    x = np.linspace(0, 1, 50).reshape(-1, 1)
    model = lt.LatticeRegressor(monotonic_cst=[1]).fit(x, x[:, 0])
    below, low, high, above = model.predict([[-5.0], [0.0], [1.0], [7.0]])
    assert below == low <= high == above


def test_one_huge_cell_leaves_the_other_keypoints():
    rng = np.random.default_rng(0)
    x = rng.random((1000, 1))
    y = 2 * x[:, 0] + rng.normal(0, 0.1, 1000)
    for huge in (1e7, 1e9, 999_999_999.0, 1e12, -1e9):
        x[0, 0] = huge
        model = lt.LatticeRegressor(monotonic_cst={0: 1}).fit(x, y)
        assert model.score(x[1:], y[1:]) > 0.96
    assert quantile_keypoints(np.array([0.0, 1.0, 1e15]), np.ones(3), 5).size == 3
    nearly = np.array([0.0, 0.1, 0.1 + 1e-16, 0.1 + 2e-16, 0.2, 0.3, 0.4])
    assert quantile_keypoints(nearly, np.ones(7), 9).size == 5


@pytest.mark.parametrize("count", [1, 2, 3, 21, 64, 65])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_cells_are_found_by_blocks_as_by_searching_one_by_one(count: int, rows: int) -> None:
    rng = np.random.default_rng(count * rows)
    keypoints = np.unique(np.round(rng.normal(size=count), 2))
    values = np.concatenate([rng.choice(keypoints, rows // 2), rng.normal(size=rows - rows // 2)])
    values[rng.random(rows) < 0.1] = np.nan
    found = InputMap(keypoints, np.arange(keypoints.size, dtype=float), -1.0)(values)
    want = np.interp(values, keypoints, np.arange(keypoints.size, dtype=float))
    np.testing.assert_allclose(found, np.where(np.isnan(values), -1.0, want), atol=1e-9)
