"""Tables 2 and 3 of the paper, measured: iterations and constraint checks to an accuracy, against m and epsilon.

`python -m benchmarks.rates` runs both tables in a minute or two; `--csv PATH` also writes the rows. The problems have d = 10
parameters and m random half-spaces around the unit ball, so that only m changes, and optima known from a linear program
(Table 2, absolute loss) or from an exact projection (Table 3, squared loss with the identity as its curvature). What is
measured is the projected solution, averaged over seeds: f - f* in Table 2, the squared distance to the optimum in Table 3.
The tables are upper bounds, so exponents below theirs are no contradiction.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

import lighttouch as lt

DIMENSION, EXAMPLES = 10, 1000
SIZES = (64, 256, 1024, 4096)
FEW, SEEDS, FEW_SEEDS = SIZES[:2], 8, 2  # fewer where every step is a projection or a linear program
Array = np.ndarray


@dataclass(frozen=True)
class Known:
    """A problem with its optimum and the constants the step sizes need."""

    problem: lt.Problem
    error: Callable[[Array], float]
    penalty: float
    gradient: float


class Curve(NamedTuple):
    """The mean error after some iterations, and the constraint checks until then."""

    iterations: Array
    checks: Array
    errors: Array


class Row(NamedTuple):
    table: int
    algorithm: str
    constraints: int
    epsilon: float
    iterations: float
    checks: float


@dataclass(frozen=True)
class Algorithm:
    """Solvers of which the one with the fewest checks counts, how long to run them, and what the paper's table says."""

    builds: tuple[Callable[[Known], Any], ...]
    iterations: int
    sizes: tuple[int, ...]
    theory: str
    checks_theory: str

    @property
    def seeds(self) -> int:
        return SEEDS if self.sizes == SIZES else FEW_SEEDS


# ----------------------------------------------------------------------------------------------------------------- problems


def half_spaces(m: int) -> lt.LinearConstraints:
    """m random half-spaces that touch the unit ball."""
    rows = np.random.default_rng(m).normal(size=(m, DIMENSION))
    return lt.LinearConstraints(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.ones(m))


def design() -> tuple[Array, Array]:
    """Examples whose second moments are exactly the identity, and a target outside the ball."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(EXAMPLES, DIMENSION)))[0] * math.sqrt(EXAMPLES)
    target = rng.normal(size=DIMENSION)
    return X, X @ (1.5 * target / np.linalg.norm(target)) + 0.5 * rng.laplace(size=EXAMPLES)


def convex(m: int) -> Known:
    """The absolute loss, its optimum by HiGHS; the penalty is twice the sum of the optimal multipliers."""
    X, y = design()
    constraints, n = half_spaces(m), EXAMPLES
    eye = np.eye(n)
    blocks = np.block([[X, -eye], [-X, -eye], [constraints.A, np.zeros((m, n))]])
    cost = np.concatenate([np.zeros(DIMENSION), np.full(n, 1 / n)])
    sides = [(-2.0, 2.0)] * DIMENSION + [(0, None)] * n
    solved = linprog(cost, A_ub=blocks, b_ub=np.concatenate([y, -y, constraints.b]), bounds=sides)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="absolute"), constraints, lt.Box(-2.0, 2.0))
    penalty = -2.0 * float(solved.ineqlin.marginals[2 * n :].sum())
    return Known(problem, lambda w: problem.objective.value(w) - solved.fun, penalty, math.sqrt(DIMENSION))


def strongly_convex(m: int) -> Known:
    """The squared loss with curvature 1: the optimum is the projection of the unconstrained one."""
    X, y = design()
    constraints, domain = half_spaces(m), lt.Box(-2.0, 2.0)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), constraints, domain)
    center = X.T @ y / EXAMPLES
    optimum = lt.project(center, constraints, domain)
    multipliers = np.linalg.norm(center - optimum.w)  # of unit rows that meet nearly at right angles, at most this times sqrt(d)
    return Known(problem, lambda w: float(np.sum((w - optimum.w) ** 2)), 2.0 * float(multipliers), math.sqrt(DIMENSION))


# ------------------------------------------------------------------------------------------------------------------- solvers


def step(known: Known, penalty: float = 0.0) -> lt.InverseSqrt:
    return lt.InverseSqrt(1.0 / (known.gradient + penalty))


TABLE_2 = {
    "FullTouch": Algorithm((lambda p: lt.FullTouch(p.penalty, step(p, p.penalty)),), 2**16, SIZES, "eps^-2", "m eps^-2"),
    "LightTouch": Algorithm(
        (lambda p: lt.LightTouch(p.penalty, step(p, p.penalty), round(math.sqrt(p.problem.constraints.count)), weight_step_size=0.1),),
        2**16, SIZES, "ln m eps^-2", "ln m eps^-2 + m eps^-3/2",
    ),
    "PracticalLightTouch": Algorithm(
        (lambda p: lt.PracticalLightTouch(p.penalty, step(p, p.penalty), weight_step_size=0.1),),
        2**16, SIZES, "ln m eps^-2", "ln m eps^-2 + m eps^-3/2",
    ),
    "ProjectedSGD": Algorithm((lambda p: lt.ProjectedSGD(step(p)),), 2**13, FEW, "eps^-2", "projection"),
    "OnlineFrankWolfe": Algorithm((lambda p: lt.OnlineFrankWolfe(),), 2**10, FEW, "eps^-3", "linear optimization"),
    "LocalFrankWolfe": Algorithm((lambda p: lt.LocalFrankWolfe(),), 2**10, FEW, "eps^-2", "local linear oracle"),
}  # fmt: skip

MIDDLES = tuple((lambda p, first=first: lt.MidTouch(p.penalty, 1.0, first, 0.05)) for first in (16, 64, 256))

TABLE_3 = {
    "FullTouch": Algorithm((lambda p: lt.FullTouch(p.penalty, lt.InverseTime(1.0)),), 2**16, SIZES, "eps^-1", "m eps^-1"),
    "MidTouch": Algorithm(MIDDLES, 2**16, SIZES, "ln m eps^-1 + m^3/2 eps^-3/4 + ...", "ln m eps^-1 + m^3/2 eps^-3/4 + ..."),
    "ProjectedSGD": Algorithm((lambda p: lt.ProjectedSGD(lt.InverseTime(1.0)),), 2**13, FEW, "eps^-1", "projection"),
    "LocalFrankWolfe": Algorithm((lambda p: lt.LocalFrankWolfe(strong_convexity=1.0),), 2**10, FEW, "eps^-1", "local linear oracle"),
}

EPSILONS = (0.04, 0.02, 0.01, 0.005, 0.0025)
TABLES: dict[int, tuple[Callable[[int], Known], dict[str, Algorithm]]] = {2: (convex, TABLE_2), 3: (strongly_convex, TABLE_3)}


# -------------------------------------------------------------------------------------------------------------- measurement


def checkpoints(last: int) -> list[int]:
    """From 16 on, by factors of the square root of 2."""
    return sorted({round(16 * 2 ** (k / 2)) for k in range(int(2 * math.log2(last / 16)) + 1)})


def measure(known: Known, solver: Any, iterations: int, seeds: int) -> Curve:
    """All seeds side by side, until their mean error is well below every epsilon."""
    problem = known.problem
    states = [solver.init(problem, problem.start()) for _ in range(seeds)]
    generators = [np.random.default_rng(seed) for seed in range(seeds)]
    points = []
    for t in checkpoints(iterations):
        for state, rng in zip(states, generators, strict=True):
            solver.advance(problem, state, t - state.iteration, rng)
        errors = [known.error(lt.project(solver.solution(state), problem.constraints, problem.domain).w) for state in states]
        points.append((t, np.mean([state.constraint_checks for state in states]), np.mean(errors)))
        if points[-1][2] < 0.8 * min(EPSILONS):
            break
    return Curve(*np.array(points, dtype=float).T)


def cheapest(known: Known, algorithm: Algorithm, epsilons: tuple[float, ...]) -> list[tuple[float, float]]:
    """For every epsilon, the iterations and checks of the solver that needs the fewest checks."""
    curves = [measure(known, build(known), algorithm.iterations, algorithm.seeds) for build in algorithm.builds]
    return [min((reached(curve, epsilon) for curve in curves), key=lambda pair: np.nan_to_num(pair[1], nan=np.inf)) for epsilon in epsilons]


def reached(curve: Curve, epsilon: float) -> tuple[float, float]:
    """Iterations and checks from which on the mean error stays below epsilon, interpolated between checkpoints; NaN if never."""
    above = np.flatnonzero(curve.errors > epsilon)
    k = int(above[-1]) + 1 if above.size else 0
    if k == curve.errors.size:
        return math.nan, math.nan
    if k == 0:
        return float(curve.iterations[0]), float(curve.checks[0])
    log = np.log(np.maximum(curve.errors[k - 1 : k + 1], 1e-300))
    share = float((log[0] - math.log(epsilon)) / (log[0] - log[1]))
    return tuple(float(a[k - 1] * (a[k] / max(a[k - 1], 1.0)) ** share) for a in (curve.iterations, curve.checks))  # type: ignore[return-value]


def exponent(x: Array, y: Array) -> float:
    """The slope of log y against log x where both are known."""
    known = np.isfinite(y)
    return float(np.polyfit(np.log(x[known]), np.log(y[known]), 1)[0]) if known.sum() > 1 else math.nan


# ------------------------------------------------------------------------------------------------------------------ printing


def show(number: int) -> list[Row]:
    make, algorithms = TABLES[number]
    rows: list[Row] = []
    known = {m: make(m) for m in SIZES}
    for name, algorithm in algorithms.items():
        began = time.perf_counter()
        found = [
            Row(number, name, m, epsilon, *pair)
            for m in algorithm.sizes
            for epsilon, pair in zip(EPSILONS, cheapest(known[m], algorithm, EPSILONS), strict=True)
        ]
        print(f"\n{name}   (mean of {algorithm.seeds} seeds, {time.perf_counter() - began:.1f} s)")
        print_numbers("iterations", algorithm.theory, found)
        print_numbers("checks", algorithm.checks_theory, found)
        rows += found
    return rows


def print_numbers(what: str, theory: str, rows: list[Row]) -> None:
    """One line a number of constraints, with the exponent of 1/epsilon behind it and the exponents of m below."""
    sizes = sorted({row.constraints for row in rows})
    table = np.array([[getattr(row, what) for row in rows if row.constraints == m] for m in sizes])
    print(f"{what:>11}" + "".join(f"{f'eps {epsilon:g}':>12}" for epsilon in EPSILONS) + f"   exponent of 1/eps (theory: {theory})")
    for m, numbers in zip(sizes, table, strict=True):
        slope = exponent(1.0 / np.array(EPSILONS), numbers)
        print(f"{f'm = {m:,}':>11}" + "".join(f"{number:12,.0f}" for number in numbers) + f"   {slope:.2f}")
    growth = [exponent(np.array(sizes, dtype=float), column) for column in table.T]
    print(f"{'exponent':>11}" + "".join(f"{slope:12.2f}" for slope in growth) + "   of m")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=int, choices=sorted(TABLES), help="only this one")
    parser.add_argument("--csv", help="also write the rows to this file")
    chosen = parser.parse_args()
    rows: list[Row] = []
    for number in [chosen.table] if chosen.table else sorted(TABLES):
        measure_name = "f - f* <= eps, convex" if number == 2 else "|w - w*|^2 <= eps, strongly convex"
        print(f"\n=== Table {number}: {measure_name} (nan: not reached)")
        rows += show(number)
    if chosen.csv:
        with open(chosen.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(Row._fields)
            writer.writerows(rows)


if __name__ == "__main__":
    main()
