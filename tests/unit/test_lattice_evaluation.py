"""Predictions are rounded once: correct to the last bit, and monotone to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.numerics.exact_sum import (
    exact_add,
    exact_multiply,
    nearest_blend,
    nearest_sum,
)
from lighttouch.kernels.numerics.lattice_features import (
    evaluate_rows,
    fill_features,
    interpolate_row,
)
from lighttouch.lattice import Lattice

doubles = st.floats(-1e200, 1e200, allow_subnormal=False).filter(
    lambda x: x == 0.0 or abs(x) > 1e-200
)
# few bits at far apart places: ties, cancellation and carries are common
few_bits = st.builds(
    math.ldexp, st.integers(-3, 3), st.sampled_from([-106, -54, -53, -52, -1, 0, 1, 52, 53])
)
shares = st.builds(
    lambda m, e: min(m, 2**e) / 2**e, st.integers(0, 2**52), st.sampled_from([0, 1, 2, 20, 52])
)


@given(st.lists(doubles | few_bits, min_size=1, max_size=40))
@settings(max_examples=300, deadline=None)
def test_nearest_sum_is_the_exact_sum_rounded_once(numbers):
    assert nearest_sum(np.array(numbers), len(numbers)) == math.fsum(numbers)


@given(doubles | few_bits, doubles | few_bits)
@settings(max_examples=200, deadline=None)
def test_sums_and_products_split_exactly(a, b):
    assert sum(map(Fraction, exact_add(a, b))) == Fraction(a) + Fraction(b)
    b = math.copysign(2.0 ** (math.frexp(b)[1] % 64) * math.frexp(abs(b))[0], b)
    if abs(a * b) > 1e-250 or a * b == 0.0:
        assert sum(map(Fraction, exact_multiply(a, b))) == Fraction(a) * Fraction(b)


@given(doubles | few_bits, doubles | few_bits, shares)
@settings(max_examples=300, deadline=None)
def test_a_blend_is_rounded_once(a, b, share):
    exact = (1 - Fraction(share)) * Fraction(a) + Fraction(share) * Fraction(b)
    assert nearest_blend(a, b, share, np.empty(4)) == float(exact)


def awkward_points(rng: np.random.Generator, sizes: tuple[int, ...], count: int) -> np.ndarray:
    """Random points with round fractions, equal fractions and neighbours of equal fractions among
    them.
    """
    X = rng.random((count, len(sizes))) * (np.array(sizes) - 1)
    X[::2] = np.where(rng.random(X[::2].shape) < 0.5, np.round(X[::2] * 8) / 8, X[::2])
    rows = np.arange(1, count, 3)
    source, target = rng.integers(0, len(sizes), (2, rows.size))
    X[rows, target] = np.floor(X[rows, target]) + X[rows, source] % 1
    X[rows[::2], target[::2]] = np.nextafter(
        X[rows[::2], target[::2]], rng.choice([-1.0, 9.0], rows[::2].size)
    )
    return X


def test_simplex_values_are_correctly_rounded():
    rng = np.random.default_rng(0)
    sizes = (2, 3, 2, 4)
    lattice = Lattice(sizes)
    for scale in (0, 3, 40):
        theta = rng.standard_normal(48) * 10.0 ** rng.uniform(-scale, scale, 48)
        X = awkward_points(rng, sizes, 700)
        features = lattice.features(X)
        assert all(sum(map(Fraction, row.data)) == 1 for row in features)
        exact = [
            float(
                sum(
                    Fraction(w) * Fraction(theta[k])
                    for w, k in zip(row.data, row.indices, strict=True)
                )
            )
            for row in features
        ]
        assert lattice.evaluate(X, theta).tolist() == exact


def test_hypercube_values_are_blends_rounded_once_each():
    rng = np.random.default_rng(1)
    sizes = (2, 3, 2)
    X = awkward_points(rng, sizes, 400)
    theta = rng.standard_normal(sizes)

    def value(x, values):
        if not len(x):
            return float(values)
        cell = min(int(x[0]), len(values) - 2)
        share = Fraction((1.0 + (x[0] - cell)) - 1.0)
        blend = np.vectorize(
            lambda a, b: float((1 - share) * Fraction(float(a)) + share * Fraction(float(b))),
            otypes=[float],
        )
        return value(x[1:], blend(values[cell], values[cell + 1]))

    assert Lattice(sizes, "hypercube").evaluate(X, theta).tolist() == [value(x, theta) for x in X]


@pytest.mark.parametrize("simplex", [True, False])
def test_compiled_and_interpreted_runs_are_the_same_bits(simplex):
    rng = np.random.default_rng(2)
    sizes, strides = np.array([3, 2, 4]), np.array([8, 4, 1])
    X, theta = awkward_points(rng, (3, 2, 4), 200), rng.standard_normal(24)
    filled = []
    for evaluate, fill in (
        (evaluate_rows, fill_features),
        (interpreted(evaluate_rows), interpreted(fill_features)),
    ):
        values, indptr, indices, weights = (
            np.empty(200),
            np.zeros(201, np.int32),
            np.zeros(1600, np.int32),
            np.zeros(1600),
        )
        evaluate(X, sizes, strides, simplex, theta, values)
        fill(X, sizes, strides, simplex, indptr, indices, weights)
        filled.append(np.concatenate([values, indptr, indices, weights]))
    assert np.array_equal(*filled)


@pytest.mark.parametrize("simplex", [True, False])
def test_one_row_can_be_interpolated_by_itself(simplex):
    sizes, strides = np.array([3, 2]), np.array([2, 1])
    indices, weights = np.empty(4, np.int64), np.empty(4)
    count = interpolate_row(
        np.array([1.25, 0.5]),
        sizes,
        strides,
        simplex,
        np.empty(2),
        np.empty(2, np.int64),
        indices,
        weights,
    )
    expected = {2: 0.5, 3: 0.25, 5: 0.25} if simplex else {2: 0.375, 3: 0.375, 4: 0.125, 5: 0.125}
    assert dict(zip(indices[:count].tolist(), weights[:count].tolist(), strict=True)) == expected


def monotone_parameters(rng: np.random.Generator, sizes: tuple[int, ...], kind: str) -> np.ndarray:
    """Exactly monotone in every feature: sums and maxima of doubles keep order."""
    accumulate = np.maximum.accumulate if kind == "flat" else np.add.accumulate
    draws = {
        "smooth": rng.random,
        "scales": lambda sizes: 10.0 ** rng.uniform(-18, 2, sizes),
        "flat": rng.standard_normal,
    }
    theta = draws[kind](sizes)
    for feature in range(len(sizes)):
        theta = accumulate(theta, axis=feature)
    return theta.ravel() - (theta.max() / 3 if kind == "scales" else 0.0)


def single_increases(rng: np.random.Generator, X: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """X with one coordinate of each row raised: by one unit in the last place, a little, a lot, or
    just onto or past another's fraction.
    """
    rows, features = np.arange(len(X)), rng.integers(0, len(sizes), len(X))
    old, other = X[rows, features], X[rows, rng.integers(0, len(sizes), len(X))] % 1
    tied = np.floor(old) + other
    choices = [
        np.nextafter(old, np.inf),
        old * (1 + 1e-12) + 1e-17,
        old + 0.3 * rng.random(len(X)),
        tied,
        np.nextafter(tied, np.inf),
    ]
    raised = X.copy()
    raised[rows, features] = np.maximum(
        old, np.choose(rng.integers(0, len(choices), len(X)), choices).astype(X.dtype)
    )
    return raised


@pytest.mark.parametrize("kind", ["smooth", "scales", "flat"])
@pytest.mark.parametrize(
    ("sizes", "interpolation"),
    [
        ((2,) * 12, "simplex"),
        ((3, 2, 5, 2), "simplex"),
        ((2,) * 5, "hypercube"),
        ((3, 2, 4), "hypercube"),
    ],
)
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_monotone_parameters_never_give_a_falling_prediction(kind, sizes, interpolation, precision):
    rng = np.random.default_rng(len(sizes))
    lattice = Lattice(sizes, interpolation)
    theta = monotone_parameters(rng, sizes, kind)
    X = awkward_points(rng, sizes, 100_000).astype(precision)
    raised = single_increases(rng, X, sizes)
    before, after = lattice.evaluate(X, theta), lattice.evaluate(raised, theta)
    assert np.all(after >= before)
    assert np.all(after.astype(np.float32) >= before.astype(np.float32))
    assert before.min() >= theta.min()
    assert after.max() <= theta.max()


def test_the_sweep_would_catch_sums_rounded_at_every_step():
    rng = np.random.default_rng(12)
    sizes = (2,) * 12
    theta = monotone_parameters(rng, sizes, "flat")
    X = awkward_points(rng, sizes, 100_000)
    raised = single_increases(rng, X, sizes)
    features = Lattice(sizes).features
    assert np.sum(features(raised) @ theta < features(X) @ theta) > 100


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_a_long_walk_across_all_cells_never_falls(interpolation):
    rng = np.random.default_rng(5)
    sizes = (4, 3, 3)
    theta = monotone_parameters(rng, sizes, "scales")
    for feature in range(3):
        walk = np.tile(rng.random(3) * 2, (20_000, 1))
        steps = np.concatenate(
            [np.linspace(-0.5, sizes[feature], 19_000), np.arange(sizes[feature]).repeat(250)]
        )
        steps[19_000:] += rng.integers(-3, 4, steps.size - 19_000) * 2.0**-53
        walk = np.tile(walk[:1], (steps.size, 1))
        walk[:, feature] = np.sort(steps)
        assert np.all(np.diff(Lattice(sizes, interpolation).evaluate(walk, theta)) >= 0.0)
