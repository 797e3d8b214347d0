"""General solvers, each as it is meant to be used: set up first, which is not counted, then one
solve to 1e-8.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.projection.sets import Case

Solved = tuple[np.ndarray, float, str]  # the point, seconds, the solver's own word
RIVALS: dict[str, Callable[[Case, float], Solved]] = {}
MODULE = {
    "SCS indirect": "scs",
    "Clarabel (faer)": "clarabel",
    "OSQP": "osqp",
    "ProxQP": "proxsuite",
    "IPOPT": "casadi",
}
BALLS = {"SCS indirect", "Clarabel (faer)"}  # those that know second-order cones
TOLERANCE = 1e-8
LARGEST_FACTOR = 20_000


def rival(
    name: str,
) -> Callable[[Callable[[Case, float], Solved]], Callable[[Case, float], Solved]]:
    def register(function: Callable[[Case, float], Solved]) -> Callable[[Case, float], Solved]:
        RIVALS[name] = function
        return function

    return register


def objection_to(name: str, case: Case) -> str | None:
    """Why a rival is left out, or None."""
    import importlib.util

    if importlib.util.find_spec(MODULE[name]) is None:
        return f"{MODULE[name]} is not installed"
    if case.radii.size and name not in BALLS:
        return "no second-order cones"
    if (
        case.point.size > LARGEST_FACTOR
        and case.right.size > 4 * case.point.size
        and name != "SCS indirect"
    ):
        return (
            f"its factor would take {case.point.size**2 * 4 / 1e9:,.0f} GB: a lattice has no "
            "good order of elimination"
        )
    if name == "ProxQP" and case.right.size > 50_000:
        return "gave no answer within 150 s when it was tried"
    return None


def timed(solve: Callable[[], Any]) -> tuple[Any, float]:
    """In processor seconds of one thread: a busy machine favours nobody."""
    began = time.process_time()
    answer = solve()
    return answer, time.process_time() - began


def centred(case: Case) -> tuple[Any, np.ndarray]:
    """Rows and finite bounds for z = w - point."""
    identity = sp.identity(case.point.size, format="csr")
    if not np.isfinite(case.lower):
        return case.rows, case.right - case.rows @ case.point
    rows = sp.vstack([case.rows, identity, -identity], format="csr")
    right = np.concatenate(
        [case.right, np.full(case.point.size, case.upper), np.full(case.point.size, -case.lower)]
    )
    return rows, right - rows @ case.point


def with_cones(case: Case) -> tuple[Any, np.ndarray, int, list[int]]:
    """Rows first, then a second-order cone per ball: (radius, z + point - center)."""
    rows, right = centred(case)
    block = sp.vstack(
        [sp.csr_matrix((1, case.point.size)), -sp.identity(case.point.size)], format="csr"
    )
    matrices = [rows, *(block for _ in case.radii)]
    shifts = [
        right,
        *(
            np.concatenate([[r], case.point - c])
            for c, r in zip(case.centers, case.radii, strict=True)
        ),
    ]
    return (
        sp.vstack(matrices, format="csc"),
        np.concatenate(shifts),
        right.size,
        [case.point.size + 1] * case.radii.size,
    )


@rival("SCS indirect")
def by_scs(case: Case, limit: float) -> Solved:
    import scs

    matrix, right, linear, cones = with_cones(case)
    data = {
        "P": sp.identity(case.point.size, format="csc"),
        "A": matrix,
        "b": right,
        "c": np.zeros(case.point.size),
    }
    solver = scs.SCS(
        data,
        {"l": linear, "q": cones},
        linear_solver=scs.LinearSolver.CPU_INDIRECT,
        verbose=False,
        eps_abs=TOLERANCE,
        eps_rel=TOLERANCE,
        time_limit_secs=limit,
        max_iters=10**7,
    )
    answer, seconds = timed(solver.solve)
    return case.point + answer["x"], seconds, answer["info"]["status"]


@rival("Clarabel (faer)")
def by_clarabel(case: Case, limit: float) -> Solved:
    import clarabel

    matrix, right, linear, cones = with_cones(case)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.direct_solve_method, settings.time_limit, settings.max_threads = (
        False,
        "faer",
        limit,
        1,
    )
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    kinds = ([clarabel.NonnegativeConeT(linear)] if linear else []) + [
        clarabel.SecondOrderConeT(size) for size in cones
    ]
    identity = sp.identity(case.point.size, format="csc")
    solver = clarabel.DefaultSolver(
        identity, np.zeros(case.point.size), matrix, right, kinds, settings
    )
    answer, seconds = timed(solver.solve)
    return case.point + np.asarray(answer.x), seconds, str(answer.status)


@rival("OSQP")
def by_osqp(case: Case, limit: float) -> Solved:
    import osqp

    rows, right = centred(case)
    solver = osqp.OSQP()
    solver.setup(
        sp.identity(case.point.size, format="csc"),
        np.zeros(case.point.size),
        sp.csc_matrix(rows),
        np.full(right.size, -np.inf),
        right,
        verbose=False,
        eps_abs=TOLERANCE,
        eps_rel=TOLERANCE,
        max_iter=10**7,
        time_limit=limit,
        polishing=True,
    )
    answer, seconds = timed(lambda: solver.solve(raise_error=False))
    return case.point + answer.x, seconds, answer.info.status


@rival("ProxQP")
def by_proxqp(case: Case, limit: float) -> Solved:
    from proxsuite import proxqp

    rows, right = centred(case)
    size = case.point.size
    solver = proxqp.sparse.QP(size, 0, right.size)
    solver.settings.eps_abs, solver.settings.max_iter = TOLERANCE, 10**5
    solver.init(
        sp.identity(size, format="csc"),
        np.zeros(size),
        None,
        None,
        sp.csc_matrix(rows),
        np.full(right.size, -1e20),
        right,
    )
    _, seconds = timed(solver.solve)
    return (
        case.point + np.asarray(solver.results.x),
        seconds,
        str(solver.results.info.status).rsplit(".", 1)[-1],
    )


@rival("IPOPT")
def by_ipopt(case: Case, limit: float) -> Solved:
    """IPOPT with MUMPS, from the casadi wheel; told that everything is linear or quadratic."""
    import casadi

    rows = sp.csc_matrix(case.rows)
    x = casadi.MX.sym("x", case.point.size)
    matrix = casadi.DM(
        casadi.Sparsity(*rows.shape, rows.indptr.tolist(), rows.indices.tolist()), rows.data
    )
    program = {"x": x, "f": 0.5 * casadi.sumsqr(x - case.point), "g": casadi.mtimes(matrix, x)}
    quiet = {
        "print_time": False,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "ipopt.tol": TOLERANCE,
        "ipopt.max_wall_time": limit,
    }
    constant = dict.fromkeys(
        ("ipopt.hessian_constant", "ipopt.jac_c_constant", "ipopt.jac_d_constant"), "yes"
    )
    solver = casadi.nlpsol("solver", "ipopt", program, quiet | constant)
    bounds = {"lbx": case.lower, "ubx": case.upper, "lbg": -np.inf, "ubg": case.right}
    answer, seconds = timed(lambda: solver(x0=case.point, **bounds))
    return np.array(answer["x"]).ravel(), seconds, solver.stats()["return_status"]


def in_own_process(name: str, build: Callable[[], Case], limit: float) -> Solved | str:
    """The rival's answer, or why there is none."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=answer_through, args=(sender, name, build, limit))
    process.start()
    sender.close()
    try:
        return (
            receiver.recv()
            if receiver.poll(2.0 * limit + 30.0)
            else f"no answer within {2.0 * limit + 30.0:.0f} s"
        )
    except EOFError:
        return "its process died"
    finally:
        process.kill()
        process.join()


def answer_through(sender: Any, name: str, build: Callable[[], Case], limit: float) -> None:
    try:
        sender.send(RIVALS[name](build(), limit))
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}"[:120])
