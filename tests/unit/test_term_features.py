"""Features term by term, and predictions in one pass, are what the terms say one by one."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import sparse

import lighttouch as lt
from lighttouch.estimators.examples import Examples
from lighttouch.estimators.model import AdditiveModel, InputMap, Term, TermStore, whole_positions
from lighttouch.kernels.numerics.exact_sum import exact_multiply, product_error
from lighttouch.lattice import Lattice
from lighttouch.solvers import quadratic_model as gram_matrices
from lighttouch.solvers.quadratic_model import gram


def some_model() -> AdditiveModel:
    """A curve, a curve of one keypoint, a pair that bends elsewhere, and a simplex of three."""
    ends = np.array([0.1, 0.4, 0.9])
    categories = InputMap(np.arange(3.0), np.array([1.0, 0.0, 0.5]), 0.25)
    axis = whole_positions(ends, missing=1.0)
    return AdditiveModel(
        [
            Term((0,), (whole_positions(np.linspace(0.0, 1.0, 6)),), Lattice((7,))),
            Term((1,), (whole_positions(np.array([0.5])),), Lattice((2,))),
            Term((0, 2), (axis, categories), Lattice((3, 2), "hypercube")),
            Term((0, 1, 2), (axis, axis, categories), Lattice((3, 3, 2), "simplex")),
        ]
    )


def some_table(rng: np.random.Generator, rows: int = 200) -> np.ndarray:
    table = np.column_stack(
        [rng.uniform(-0.2, 1.2, rows), rng.random(rows), rng.integers(0, 3, rows)]
    )
    table[::7, 0] = np.nan
    table[3::11, 2] = np.nan
    table[0] = [np.inf, -np.inf, 0.0]
    return table


def test_one_pass_predicts_the_bits_of_the_terms_added_up():
    rng = np.random.default_rng(0)
    model, table = some_model(), some_table(rng)
    w = rng.normal(size=model.dimension)
    total = np.full(table.shape[0], w[0])
    for place, term in enumerate(model.terms):
        total = total + term.evaluate(table, w[model.part(place)])
    np.testing.assert_array_equal(model.evaluate(table, w), total)


@pytest.mark.parametrize("pairs", [False, True])
def test_stored_features_are_the_feature_matrix(pairs):
    rng = np.random.default_rng(1)
    model, table = some_model(), some_table(rng)
    better, worse = rng.integers(0, len(table), (2, 300))
    if pairs:
        signed = [(table[better], 1.0), (table[worse], -1.0)]
        store = TermStore(signed, (table, [better, worse]))
        X = model.features(table[better]) - model.features(table[worse])
    else:
        store, X = TermStore([(table, 1.0)], None), model.features(table)
    stored = store.features(model)
    weights, w = rng.random(X.shape[0]), rng.normal(size=model.dimension)
    np.testing.assert_allclose(stored @ w, X @ w, atol=1e-12)
    np.testing.assert_allclose(stored.T @ weights, X.T @ weights, atol=1e-12)
    expected = gram(X.tocsr(), weights)
    for _ in range(2):  # formed, then known
        np.testing.assert_allclose(stored.gram(weights), expected, atol=1e-12)
    np.testing.assert_allclose(stored.gram(2.0 * weights), 2.0 * expected, atol=1e-12)
    np.testing.assert_allclose(stored[::3].gram(weights[::3]), gram(X[::3].tocsr(), weights[::3]))


@pytest.mark.parametrize("share", [0.1, 0.6], ids=["sparse", "dense"])
def test_gram_matrices_of_few_and_of_many_entries(monkeypatch, share):
    X = sparse.random(300, 40, share, format="csr", random_state=0)
    weights = np.random.default_rng(0).random(300)
    monkeypatch.setattr(
        gram_matrices, "COSTS", dataclasses.replace(gram_matrices.COSTS, gram_dense_entries=4000)
    )
    assert gram_matrices.is_dense(X.nnz, X.shape) is (share > 0.5)
    expected = X.toarray().T @ (weights[:, None] * X.toarray())
    np.testing.assert_allclose(gram(X, weights), expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.1, 0.6], ids=["sparse", "dense"])
def test_gram_matrices_add_up_over_parts(share):
    X = sparse.random(300, 70, share, format="csr", random_state=0)
    weights, out = np.random.default_rng(0).random(300), np.zeros((70, 70))
    for here in (slice(0, 100), slice(100, 300)):
        gram_matrices.add_gram(X[here], weights[here], out)
    gram_matrices.mirror(out)
    np.testing.assert_array_equal(out, out.T)
    np.testing.assert_allclose(out, gram(X, weights), atol=1e-12)


def test_gram_matrices_of_rows_whose_indices_do_not_ascend():
    X = sparse.random(300, 70, 0.1, format="csr", random_state=0)
    for low, high in itertools.pairwise(X.indptr):
        X.indices[low:high], X.data[low:high] = X.indices[low:high][::-1], X.data[low:high][::-1]
    X.has_sorted_indices = False
    weights = np.random.default_rng(0).random(300)
    expected = X.toarray().T @ (weights[:, None] * X.toarray())
    np.testing.assert_allclose(gram(X, weights), expected, atol=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.9], ids=["left_out", "kept"])
def test_gram_matrices_of_rows_with_stored_zeros(share):
    rng = np.random.default_rng(0)
    places = np.sort(rng.permuted(np.tile(np.arange(40), (300, 1)), axis=1)[:, :8], axis=1)
    values = np.where(rng.random(places.shape) < share, rng.random(places.shape), 0.0)
    X = sparse.csr_matrix((values.ravel(), places.ravel(), np.arange(0, 2401, 8)), shape=(300, 40))
    weights = np.where(rng.random(300) < 0.1, 0.0, rng.random(300))
    expected = X.toarray().T @ (weights[:, None] * X.toarray())
    np.testing.assert_allclose(gram(X, weights), expected, atol=1e-12)


def test_some_pairs_keep_their_rows_apart():
    """Features are made once per row, however many pairs it is part of."""
    rng = np.random.default_rng(3)
    model, table = some_model(), some_table(rng)
    better, worse = rng.integers(0, len(table), (2, 300))
    signed = [(table[better], 1.0), (table[worse], -1.0)]
    pairs = Examples(signed, np.ones(300), np.full(300, 1 / 300), source=(table, [better, worse]))
    chosen = np.arange(0, 300, 40)
    some = pairs.rows(chosen)
    assert some.source is not None and len(some.source[0]) <= 2 * chosen.size
    expected = pairs.features(model)[chosen]
    np.testing.assert_array_equal(some.features(model).toarray(), expected.toarray())
    assert some.table_weights.sum() == pytest.approx(2 * some.weights.sum())


def test_the_error_of_a_product_is_the_same_interpreted_and_compiled():
    rng = np.random.default_rng(2)
    for a, b in rng.normal(size=(500, 2)) * 10.0 ** rng.integers(-40, 40, (500, 2)):
        assert exact_multiply(a, b) == (a * b, product_error(a, b, a * b))


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf, 1e300])
def test_a_damaged_place_of_missing_cells_leads_to_no_other_memory(tmp_path, missing):
    """Compiled code has no bounds: a file that says NaN ended the process."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    X[::7, 0] = np.nan
    model = lt.LatticeRegressor(lattices=[[0, 1]], trees=0).fit(X, np.nan_to_num(X[:, 0]) + X[:, 1])
    for term in model.model_.terms:
        for each in term.maps:
            object.__setattr__(each, "missing", missing)
    model.model_._known = None
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.model_.features(X).data).all()
    model.save(tmp_path / "damaged.lt")
    with pytest.raises(lt.ModelFileError, match="leads out of its lattice"):
        lt.load(tmp_path / "damaged.lt")
