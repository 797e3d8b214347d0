"""Rows about answers: what a result says is true, whatever was asked."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.reliability.card import Outcome, row

LOSSES = {
    "squared": lambda z, y: 0.5 * (z - y) ** 2,
    "absolute": lambda z, y: np.abs(z - y),
    "hinge": lambda z, y: np.maximum(0.0, 1.0 - np.sign(y) * z),
    "logistic": lambda z, y: np.logaddexp(0.0, -np.sign(y) * z),
}
SOLVERS: list[Any] = [
    None,
    lt.FullTouch(1.0, 0.05),
    lt.LightTouch(1.0, 0.05, 3),
    lt.PracticalLightTouch(),
    lt.ProjectedSGD(lt.InverseSqrt(0.1)),
]


@row("self-report")
def self_report(quick: bool) -> Outcome:
    """Objective, violation and checks against NumPy's own."""
    tried = ok = 0
    worst = 0.0
    for seed in range(12 if quick else 200):
        rng = np.random.default_rng(seed)
        d, n, m = int(rng.integers(2, 9)), int(rng.integers(3, 60)), int(rng.integers(3, 12))
        X, A = rng.normal(size=(n, d)), rng.normal(size=(m, d))
        b, l2 = rng.uniform(0.0, 1.0, m), float(rng.choice([0.0, 0.1]))
        loss = list(LOSSES)[seed % 4]
        y = X @ rng.normal(size=d) + 0.1
        targets = np.sign(y) if loss in ("hinge", "logistic") else y
        problem = lt.Problem(lt.EmpiricalRisk(X, targets, loss, l2), lt.LinearConstraints(A, b))
        solver = SOLVERS[seed % len(SOLVERS)]
        result = lt.solve(problem, solver, iterations=300, seed=seed)
        objective = float(
            LOSSES[loss](X @ result.w, y if loss in ("squared", "absolute") else targets).mean()
        )
        objective += 0.5 * l2 * float(result.w @ result.w)
        violation = max(0.0, float((A @ result.w - b).max()))
        off = max(
            abs(objective - result.objective) / max(1.0, abs(objective)),
            abs(violation - result.violation) / (1.0 + float(np.abs(result.w).max())),
        )
        checks = m * result.iterations
        counted = not isinstance(solver, lt.FullTouch) or result.constraint_checks == checks
        claimed = result.status is not lt.Status.CONVERGED or violation <= 1e-8
        tried, worst = tried + 1, max(worst, off)
        ok += off <= 1e-10 and counted and claimed
    return tried, ok, worst


@row("stress-params")
def stress_params(quick: bool) -> Outcome:
    """Penalty x step x scale: a truthful status and a finite w."""
    grid = np.logspace(-6, 6, 3 if quick else 7)
    tried = ok = 0
    worst = ""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, -1.0, 2.0, 0.5]
    for penalty, step, scale in itertools.product(grid, repeat=3):
        problem = lt.Problem(lt.EmpiricalRisk(X * scale, y), lt.ordering(4))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = lt.solve(problem, lt.LightTouch(penalty, step, 2), iterations=200)
        finite = bool(np.isfinite(result.w).all() and np.isfinite(result.w_last).all())
        violation = max(0.0, float((-np.diff(result.w)).max()))
        truthful = (
            result.status
            in (lt.Status.ITERATION_LIMIT, lt.Status.DIVERGED, lt.Status.NOT_PROJECTED)
            and abs(violation - result.violation) <= 1e-10 * (1.0 + violation)
            and (
                result.status is not lt.Status.ITERATION_LIMIT
                or violation <= 1e-8 * (1 + abs(result.w).max())
            )
        )
        tried += 1
        ok += finite and truthful
        if not (finite and truthful):
            worst = f"penalty {penalty:g}, step {step:g}, scale {scale:g}: {result.status.name}"
    return tried, ok, worst


@row("infeasible")
def infeasible(quick: bool) -> Outcome:
    """Contradictory sets are found with a conflict that is one; feasible ones are not accused."""
    tried = ok = 0
    worst = ""
    for seed in range(20 if quick else 200):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(2, 8)), int(rng.integers(3, 15))
        A, inside = rng.normal(size=(m, d)), rng.normal(size=d)
        b = A @ inside + rng.uniform(0.01, 1.0, m)
        contradictory = seed % 2 == 0
        if contradictory:  # a positive combination of rows whose right sides add up to less than 0
            weights = rng.uniform(0.5, 1.5, m)
            A = np.vstack([A, -(weights @ A)])
            b = np.append(b, -(weights @ b) - rng.uniform(0.01, 1.0))
        tried += 1
        try:
            found = lt.project(rng.normal(size=d), lt.LinearConstraints(A, b))
            good = not contradictory and float((A @ found.w - b).max()) <= 1e-8
        except lt.InfeasibleConstraintsError as error:
            good = contradictory and _conflict(A[list(error.rows)], b[list(error.rows)])
        ok += good
        worst = worst if good else f"seed {seed}"
    return tried, ok, worst


def _conflict(A: np.ndarray, b: np.ndarray) -> bool:
    """Whether linprog agrees that no point satisfies these rows."""
    from scipy.optimize import linprog

    return linprog(np.zeros(A.shape[1]), A, b, bounds=(None, None)).status == 2


@row("determinism")
def determinism(quick: bool) -> Outcome:
    """The same bits over processes and numbers of threads."""
    program = (
        "import numpy as np, lighttouch as lt\n"
        "r = np.random.default_rng(0); X = r.normal(size=(400, 6)); y = X @ np.arange(6.0)\n"
        "p = lt.Problem(lt.EmpiricalRisk(X, y, 'absolute'), lt.ordering(6))\n"
        "solvers = None, lt.LightTouch(1.0, 0.01, 3)\n"
        "a = [lt.solve(p, each, iterations=500).w.tobytes() for each in solvers]\n"
        "m = lt.LatticeRegressor(monotonic_cst=[1] * 6).fit(X, y).predict(X).tobytes()\n"
        "import hashlib; print(hashlib.sha256(b''.join([*a, m])).hexdigest())\n"
    )
    found = set()
    for threads in ("1", "2") if quick else ("1", "2", "4", "1"):
        given = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    return 1, int(len(found) == 1), f"{len(found)} distinct results"


@row("sklearn-contract")
def sklearn_contract(quick: bool) -> Outcome:
    """`check_estimator`; the two sample-weight checks are declared, as SGD's are."""
    from sklearn.utils.estimator_checks import check_estimator

    kinds = [lt.ConstrainedLinearRegressor()]
    if not quick:
        kinds += [
            lt.ConstrainedLinearClassifier(),
            lt.LatticeRegressor(),
            lt.LatticeClassifier(),
            lt.LatticeRanker(),
        ]
    tried = ok = 0
    worst: list[str] = []
    declared = {
        "check_sample_weight_equivalence_on_dense_data": "smoothing counts examples",
        "check_sample_weight_equivalence_on_sparse_data": "smoothing counts examples",
    }
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks = check_estimator(
                kind, on_fail=None, on_skip=None, expected_failed_checks=declared
            )
        for check in checks:
            tried += 1
            good = check["status"] in ("passed", "skipped", "xfail")
            ok += good
            if not good:
                worst.append(f"{type(kind).__name__}: {check['check_name']}")
    return tried, ok, worst[:3]


@row("memory")
def memory(quick: bool) -> Outcome:
    """Resident memory after many fits and solves, in MiB above that after the first tenth."""
    import resource

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0]
    count, peaks = 30 if quick else 500, []
    for _ in range(count):
        lt.LatticeRegressor(lattices=0, keypoints=5).fit(X, y)
        lt.solve(lt.Problem(lt.EmpiricalRisk(X, y), lt.ordering(3)))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    grown = peaks[-1] - peaks[max(2, count // 10)]
    return 1, int(grown < 20.0), f"{grown:.1f} MiB"
