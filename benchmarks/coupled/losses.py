"""Every loss three times: as `lighttouch` takes it, in NumPy and for CVXPY."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.coupled.case import NotYet


@dataclass(frozen=True)
class RandomLoss:
    """A loss of (z, y) with random parameters."""

    name: str
    ours: Any
    values: Callable[[np.ndarray, np.ndarray], np.ndarray]
    expression: Callable[[Any, Any, np.ndarray], Any]  # (cp, z, y)
    kind: str = "real"  # of the targets: real, label, count or positive
    degree: int = 0  # loss(c z, c y) = c^degree loss(z, y); 0 where there is no such number

    @property
    def needs_bound(self) -> bool:
        """Whether the least value may lie at infinity."""
        return self.kind in ("label", "count")

    def targets(self, rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
        if self.kind == "label":
            return np.where(z > 0, 1.0, -1.0)
        if self.kind == "count":
            return rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
        if self.kind == "positive":
            return np.exp(np.clip(z, -2.0, 2.0))
        return z


Make = Callable[[np.random.Generator, int], RandomLoss]


def squared(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "squared",
        "squared",
        lambda z, y: 0.5 * (z - y) ** 2,
        lambda cp, z, y: 0.5 * cp.square(z - y),
        degree=2,
    )


def absolute(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "absolute",
        "absolute",
        lambda z, y: np.abs(z - y),
        lambda cp, z, y: cp.abs(z - y),
        degree=1,
    )


def hinge(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "hinge",
        "hinge",
        lambda z, y: np.maximum(0.0, 1.0 - y * z),
        lambda cp, z, y: cp.pos(1.0 - cp.multiply(y, z)),
        "label",
    )


def logistic(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "logistic",
        "logistic",
        lambda z, y: np.logaddexp(0.0, -y * z),
        lambda cp, z, y: cp.logistic(-cp.multiply(y, z)),
        "label",
    )


def _huber(threshold: float, ours: Any) -> RandomLoss:
    def values(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        r = np.abs(z - y)
        return np.where(r <= threshold, 0.5 * r * r, threshold * (r - 0.5 * threshold))

    return RandomLoss(
        f"huber {threshold:g}", ours, values, lambda cp, z, y: 0.5 * cp.huber(z - y, threshold)
    )


def huber(rng: np.random.Generator, n: int) -> RandomLoss:
    return _huber(1.0, "huber")


def other_huber(rng: np.random.Generator, n: int) -> RandomLoss:
    threshold = float(rng.choice([0.1, 0.5, 3.0]))
    return _huber(threshold, lt.Huber(threshold))


def _pinball(name: str, level: Any, ours: Any) -> RandomLoss:
    return RandomLoss(
        name,
        ours,
        lambda z, y: np.maximum(level * (y - z), (level - 1.0) * (y - z)),
        lambda cp, z, y: cp.maximum(
            cp.multiply(level, y - z), cp.multiply(np.subtract(level, 1.0), y - z)
        ),
        degree=1,
    )


def quantile(rng: np.random.Generator, n: int) -> RandomLoss:
    level = float(rng.choice([0.1, 0.3, 0.5, 0.9]))
    return _pinball(f"quantile {level:g}", level, lt.Quantile(level))


def quantiles(rng: np.random.Generator, n: int) -> RandomLoss:
    levels = rng.choice([0.1, 0.3, 0.5, 0.9], size=n)
    return _pinball("quantile per example", levels, lt.Quantile(levels))


def epsilon_insensitive(rng: np.random.Generator, n: int) -> RandomLoss:
    epsilon = float(rng.choice([0.0, 0.1, 0.5]))
    return RandomLoss(
        f"epsilon-insensitive {epsilon:g}",
        lt.EpsilonInsensitive(epsilon),
        lambda z, y: np.maximum(0.0, np.abs(z - y) - epsilon),
        lambda cp, z, y: cp.pos(cp.abs(z - y) - epsilon),
    )


def poisson(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "poisson",
        "poisson",
        lambda z, y: np.exp(z) - y * z,
        lambda cp, z, y: cp.exp(z) - cp.multiply(y, z),
        "count",
    )


def gamma(rng: np.random.Generator, n: int) -> RandomLoss:
    return RandomLoss(
        "gamma",
        "gamma",
        lambda z, y: y * np.exp(-z) + z,
        lambda cp, z, y: cp.multiply(y, cp.exp(-z)) + z,
        "positive",
    )


def tweedie(rng: np.random.Generator, n: int) -> RandomLoss:
    p = float(rng.choice([1.2, 1.5, 1.8]))
    return RandomLoss(
        f"tweedie {p:g}",
        lt.Tweedie(p),
        lambda z, y: y * np.exp((1.0 - p) * z) / (p - 1.0) + np.exp((2.0 - p) * z) / (2.0 - p),
        lambda cp, z, y: (
            cp.multiply(y / (p - 1.0), cp.exp((1.0 - p) * z)) + cp.exp((2.0 - p) * z) / (2.0 - p)
        ),
        "count",
    )


ALL_LOSSES: list[Make] = [
    squared,
    absolute,
    huber,
    logistic,
    hinge,
    quantile,
    quantiles,
    other_huber,
    epsilon_insensitive,
    poisson,
    gamma,
    tweedie,
]


def drawn(rng: np.random.Generator, n: int) -> RandomLoss:
    """A random loss; NotYet where this version does not have it."""
    make = ALL_LOSSES[int(rng.integers(len(ALL_LOSSES)))]
    try:
        loss = make(rng, n)
        lt.EmpiricalRisk(np.eye(n), np.ones(n), loss=loss.ours)
    except (AttributeError, TypeError, ValueError) as missing:
        raise NotYet(f"needs the loss {make.__name__}") from missing
    return loss
