"""What an iteration costs as the parameters (d) and the examples (n) grow, everything else the
same.
"""

from __future__ import annotations

import numpy as np

import lighttouch as lt
from benchmarks.speed.paper_problem import paper_problem

DIMENSIONS = (125, 250, 500, 1_000, 2_000)
PAIRS = (20_000, 80_000, 320_000, 1_280_000)
DENSE_ROWS, EXAMPLES = 10_000, 4_000


def measure_dense(dimension: int) -> dict[str, float]:
    """Microseconds per iteration of LightTouch (k = 8, 2 examples) with dense examples and 10,000
    dense constraints.
    """
    rng = np.random.default_rng(dimension)
    X, A = rng.normal(size=(EXAMPLES, dimension)), rng.normal(size=(DENSE_ROWS, dimension))
    truth = rng.normal(size=dimension) / np.sqrt(dimension)
    constraints = lt.LinearConstraints(A, np.abs(A @ (0.7 * truth)) + 0.3)
    problem = lt.Problem(
        lt.EmpiricalRisk(X, X @ truth + rng.normal(size=EXAMPLES), loss="squared"),
        constraints,
        lt.Box(-2, 2),
    )
    solver = lt.LightTouch(1.0, lt.InverseSqrt(0.01), 8, weight_step_size=1 / 16, batch=2)
    return {"size": dimension, "microseconds": microseconds(problem, solver, 5_000)}


def measure_pairs(pairs: int) -> dict[str, float]:
    """Microseconds per iteration of the paper's aggregated LightTouch on so many pairs, and seconds
    of the default solver to its end.
    """
    problem = paper_problem(pairs)
    grouped = lt.Problem(problem.objective, problem.constraints.aggregated(256), problem.domain)
    each = microseconds(grouped, lt.PracticalLightTouch(step_size=lt.InverseSqrt(16.0)), 50_000)
    return {
        "size": pairs,
        "microseconds": each,
        "seconds": lt.solve(problem, time_limit=120).seconds,
    }


def microseconds(problem: lt.Problem, solver, iterations: int) -> float:
    """Of three stretches, each going on from the one before, the quickest."""
    done = lt.solve(problem, solver, iterations=iterations, project=False, record_every=10**9)
    times = []
    for _ in range(3):
        following = lt.solve(
            problem,
            solver,
            iterations=done.iterations + iterations,
            project=False,
            record_every=10**9,
            resume=done.state,
        )
        times.append((following.seconds - done.seconds) / iterations * 1e6)
        done = following
    return min(times)
