"""The training record of a model, and how far new rows are from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt
from lighttouch.estimators.record import quantiles, stability_index


def table(rows: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(18, 80, rows),
            "job": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "gap": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
        }
    )
    return X, X.age.to_numpy() / 10 + (X.job == "b") + rng.normal(0, 0.1, rows)


@pytest.fixture(scope="module")
def model() -> lt.LatticeRegressor:
    return lt.LatticeRegressor(lattices=0, monotonic_cst={"age": 1}).fit(*table())


def test_the_index_is_the_formula():
    old, new = [0.5, 0.5], [0.25, 0.75]
    expected = (0.25 - 0.5) * np.log(0.25 / 0.5) + (0.75 - 0.5) * np.log(0.75 / 0.5)
    assert stability_index(old, np.array(new)) == pytest.approx(expected)
    assert stability_index(old, np.array(old)) == 0.0


@pytest.mark.parametrize("count", [1, 2, 11, 562])
def test_quantiles_of_sorted_values_are_those_of_numpy(count):
    rng, shares = np.random.default_rng(count), np.linspace(0.0, 1.0, 13)
    for values in (rng.normal(size=count), rng.integers(0, 5, count).astype(float)):
        found = quantiles(np.sort(values), shares)
        np.testing.assert_array_equal(found, np.quantile(values, shares))


def test_rows_like_those_of_training_do_not_drift(model):
    found = model.drift(table(seed=1)[0])
    assert found.largest < 0.1 and found.unseen == 0 and found.rows == 600
    assert model.drift(table()[0]).largest == pytest.approx(0.0, abs=1e-12)


def test_each_kind_of_change_is_told(model):
    X = table(seed=1)[0]
    older = model.drift(X.assign(age=X.age * 12))
    assert older.worst.name in ("age", "score") and older.largest > 1.0
    assert older.columns[0].outside == (X.age * 12 > table()[0].age.max()).sum()
    mars = model.drift(X.assign(job="Mars"))
    assert mars.unseen == 600 and mars.columns[1].unseen == 600 and mars.columns[1].psi > 1.0
    assert mars.columns[1].missing == 0.0
    lost = model.drift(X.assign(gap=np.nan))
    assert lost.columns[2].missing == 1.0 and lost.columns[2].missing_before == pytest.approx(
        0.1, abs=0.03
    )
    assert "missing more often: gap 100%" in str(lost)
    assert "600 with unseen categories" in str(mars)


def test_the_record_survives_saving(model, tmp_path):
    model.save(tmp_path / "m.lt")
    again = lt.load(tmp_path / "m.lt")
    assert again.training_record_ == model.training_record_
    X = table(seed=2)[0]
    assert again.drift(X) == model.drift(X)
    record = again.training_record_
    assert record.rows == 600 and record.libraries["lighttouch"] and len(record.data) == 64
    assert record.columns[1].categories == ("a", "b", "c") and sum(record.columns[1].counts) == 600
    assert record.columns[0].low == table()[0].age.min()


def test_linear_models_and_old_files(tmp_path):
    X, y = table()
    linear = lt.ConstrainedLinearRegressor().fit(X[["age"]], y)
    assert linear.drift(X[["age"]]).largest < 1e-9
    linear.training_record_ = None
    linear.save(tmp_path / "old.lt")
    with pytest.raises(lt.DataError, match="holds no record of its training rows"):
        lt.load(tmp_path / "old.lt").drift(X[["age"]])


def test_more_columns_are_taken_by_name(model):
    X = table(seed=3)[0]
    more = X.assign(other=1.0)[["other", "age", "job", "gap"]]
    assert np.array_equal(model.predict(more), model.predict(X))
    linear = lt.ConstrainedLinearRegressor().fit(X[["age"]], X.age)
    assert np.array_equal(linear.predict(more), linear.predict(X[["age"]]))


def test_names_are_not_guessed_where_there_are_none():
    X, y = np.random.default_rng(0).random((50, 2)), np.arange(50.0)
    with pytest.raises(lt.ConstraintError, match="an array without names: give positions"):
        lt.LatticeRegressor(monotonic_cst={"x0": 1}).fit(X, y)
