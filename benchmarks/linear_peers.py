"""ReHLine and glum beside ours, on the linear models each is made for.

    python -m benchmarks.linear_peers      # needs: pip install rehline glum

ReHLine: a support vector machine with a ridge and linear rows. glum: a Poisson regression with a
ridge and linear rows. Objective, largest violation and processor seconds of one run each, after
one that compiles or warms up.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lighttouch as lt

EXAMPLES, COLUMNS = 20_000, 20


def measured(
    name: str, fit: Callable[[], Any], value: Callable[[Any], float], A: Any, b: Any
) -> None:
    """Run `fit` twice and print what the second run gave."""
    fit()
    began = time.process_time()
    w = fit()
    took = time.process_time() - began
    violation = max(0.0, float((A @ w - b).max()))
    print(f"  {name:12} objective {value(w):.7f}  violation {violation:.1e}  {took:.3f} CPU s")


def hinge(rng: np.random.Generator, rows: int) -> None:
    """min mean hinge + l2/2 |w|^2 under A w <= b."""
    X = rng.normal(size=(EXAMPLES, COLUMNS))
    y = np.where(X @ rng.normal(size=COLUMNS) + rng.normal(size=EXAMPLES) > 0, 1.0, -1.0)
    A, b, l2 = rng.normal(size=(rows, COLUMNS)), np.full(rows, 0.5), 1e-3
    print(f"SVM, {EXAMPLES:,} examples, {COLUMNS} columns, {rows:,} rows")
    objective = lt.EmpiricalRisk(X, y, loss="hinge", l2=l2)
    problem = lt.Problem(objective, lt.LinearConstraints(A, b))
    measured("lighttouch", lambda: lt.solve(problem).w, objective.value, A, b)

    def theirs() -> Any:
        rehline = importlib.import_module("rehline")
        C = 1.0 / (l2 * EXAMPLES)
        model = rehline.plqERM_Ridge({"name": "svm"}, C=C, A=-A, b=b, max_iter=100_000, tol=1e-4)
        model.fit(X, y)
        return model.coef_

    measured("ReHLine", theirs, objective.value, A, b)


def poisson(rng: np.random.Generator, rows: int) -> None:
    """min mean Poisson loss + l2/2 |w|^2 under A w <= b."""
    X = rng.normal(size=(EXAMPLES, COLUMNS))
    y = rng.poisson(np.exp(X @ rng.normal(size=COLUMNS) / 8)).astype(float)
    A, b, l2 = rng.normal(size=(rows, COLUMNS)), np.full(rows, 0.1), 1e-3
    print(f"Poisson, {EXAMPLES:,} examples, {COLUMNS} columns, {rows:,} rows")
    objective = lt.EmpiricalRisk(X, y, loss="poisson", l2=l2)
    problem = lt.Problem(objective, lt.LinearConstraints(A, b))
    measured("lighttouch", lambda: lt.solve(problem).w, objective.value, A, b)

    def theirs() -> Any:
        glum = importlib.import_module("glum")
        rows_of = {"A_ineq": A, "b_ineq": b} if rows else {}
        model = glum.GeneralizedLinearRegressor(
            family="poisson", alpha=l2, l1_ratio=0, fit_intercept=False, max_iter=2_000, **rows_of
        )
        return model.fit(X, y).coef_

    measured("glum", theirs, objective.value, A, b)


def main() -> None:
    rng = np.random.default_rng(0)
    for rows in (20, 2_000):
        hinge(rng, rows)
        poisson(rng, rows)


if __name__ == "__main__":
    main()
