"""The learned distribution p, alone: against a dense O(m) transcription, at its extremes, and its
inner promises.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from lighttouch.kernels.state import distribution
from lighttouch.kernels.state.distribution import (
    LOG_WEIGHT,
    NEXT,
    NOW,
    PREVIOUS,
    REFERENCES,
    REJECTED,
    REMEMBERED,
    SLOT,
    TINIEST,
    WHEEL,
    WIDTH,
    draw,
    draw_set,
    learn,
    log_weight,
    new_distribution,
    probabilities,
    tick,
)  # fmt: skip


class Dense:
    """ln p and mu as vectors, all of them updated in every iteration (Algorithm 2, lines 10-13)."""

    def __init__(self, violations: np.ndarray, rate: float) -> None:
        self.mu, self.rate = violations.astype(float).copy(), rate
        self.log_p = np.full(violations.size, -math.log(violations.size))

    def step(self, S: np.ndarray, found: np.ndarray) -> None:
        gradient = self.mu.copy()
        gradient[S] += self.mu.size / len(S) * (found - self.mu[S])
        self.mu[S] = found
        self.log_p = self.log_p + self.rate * gradient
        self.log_p -= self.log_p.max()

    @property
    def p(self) -> np.ndarray:
        p = np.exp(self.log_p - self.log_p.max())
        return p / p.sum()


def step(ours, dense: Dense | None, S: np.ndarray, found: np.ndarray) -> None:
    for j, violation in zip(S, found, strict=True):
        learn(ours, int(j), float(violation), ours.law.shape[0] / len(S))
    tick(ours)
    if dense is not None:
        dense.step(S, found)


def logs(ours) -> np.ndarray:
    """ln p up to a constant, the largest at 0: agreement of p alone would not see what happens far
    below 1e-9.
    """
    weights = np.array(
        [log_weight(ours, j, int(ours.clock[NOW])) for j in range(ours.law.shape[0])]
    )
    return weights - weights.max()


def check(ours) -> None:
    """Bounds above weights, sums of children, one place in the wheel for everything that grows,
    none for the rest.
    """
    t, m, tree = int(ours.clock[NOW]), ours.law.shape[0], ours.tree
    logs = np.array([log_weight(ours, j, t) for j in range(m)])
    visible = logs > TINIEST + 1.0
    assert np.all(tree[:m][visible] >= np.exp(logs[visible]) * (1.0 - 1e-9))
    still = (ours.law[:, REMEMBERED] * ours.scalars[0] == 0.0) & visible
    np.testing.assert_allclose(tree[:m][still], np.exp(logs[still]), rtol=1e-12)
    levels = ours.offsets.size - 1
    for level in range(levels - 1):
        children = (
            tree[ours.offsets[level] : ours.offsets[level + 1]].reshape(-1, WIDTH).sum(axis=1)
        )
        np.testing.assert_allclose(
            tree[ours.offsets[level + 1] :][: children.size], children, rtol=1e-12
        )
    assert tree[ours.offsets[levels - 1]] > 0.0
    check_wheel(ours, t)


def check_wheel(ours, t: int) -> None:
    seen = []
    for slot in np.flatnonzero(ours.heads >= 0):
        j, before = int(ours.heads[slot]), -1
        while j >= 0:
            assert ours.law[j, SLOT] == slot and ours.law[j, PREVIOUS] == before
            until = (
                t + (int(slot) - t) % ours.heads.size - 1
            )  # the last iteration the bound is trusted for
            assert log_weight(ours, j, until) <= TINIEST + 1.0 or ours.tree[j] >= math.exp(
                log_weight(ours, j, until)
            ) * (1.0 - 1e-9)
            seen.append(j)
            before, j = j, int(ours.law[j, NEXT])
    growing = np.flatnonzero(ours.scalars[0] * ours.law[:, REMEMBERED] > 0.0)
    assert sorted(seen) == sorted(growing)
    assert np.all(np.delete(ours.law[:, SLOT], growing) == -1)
    assert sorted(ours.shuffled) == list(range(ours.law.shape[0]))


def random_violations(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    """Many exact zeros, as in real runs, and sizes over six decades."""
    return np.where(rng.random(size) < 0.4, 0.0, scale * 10.0 ** rng.uniform(-4, 2, size))


@given(
    m=st.sampled_from([1, 2, 31, 32, 33, 100, 1025]),
    rate=st.sampled_from([1e-4, 0.05, 1.0, 30.0]),
    scale=st.sampled_from([1e-3, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_probabilities_agree_after_any_sequence(m, rate, scale, seed):
    rng = np.random.default_rng(seed)
    start = random_violations(rng, m, scale)
    ours, dense = new_distribution(start, rate), Dense(start, rate)
    check(ours)
    for _ in range(25):
        S = rng.choice(m, size=int(rng.integers(1, min(m, 40) + 1)), replace=False)
        step(ours, dense, S, random_violations(rng, S.size, scale))
        for _ in range(int(rng.integers(0, 3))):
            draw(ours, rng)
        np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            logs(ours), dense.log_p - dense.log_p.max(), rtol=1e-10, atol=1e-9
        )
        assert abs(probabilities(ours).sum() - 1.0) < 1e-12
        check(ours)


def test_bounds_outlive_many_turns_of_the_wheel():
    """Growth so slow that a bound would hold for longer than the wheel is long."""
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 1e-5, size=50)
    ours, dense = new_distribution(start, 1.0), Dense(start, 1.0)
    for t in range(3 * WHEEL):
        S = rng.choice(50, size=1)
        step(ours, dense, S, rng.uniform(0, 1e-5, size=1))
        if t % 997 == 0:
            check(ours)
    np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)


@pytest.mark.parametrize("growth", [1e-300, 1e-20, 1e-16])
def test_growth_too_slow_to_see_leaves_the_weights_alone(growth):
    ours = new_distribution(np.array([0.0, growth, growth / 5]), 1.0)
    for _ in range(5):
        tick(ours)
        check(ours)
    np.testing.assert_allclose(ours.tree[:3], 1.0, rtol=1e-9)


# --- draws
def frequencies(ours, rng: np.random.Generator, draws: int) -> np.ndarray:
    return np.bincount([draw(ours, rng) for _ in range(draws)], minlength=ours.law.shape[0])


def assert_drawn_from(ours, rng: np.random.Generator, p: np.ndarray, draws: int = 20_000) -> None:
    counts = frequencies(ours, rng, draws)
    common = p * draws >= 8.0
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(p[common], p[~common].sum()) * draws
    kept = expected > 0.5
    assert observed[~kept].sum() <= 10
    if kept.sum() > 1:
        assert (
            scipy.stats.chisquare(
                observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()
            ).pvalue
            > 1e-5
        )


@pytest.mark.parametrize("m", [2, 32, 33, 500, 1100])
@pytest.mark.parametrize("rate", [0.02, 2.0])
def test_draws_follow_p(m, rate):
    rng = np.random.default_rng(m)
    start = random_violations(rng, m, 0.1)
    ours, dense = new_distribution(start, rate), Dense(start, rate)
    assert_drawn_from(ours, rng, dense.p, 5_000)
    for _ in range(40):
        S = rng.choice(m, size=max(1, m // 8), replace=False)
        step(ours, dense, S, random_violations(rng, S.size, 0.1))
    assert_drawn_from(ours, rng, dense.p)


def test_draws_between_two_renewals_follow_p():
    """Bounds are then looser than right after a renewal: rejection has to make up for it."""
    rng = np.random.default_rng(1)
    start = np.array([0.0, 0.05, 0.11, 0.2, 0.01, 0.0, 0.07])
    ours, dense = new_distribution(start, 1.0), Dense(start, 1.0)
    for _ in range(5):
        step(ours, dense, np.array([0]), np.array([0.0]))
    assert ours.clock[distribution.RENEWED] < 7
    assert_drawn_from(ours, rng, dense.p, 40_000)
    assert ours.clock[REJECTED] > 0


@pytest.mark.parametrize(("m", "k"), [(5, 2), (7, 7), (6, 1)])
def test_sets_are_uniform_without_repetition(m, k):
    rng = np.random.default_rng(3)
    ours = new_distribution(np.zeros(m), 1.0)
    sets: dict[tuple[int, ...], int] = {}
    for _ in range(6000):
        draw_set(ours, k, rng)
        chosen = tuple(sorted(int(j) for j in ours.chosen[:k]))
        assert len(set(chosen)) == k
        sets[chosen] = sets.get(chosen, 0) + 1
    assert len(sets) == math.comb(m, k)
    assert len(sets) == 1 or scipy.stats.chisquare(list(sets.values())).pvalue > 1e-5
    assert sorted(ours.shuffled) == list(range(m))


def test_every_set_is_uniform_whatever_the_last_one_was():
    """The first set of a fresh permutation, and pairs of consecutive ones."""
    rng, fresh, pairs = np.random.default_rng(13), np.zeros((4, 4)), np.zeros((4, 4))
    ours = new_distribution(np.zeros(4), 1.0)
    for _ in range(6000):
        ours.shuffled[:] = range(4)
        draw_set(ours, 2, rng)
        first, second = ours.chosen[:2]
        fresh[first, second] += 1
        draw_set(ours, 1, rng)
        pairs[first, ours.chosen[0]] += 1
    assert scipy.stats.chisquare(fresh[~np.eye(4, dtype=bool)]).pvalue > 1e-5
    assert scipy.stats.chisquare(pairs.ravel()).pvalue > 1e-5


def test_negligible_weights_are_left_alone_while_one_grows():
    """Doubling means little to a weight that a giant outgrows: bounds are measured against it after
    a while.
    """
    m = 1000
    start = np.full(m, 0.1)
    start[0] = 1.0
    ours = new_distribution(start, 1.0)
    for _ in range(300):
        tick(ours)
    assert ours.clock[distribution.RENEWED] < 10 * m  # every doubling of all of them would be 43 m
    check(ours)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_few_draws_are_rejected_while_everything_moves(k):
    """Every constraint is violated and relearnt all the time: bounds must not grow by being
    renewed.
    """
    rng = np.random.default_rng(4)
    ours = new_distribution(np.full(200, 0.01), 1.0)
    for _ in range(1500):
        draw(ours, rng)
        draw_set(ours, k, rng)
        step(ours, None, ours.chosen[:k].copy(), 0.01 + 0.001 * rng.random(k))
    assert ours.clock[REJECTED] < 4 * 1500
    assert ours.clock[REFERENCES] < 100
    check(ours)


def test_few_draws_are_rejected_after_a_giant_falls():
    """Bounds made while one constraint held all the weight are far too loose when it loses it."""
    rng = np.random.default_rng(5)
    m = 2000
    start = rng.uniform(1e-3, 2e-3, size=m)
    start[0] = 1.0
    ours, dense = new_distribution(start, 1.0), Dense(start, 1.0)
    for _ in range(60):
        step(ours, dense, np.array([0]), np.array([1.0]))
    assert dense.p[0] > 1 - 1e-15
    before = int(ours.clock[REJECTED])
    step(ours, dense, np.array([0]), np.array([0.9]))  # m * 0.1 = 200 nats down at once
    counts = frequencies(ours, rng, 500)
    assert counts[0] == 0
    assert ours.clock[REJECTED] - before < 2 * m + 4 * 500
    check(ours)
    np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)


# --- extremes
@pytest.mark.parametrize("extreme", [10_000.0, 1e6, 1e12])
def test_weights_of_huge_exponents(extreme):
    rng = np.random.default_rng(6)
    ours, dense = new_distribution(np.zeros(40), 1.0), Dense(np.zeros(40), 1.0)
    for size, j in ((extreme, 3), (extreme, 17), (0.0, 17), (extreme / 2, 8)):
        step(ours, dense, np.array([j]), np.array([size / 40.0]))
        check(ours)
        p = probabilities(ours)
        np.testing.assert_allclose(p, dense.p, rtol=0, atol=1e-9)
        assert abs(p.sum() - 1.0) < 1e-12
        assert_drawn_from(ours, rng, dense.p, 300)
    logs = ours.law[:, LOG_WEIGHT]
    assert np.ptp(logs) >= extreme


def test_a_single_constraint():
    rng = np.random.default_rng(7)
    ours = new_distribution(np.array([2.0]), 5.0)
    for violation in (2.0, 0.0, 1e5, 3.0, 0.0):
        step(ours, None, np.array([0]), np.array([violation]))
        assert probabilities(ours).tolist() == [1.0]
        assert [draw(ours, rng) for _ in range(20)] == [0] * 20
        check(ours)


def test_no_constraints_at_all():
    assert probabilities(new_distribution(np.zeros(0), 1.0)).size == 0


def test_a_million_constraints():
    rng = np.random.default_rng(8)
    m = 1_000_000
    start = np.where(rng.random(m) < 0.9, 0.0, rng.random(m))
    ours, dense = new_distribution(start, 0.5), Dense(start, 0.5)
    drawn = []
    for _ in range(20):
        drawn.append(draw(ours, rng))
        draw_set(ours, 8, rng)
        S = ours.chosen[:8].copy()
        assert len(set(S)) == 8
        step(ours, dense, S, rng.random(8) * 1e-5)
    p = probabilities(ours)
    np.testing.assert_allclose(p, dense.p, rtol=0, atol=1e-9)
    assert abs(p.sum() - 1.0) < 1e-12
    assert 0 <= min(drawn) and max(drawn) < m and len(set(drawn)) > 10


def test_a_constraint_comes_back_from_nowhere():
    rng = np.random.default_rng(9)
    ours, dense = (
        new_distribution(np.array([0.0, 1.0, 0.0]), 50.0),
        Dense(np.array([0.0, 1.0, 0.0]), 50.0),
    )
    for _ in range(100):
        step(ours, dense, np.array([1]), np.array([1.0]))
    assert probabilities(ours)[0] == 0.0  # e^-5000
    assert set(draw(ours, rng) for _ in range(200)) == {1}
    step(ours, dense, np.array([1]), np.array([0.0]))
    for _ in range(120):
        step(ours, dense, np.array([0]), np.array([1.0]))
        check(ours)
    np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)
    assert probabilities(ours)[0] > 0.99
    assert set(draw(ours, rng) for _ in range(200)) == {0}


def test_an_underflowed_constraint_comes_back_by_its_own_growth():
    """Never looked at again, only its remembered violation lifts it: the wheel has to notice."""
    rng = np.random.default_rng(10)
    ours, dense = (
        new_distribution(np.array([0.5, 3.0, 0.0]), 10.0),
        Dense(np.array([0.5, 3.0, 0.0]), 10.0),
    )
    for _ in range(60):
        step(ours, dense, np.array([2]), np.array([0.0]))
    assert probabilities(ours)[0] < 1e-300
    step(ours, dense, np.array([1]), np.array([0.0]))
    for _ in range(400):
        step(ours, dense, np.array([2]), np.array([0.0]))
        check(ours)
    np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)
    assert probabilities(ours)[0] > 0.99 and draw(ours, rng) == 0


def test_weights_that_change_by_e50_a_step():
    rng = np.random.default_rng(11)
    start = rng.uniform(0.5, 1.0, size=64)
    ours, dense = new_distribution(start, 50.0), Dense(start, 50.0)
    for _ in range(100):
        S = rng.choice(64, size=16, replace=False)
        step(ours, dense, S, rng.uniform(0.0, 1.0, size=16))
        check(ours)
        np.testing.assert_allclose(probabilities(ours), dense.p, rtol=0, atol=1e-9)
        assert_drawn_from(ours, rng, dense.p, 100)


@pytest.mark.parametrize("violation", [math.inf, 1e308, math.nan])
def test_a_diverged_run_still_draws(violation):
    """Until the driver notices, a kernel must neither hang nor leave the range."""
    rng = np.random.default_rng(12)
    ours = new_distribution(np.array([0.0, 0.1, 0.2]), 10.0)
    for _ in range(5):
        step(ours, None, np.array([0, 1]), np.array([violation, 0.3]))
        assert all(0 <= draw(ours, rng) < 3 for _ in range(20))
    assert abs(probabilities(ours).sum() - 1.0) < 1e-12


def test_a_rate_of_zero_stays_uniform():
    ours = new_distribution(np.array([0.0, 1.0, 5.0]), 0.0)
    step(ours, None, np.array([1, 2]), np.array([9.0, 0.0]))
    np.testing.assert_allclose(probabilities(ours), 1 / 3, rtol=1e-15)
    check(ours)


def test_the_p_side_stands_alone():
    """It needs no objective, no constraint and no w: its module imports none of them."""
    import ast
    import inspect

    imports = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(distribution)))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert {name for name in modules if "lighttouch" in name} <= {
        "lighttouch.kernels.compiler.compiled",
        "lighttouch.kernels.compiler.intrinsics",
    }
