"""Tables 2 and 3, measured: how accuracy improves with iterations and checks on problems whose
optimum is known.

The feasible set is cut out of the unit ball by m half-spaces <u_j, w> <= 1/2 with unit normals u_j.
Table 2 minimises (-<u_0, w> + sum_k |<b_k, w>|) / sqrt(d), the b_k completing u_0 to an orthonormal
basis; Table 3 minimises |w - 2 u_0|^2 / 2. Examples are single terms of these sums. In both w* =
u_0 / 2 whatever m is, because |<u_j, u_0>| <= 1: the optimum and every constant of the theory but m
stay put while m grows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lighttouch as lt
from lighttouch.arrays import Floats
from lighttouch.experiments.solvers import solve_or_stop

Row = dict[str, Any]

DIMENSION, FAR = 16, 100.0
# In the unit ball any convex combination of active normals has norm >= 1/2, and Table 2's slope is
# at most 1: above 2 suffices.
PENALTY = 2.5
STRONG_CONVEXITY = 1.0
SEEDS_APART = 1000
NEED_VERTICES = ("OnlineFrankWolfe", "LocalFrankWolfe")  # they run in the cube instead of the ball


def rates(unit: dict[str, Any]) -> list[Row]:
    """Mean error over seeds for each length of the run, the hyperparameters set anew for every
    length as the theory asks.
    """
    table, algorithm, m = unit["table"], unit["algorithm"], unit["constraints"]
    rows: list[Row] = []
    for length in unit["lengths"]:
        runs = [_run(table, algorithm, m, length, seed) for seed in range(unit["seeds"])]
        errors = [error for _, error in runs]
        result = runs[0][0]
        rows.append(
            {
                "table": table,
                "algorithm": algorithm,
                "constraints": m,
                "iterations": result.iterations,
                "constraint_checks": float(np.mean([run.constraint_checks for run, _ in runs])),
                "error": float(np.mean(errors)),
                "error_low": min(errors),
                "error_high": max(errors),
            }
        )
    return rows


def _run(table: int, algorithm: str, m: int, length: int, seed: int) -> tuple[lt.Result, float]:
    domain = lt.Box(-1.0, 1.0) if algorithm in NEED_VERTICES else lt.Ball(1.0)
    problem, optimum = known_problem(table, m, seed, domain)
    solver, iterations = _solver(table, algorithm, m, length)
    start = np.random.default_rng(SEEDS_APART + seed).standard_normal(DIMENSION)
    start *= 0.9 / np.linalg.norm(start)
    result = solve_or_stop(
        problem, solver, iterations=iterations, start=start, seed=seed, record_every=iterations
    )
    if table == 2:
        return result, max(0.0, result.objective - problem.objective.value(optimum))
    return result, float(np.sum((result.w - optimum) ** 2))


def known_problem(
    table: int, m: int, seed: int, domain: lt.Ball | lt.Box | None = None
) -> tuple[lt.Problem, Floats]:
    """The problem and its w*, which any domain around the half unit ball leaves as it is; the unit
    ball unless given.
    """
    rng = np.random.default_rng(seed)
    normals = rng.standard_normal((m, DIMENSION))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    constraints, towards = lt.LinearConstraints(normals, np.full(m, 0.5)), normals[0]
    objective = _corner(towards) if table == 2 else _distance(towards)
    return lt.Problem(objective, constraints, domain or lt.Ball(1.0)), towards / 2


def _corner(towards: Floats) -> lt.EmpiricalRisk:
    """One row a direction, absolute loss; no prediction passes the far target of the first, so that
    term is linear.
    """
    basis = np.linalg.qr(np.column_stack([towards, np.eye(DIMENSION)[:, 1:]]))[0].T
    basis[0] = towards
    targets = np.zeros(DIMENSION)
    targets[0] = FAR
    return lt.EmpiricalRisk(
        math.sqrt(DIMENSION) * basis, targets, loss="absolute", visits="independent"
    )


def _distance(towards: Floats) -> lt.EmpiricalRisk:
    root = math.sqrt(DIMENSION)
    return lt.EmpiricalRisk(
        root * np.eye(DIMENSION), root * 2.0 * towards, loss="squared", visits="independent"
    )


def _solver(table: int, algorithm: str, m: int, length: int) -> tuple[Any, int]:
    """Step sizes and minibatches as in the theorems, without their logarithms and failure
    probabilities.
    """
    if table == 3 and algorithm == "FullTouch":
        return lt.FullTouch(PENALTY, lt.InverseTime(1 / STRONG_CONVEXITY)), length
    if algorithm == "MidTouch":
        return _mid_touch(m, length)
    if algorithm in ("ProjectedSGD", *NEED_VERTICES):
        return _rival(table, algorithm, length), length
    eta = 2.0 / ((math.sqrt(DIMENSION) + PENALTY) * math.sqrt(length))
    if algorithm == "FullTouch":
        return lt.FullTouch(PENALTY, eta), length
    batch = min(m, math.ceil(m / length**0.25))
    return lt.LightTouch(
        PENALTY, eta, batch, weight_step_size=eta * math.sqrt(1 + math.log(m))
    ), length


def _rival(table: int, algorithm: str, length: int) -> Any:
    """What the tables compare with, steps as the theory of each asks."""
    if algorithm == "ProjectedSGD":
        return lt.ProjectedSGD(
            lt.InverseTime(1 / STRONG_CONVEXITY)
            if table == 3
            else 2.0 / math.sqrt(DIMENSION * length)
        )
    if algorithm == "OnlineFrankWolfe":
        return lt.OnlineFrankWolfe()
    return (
        lt.LocalFrankWolfe(strong_convexity=STRONG_CONVEXITY)
        if table == 3
        else lt.LocalFrankWolfe()
    )


def _mid_touch(m: int, length: int) -> tuple[Any, int]:
    """Phases of m tau^2 and tau^3 iterations, tau such that they add up to the length (Theorem
    mid).
    """
    tau = 1.0
    while m * tau**2 + tau**3 < length:
        tau *= 1.05
    first, second = math.ceil(m * tau**2), math.ceil(tau**3)
    weight_step = STRONG_CONVEXITY / (2 * PENALTY**2)
    return lt.MidTouch(PENALTY, STRONG_CONVEXITY, first, weight_step), first + second


def to_accuracy(rows: list[Row], epsilon: float, column: str) -> float | None:
    """What is spent until the error stays at or below epsilon, interpolated on log scales; None
    where it never does.
    """
    errors = [max(row["error"], 1e-300) for row in rows]
    above = [place for place, error in enumerate(errors) if error > epsilon]
    if not above or above[-1] == len(rows) - 1:
        return None
    last = above[-1]
    share = math.log(errors[last] / epsilon) / math.log(errors[last] / errors[last + 1])
    low, high = rows[last][column], rows[last + 1][column]
    return float(low * (high / low) ** share)


def exponents(points: list[tuple[float, float, float]]) -> tuple[float, float]:
    """(a, b) of the least squares fit cost ~ m^a (1/epsilon)^b through points (m, epsilon,
    cost).
    """
    table = np.array(points)
    design = np.column_stack([np.ones(len(table)), np.log(table[:, 0]), -np.log(table[:, 1])])
    fit = np.linalg.lstsq(design, np.log(table[:, 2]), rcond=None)[0]
    return float(fit[1]), float(fit[2])
