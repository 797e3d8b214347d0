"""Random small convex problems of every loss, family, domain and degeneracy, each stated twice.

A problem is drawn in well-scaled coordinates u, in which CVXPY solves it. `lighttouch` gets the
same in w with u = T w and targets multiplied by c, so that what is hard for it (scales of 1e-8 to
1e8, condition numbers to 1e6) does not spoil the reference. All values are judged in u by NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.coupled.case import NotYet, needs
from benchmarks.coupled.losses import RandomLoss, drawn

Measure = Callable[[np.ndarray], float]


class Rows(NamedTuple):
    A: np.ndarray
    b: np.ndarray


def stored_row(rows: Rows, j: int, columns: np.ndarray, values: np.ndarray) -> Any:
    """Row j of a stored matrix, as `GeneratedRows` wants it."""
    for k in range(rows.A.shape[1]):
        columns[k] = k
        values[k] = rows.A[j, k]
    return rows.A.shape[1], rows.b[j]


@dataclass
class Instance:
    """A problem in w for `lt.solve`, in u for CVXPY, and its pieces in NumPy."""

    seed: int
    d: int
    rng: np.random.Generator
    inside: np.ndarray  # a feasible u
    T: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    target_scale: float = 1.0
    words: list[str] = field(default_factory=list)
    problem: lt.Problem | None = None
    value: Measure = lambda u: 0.0  # in units of `problem.objective`
    unit: float = 1.0  # of value per value in u
    reference_value: Callable[[Any, Any], Any] | None = None  # (cp, variable) -> expression
    excesses: list[Measure] = field(default_factory=list)  # relative to the rows' norms, in u
    said: list[Callable[[Any, Any], list[Any]]] = field(default_factory=list)
    roundings: list[Measure] = field(default_factory=list)  # of excesses as stated in w, at w

    @property
    def scalar(self) -> bool:
        """Whether T is a multiple of the identity, so that boxes and norms survive it."""
        return bool(np.all(self.T == self.T[0, 0] * np.eye(self.d)))

    def violation(self, u: np.ndarray) -> float:
        return max([0.0, *(excess(u) for excess in self.excesses)])

    def rounding(self, w: np.ndarray) -> float:
        """What the statement in w cannot tell: at condition 1e6 a quadratic form cancels."""
        return max([0.0, *(rounding(w) for rounding in self.roundings)])

    def back(self, w: np.ndarray) -> np.ndarray:
        return np.asarray(self.T @ w)


def draw(seed: int) -> Instance:
    """The problem of a seed: the same in every version that can state it (NotYet otherwise)."""
    rng = np.random.default_rng([seed, 12])
    d = int(rng.integers(1, 9))
    it = Instance(seed, d, rng, rng.normal(size=d))
    domain_kind = str(rng.choice(DOMAINS))
    if domain_kind == "simplex":
        it.inside = rng.dirichlet(np.ones(d))
    _draw_transform(it, domain_kind)
    domain = _draw_domain(it, domain_kind)
    families = [_draw_family(it) for _ in range(int(rng.choice([0, 1, 1, 1, 2])))]
    families = [each for each in families if each is not None]
    bounded = domain_kind in ("box", "ball", "simplex")
    objective = _draw_objective(it, bounded)
    constraints = lt.stack(*families) if len(families) > 1 else families[0] if families else None
    it.problem = lt.Problem(objective, constraints, domain)
    return it


DOMAINS = ["everywhere", "everywhere", "box", "half-open box", "ball", "simplex"]


def _draw_transform(it: Instance, domain_kind: str) -> None:
    rng, kind = it.rng, it.rng.choice(["none", "none", "scale", "condition"])
    it.T = np.eye(it.d)
    if kind == "scale":
        scale = 10.0 ** float(rng.choice([-8, -4, -2, 2, 4, 8]))
        it.T = scale * np.eye(it.d)
        it.words.append(f"u = {scale:.0e} w")
    elif kind == "condition" and domain_kind == "everywhere" and it.d > 1:
        condition = float(rng.choice([2, 3, 4, 6]))
        turn = np.linalg.qr(rng.normal(size=(it.d, it.d)))[0]
        it.T = np.logspace(0.0, -condition, it.d)[:, None] * turn
        it.words.append(f"condition 1e{condition:.0f}")


def _draw_domain(it: Instance, kind: str) -> Any:
    factor, u = float(it.T[0, 0]), it.inside
    it.words.append(kind)
    if kind in ("box", "half-open box"):
        room = it.rng.uniform(0.0, 2.0, size=(2, it.d)) * (it.rng.random((2, it.d)) < 0.9)
        lower, upper = u - room[0], u + room[1]
        if kind == "half-open box":
            upper = np.full(it.d, np.inf)
        else:
            it.said.append(lambda cp, v: [v <= upper])
        it.said.append(lambda cp, v: [v >= lower])
        it.excesses.append(lambda v: float(max((lower - v).max(), (v - upper).max())))
        return lt.Box(lower / factor, upper / factor)
    if kind == "ball":
        radius = float(np.linalg.norm(u) * it.rng.uniform(1.0, 2.0))
        it.said.append(lambda cp, v: [cp.norm(v) <= radius])
        it.excesses.append(lambda v: float(np.linalg.norm(v)) - radius)
        return lt.Ball(radius / factor)
    if kind == "simplex":
        needs("Simplex")
        it.said.append(lambda cp, v: [v >= 0, cp.sum(v) == 1])
        it.excesses.append(lambda v: max(float(-v.min()), abs(float(v.sum()) - 1.0)))
        return lt.Simplex(1.0 / factor)
    return lt.Everywhere()


LINEAR_FAMILIES = ["rows", "rows", "sparse rows", "flat", "order", "generated"]


def _draw_family(it: Instance) -> Any:
    kind = str(it.rng.choice(LINEAR_FAMILIES + list(OTHER_FAMILIES)))
    it.words.append(kind)
    if kind in OTHER_FAMILIES:
        return OTHER_FAMILIES[kind](it)
    if kind == "order":
        if it.d < 2 or not it.scalar:
            return None
        A = np.eye(it.d)[:-1] - np.eye(it.d)[1:]
        return _linear(it, A, np.maximum(0.0, A @ it.inside), kind)
    return _random_rows(it, kind)


def _random_rows(it: Instance, kind: str) -> Any:
    rng = it.rng
    m = int(rng.integers(1, 25))
    A = rng.normal(size=(m, it.d))
    slack = rng.random(m) * float(rng.choice([0.05, 0.5])) * (rng.random(m) < 0.8)
    b = A @ it.inside + slack
    if rng.random() < 0.25:  # the same rows again, and parallel ones
        again = rng.integers(m, size=3)
        size = rng.choice([1.0, 2.0, 1e-3], size=3)
        A = np.vstack([A, size[:, None] * A[again]])
        b = np.append(b, size * (b[again] + rng.choice([0.0, 0.1], size=3)))
        it.words.append("parallel")
    if kind == "flat":  # no interior
        A, b = np.vstack([A, -A[:1]]), np.append(b, -A[0] @ it.inside)
        b[0] = A[0] @ it.inside
    if rng.random() < 0.2:
        size = 10.0 ** rng.integers(-8, 9, size=b.size)
        A, b = size[:, None] * A, size * b
        it.words.append("row scales")
    return _linear(it, A, b, kind)


def _linear(it: Instance, A: np.ndarray, b: np.ndarray, kind: str) -> Any:
    norms = np.linalg.norm(A, axis=1)
    it.excesses.append(lambda v: float(((A @ v - b) / norms).max()))
    unit_A, unit_b = A / norms[:, None], b / norms
    it.said.append(lambda cp, v: [unit_A @ v <= unit_b])
    ours = A @ it.T
    if kind == "generated":
        needs("GeneratedRows")
        return lt.GeneratedRows(it.d, b.size, Rows(ours, b), stored_row, it.d)
    return lt.LinearConstraints(sp.csr_matrix(ours) if kind == "sparse rows" else ours, b)


def _equalities(it: Instance) -> Any:
    needs("LinearEqualities")
    m = int(it.rng.integers(1, max(2, it.d)))
    E = it.rng.normal(size=(m, it.d))
    if it.rng.random() < 0.3:
        E = np.vstack([E, E.sum(axis=0)])  # one too many
        it.words.append("redundant")
    e = E @ it.inside
    it.excesses.append(lambda v: float((np.abs(E @ v - e) / np.linalg.norm(E, axis=1)).max()))
    it.said.append(lambda cp, v: [E[:m] @ v == e[:m]])
    return lt.LinearEqualities(E @ it.T, e)


def _norms(it: Instance) -> Any:
    m, r = int(it.rng.integers(1, 4)), int(it.rng.integers(1, it.d + 1))
    B, shift = it.rng.normal(size=(m, r, it.d)), it.rng.normal(size=(m, r))
    sides = np.linalg.norm(B @ it.inside + shift, axis=1) + 0.3 * it.rng.random(m)
    it.excesses.append(lambda v: float((np.linalg.norm(B @ v + shift, axis=1) - sides).max()))
    it.said.append(lambda cp, v: [cp.norm(B[j] @ v + shift[j]) <= sides[j] for j in range(m)])
    return lt.NormConstraints(B @ it.T, shift, None, sides)


def _quadratics(it: Instance) -> Any:
    root = it.rng.normal(size=(it.d, it.d)) * (it.rng.random(it.d) < 0.8)
    P, q = root.T @ root, it.rng.normal(size=it.d)
    r = -(0.5 * it.inside @ P @ it.inside + q @ it.inside) - 0.3 * it.rng.random()
    it.excesses.append(lambda v: float(0.5 * v @ P @ v + q @ v + r))
    it.said.append(lambda cp, v: [0.5 * cp.sum_squares(root @ v) + q @ v + r <= 0])
    ours = it.T.T @ P @ it.T
    it.roundings.append(lambda w: float(2.0**-52 * np.abs(w) @ np.abs(ours) @ np.abs(w)))
    return lt.QuadraticConstraints((ours + ours.T) / 2, (q @ it.T)[None], [r])


def _log_sum_exp(it: Instance) -> Any:
    side = float(np.logaddexp.reduce(it.inside) + 0.3 * it.rng.random())
    T = it.T

    def value(j: int, w: np.ndarray) -> float:
        return float(np.logaddexp.reduce(T @ w) - side)

    def subgradient(j: int, w: np.ndarray) -> np.ndarray:
        u = T @ w
        weights = np.exp(u - u.max())
        return np.asarray(T.T @ (weights / weights.sum()))

    it.excesses.append(lambda v: float(np.logaddexp.reduce(v) - side))
    it.said.append(lambda cp, v: [cp.log_sum_exp(v) <= side])
    return lt.ConvexConstraints(it.d, 1, value, subgradient)


OTHER_FAMILIES: dict[str, Callable[[Instance], Any]] = {
    "norms": _norms,
    "quadratics": _quadratics,
    "convex": _log_sum_exp,
    "equalities": _equalities,
}


def _draw_objective(it: Instance, bounded: bool) -> Any:
    kind = str(it.rng.choice(["risk"] * 8 + ["quadratic", "custom", "sum"]))
    if kind == "quadratic":
        return _quadratic(it, bounded)
    if kind == "custom":
        return _custom(it)
    if kind == "sum":
        return _weighted_sum(it, bounded)
    objective, it.value, it.reference_value = _risk(it, bounded, scaled=True)
    return objective


def _quadratic(it: Instance, bounded: bool) -> Any:
    rank = int(it.rng.integers(0 if bounded else 1, it.d + 1))
    root = it.rng.normal(size=(rank, it.d))
    P = root.T @ root
    q = it.rng.normal(size=it.d) if bounded else -root.T @ it.rng.normal(size=rank)
    it.words.append(f"quadratic of rank {rank}")
    it.value = lambda v: float(0.5 * v @ P @ v + q @ v)
    it.reference_value = lambda cp, v: (0.5 * cp.sum_squares(root @ v) if rank else 0.0) + q @ v
    ours = it.T.T @ P @ it.T
    return lt.Quadratic((ours + ours.T) / 2, q @ it.T)


def _custom(it: Instance) -> Any:
    """A norm of C u - 1 as Python functions with the default of one example: kinks in all."""
    C, T = it.rng.normal(size=(5, it.d)), it.T
    order = float(it.rng.choice([1.0, 2.0, np.inf]))
    it.words.append(f"custom norm {order:g}")

    def value(i: int, w: np.ndarray) -> float:
        return float(np.linalg.norm(C @ (T @ w) - 1.0, order))

    def gradient(i: int, w: np.ndarray) -> np.ndarray:
        z = C @ (T @ w) - 1.0
        if order == 1.0:
            slope = np.sign(z)
        elif order == 2.0:
            slope = z / max(1e-300, float(np.linalg.norm(z)))
        else:
            slope = np.sign(z) * (np.arange(z.size) == np.abs(z).argmax())
        return np.asarray(T.T @ (C.T @ slope))

    it.value = lambda v: float(np.linalg.norm(C @ v - 1.0, order))
    it.reference_value = lambda cp, v: cp.norm(C @ v - 1.0, "inf" if order == np.inf else order)
    return lt.CustomObjective(it.d, value, gradient)


def _weighted_sum(it: Instance, bounded: bool) -> Any:
    needs("WeightedSum")
    parts = [_risk(it, bounded, scaled=False) for _ in range(2)]
    weights = it.rng.uniform(0.2, 2.0, size=2)
    it.value = lambda v: float(sum(a * part[1](v) for a, part in zip(weights, parts, strict=True)))
    it.reference_value = lambda cp, v: sum(
        a * part[2](cp, v) for a, part in zip(weights, parts, strict=True)
    )
    return lt.WeightedSum([part[0] for part in parts], weights)


def needs_argument(name: str) -> None:
    if name not in inspect.signature(lt.EmpiricalRisk).parameters:
        raise NotYet(f"needs EmpiricalRisk(..., {name}=)")


def _examples(it: Instance) -> np.ndarray:
    rng = it.rng
    n = int(rng.choice([1, rng.integers(2, 9), rng.integers(2, 9), rng.integers(20, 60)]))
    X = rng.normal(size=(n, it.d))
    if rng.random() < 0.15 and it.d > 1:
        X[:, -1] = X[:, 0]
        it.words.append("equal columns")
    if rng.random() < 0.15:
        X[n // 2 :] = X[: n - n // 2]
        it.words.append("equal examples")
    return X


def _attained(loss: RandomLoss, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Examples whose least loss is not at infinity."""
    if loss.kind == "label":
        return np.vstack([X, X]), np.concatenate([y, -y])
    return X, y + 0.5


def _risk(it: Instance, bounded: bool, scaled: bool) -> tuple[Any, Measure, Any]:
    """A risk with its value in NumPy and for CVXPY; `scaled`: with targets of any size."""
    rng, X = it.rng, _examples(it)
    n = X.shape[0]
    loss = drawn(rng, n)
    y = loss.targets(rng, X @ it.inside + rng.normal(size=n))
    it.words += [loss.name, f"n = {n}", f"d = {it.d}"]
    c = 1.0
    if scaled and loss.degree and it.words[0] in DOMAINS and rng.random() < 0.2:
        c = 10.0 ** float(rng.choice([-8, -3, 3, 8]))
        it.words.append(f"targets x {c:.0e}")
    it.unit = c**loss.degree
    strict = bounded or not loss.needs_bound
    ridge = float(rng.choice([0.0, 1e-3, 0.1] if strict else [1e-3, 0.1])) if it.scalar else 0.0
    if ridge == 0.0 and not strict:
        X, y = _attained(loss, X, y)
        n = y.size
    factor = float(it.T[0, 0])
    options: dict[str, Any] = {"l2": ridge * it.unit * factor**2}
    lasso, shift = 0.0, np.zeros(n)
    if rng.random() < 0.15 and it.scalar:
        needs_argument("l1")
        lasso = 0.05
        options["l1"] = lasso * it.unit * factor
        it.words.append("l1")
    if rng.random() < 0.15:
        needs_argument("offset")
        shift = 0.3 * rng.normal(size=n)
        options["offset"] = c * shift
        it.words.append("offset")
    shares = np.full(n, 1.0 / n)
    if rng.random() < 0.2:
        weights = rng.integers(0, 3, size=n) + (rng.random() < 0.5) * 0.5
        weights[0] = 1.0
        shares, options["sample_weight"] = weights / weights.sum(), weights
    ours: Any = c * (X @ it.T)
    ours = sp.csr_matrix(ours) if rng.random() < 0.3 else ours
    objective = lt.EmpiricalRisk(ours, c * y, loss=loss.ours, **options)

    def value(v: np.ndarray) -> float:
        mean = float(shares @ loss.values(X @ v + shift, y))
        return mean + 0.5 * ridge * float(v @ v) + lasso * float(np.abs(v).sum())

    def reference(cp: Any, v: Any) -> Any:
        mean = shares @ loss.expression(cp, X @ v + shift, y)
        mean = mean + 0.5 * ridge * cp.sum_squares(v) if ridge else mean
        return mean + lasso * cp.norm1(v) if lasso else mean

    it.target_scale = c
    return objective, value, reference
