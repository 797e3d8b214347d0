"""The paper's algorithms, line by line, in plain NumPy: slow, dense, and sharing no code with the
package.

Every random choice goes through a `Choices`, so that a run can be replayed with the choices another
one made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

Vector = np.ndarray


# --- pieces
@dataclass
class Piece:
    """A problem as dense functions: one example's loss, all constraints, a subgradient of one of
    them, the projection Pi_w.
    """

    examples: int
    loss: Callable[[int, Vector], float]
    loss_gradient: Callable[[int, Vector], Vector]
    g: Callable[[Vector], Vector]
    g_gradient: Callable[[int, Vector], Vector]
    project: Callable[[Vector], Vector]
    l2: float = 0.0
    group: int = 1
    l1: float = 0.0

    def objective(self, w: Vector) -> float:
        mean = sum(self.loss(i, w) for i in range(self.examples)) / self.examples
        return mean + 0.5 * self.l2 * float(w @ w) + self.l1 * float(np.abs(w).sum())

    def f_gradient(self, i: int, w: Vector) -> Vector:
        return self.loss_gradient(i, w) + self.l2 * w + self.l1 * np.sign(w)

    def constraints(self, w: Vector) -> Vector:
        """g~_i(w) = max over the members of group i (Section 5.1)."""
        values = self.g(w)
        return np.array(
            [
                values[start : start + self.group].max()
                for start in range(0, values.size, self.group)
            ]
        )

    def violations(self, w: Vector) -> Vector:
        return np.maximum(0.0, self.constraints(w))

    def push(self, i: int, w: Vector) -> Vector:
        """A subgradient of max{0, g~_i(w)}: that of the first worst member, 0 where it holds."""
        values = self.g(w)[i * self.group : (i + 1) * self.group]
        return (
            self.g_gradient(i * self.group + int(values.argmax()), w)
            if values.max() > 0.0
            else np.zeros_like(w)
        )

    def members(self, i: int, total: int) -> int:
        return min((i + 1) * self.group, total) - i * self.group


LOSSES: dict[str, tuple[Callable[[float, float], float], Callable[[float, float], float]]] = {
    "hinge": (lambda z, y: max(0.0, 1.0 - y * z), lambda z, y: -y if y * z < 1.0 else 0.0),
    "logistic": (
        lambda z, y: float(np.logaddexp(0.0, -y * z)),
        lambda z, y: -y * math.exp(-np.logaddexp(0.0, y * z)),
    ),
    "squared": (lambda z, y: (z - y) ** 2 / 2.0, lambda z, y: z - y),
    "absolute": (lambda z, y: abs(z - y), lambda z, y: float(np.sign(z - y))),
    "huber": (
        lambda z, y: (z - y) ** 2 / 2.0 if abs(z - y) <= 1.0 else abs(z - y) - 0.5,
        lambda z, y: float(np.clip(z - y, -1.0, 1.0)),
    ),
    "poisson": (lambda z, y: math.exp(z) - y * z, lambda z, y: math.exp(z) - y),
}


def quantile(
    level: float,
) -> tuple[Callable[[float, float], float], Callable[[float, float], float]]:
    def slope(z: float, y: float) -> float:
        return 0.0 if z == y else (1.0 - level if z > y else -level)

    return (lambda z, y: max(level * (y - z), (level - 1.0) * (y - z)), slope)


def risk(
    X: Vector,
    y: Vector,
    loss: tuple[Callable, Callable],
    weights: Vector | None = None,
    offset: Vector | None = None,
) -> dict:
    value, slope = loss
    relative = np.ones(len(y)) if weights is None else weights * len(y) / weights.sum()
    o = np.zeros(len(y)) if offset is None else offset
    return {
        "examples": len(y),
        "loss": lambda i, w: relative[i] * value(float(X[i] @ w + o[i]), y[i]),
        "loss_gradient": lambda i, w: relative[i] * slope(float(X[i] @ w + o[i]), y[i]) * X[i],
    }


def quadratic(P: Vector, q: Vector) -> dict:
    return {
        "examples": 1,
        "loss": lambda i, w: float(w @ P @ w) / 2.0 + float(q @ w),
        "loss_gradient": lambda i, w: P @ w + q,
    }


def linear(A: Vector, b: Vector) -> dict:
    return {"g": lambda w: A @ w - b, "g_gradient": lambda j, w: A[j]}


def equalities(A: Vector, b: Vector) -> dict:
    return {
        "g": lambda w: np.abs(A @ w - b),
        "g_gradient": lambda j, w: np.sign(A[j] @ w - b[j]) * A[j],
    }


def balls(centers: Vector, radii: Vector) -> dict:
    def gradient(j: int, w: Vector) -> Vector:
        return (w - centers[j]) / np.linalg.norm(w - centers[j])

    return {"g": lambda w: np.linalg.norm(w - centers, axis=1) - radii, "g_gradient": gradient}


def cones(A: Vector, b: Vector, c: Vector, d: Vector) -> dict:
    """||A_j w + b_j|| <= c_j.w + d_j."""

    def gradient(j: int, w: Vector) -> Vector:
        residual = A[j] @ w + b[j]
        return A[j].T @ residual / np.linalg.norm(residual) - c[j]

    return {"g": lambda w: np.linalg.norm(A @ w + b, axis=1) - c @ w - d, "g_gradient": gradient}


def quadratics(P: Vector, q: Vector, r: Vector) -> dict:
    return {
        "g": lambda w: np.einsum("i,jik,k->j", w, P, w) / 2.0 + q @ w + r,
        "g_gradient": lambda j, w: P[j] @ w + q[j],
    }


def joined(*families: tuple[int, dict]) -> dict:
    """Families one after the other, each with its count."""
    counts = [count for count, _ in families]

    def gradient(j: int, w: Vector) -> Vector:
        for count, family in families:
            if j < count:
                return family["g_gradient"](j, w)
            j -= count
        raise IndexError(j)

    assert counts
    return {
        "g": lambda w: np.concatenate([family["g"](w) for _, family in families]),
        "g_gradient": gradient,
    }


def nothing() -> dict:
    return {"g": lambda w: np.zeros(0), "g_gradient": lambda j, w: np.zeros_like(w)}


def simplex(total: float) -> Callable[[Vector], Vector]:
    """By sorting (Held, Wolfe and Crowder 1974)."""

    def project(w: Vector) -> Vector:
        falling = np.sort(w)[::-1]
        levels = (np.cumsum(falling) - total) / np.arange(1, w.size + 1)
        return np.maximum(0.0, w - levels[np.flatnonzero(falling > levels)[-1]])

    return project


def everywhere() -> Callable[[Vector], Vector]:
    return lambda w: w


def box(lower: float | Vector, upper: float | Vector) -> Callable[[Vector], Vector]:
    return lambda w: np.minimum(np.maximum(w, lower), upper)


def ball(radius: float, center: Vector) -> Callable[[Vector], Vector]:
    def project(w: Vector) -> Vector:
        distance = np.linalg.norm(w - center)
        return w if distance <= radius else center + (w - center) * radius / distance

    return project


# --- steps
class Steps:
    """The change of w for a gradient at iteration t; `length` is eta^(t)."""

    def __init__(self, rule: str, eta: float) -> None:
        self.rule, self.eta, self.squares = rule, eta, 0.0

    def length(self, t: int) -> float:
        return {
            "constant": self.eta,
            "inverse sqrt": self.eta / math.sqrt(t),
            "inverse time": self.eta / t,
            "adagrad": self.eta,
        }[self.rule]

    def change(self, t: int, gradient: Vector) -> Vector:
        if self.rule != "adagrad":
            return self.length(t) * gradient
        self.squares = self.squares + gradient**2
        return np.divide(
            self.eta * gradient,
            np.sqrt(self.squares),
            out=np.zeros_like(gradient),
            where=gradient != 0.0,
        )


# --- choices
class Choices:
    """Own randomness: examples in repeated random permutations (or independent), i from p, S
    without replacement.
    """

    def __init__(self, rng: np.random.Generator, examples: int, independent: bool = False) -> None:
        self.rng, self.examples, self.independent = rng, examples, independent
        self.order = self._forever()

    def _forever(self) -> Iterator[int]:
        while True:
            yield from self.rng.permutation(self.examples)

    def example(self) -> int:
        return int(self.rng.integers(self.examples)) if self.independent else int(next(self.order))

    def constraint(self, p: Vector) -> int:
        return int(self.rng.choice(p.size, p=p))

    def subset(self, m: int, k: int) -> Vector:
        return self.rng.choice(m, size=k, replace=False)


class Replayed(Choices):
    """The choices of another run, in its order."""

    def __init__(
        self, examples: list[int], constraints: list[int], subsets: list[list[int]]
    ) -> None:
        self._examples, self._constraints, self._subsets = (
            iter(examples),
            iter(constraints),
            iter(subsets),
        )

    def example(self) -> int:
        return next(self._examples)

    def constraint(self, p: Vector) -> int:
        chosen = next(self._constraints)
        assert p[chosen] > 0.0, f"constraint {chosen} was drawn although its probability is 0"
        return chosen

    def subset(self, m: int, k: int) -> Vector:
        chosen = next(self._subsets)
        assert len(set(chosen)) == len(chosen) == k and all(0 <= j < m for j in chosen)
        return np.array(chosen)

    def exhausted(self) -> bool:
        return all(
            next(left, None) is None for left in (self._examples, self._constraints, self._subsets)
        )


# --- algorithms
@dataclass
class Run:
    """What an algorithm ends with; `iterates` are w^(1), w^(2), ... as visited."""

    average: Vector
    last: Vector
    p: Vector | None
    checks: int
    sizes: list[tuple[int, int, int]] = field(default_factory=list)


def mean_gradient(piece: Piece, choices: Choices, w: Vector, batch: int) -> Vector:
    return (
        sum((piece.f_gradient(choices.example(), w) for _ in range(batch)), np.zeros_like(w))
        / batch
    )


def full_push(piece: Piece, w: Vector) -> Vector:
    """A subgradient of max{0, g(w)} with g the maximum of all constraints."""
    values = piece.g(w)
    if values.size == 0 or values.max() <= 0.0:
        return np.zeros_like(w)
    return piece.g_gradient(int(values.argmax()), w)


def normalised(log_p: Vector) -> Vector:
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def full_touch(
    piece: Piece,
    choices: Choices,
    start: Vector,
    T: int,
    gamma: float,
    steps: Steps,
    batch: int = 1,
) -> Run:
    """Algorithm 1."""
    w = piece.project(start)  # line 1
    total = np.zeros_like(w)
    for t in range(1, T + 1):  # line 2
        total += w
        f_gradient = mean_gradient(piece, choices, w, batch)  # line 3
        w_gradient = f_gradient + gamma * full_push(piece, w)  # line 4
        w = piece.project(w - steps.change(t, w_gradient))  # line 5
    return Run(total / T, w, None, T * piece.g(w).size)  # line 6


def light_touch(
    piece: Piece,
    choices: Choices,
    start: Vector,
    T: int,
    gamma: float,
    steps: Steps,
    eta_p: float,
    k: int,
    batch: int = 1,
    log_p: Vector | None = None,
    first: int = 1,
) -> Run:
    """Algorithm 2 (log_p: another p^(1) than the uniform one; first: the first t, for the second
    phase of Algorithm 3).
    """
    w = piece.project(start)  # line 1
    members, m = piece.g(w).size, piece.constraints(w).size
    log_p = np.full(m, -math.log(m)) if log_p is None else log_p  # line 2
    mu = piece.violations(w)  # line 3
    total, checks = np.zeros_like(w), 0
    for t in range(first, first + T):  # line 4
        total += w
        f_gradient = mean_gradient(piece, choices, w, batch)  # line 5
        i = choices.constraint(normalised(log_p))  # line 6
        w_gradient = f_gradient + gamma * piece.push(i, w)  # line 7
        following = piece.project(w - steps.change(t, w_gradient))  # line 8
        S = choices.subset(m, k)  # line 9
        found = piece.violations(w)
        p_gradient = gamma * mu  # line 10
        p_gradient[S] += (gamma * m / k) * (found[S] - mu[S])
        mu = mu.copy()  # line 11
        mu[S] = found[S]
        log_p = log_p + eta_p * p_gradient  # line 12
        log_p = log_p - np.logaddexp.reduce(log_p)  # line 13
        checks += piece.members(i, members) + sum(piece.members(j, members) for j in S)
        w = following
    return Run(total / T, w, normalised(log_p), checks)  # line 14


def mid_touch(
    piece: Piece,
    choices: Choices,
    start: Vector,
    T1: int,
    T2: int,
    gamma: float,
    strong_convexity: float,
    eta: float,
    batch: int = 1,
) -> Run:
    """Algorithm 3."""
    steps = Steps("inverse time", 1.0 / strong_convexity)
    first = full_touch(piece, choices, start, T1, gamma, steps, batch)  # lines 1-6
    second = light_touch(
        piece, choices, first.average, T2, gamma, steps, eta, 1, batch, first=T1 + 1
    )  # lines 7-19
    return Run(second.average, second.last, second.p, first.checks + second.checks)


def practical_light_touch(
    piece: Piece,
    choices: Choices,
    start: Vector,
    T: int,
    gamma: float,
    steps: Steps,
    eta_p: float,
    costs: tuple[float, float, float],
    nu: float = 0.999,
) -> Run:
    """Algorithm 4 with the minibatch sizes of Section 5.2; the paper gives no upper limit of k_g,
    here it is max(2, m).
    """
    w = piece.project(start)  # line 1
    members, m = piece.g(w).size, piece.constraints(w).size
    log_p = np.full(m, -math.log(m))  # line 2
    mu = piece.violations(w)  # line 3
    total, checks = np.zeros_like(w), 0
    past: list[tuple[float, float, float]] = []
    run = Run(total, w, None, 0)
    for t in range(1, T + 1):  # line 4
        total += w
        k_f, k_g, k_p = minibatch_sizes(past, nu, steps.length(t), eta_p, costs, m)  # lines 5-6
        losses = np.array([piece.f_gradient(choices.example(), w) for _ in range(k_f)])  # line 7
        drawn = [choices.constraint(normalised(log_p)) for _ in range(k_g)]  # line 8
        pushes = np.array([gamma * piece.push(i, w) for i in drawn])
        w_gradient = losses.mean(axis=0) + pushes.mean(axis=0)  # line 9
        following = piece.project(w - steps.change(t, w_gradient))  # line 10
        S = choices.subset(m, k_p)  # line 11
        found = piece.violations(w)
        p_gradient = gamma * mu  # line 12
        p_gradient[S] += (gamma * m / k_p) * (found[S] - mu[S])
        v_p = gamma**2 * m**2 * float(np.mean((mu[S] - found[S]) ** 2))
        past.append((sample_variance(losses), sample_variance(pushes), v_p))
        mu = mu.copy()  # line 13
        mu[S] = found[S]
        log_p = log_p + eta_p * p_gradient  # line 14
        log_p = log_p - np.logaddexp.reduce(log_p)  # line 15
        checks += sum(piece.members(j, members) for j in [*drawn, *S])
        run.sizes.append((k_f, k_g, k_p))
        w = following
    run.average, run.last, run.p, run.checks = total / T, w, normalised(log_p), checks  # line 16
    return run


def sample_variance(gradients: Vector) -> float:
    """The trace of the sample covariance."""
    return float(((gradients - gradients.mean(axis=0)) ** 2).sum() / (len(gradients) - 1))


def minibatch_sizes(
    past: list[tuple[float, float, float]],
    nu: float,
    eta_w: float,
    eta_p: float,
    costs: tuple[float, float, float],
    m: int,
) -> tuple[int, int, int]:
    """[k_f, k_g, k_p] proportional to sqrt(eta v / c), k_f = 2; the smallest sizes before anything
    is known.
    """
    if not past:
        return 2, 2, 1
    weights = nu ** np.arange(len(past) - 1, -1, -1.0)
    v = np.average(np.array(past), axis=0, weights=weights)
    impact = np.sqrt(np.array([eta_w, eta_w, eta_p]) * v / np.array(costs))
    sizes = [
        least
        if impact[q] == 0.0
        else most
        if impact[0] == 0.0
        else _nearest(2.0 * impact[q] / impact[0], least, most)
        for q, least, most in ((1, 2, max(2, m)), (2, 1, m))
    ]
    return 2, sizes[0], sizes[1]


def _nearest(size: float, least: int, most: int) -> int:
    return int(min(most, max(least, math.floor(min(size, most) + 0.5))))
