"""Lattice: features against slow references, clamping, memory predicted, bad inputs refused."""

from __future__ import annotations

import pickle
import time
from itertools import product

import numpy as np
import pytest

from lighttouch.errors import DataError
from lighttouch.lattice import Lattice, model

SHAPES = [(2,), (5,), (2, 2), (3, 2, 4), (2, 2, 2, 2, 2), (4, 3, 2, 3)]


def as_integral(x: np.ndarray, theta: np.ndarray) -> float:
    """Simplex interpolation as the mean over s in (0, 1) of theta at the vertex ceil(x - s), every
    coordinate by itself.
    """
    cuts = np.unique(np.concatenate([[0.0, 1.0], x - np.floor(x)]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    return float(
        sum(
            length * theta[tuple(np.ceil(x - s).astype(int))]
            for length, s in zip(np.diff(cuts), middles, strict=True)
        )
    )


def as_products(x: np.ndarray, theta: np.ndarray) -> float:
    """Multilinear interpolation as a sum over all vertices of products of tent functions."""
    return float(
        sum(
            np.prod(np.maximum(0.0, 1.0 - np.abs(x - v))) * theta[v]
            for v in product(*map(range, theta.shape))
        )
    )


REFERENCES = {"simplex": as_integral, "hypercube": as_products}


def random_points(rng: np.random.Generator, sizes: tuple[int, ...], count: int) -> np.ndarray:
    """Points inside, with some coordinates on vertices and some fractional parts equal."""
    X = rng.random((count, len(sizes))) * (np.array(sizes) - 1)
    X[::3] = np.where(rng.random(X[::3].shape) < 0.4, np.round(X[::3]), X[::3])
    if len(sizes) > 1:
        X[::4, 1] = X[::4, 0] % 1
    return X


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_features_and_evaluate_agree_with_the_slow_definition(sizes, interpolation):
    rng = np.random.default_rng(len(sizes))
    lattice = Lattice(sizes, interpolation)
    theta = rng.standard_normal(sizes)
    X = random_points(rng, sizes, 200)
    expected = np.array([REFERENCES[interpolation](x, theta) for x in X])
    np.testing.assert_allclose(lattice.features(X) @ theta.ravel(), expected, atol=1e-13)
    np.testing.assert_allclose(lattice.evaluate(X, theta), expected, atol=1e-13)


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_features_are_canonical_convex_weights(sizes, interpolation):
    rng = np.random.default_rng(1)
    lattice = Lattice(sizes, interpolation)
    features = lattice.features(rng.random((300, len(sizes))) * (np.array(sizes) - 1))
    width = len(sizes) + 1 if interpolation == "simplex" else 2 ** len(sizes)
    assert lattice.row_width == width
    assert features.shape == (300, np.prod(sizes)) == (300, lattice.parameter_count)
    assert features.data.dtype == np.float64
    assert features.indices.dtype == features.indptr.dtype == np.int32
    assert np.all(np.diff(features.indptr) == width)
    assert np.all(features.data > 0)
    assert np.all(np.diff(features.indices.reshape(300, width), axis=1) > 0)
    sums = np.asarray(features.sum(axis=1)).ravel()
    assert np.all(sums == 1.0) if interpolation == "simplex" else np.allclose(sums, 1.0, rtol=1e-14)


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_vertices_get_one_column_each_in_c_order(interpolation):
    sizes = (3, 2, 4)
    vertices = np.array(list(product(*map(range, sizes))))
    lattice = Lattice(sizes, interpolation)
    assert np.array_equal(lattice.features(vertices).toarray(), np.eye(24))
    theta = np.random.default_rng(0).standard_normal(24) * 10.0 ** np.arange(-12, 12)
    assert np.array_equal(lattice.evaluate(vertices, theta), theta)


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_outside_values_are_clamped_exactly(interpolation):
    sizes = (3, 2, 5)
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 3)) * 10.0 ** rng.integers(-2, 300, (500, 3))
    clamped = np.clip(X, 0.0, np.array(sizes) - 1.0)
    lattice = Lattice(sizes, interpolation)
    theta = rng.standard_normal(30)
    assert (lattice.features(X) != lattice.features(clamped)).nnz == 0
    assert np.array_equal(lattice.evaluate(X, theta), lattice.evaluate(clamped, theta))


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, object, np.longdouble])
def test_other_number_types_give_the_same_features(kind):
    X = np.array([[0, 1], [1, 1], [0, 0]], dtype=kind)
    lattice = Lattice([2, 2])
    assert np.array_equal(
        lattice.features(X).toarray(), lattice.features(X.astype(float)).toarray()
    )


def test_the_layout_of_the_table_does_not_matter():
    X = np.random.default_rng(3).random((7, 4))
    expected = Lattice([2, 3]).features(np.ascontiguousarray(X[:, ::2])).toarray()
    assert np.array_equal(Lattice([2, 3]).features(X[:, ::2]).toarray(), expected)
    assert np.array_equal(
        Lattice([2, 3]).features(np.asfortranarray(X[:, ::2])).toarray(), expected
    )


def test_columns_of_frames_are_named():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(3).random((7, 2))
    frame = pandas.DataFrame(X, columns=["age", "income"])
    assert np.array_equal(
        Lattice([2, 3]).features(frame).toarray(), Lattice([2, 3]).features(X).toarray()
    )
    frame.loc[[4, 6], "income"] = np.nan
    with pytest.raises(DataError, match="column 'income' holds NaN in 2 rows, first at row 4"):
        Lattice([2, 3]).features(frame)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0, 0.0], [0.0, np.nan]], "column 1 holds NaN in 1 row, first at row 1"),
        (
            [[0.0, np.inf], [0.0, -np.inf]],
            "column 1 holds infinite values in 2 rows, first at row 0",
        ),
        ([[np.nan, 0.0], [np.inf, 0.0]], "column 0 holds NaN and infinite values in 2 rows"),
        (np.full((2, 2), np.longdouble("1e400")), "once cast to float64"),
        ([[0.0, 1.0, 0.0]], "must be n x 2 .*, got 1 x 3"),
        ([0.0, 1.0], "must be n x 2 .*, got 2"),
        ([[0.0], [1.0, 2.0]], "rows of different lengths"),
        (np.array([[1.0, 1j]]), "column 0 must hold real numbers, got complex128"),
        ([["a", "b"]], "column 0 must hold real numbers, got <U1"),
        (
            np.array([[0.5, 0.5], [0.5, "cheap"]], dtype=object),
            "column 1 must hold numbers that a float holds, got 'cheap'",
        ),
        (np.array([[0.5, None]], dtype=object), "column 1 holds NaN"),
        (np.zeros((1, 2), dtype="M8[s]"), "must hold real numbers, got datetime64"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [lambda lattice, X: lattice.features(X), lambda lattice, X: lattice.evaluate(X, np.zeros(4))],
)
def test_bad_inputs_are_named(X, message, call):
    with pytest.raises(DataError, match=message):
        call(Lattice([2, 2]), X)


def test_sparse_inputs_are_refused_with_a_way_out():
    from scipy import sparse

    with pytest.raises(DataError, match="toarray"):
        Lattice([2, 2]).features(sparse.eye(2))


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (np.zeros(3), "4 numbers, one per vertex, got shape"),
        ([0.0, np.nan, np.inf, 0.0], "got nan at vertex 1 and 2 such values"),
        ([0.0, 1e300, 0.0, 0.0], "1e\\+290"),
    ],
)
def test_bad_parameters_are_named(theta, message):
    with pytest.raises(DataError, match=message):
        Lattice([2, 2]).evaluate([[0.5, 0.5]], theta)


BAD_SIZES = [
    ([], "at least one"),
    ([2, 1], "got 1 for feature 1"),
    ([2.5], "whole numbers"),
    (3, "sequence"),
]


@pytest.mark.parametrize(("sizes", "message"), BAD_SIZES)
def test_bad_sizes_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        Lattice(sizes)


def test_bad_interpolation_is_named():
    with pytest.raises(ValueError, match="interpolation must be one of simplex, hypercube"):
        Lattice([2, 2], "cubic")


def test_a_lattice_is_a_value():
    lattice = Lattice(np.array([2, 3]), interpolation="hypercube")
    assert lattice == Lattice([2, 3], "hypercube") == pickle.loads(pickle.dumps(lattice))
    assert hash(lattice) == hash(Lattice((2, 3), "hypercube"))
    assert lattice != Lattice([2, 3])
    with pytest.raises(AttributeError):
        lattice.sizes = (2,)


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_predicted_memory_is_what_the_features_take(interpolation):
    lattice = Lattice([2, 3, 2], interpolation)
    features = lattice.features(np.random.default_rng(0).random((1000, 3)))
    taken = features.data.nbytes + features.indices.nbytes + features.indptr.nbytes
    assert lattice.predicted_bytes(1000) == taken


def test_counts_and_memory_of_huge_lattices_are_told_but_not_taken(monkeypatch):
    lattice = Lattice([2] * 80)
    assert lattice.parameter_count == 2**80
    with pytest.raises(
        DataError,
        match=r"\[2\] \* 80.*1,208,925,819,614,629,174,706,176 parameters.*several small lattices",
    ):
        lattice.features(np.zeros((1, 80)))
    monkeypatch.setattr("lighttouch.validation.available_memory", lambda: 10**6)
    with pytest.raises(DataError, match=r"10,000 rows with up to 64 nonzeros.*simplex"):
        Lattice([2] * 6, "hypercube").features(np.zeros((10_000, 6)))
    assert Lattice([2] * 6).features(np.zeros((10_000, 6))).shape == (10_000, 64)


def test_indices_are_64_bit_where_32_do_not_suffice(monkeypatch):
    monkeypatch.setattr(model, "refuse_if_too_large", lambda *arguments: None)
    lattice = Lattice([2] * 33)
    X = np.ones((2, 33))
    X[1, 0] = 0.25
    features = lattice.features(X)
    assert features.indices.dtype == np.int64
    assert features.indices.tolist() == [2**33 - 1, 2**32 - 1, 2**33 - 1]
    assert features.data.tolist() == [1.0, 0.75, 0.25]
    assert lattice.predicted_bytes(10) == 10 * 34 * 16 + 11 * 8


def test_no_rows_give_no_features():
    assert Lattice([2, 2]).features(np.empty((0, 2))).shape == (0, 4)
    assert Lattice([2, 2]).evaluate(np.empty((0, 2)), np.zeros(4)).shape == (0,)


def test_the_size_of_the_paper_is_ordinary():
    lattice = Lattice([2] * 12)
    X = np.random.default_rng(0).random((612_587, 12))
    theta = np.random.default_rng(1).random(4096)
    lattice.features(X[:2]), lattice.evaluate(X[:2], theta)
    start = time.process_time()
    features = lattice.features(X)
    assert time.process_time() - start < 2.0
    assert features.nnz == 612_587 * 13
    start = time.process_time()
    values = lattice.evaluate(X, theta)
    assert time.process_time() - start < 2.0
    np.testing.assert_allclose(values, features @ theta, atol=1e-14)
