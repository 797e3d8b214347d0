import hashlib

import numpy as np
import pytest

from lighttouch import datasets
from lighttouch.datasets import ranking_pairs, utility


@pytest.fixture(scope="module")
def pairs():
    return ranking_pairs(40_000)


def test_shape_type_and_range(pairs):
    for side in pairs:
        assert side.shape == (40_000, 12)
        assert side.dtype == np.float64
        assert side.flags.c_contiguous
        assert side.min() >= 0.0
        assert side.max() <= 1.0


def test_default_is_the_size_of_the_papers_data():
    defaults = ranking_pairs.__defaults__
    assert defaults == (612_587, 12, 0)


def test_same_seed_same_bits_and_another_seed_other_pairs():
    digests = [
        hashlib.sha256(
            b"".join(side.tobytes() for side in ranking_pairs(3_000, seed=seed))
        ).digest()
        for seed in (5, 5, 6)
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_smaller_draw_begins_a_larger_one(pairs):
    better, worse = ranking_pairs(17)
    np.testing.assert_array_equal(better, pairs[0][:17])
    np.testing.assert_array_equal(worse, pairs[1][:17])


def test_no_pair_is_repeated_across_chunks(pairs):
    assert len(np.unique(pairs[0][:, 0])) == 40_000


@pytest.mark.parametrize("features", [1, 2, 5, 12, 16])
def test_any_number_of_features(features):
    better, worse = ranking_pairs(300, features=features, seed=1)
    assert better.shape == worse.shape == (300, features)
    assert np.isfinite(utility(better)).all()


@pytest.mark.parametrize(("n", "features"), [(0, 12), (-1, 12), (5, 0)])
def test_impossible_sizes_are_refused(n, features):
    with pytest.raises(ValueError, match="at least 1"):
        ranking_pairs(n, features)


def test_features_are_correlated_and_more_within_a_family(pairs):
    correlation = np.corrcoef(pairs[1], rowvar=False)
    within, across = correlation[0, 1], correlation[0, 4]
    assert 0.3 < within < 0.5
    assert 0.15 < across < within


def test_utility_never_falls_when_a_feature_rises():
    rng = np.random.default_rng(0)
    x = rng.random((2_000, 12))
    for feature in range(12):
        higher = x.copy()
        higher[:, feature] += (1 - x[:, feature]) * rng.random(2_000)
        assert (utility(higher) >= utility(x)).all()


def test_utility_has_interactions_among_relevant_features_only():
    corner = np.zeros((1, 12))
    for i, j, interacts in ((0, 1, True), (1, 2, True), (9, 10, False), (0, 9, False)):
        first, second, both = corner.copy(), corner.copy(), corner.copy()
        first[0, i] = second[0, j] = both[0, i] = both[0, j] = 1.0
        surplus = utility(both) - utility(first) - utility(second)
        assert (surplus[0] > 0.5) == interacts


def test_clicks_follow_utility_noisily(pairs):
    better, worse = pairs
    right = (utility(better) > utility(worse)).mean()
    assert 0.70 < right < 0.78


def test_lists_are_sorted_by_what_the_old_ranker_trusts():
    """Down the list every feature falls, since all go together, but most of all those that the list
    was sorted by.
    """
    candidates = datasets._similarities(12, np.random.default_rng(0))
    population = datasets._population(12)
    order = datasets._list_order(candidates, population, np.random.default_rng(1))
    ordered = np.take_along_axis(candidates, order[None], axis=1)
    fall = (ordered[:, :-1] - ordered[:, 1:]).mean(axis=(1, 2))
    assert (fall > 0).all()
    assert fall[9:].min() > 1.1 * fall[:9].max()


def test_every_pair_is_a_click_and_its_predecessor(monkeypatch):
    """One chunk recomputed by hand: users who click the first place leave no pair."""
    monkeypatch.setattr(datasets, "LISTS_PER_CHUNK", 64)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3).spawn(1)[0]))
    population = datasets._population(12)
    candidates = datasets._similarities(12, rng)
    order = datasets._list_order(candidates, population, rng)
    place = datasets._clicked_place(candidates, order, population, rng)
    expected = [
        (candidates[:, order[at, user], user], candidates[:, order[at - 1, user], user])
        for user, at in enumerate(place)
        if at > 0
    ]
    better, worse = ranking_pairs(len(expected), seed=3)
    np.testing.assert_array_equal(better, [clicked for clicked, _ in expected])
    np.testing.assert_array_equal(worse, [above for _, above in expected])


def test_an_unconstrained_fit_breaks_monotonicity(pairs):
    """The linear part alone shows it: least squares on x+ - x- gives the trusted but worthless
    features negative weights.
    """
    difference = pairs[0] - pairs[1]
    weights = np.linalg.lstsq(difference, np.ones(len(difference)), rcond=None)[0]
    assert (weights[:8] > 0.1).all()
    assert (weights[9:] < -0.1).all()
