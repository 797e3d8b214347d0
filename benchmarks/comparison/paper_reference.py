"""The same algorithms as paper.cpp, line by line from the paper in NumPy: slow, plain, and what the
C++ program must agree with.

Only the order in which random numbers are used is shared with paper.cpp; p is normalised in full in
every iteration, gradients are dense, and nothing is remembered that the paper does not remember.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from benchmarks.comparison import paper_cpp
from lighttouch.datasets import ranking_pairs

WORD = 2**64 - 1
TOLERANCE = 1e-9


class Random:
    """xoshiro256++ seeded by splitmix64."""

    def __init__(self, seed: int) -> None:
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & WORD
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
            self.state.append(z ^ (z >> 31))

    def bits(self) -> int:
        a, b, c, d = self.state
        result = (_rotate((a + d) & WORD, 23) + a) & WORD
        c ^= a
        d ^= b
        self.state = [a ^ d, b ^ c, c ^ ((b << 17) & WORD), _rotate(d, 45)]
        return result

    def unit(self) -> float:
        return (self.bits() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        return ((self.bits() >> 32) * bound) >> 32


def _rotate(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & WORD


class Problem:
    """Dense examples in visiting order, constraint groups, and the box."""

    def __init__(self, data: paper_cpp.PairData, seed: int, group: int, box: float) -> None:
        self.x = data.rows.toarray()[np.random.default_rng(seed).permutation(data.rows.shape[0])]
        self.lower, self.upper, self.box = data.lower, data.upper, box
        self.groups = np.split(np.arange(len(data.lower)), np.arange(group, len(data.lower), group))
        self.next = 0

    def loss_subgradients(self, w: np.ndarray, count: int) -> np.ndarray:
        chosen = np.arange(self.next, self.next + count) % len(self.x)
        self.next += count
        return np.where(self.x[chosen] @ w < 1, -1.0, 0.0)[:, None] * self.x[chosen]

    def violation(self, w: np.ndarray, group: int) -> tuple[float, np.ndarray]:
        """max(0, g_group(w)) and a subgradient of it."""
        rows = self.groups[group]
        values = w[self.lower[rows]] - w[self.upper[rows]]
        slope = np.zeros_like(w)
        worst = rows[values.argmax()]
        if values.max() > 0:
            slope[self.lower[worst]], slope[self.upper[worst]] = 1.0, -1.0
        return max(0.0, values.max()), slope

    def clipped(self, w: np.ndarray) -> np.ndarray:
        return np.clip(w, -self.box, self.box)


def unconstrained(
    problem: Problem, iterations: int, eta_w: float, batch: int
) -> Iterator[tuple[np.ndarray, int]]:
    w = np.zeros(problem.x.shape[1])
    for t in range(1, iterations + 1):
        w = problem.clipped(
            w - eta_w / np.sqrt(t) * problem.loss_subgradients(w, batch).mean(axis=0)
        )
        yield w, 0


def full(
    problem: Problem, iterations: int, gamma: float, eta_w: float, batch: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Algorithm 1; the problem has a single group."""
    w = np.zeros(problem.x.shape[1])
    for t in range(1, iterations + 1):
        step = problem.loss_subgradients(w, batch).mean(axis=0) + gamma * problem.violation(w, 0)[1]
        w = problem.clipped(w - eta_w / np.sqrt(t) * step)
        yield w, t * len(problem.lower)


def light(
    problem: Problem,
    iterations: int,
    seed: int,
    gamma: float,
    eta_w: float,
    eta_p: float,
    memory: float,
    costs: tuple[float, float],
) -> Iterator[tuple[np.ndarray, int]]:
    """Algorithm 4 with Section 5.2's minibatch sizes; `costs` are those of an example and of a
    constraint.
    """
    m, random, checks = len(problem.groups), Random(seed), 0
    w, log_p, mu = np.zeros(problem.x.shape[1]), np.full(m, -np.log(m)), np.zeros(m)
    order, averages, k_g, k_p = np.arange(m), np.zeros(3), 2, 1
    for t in range(1, iterations + 1):
        eta = eta_w / np.sqrt(t)
        if t > 1:
            k_g, k_p = _sizes(averages * [eta, eta, eta_p] / [costs[0], costs[1], costs[1]], m)
        loss = problem.loss_subgradients(w, 2)
        cumulative = np.cumsum(np.exp(log_p))
        drawn = [
            int(np.searchsorted(cumulative, random.unit() * cumulative[-1], side="right"))
            for _ in range(k_g)
        ]
        push = gamma * np.array([problem.violation(w, i)[1] for i in drawn])
        for q in range(k_p):
            other = q + random.below(m - q)
            order[[q, other]] = order[[other, q]]
        chosen = order[:k_p].copy()
        seen = np.array([problem.violation(w, j)[0] for j in chosen])
        checks += sum(len(problem.groups[i]) for i in (*drawn, *chosen))
        variance_p = (gamma * m) ** 2 * ((mu[chosen] - seen) ** 2).mean()
        averages = (
            np.array([loss.var(axis=0, ddof=1).sum(), push.var(axis=0, ddof=1).sum(), variance_p])
            + memory * averages
        )
        supergradient = gamma * mu
        supergradient[chosen] += gamma * m / k_p * (seen - mu[chosen])
        w = problem.clipped(w - eta * (loss.mean(axis=0) + push.mean(axis=0)))
        mu[chosen] = seen
        log_p = log_p + eta_p * supergradient
        log_p -= log_p.max() + np.log(np.exp(log_p - log_p.max()).sum())
        yield w, checks


def _sizes(impact_for_cost: np.ndarray, most: int) -> tuple[int, int]:
    """k_g and k_p in proportion to the square roots, scaled so that k_f = 2."""
    f, g, p = np.sqrt(np.maximum(impact_for_cost, [1e-300, 0.0, 0.0]))
    return max(2, int(min(most, np.floor(2 * g / f + 0.5)))), max(
        1, int(min(most, np.floor(2 * p / f + 0.5)))
    )


def self_test() -> None:
    """Raise unless the C++ program and this transcription agree on small lattices: same checks,
    iterates equal to rounding.
    """
    data = paper_cpp.prepare(*ranking_pairs(500, features=6, seed=3))
    for box, group, layout in product([10.0, 0.4], [1, 16, 32, 50], ["blocks", "rows"]):
        _compare_light(data, 600, box, group, layout=layout)
    for box, batch in product([10.0, 0.4], [1, 16]):
        _compare_others(data, 600, box, batch)
    for group, eta_p in product(
        [1, 16], [4.0, 64.0]
    ):  # so fast a p that its weights overflow and underflow all the time
        _compare_light(data, 600, 10.0, group, eta_p=eta_p)
    large = paper_cpp.prepare(
        *ranking_pairs(500, features=10, seed=3)
    )  # more constraints than the program sums in small blocks
    for group, eta_p in product([1, 256], [1 / 16, 4.0]):
        _compare_light(large, 120, 10.0, group, eta_p=eta_p)
    _compare_others(large, 120, 10.0, 16)


def _compare_light(
    data: paper_cpp.PairData,
    iterations: int,
    box: float,
    group: int,
    eta_p: float = 1 / 16,
    layout: str = "blocks",
) -> None:
    parameters = {"gamma": 1.0, "eta_w": 16.0, "eta_p": eta_p, "memory": 0.999}
    costs = (2.0 * (data.features + 1), 2.0 * group)
    expected = light(Problem(data, 7, group, box), iterations, 7, costs=costs, **parameters)
    name = f"light, {len(data.lower)} constraints in groups of {group}, eta_p {eta_p}, {layout}"
    _compare(
        name, data, "light", expected, iterations, box, group=group, layout=layout, **parameters
    )


def _compare_others(data: paper_cpp.PairData, iterations: int, box: float, batch: int) -> None:
    whole, alone = Problem(data, 7, len(data.lower), box), Problem(data, 7, 1, box)
    name = f"{len(data.lower)} constraints, batch {batch}"
    _compare(
        f"full, {name}",
        data,
        "full",
        full(whole, iterations, 1.0, 16.0, batch),
        iterations,
        box,
        batch=batch,
    )
    _compare(
        f"unconstrained, {name}",
        data,
        "unconstrained",
        unconstrained(alone, iterations, 16.0, batch),
        iterations,
        box,
        batch=batch,
    )


def _compare(
    name: str,
    data: paper_cpp.PairData,
    variant: str,
    expected: Iterator[tuple[np.ndarray, int]],
    iterations: int,
    box: float,
    **parameters: Any,
) -> None:
    stops = [1, 2, 3, 10, 50, iterations // 2, iterations]
    found = {
        row.iteration: row
        for row in paper_cpp.run(
            variant, data, iterations, stops, seed=7, box_lower=-box, box_upper=box, **parameters
        )
    }
    largest = 0.0
    for iteration, (w, checks) in enumerate(expected, start=1):
        if iteration in found:
            largest = max(largest, float(np.abs(found[iteration].w - w).max()))
            if largest > TOLERANCE or found[iteration].checks != checks:
                raise AssertionError(
                    f"{name}, box {box}: after {iteration} iterations w differs by {largest:.3g}, "
                    f"checks are {found[iteration].checks} and should be {checks}"
                )
    print(
        (
            f"{f'{name}, box {box}':76} w agrees within {largest:.1e}, "
            f"{found[iterations].checks} checks"
        ),
        flush=True,
    )
