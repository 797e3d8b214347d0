"""Quadratic and linear programs: the Maros-Meszaros set, dense rows, a portfolio."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.coupled.case import (
    Case,
    NotYet,
    box_excess,
    case,
    clarabel,
    equalities_and_rows,
    excess,
    largest,
)
from benchmarks.speed.expensive import dense_rows
from benchmarks.speed.expensive_optimum import lower_bound

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "qp"


@case
def maros() -> list[Case]:
    """Every stored problem of the set, with its optimum re-derived to 1e-9."""
    if not FOLDER.exists():
        raise NotYet("needs ../shared/data/qp")
    known: dict[str, float] = {}
    for file in ("optima.csv", "optima_with_equalities.csv"):
        with (FOLDER / file).open() as lines:
            known |= {row["problem"]: float(row["optimum"]) for row in csv.DictReader(lines)}
    return [quadratic_program(FOLDER / f"{name}.mat", known[name]) for name in sorted(known)]


@dataclass(frozen=True)
class Parts:
    """Minimise w'Pw/2 + q'w + constant under constraints."""

    P: sp.csr_matrix
    q: np.ndarray
    constant: float
    constraints: Any
    equalities: tuple[Any, np.ndarray]
    rows: tuple[Any, np.ndarray]


def parts_of(file: Path) -> Parts:
    """A program as the set stores it."""
    found = scipy.io.loadmat(file)
    P, A = sp.csr_matrix(found["P"], dtype=float), sp.csr_matrix(found["A"], dtype=float)
    q, lower, upper = (np.asarray(found[key], dtype=float).ravel() for key in ("q", "l", "u"))
    constant = float(np.asarray(found["r"]).ravel()[0])
    return Parts(sp.csr_matrix((P + P.T) / 2), q, constant, *equalities_and_rows(A, lower, upper))


def quadratic_program(file: Path, optimum: float | None = None) -> Case:
    stated = parts_of(file)
    P, q, constant = stated.P, stated.q, stated.constant
    (equal, sides), (rows, right) = stated.equalities, stated.rows

    def evaluate(w: np.ndarray) -> float:
        return 0.5 * float(w @ (P @ w)) + float(q @ w) + constant

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        w = cp.Variable(q.size)
        said = [rows @ w <= right] if rows.shape[0] else []
        said += [equal @ w == sides] if equal.shape[0] else []
        value = 0.5 * cp.quad_form(w, P, assume_PSD=True) + q @ w + constant
        status = clarabel(cp.Problem(cp.Minimize(value), said))
        return (np.nan if w.value is None else evaluate(w.value)), status

    return Case(
        f"maros {file.stem}",
        lt.Problem(lt.Quadratic(P, q), stated.constraints),
        evaluate,
        largest(excess(rows, right), lambda w: float(np.abs(equal @ w - sides).max(initial=0.0))),
        reference,
        offset=constant,
        time_limit=10.0,
        known=optimum,
    )


@case
def dense100k() -> Case:
    """The least squares in a random polytope of `benchmarks.speed.expensive`; the reference is a
    proven lower bound, because 200 million numbers do not pass through CVXPY.
    """
    problem = dense_rows(2_000, 100_000)
    X, y = problem.objective.X, problem.objective.y
    A, b = problem.constraints.A, problem.constraints.b
    return Case(
        "dense100k",
        problem,
        lambda w: 0.5 * float(np.mean((X @ w - y) ** 2)),
        largest(excess(A, b), box_excess(-2.0, 2.0)),
        lambda: (lower_bound(problem), "lower bound"),
        tolerance=1e-2,
    )


@case
def portfolio() -> Case:
    """Least variance and most return of 100 assets, sum 1, a floor in each of 10,000 scenarios."""
    rng = np.random.default_rng(0)
    assets, scenarios = 100, 10_000
    factors = rng.normal(size=(assets, 5))
    returns = 0.01 * (
        rng.normal(size=(scenarios, 5)) @ factors.T + rng.normal(size=(scenarios, assets)) + 0.5
    )
    centred = returns - returns.mean(axis=0)
    P = centred.T @ centred / scenarios
    q = -0.05 * returns.mean(axis=0)
    floor = -0.03
    A, b = -returns, np.full(scenarios, -floor)
    simplex = getattr(lt, "Simplex", None)
    rules: Any = lt.LinearConstraints(A, b)
    domain: Any = lt.Box(0.0, 1.0) if simplex is None else simplex(1.0)
    if simplex is None:
        one = np.ones((1, assets))
        rules = lt.stack(rules, lt.LinearConstraints(np.vstack([one, -one]), [1.0, -1.0]))

    def evaluate(w: np.ndarray) -> float:
        return 0.5 * float(w @ P @ w) + float(q @ w)

    def reference() -> tuple[float, str]:
        import cvxpy as cp

        w = cp.Variable(assets)
        value = 0.5 * cp.quad_form(w, P, assume_PSD=True) + q @ w
        status = clarabel(cp.Problem(cp.Minimize(value), [A @ w <= b, w >= 0, cp.sum(w) == 1]))
        return evaluate(w.value), status

    return Case(
        "portfolio",
        lt.Problem(lt.Quadratic((P + P.T) / 2, q), rules, domain),
        evaluate,
        largest(excess(A, b), box_excess(0.0, np.inf), lambda w: abs(float(w.sum()) - 1.0)),
        reference,
    )
