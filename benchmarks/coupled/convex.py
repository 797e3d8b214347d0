"""Convex regression: n points, n (n - 1) rows, stored or generated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.coupled.case import Case, case, clarabel, needs

SEED = 0
KNOWN_500 = 205.5626  # sum of squares, by ../shared/prototypes


def rows_of(X: np.ndarray, i: np.ndarray, j: np.ndarray, sign: float) -> sp.csr_matrix:
    """sign (f_j - f_i - g_i (x_j - x_i)) <= 0 in w = (f, g): concave for sign 1, convex for -1."""
    n, d = X.shape
    r = np.arange(i.size)
    entries = [(r, j, np.ones(r.size)), (r, i, -np.ones(r.size))]
    entries += [(r, n + i * d + a, X[i, a] - X[j, a]) for a in range(d)]
    R, C, V = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sp.csr_matrix((sign * V, (R, C)), shape=(r.size, n * (1 + d)))


def all_rows(X: np.ndarray, sign: float) -> sp.csr_matrix:
    i, j = np.divmod(np.arange(X.shape[0] ** 2), X.shape[0])
    return rows_of(X, i[i != j], j[i != j], sign)


def shape_excess(X: np.ndarray, sign: float) -> Callable[[np.ndarray], float]:
    """The largest violation over all n (n - 1) rows, recomputed from f and g."""
    n, d = X.shape

    def measure(w: np.ndarray) -> float:
        f, g = w[:n], w[n:].reshape(n, d)
        broken = sign * (f[None, :] - f[:, None] - g @ X.T + (g * X).sum(axis=1)[:, None])
        np.fill_diagonal(broken, 0.0)
        return float(max(0.0, broken.max()))

    return measure


def stored(n: int) -> list[Case]:
    """A bowl with noise in two inputs, every row stored, stated as a quadratic and as a risk."""
    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = (X**2).sum(axis=1) + 0.3 * rng.normal(size=n)
    A = all_rows(X, -1.0)
    rules = lt.LinearConstraints(A, np.zeros(A.shape[0]))
    f_part = sp.csr_matrix((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, 3 * n))
    P = sp.csr_matrix(f_part.T @ f_part / n)
    q = -(f_part.T @ y) / n

    def evaluate(w: np.ndarray) -> float:
        return 0.5 * float(np.mean((w[:n] - y) ** 2))

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        w = cp.Variable(3 * n)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w[:n] - y) / (2 * n)), [A @ w <= 0])
        status = clarabel(problem)
        return evaluate(w.value), status

    shared: dict[str, Any] = dict(
        evaluate=evaluate,
        violation=shape_excess(X, -1.0),
        reference=reference,
        tolerance=1e-6,
        time_limit=90.0,
        same_as=f"convex{n}",
    )
    constant = 0.5 * float(np.mean(y**2))
    quadratic = lt.Problem(lt.Quadratic(P, q), rules)
    risk = lt.Problem(lt.EmpiricalRisk(f_part, y, loss="squared"), rules)
    return [
        Case(f"convex{n} quadratic", quadratic, offset=constant, **shared),
        Case(f"convex{n} risk", risk, **shared),
    ]


@case
def convex30() -> list[Case]:
    return stored(30)


@case
def convex120() -> list[Case]:
    return stored(120)


@case
def convex300() -> list[Case]:
    return stored(300)


class Points(NamedTuple):
    X: np.ndarray


def concave_row(points: Points, j: int, columns: np.ndarray, values: np.ndarray) -> Any:
    """f_l <= f_i + g_i (x_l - x_i) for the j-th pair i != l: at most 2 + d numbers."""
    n, d = points.X.shape
    i, other = j // (n - 1), j % (n - 1)
    if other >= i:
        other += 1
    columns[0], values[0] = other, 1.0
    columns[1], values[1] = i, -1.0
    for a in range(d):
        columns[2 + a] = n + i * d + a
        values[2 + a] = points.X[i, a] - points.X[other, a]
    return 2 + d, 0.0


def production(n: int) -> tuple[np.ndarray, np.ndarray]:
    """pyStoNED's seeded example: inputs and output of firms."""
    random = np.random.RandomState(SEED)
    X = random.uniform(low=1, high=10, size=(n, 2))
    return X, X[:, 0] ** 0.4 * X[:, 1] ** 0.4 + random.normal(loc=0, scale=0.7, size=n)


def concave_increasing(n: int, known: float | None, time_limit: float, store: bool) -> Case:
    """min sum (f - y)^2 / 2 + 1e-10 |g|^2 / 2, concave, g >= 0; reported as the sum of squares."""
    X, y = production(n)
    d = X.shape[1]
    if store:
        A = all_rows(X, 1.0)
        rules: Any = lt.LinearConstraints(A, np.zeros(A.shape[0]))
    else:
        needs("GeneratedRows")
        rules = lt.GeneratedRows(n * (1 + d), n * (n - 1), Points(X), concave_row, 2 + d)
    P = sp.diags(np.concatenate([np.ones(n), np.full(n * d, 1e-10)]), format="csr")
    q = np.concatenate([-y, np.zeros(n * d)])
    lower = np.concatenate([np.full(n, -np.inf), np.zeros(n * d)])
    shape = shape_excess(X, 1.0)
    return Case(
        f"generated{n}{' stored' if store else ''}",
        lt.Problem(lt.Quadratic(P, q), rules, lt.Box(lower, np.inf)),
        evaluate=lambda w: float(np.sum((w[:n] - y) ** 2)),
        violation=lambda w: max(shape(w), float(max(0.0, -w[n:].min()))),
        reference=lambda: working_set(X, y),
        scale=2.0,
        offset=float(y @ y),
        tolerance=1e-6,
        time_limit=time_limit,
        known=known,
    )


def working_set(X: np.ndarray, y: np.ndarray) -> tuple[float, str]:
    """The prototype: Clarabel around a growing set of rows, all of them satisfied to 1e-6."""
    import clarabel as conic
    from scipy.spatial import cKDTree

    n, d = X.shape
    P = sp.diags(np.concatenate([np.ones(n), np.full(n * d, 1e-10)]), format="csc")
    q = np.concatenate([-y, np.zeros(n * d)])
    bounds = sp.hstack([sp.csr_matrix((n * d, n)), -sp.eye(n * d)])
    near = cKDTree(X).query(X, k=min(n, 14))[1][:, 1:]
    I, J = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    settings = conic.DefaultSettings()
    settings.verbose = False
    for _ in range(30):
        rows = sp.vstack([rows_of(X, I, J, 1.0), bounds]).tocsc()
        cones = [conic.NonnegativeConeT(rows.shape[0])]
        solver = conic.DefaultSolver(P, q, rows, np.zeros(rows.shape[0]), cones, settings)
        answer = solver.solve()
        w = np.array(answer.x)
        f, g = w[:n], w[n:].reshape(n, d)
        broken = f[None, :] - f[:, None] - g @ X.T + (g * X).sum(axis=1)[:, None]
        np.fill_diagonal(broken, 0.0)
        if broken.max() < 1e-6:
            break
        i, j = np.repeat(np.arange(n), 4), np.argpartition(-broken, 4, axis=1)[:, :4].ravel()
        new = (broken[i, j] > 1e-8) & ~np.isin(i * n + j, I * n + J)
        I, J = np.concatenate([I, i[new]]), np.concatenate([J, j[new]])
    return float(np.sum((f - y) ** 2)), f"working set, {answer.status}"


@case
def generated500() -> Case:
    return concave_increasing(500, KNOWN_500, 60.0, store=False)


@case
def generated500_stored() -> Case:
    return concave_increasing(500, KNOWN_500, 60.0, store=True)


@case
def generated2000() -> Case:
    return concave_increasing(2000, None, 300.0, store=False)
