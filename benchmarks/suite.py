"""No tuning: `solve(problem, time_limit=30)` on many different problems, against optima found by
other means.

`python -m benchmarks.suite` prints a table; every row must end feasible to 1e-9 of the row scale
and within 1% of the optimum. The reference optima come from CVXPY with Clarabel (install the extra
`bench`), or from closed forms.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import isotonic

import lighttouch as lt
from lighttouch.datasets import ranking_pairs


@dataclass(frozen=True)
class Case:
    name: str
    problem: lt.Problem
    optimum: float


CASES: dict[str, Callable[[], Case]] = {}


def case(function: Callable[[], tuple[lt.Problem, float]]) -> Callable[[], Case]:
    name = function.__name__.replace("_", " ")

    def build() -> Case:
        problem, optimum = function()
        return Case(name, problem, optimum)

    CASES[name] = build
    return build


def minimum(problem: lt.Problem, extra: Callable[..., list[object]] | None = None) -> float:
    """The optimum by CVXPY and Clarabel; `extra` adds constraints it cannot read off the
    problem.
    """
    import cvxpy as cp

    w = cp.Variable(problem.dimension)
    rules = [] if extra is None else extra(cp, w)
    constraints = problem.constraints
    if isinstance(constraints, lt.LinearConstraints) and constraints.count:
        rules.append(constraints.A @ w <= constraints.b)
    domain = problem.domain
    if isinstance(domain, lt.Box):
        rules += [w >= domain.lower, w <= domain.upper]
    if isinstance(domain, lt.Ball):
        rules.append(cp.norm(w) <= domain.radius)
    solved = cp.Problem(cp.Minimize(_expression(cp, problem.objective, w)), rules)
    solved.solve(solver=cp.CLARABEL)
    return float(solved.value)


def _expression(cp, objective, w):
    if isinstance(objective, lt.Quadratic):
        return 0.5 * cp.quad_form(w, cp.psd_wrap(objective.P)) + objective.q @ w
    z, y, n = objective.X @ w, objective.y, objective.examples
    weights = (
        np.ones(n)
        if objective.sample_weight is None
        else objective.sample_weight * n / objective.sample_weight.sum()
    )
    losses = {
        "hinge": lambda: cp.pos(1 - cp.multiply(y, z)),
        "logistic": lambda: cp.logistic(-cp.multiply(y, z)),
        "squared": lambda: cp.square(z - y) / 2,
        "absolute": lambda: cp.abs(z - y),
        "huber": lambda: cp.huber(z - y, 1) / 2,
    }
    if isinstance(objective.loss, lt.Quantile):
        level = objective.loss.level
        each = cp.maximum(level * (y - z), (level - 1) * (y - z))
    else:
        each = losses[objective.loss]()
    return weights @ each / n + objective.l2 / 2 * cp.sum_squares(w)


def regression(
    n: int, d: int, seed: int, noise: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, truth = rng.normal(size=(n, d)), rng.normal(size=d)
    return X, X @ truth + noise * rng.normal(size=n), truth


def labels(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y, _ = regression(n, d, seed, 1.0)
    return X, np.where(y > 0, 1.0, -1.0)


def solved(
    problem: lt.Problem, extra: Callable[..., list[object]] | None = None
) -> tuple[lt.Problem, float]:
    return problem, minimum(problem, extra)


@case
def isotonic_regression():
    rng = np.random.default_rng(0)
    y = np.linspace(0, 3, 300) + rng.normal(size=300)
    return solved(
        lt.Problem(lt.EmpiricalRisk(sp.identity(300), y, loss="squared"), lt.ordering(300))
    )


@case
def isotonic_median():
    rng = np.random.default_rng(1)
    y = np.linspace(0, 3, 200) + rng.standard_t(2, size=200)
    return solved(
        lt.Problem(lt.EmpiricalRisk(sp.identity(200), y, loss="absolute"), lt.ordering(200))
    )


@case
def ranking_on_a_lattice_of_64():
    better, worse = ranking_pairs(2000, features=6)
    lattice = lt.Lattice([2] * 6)
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    return solved(lt.Problem(objective, lt.lattice.increasing([2] * 6), lt.Box(-10, 10)))


@case
def logistic_lattice_with_bounds():
    rng = np.random.default_rng(2)
    x = rng.random((3000, 5))
    y = np.where(x.sum(axis=1) + 0.5 * rng.normal(size=3000) > 2.5, 1.0, -1.0)
    rules = lt.stack(lt.lattice.increasing([2] * 5), lt.lattice.bounds([2] * 5, -4, 4))
    return solved(
        lt.Problem(lt.EmpiricalRisk(lt.Lattice([2] * 5).features(x), y, loss="logistic"), rules)
    )


@case
def convex_increasing_lattice():
    rng = np.random.default_rng(3)
    sizes = [5, 4, 3]
    x = rng.random((2000, 3)) * (np.array(sizes) - 1)
    y = x[:, 0] ** 2 / 4 + x[:, 1] + rng.normal(size=2000)
    rules = lt.stack(lt.lattice.increasing(sizes), lt.lattice.convex(sizes, 0))
    return solved(
        lt.Problem(lt.EmpiricalRisk(lt.Lattice(sizes).features(x), y, loss="squared"), rules)
    )


@case
def edgeworth_trust_and_range_dominance():
    rng = np.random.default_rng(4)
    sizes = [3, 3, 2, 2]
    x = rng.random((3000, 4)) * (np.array(sizes) - 1)
    y = x[:, 0] - x[:, 1] * x[:, 0] + rng.normal(size=3000)
    rules = lt.stack(lt.lattice.edgeworth(sizes, 0, 1), lt.lattice.range_dominance(sizes, 0, 2))
    return solved(
        lt.Problem(lt.EmpiricalRisk(lt.Lattice(sizes).features(x), y, loss="huber"), rules)
    )


def random_rows(d: int, m: int, seed: int, dense: bool = True) -> lt.LinearConstraints:
    rng = np.random.default_rng(seed)
    A = (
        rng.normal(size=(m, d))
        if dense
        else sp.random(m, d, 0.1, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    )
    return lt.LinearConstraints(A, np.full(m, 0.5 if dense else 0.2))


@case
def least_squares_under_dense_rows():
    X, y, _ = regression(500, 40, 5)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), random_rows(40, 3000, 5)))


@case
def least_squares_under_sparse_rows():
    X, y, _ = regression(500, 60, 6)
    return solved(
        lt.Problem(
            lt.EmpiricalRisk(X, y, loss="squared"),
            random_rows(60, 3000, 6, dense=False),
            lt.Box(-5, 5),
        )
    )


@case
def absolute_loss_under_dense_rows():
    X, y, _ = regression(400, 30, 7)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute"), random_rows(30, 1000, 7)))


@case
def svm_with_canonical_examples():
    X, y = labels(1000, 20, 8)
    rules = lt.canonical_examples(X[:5] + 2 * y[:5, None], y[:5], margin=1.0)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="hinge", l2=0.1), rules))


@case
def logistic_regression_in_a_box():
    X, y = labels(1500, 30, 9)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="logistic"), None, lt.Box(-0.3, 0.3)))


@case
def huber_with_signs_and_a_budget():
    X, y, truth = regression(800, 25, 10)
    signs = lt.bounds(25, np.where(truth > 0, 0.0, -np.inf), np.where(truth > 0, np.inf, 0.0))
    budget = lt.LinearConstraints(np.sign(truth)[None, :], [np.abs(truth).sum() / 2])
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="huber"), lt.stack(signs, budget)))


@case
def ninth_decile_with_order():
    X, y, _ = regression(600, 12, 11, 2.0)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss=lt.Quantile(0.9)), lt.ordering(12)))


@case
def nearest_point_of_many_balls():
    rng = np.random.default_rng(12)
    centers = 0.3 * rng.normal(size=(60, 20))
    radii = np.linalg.norm(centers, axis=1) + 0.5
    problem = lt.Problem(
        lt.Quadratic(np.eye(20), -3 * rng.normal(size=20)),
        lt.NormConstraints(None, -centers, None, radii),
    )
    return solved(
        problem, lambda cp, w: [cp.norm(w - c) <= r for c, r in zip(centers, radii, strict=True)]
    )


@case
def regression_in_ellipsoids():
    rng = np.random.default_rng(13)
    X, y, _ = regression(500, 10, 13)
    roots = rng.normal(size=(15, 10, 10)) / 3
    P = roots @ roots.transpose(0, 2, 1)
    rules = lt.QuadraticConstraints(P, np.zeros((15, 10)), np.full(15, -0.5))
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), rules),
        lambda cp, w: [0.5 * cp.quad_form(w, cp.psd_wrap(p)) <= 0.5 for p in P],
    )


@case
def second_order_cones():
    rng = np.random.default_rng(14)
    X, y, _ = regression(400, 12, 14)
    A, b = rng.normal(size=(20, 5, 12)) / 3, 0.1 * rng.normal(size=(20, 5))
    c, d = 0.1 * rng.normal(size=(20, 12)), np.full(20, 1.0)
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute"), lt.NormConstraints(A, b, c, d)),
        lambda cp, w: [cp.norm(A[j] @ w + b[j]) <= c[j] @ w + d[j] for j in range(20)],
    )


class Exponents(NamedTuple):
    rows: np.ndarray


def exponential_value(record, j, w):
    total = 0.0
    for k in range(w.size):
        total += np.exp(record.rows[j, k] * w[k])
    return total - 1.5 * w.size


def exponential_slope(record, j, w, out):
    for k in range(w.size):
        out[k] = record.rows[j, k] * np.exp(record.rows[j, k] * w[k])


@case
def a_convex_function_of_the_users():
    rng = np.random.default_rng(15)
    X, y, _ = regression(300, 8, 15)
    rows = rng.normal(size=(10, 8))
    rules = lt.ConvexConstraints(
        8, 10, exponential_value, exponential_slope, record=Exponents(rows)
    )
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), rules),
        lambda cp, w: [cp.sum(cp.exp(cp.multiply(rows[j], w))) <= 12 for j in range(10)],
    )


@case
def data_of_scale_one_thousandth():
    X, y, _ = regression(500, 20, 16)
    return solved(lt.Problem(lt.EmpiricalRisk(1e-3 * X, y, loss="squared"), lt.ordering(20)))


@case
def data_of_scale_one_thousand():
    X, y = labels(500, 20, 17)
    return solved(lt.Problem(lt.EmpiricalRisk(1e3 * X, y, loss="hinge"), lt.ordering(20)))


@case
def targets_of_scale_one_thousand():
    X, y, _ = regression(500, 15, 18)
    return solved(lt.Problem(lt.EmpiricalRisk(X, 1e3 * y, loss="absolute"), lt.ordering(15)))


@case
def badly_conditioned_and_nonnegative():
    rng = np.random.default_rng(19)
    X, y, _ = regression(600, 30, 19)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    X = left * np.geomspace(1, 1e-3, 30) * 30 @ right
    y = X @ np.abs(rng.normal(size=30)) + 0.1 * rng.normal(size=600)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), lt.bounds(30, 0.0)))


@case
def columns_of_many_scales():
    X, y, _ = regression(600, 20, 20)
    scales = np.geomspace(1e-2, 1e2, 20)
    return solved(lt.Problem(lt.EmpiricalRisk(X * scales, y, loss="squared"), lt.bounds(20, 0.0)))


@case
def rows_inside_a_ball():
    X, y, _ = regression(400, 20, 21)
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), random_rows(20, 200, 21), lt.Ball(0.6))
    )


@case
def sparse_text_like_svm():
    rng = np.random.default_rng(22)
    X = sp.random(4000, 500, 0.02, random_state=rng, format="csr")
    y = np.where(X @ rng.normal(size=500) + 0.3 * rng.normal(size=4000) > 0, 1.0, -1.0)
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="hinge", l2=1e-3), lt.bounds(500, -2.0, 2.0))
    )


@case
def portfolio_on_the_simplex():
    rng = np.random.default_rng(23)
    root = rng.normal(size=(50, 50)) / 7
    ones = np.ones((1, 50))
    rules = lt.stack(
        lt.bounds(50, 0.0), lt.LinearConstraints(np.vstack([ones, -ones]), [1.0, -1.0])
    )
    return solved(
        lt.Problem(lt.Quadratic(root @ root.T + 0.1 * np.eye(50), -rng.random(50)), rules)
    )


@case
def weighted_examples_with_dominance():
    rng = np.random.default_rng(24)
    X, y, _ = regression(700, 10, 24)
    rules = lt.order([0, 1, 2], [3, 4, 5], dimension=10)
    return solved(
        lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute", sample_weight=rng.random(700)), rules)
    )


def normal_equations(problem: lt.Problem) -> float:
    """The optimum of a squared loss, from X'X and X'y alone."""
    objective = problem.objective
    X, y, n = objective.X, objective.y, objective.examples
    P, q = (X.T @ X) / n, -(X.T @ y) / n
    P = (P.toarray() if sp.issparse(P) else P) + objective.l2 * np.eye(problem.dimension)
    return (
        minimum(lt.Problem(lt.Quadratic((P + P.T) / 2, q), problem.constraints, problem.domain))
        + 0.5 * float(y @ y) / n
    )


@case
def a_quarter_million_examples_on_a_lattice():
    rng = np.random.default_rng(25)
    x = rng.random((250_000, 8))
    y = (
        np.minimum(x[:, 0], x[:, 1])
        - 0.5 * x[:, 2]
        + x[:, 3:].mean(axis=1)
        + rng.normal(size=250_000)
    )
    objective = lt.EmpiricalRisk(lt.Lattice([2] * 8).features(x), y, loss="squared")
    problem = lt.Problem(objective, lt.lattice.increasing([2] * 8))
    return problem, normal_equations(problem)


@case
def a_hundred_thousand_dense_examples():
    X, y, _ = regression(100_000, 100, 26, 3.0)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), lt.ordering(100))
    return problem, normal_equations(problem)


@case
def six_hundred_thousand_sparse_examples_with_a_ridge():
    rng = np.random.default_rng(27)
    columns = np.minimum(299, (8 * rng.pareto(0.9, size=(600_000, 25))).astype(int))
    X = sp.csr_matrix(
        (rng.exponential(size=columns.size), columns.ravel(), np.arange(0, columns.size + 1, 25)),
        shape=(600_000, 300),
    )
    y = X @ np.abs(rng.normal(size=300)) + 10.0 * rng.normal(size=600_000)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="squared", l2=0.01), lt.ordering(300))
    return problem, normal_equations(problem)


@case
def svm_of_many_sparse_examples_with_a_ridge():
    rng = np.random.default_rng(28)
    X = sp.random(20_000, 400, 0.05, random_state=rng, format="csr")
    y = np.where(X @ rng.normal(size=400) + 0.5 * rng.normal(size=20_000) > 0, 1.0, -1.0)
    rules = lt.order(np.arange(0, 400, 2), np.arange(1, 400, 2), dimension=400)
    return solved(lt.Problem(lt.EmpiricalRisk(X, y, loss="hinge", l2=1e-3), rules))


@case
def isotonic_regression_of_five_million_at_250_000_places():
    rng = np.random.default_rng(29)
    places = rng.integers(250_000, size=5_000_000)
    y = 4.0 * places / 250_000 + rng.normal(size=places.size)
    X = sp.csr_matrix(
        (np.ones(places.size), places, np.arange(places.size + 1)), shape=(places.size, 250_000)
    )
    count, total = np.bincount(places, minlength=250_000), np.bincount(places, y, minlength=250_000)
    seen = count > 0
    best = isotonic.isotonic_regression(total[seen] / count[seen], sample_weight=count[seen])
    optimum = 0.5 * float(
        np.mean(y**2) + (count[seen] @ best**2 - 2.0 * total[seen] @ best) / places.size
    )
    return lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), lt.ordering(250_000)), optimum


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--time-limit", type=float, default=30.0)
    chosen = parser.parse_args()
    failures = 0
    print(
        f"{'problem':54s} {'optimum':>12s} {'found':>12s} {'excess':>9s} {'violation':>9s} "
        f"{'seconds':>8s}  status"
    )
    for name, build in CASES.items():
        if chosen.only not in name:
            continue
        instance = build()
        began = time.perf_counter()
        try:
            result = lt.solve(instance.problem, time_limit=chosen.time_limit)
        except Exception as error:
            failures += 1
            print(f"{name:54s} {type(error).__name__}: {error}   <-- FAILED", flush=True)
            continue
        took = time.perf_counter() - began
        excess = (result.objective - instance.optimum) / max(1e-12, abs(instance.optimum))
        violation = instance.problem.relative_violation(result.w)
        good = excess <= 0.01 and violation <= 1e-9
        failures += not good
        mark = "" if good else "   <-- FAILED"
        print(
            f"{name:54s} {instance.optimum:12.6g} {result.objective:12.6g} {excess:9.1e} "
            f"{violation:9.1e} {took:8.2f}  "
            f"{result.status.name}{mark}",
            flush=True,
        )
    print(f"{failures} of {len(CASES)} failed" if failures else "all within 1% and feasible")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
