"""Models under coupled rules: quantiles that do not cross, a fair classifier, the ranking."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import lighttouch as lt
from benchmarks.coupled.case import Case, box_excess, case, clarabel, excess, largest, needs
from benchmarks.speed.paper_problem import paper_problem

LEVELS = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
FAR = 100.0  # beyond every prediction, so that |z - FAR| is linear where it matters


@case
def quantiles() -> Case:
    """Seven linear quantiles of 2,000 points that do not cross at any of them: 12,000 rows."""
    rng = np.random.default_rng(0)
    n, p = 2_000, 10
    X = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    y = X @ rng.normal(size=p + 1) + (0.5 + 0.5 * np.abs(X[:, 1])) * rng.standard_t(4, size=n)
    k, d = LEVELS.size, p + 1
    blocks = sp.csr_matrix(sp.block_diag([sp.csr_matrix(X)] * k))
    lower, upper = blocks[: n * (k - 1)], blocks[n:]
    A, b = sp.csr_matrix(lower - upper), np.zeros(n * (k - 1))
    levels, targets = np.repeat(LEVELS, n), np.tile(y, k)

    def evaluate(w: np.ndarray) -> float:
        left = targets - blocks @ w
        return float(np.maximum(levels * left, (levels - 1.0) * left).sum()) / n

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        W = cp.Variable((k, d))
        left = [y - X @ W[each] for each in range(k)]
        value = sum(
            cp.sum(cp.maximum(t * r, (t - 1.0) * r)) for t, r in zip(LEVELS, left, strict=True)
        )
        said = [X @ W[each] <= X @ W[each + 1] for each in range(k - 1)]
        status = clarabel(cp.Problem(cp.Minimize(value / n), said))
        return evaluate(np.asarray(W.value).ravel()), status

    objective, offset, scale = _quantile_risk(blocks, targets, levels, k)
    problem = lt.Problem(objective, lt.LinearConstraints(A, b))
    return Case("quantiles", problem, evaluate, excess(A, b), reference, offset, scale)


def _quantile_risk(
    blocks: sp.csr_matrix, y: np.ndarray, levels: np.ndarray, k: int
) -> tuple[Any, float, float]:
    """The sum of the quantile losses; until a level per example exists, r+ and r- are written as
    |r| / 2 + (level - 1/2) r, and the linear part as an absolute loss whose kink is far away.
    """
    try:
        return lt.EmpiricalRisk(blocks, y, loss=lt.Quantile(levels)), 0.0, float(k)
    except (TypeError, ValueError):
        pass
    n = y.size // k
    slope = -(blocks.T @ (levels - 0.5)) / n  # of the linear part, in w
    rows = sp.vstack([blocks, sp.csr_matrix(-slope)], format="csr")
    weights = np.append(np.full(y.size, 0.5 / n), 1.0)
    total = weights.sum()
    objective = lt.EmpiricalRisk(rows, np.append(y, FAR), loss="absolute", sample_weight=weights)
    return objective, float((levels - 0.5) @ y) / n - FAR, float(total)


class People(NamedTuple):
    X: np.ndarray
    metric: np.ndarray


def pair_row(people: People, j: int, columns: np.ndarray, values: np.ndarray) -> Any:
    """(x_a - x_b).w <= |metric (x_a - x_b)| for the j-th pair (a, b): similar people, similar
    scores. A pair of one person with itself is 0 <= 0.
    """
    n, d = people.X.shape
    a, b = j // n, j % n
    square = 0.0
    for k in range(d):
        difference = people.X[a, k] - people.X[b, k]
        columns[k] = k
        values[k] = difference
        square += (people.metric[k] * difference) ** 2
    return d, np.sqrt(square)


@case
def fair() -> Case:
    """Logistic regression of 5,000 people, 12 columns, whose scores differ by no more than the
    people do: all 25 million pairs.
    """
    needs("GeneratedRows")
    rng = np.random.default_rng(0)
    n, d = 5_000, 12
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=d)
    metric = rng.uniform(0.1, 0.8, size=d)
    chance = 1.0 / (1.0 + np.exp(-X @ rng.normal(size=d)))
    y = np.where(rng.random(n) < chance, 1.0, -1.0)
    rules = lt.GeneratedRows(d, n * n, People(X, metric), pair_row, d)

    def evaluate(w: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0.0, -y * (X @ w))))

    return Case(
        "fair",
        lt.Problem(lt.EmpiricalRisk(X, y, loss="logistic"), rules),
        evaluate,
        lambda w: fair_excess(X, metric, w)[0],
        lambda: fair_reference(X, metric, y),
    )


def fair_excess(X: np.ndarray, metric: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest violation over all pairs, and each person's worst partner."""
    z, M, found = X @ w, X * metric, np.empty(X.shape[0], dtype=int)
    for start in range(0, z.size, 500):
        part = slice(start, start + 500)
        broken = z[part, None] - z[None, :] - cdist(M[part], M)
        found[part] = broken.argmax(axis=1)
    own = np.arange(z.size)
    worst = (X - X[found]) @ w - np.linalg.norm((X - X[found]) * metric, axis=1)
    return float(max(0.0, worst.max())), np.column_stack([own, found])[np.argsort(-worst)]


def fair_reference(X: np.ndarray, metric: np.ndarray, y: np.ndarray) -> tuple[float, str]:
    """CVXPY around a growing set of pairs: 25 million do not pass through it."""
    import cvxpy as cp

    w = cp.Variable(X.shape[1])
    value = cp.sum(cp.logistic(-cp.multiply(y, X @ w))) / y.size
    pairs = np.zeros((0, 2), dtype=int)
    for _ in range(40):
        apart = X[pairs[:, 0]] - X[pairs[:, 1]]
        said = [apart @ w <= np.linalg.norm(apart * metric, axis=1)] if len(pairs) else []
        status = clarabel(cp.Problem(cp.Minimize(value), said))
        broken, found = fair_excess(X, metric, w.value)
        if broken <= 1e-7:
            break
        pairs = np.unique(np.vstack([pairs, found[:200]]), axis=0)
    return float(value.value), f"growing set, {status}"


@case
def paper() -> Case:
    """The paper's ranking: 612,587 pairs, 4,096 parameters, 24,576 orders."""
    problem = paper_problem()
    difference, sizes = problem.objective.X, [2] * 12

    def violation(w: np.ndarray) -> float:
        table = w.reshape(sizes)
        falls = [float(-np.diff(table, axis=axis).min()) for axis in range(12)]
        return max(0.0, *falls, box_excess(-10.0, 10.0)(w))

    return Case(
        "paper",
        problem,
        lambda w: float(np.maximum(0.0, 1.0 - difference @ w).mean()),
        violation,
    )


@case
def svr() -> Case:
    """Support vector regression of 4,000 points, 31 columns, 5,000 fairness rows."""
    rng = np.random.default_rng(0)
    n, d, m, epsilon = 4_000, 31, 5_000, 0.5
    X = np.c_[rng.normal(size=(n, d - 1)), np.ones(n)]
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    A, b = rng.normal(size=(m, d)), np.full(m, 3.0)

    def evaluate(w: np.ndarray) -> float:
        return float(np.maximum(0.0, np.abs(X @ w - y) - epsilon).mean())

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        w = cp.Variable(d)
        value = cp.sum(cp.pos(cp.abs(X @ w - y) - epsilon)) / n
        status = clarabel(cp.Problem(cp.Minimize(value), [A @ w <= b]))
        return evaluate(w.value), status

    shared: dict[str, Any] = {"offset": 0.0, "scale": 1.0}
    if hasattr(lt, "EpsilonInsensitive"):
        objective = lt.EmpiricalRisk(X, y, loss=lt.EpsilonInsensitive(epsilon))
    else:  # |r - e| + |r + e| = 2 max(|r|, e)
        doubled = np.r_[y - epsilon, y + epsilon]
        objective = lt.EmpiricalRisk(np.r_[X, X], doubled, loss="absolute")
        shared = {"offset": -epsilon, "scale": 1.0}
    problem = lt.Problem(objective, lt.LinearConstraints(A, b))
    return Case("svr", problem, evaluate, excess(A, b), reference, **shared)


@case
def ball() -> Case:
    """Logistic regression of 5,000 points in a ball."""
    rng = np.random.default_rng(0)
    n, d, radius = 5_000, 50, 1.0
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)

    def evaluate(w: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0.0, -y * (X @ w))))

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        w = cp.Variable(d)
        value = cp.sum(cp.logistic(-cp.multiply(y, X @ w))) / n
        status = clarabel(cp.Problem(cp.Minimize(value), [cp.norm(w) <= radius]))
        return evaluate(w.value), status

    return Case(
        "ball",
        lt.Problem(lt.EmpiricalRisk(X, y, loss="logistic"), None, lt.Ball(radius)),
        evaluate,
        largest(lambda w: max(0.0, float(np.linalg.norm(w)) - radius)),
        reference,
    )
