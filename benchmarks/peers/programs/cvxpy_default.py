"""CVXPY with the solver it chooses by itself: the whole problem at once, to the solver's own
tolerance.
"""

from __future__ import annotations

import time

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from exchange import Run


def main() -> None:
    run = Run()
    indices, values = run.problem["indices"], run.problem["values"]
    lower, upper, bound = run.problem["lower"], run.problem["upper"], float(run.problem["bound"])
    n, dimension = indices.shape[0], int(run.problem["dimension"])
    rows = sp.csr_matrix(
        (values.ravel(), (np.repeat(np.arange(n), indices.shape[1]), indices.ravel())),
        shape=(n, dimension),
    )
    began = time.perf_counter()
    w = cp.Variable(dimension)
    loss = cp.sum(cp.pos(1.0 - rows @ w)) / n
    problem = cp.Problem(cp.Minimize(loss), [w[lower] <= w[upper], w >= -bound, w <= bound])
    problem.solve()
    run.iterations = 1
    run.keep(time.perf_counter() - began, w.value)
    stats = problem.solver_stats
    run.finish(
        version=cp.__version__,
        status=problem.status,
        solver=stats.solver_name,
        solver_seconds=stats.solve_time,
    )


if __name__ == "__main__":
    main()
