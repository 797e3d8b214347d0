"""Target 3: iteration cost and memory against the number of constraints; and the paper's LightTouch
at a million of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.speed import sizes
from benchmarks.speed.paper_problem import Row

FEATURES = (8, 12, 16, 20)


def lattice_problem(features: int, examples: int = 300_000) -> lt.Problem:
    rng = np.random.default_rng(features)
    lattice = lt.Lattice([2] * features)
    better, worse = rng.random((examples, features)), rng.random((examples, features))
    swap = worse.sum(axis=1) > better.sum(axis=1) + rng.normal(size=examples)
    better[swap], worse[swap] = worse[swap], better[swap].copy()
    objective = lt.PairwiseRisk(lattice.features(better), lattice.features(worse), loss="hinge")
    return lt.Problem(objective, lt.lattice.increasing([2] * features), lt.Box(-10, 10))


def measure_lattice(features: int) -> dict[str, float]:
    """Microseconds per iteration of the default's stochastic loop, and the most memory that the
    solver's arrays took beyond its data.
    """
    problem = lattice_problem(features)
    best = _microseconds(problem)
    tracemalloc.start()
    lt.solve(problem, iterations=500, project=False, record_every=10**9)
    _, peak = tracemalloc.get_traced_memory()
    return {"microseconds": best, "megabytes": peak / 1e6, "constraints": problem.constraints.count}


def _microseconds(problem: lt.Problem) -> float:
    """The best of three stretches in the middle of a stage: no step size is sought and nothing is
    projected meanwhile.

    They are long, because at the beginning of each the caches have to be filled again.
    """
    before = lt.solve(problem, iterations=500, project=False, record_every=10**9)
    first_stage = before.state.solver_state.stage_end
    if first_stage < 18_500:
        before = lt.solve(
            problem,
            iterations=3 * first_stage // 2,
            project=False,
            record_every=10**9,
            resume=before.state,
        )
    length = min(6_000, (before.state.solver_state.stage_end - before.iterations) // 3)
    times = []
    for _ in range(3):
        after = lt.solve(
            problem,
            iterations=before.iterations + length,
            project=False,
            record_every=10**9,
            resume=before.state,
        )
        times.append(
            1e6 * (after.seconds - before.seconds) / (after.iterations - before.iterations)
        )
        before = after
    return min(times)


def measure_orders(count: int) -> dict[str, float]:
    """Microseconds per iteration of LightTouch (k = 8) under `count` random orders of 4,096
    parameters.
    """
    rng = np.random.default_rng(0)
    d, n = 4096, 20_000
    X = sp.random(n, d, 24 / d, random_state=rng, format="csr")
    y = np.where(X @ np.sort(rng.normal(size=d)) + 0.1 * rng.normal(size=n) > 0, 1.0, -1.0)
    ends = np.sort(rng.integers(0, d - 1, size=(count, 2)), axis=1)
    problem = lt.Problem(
        lt.EmpiricalRisk(X, y, loss="hinge"),
        lt.order(ends[:, 0], ends[:, 1] + 1, dimension=d),
        lt.Box(-10, 10),
    )
    solver = lt.LightTouch(1.0, lt.InverseSqrt(1.0), 8, weight_step_size=1 / 16, batch=2)
    first = lt.solve(problem, solver, iterations=20_000, project=False, record_every=10**9)
    times = []
    for _ in range(3):
        following = lt.solve(
            problem,
            solver,
            iterations=first.iterations + 20_000,
            project=False,
            record_every=10**9,
            resume=first.state,
        )
        times.append((following.seconds - first.seconds) / 20_000 * 1e6)
        first = following
    return {"microseconds": min(times), "constraints": count}


def measure_looks(features: int) -> dict[str, float]:
    """Microseconds per iteration of FullTouch, checking every constraint or only changed ones."""
    problem = lattice_problem(features, 100_000)
    found: dict[str, float] = {"constraints": problem.constraints.count}
    for name, incremental, iterations in (("every", False, 2_000), ("moved", True, 20_000)):
        solver = lt.FullTouch(1.0, lt.InverseSqrt(16.0), batch=2, incremental=incremental)
        before = lt.solve(
            problem, solver, iterations=iterations // 2, project=False, record_every=10**9
        )
        after = lt.solve(
            problem,
            solver,
            iterations=iterations,
            project=False,
            record_every=10**9,
            resume=before.state,
        )
        found[name] = (
            1e6 * (after.seconds - before.seconds) / (after.iterations - before.iterations)
        )
    return found


def in_own_process(function: str, argument: int, module: str = "scaling") -> dict[str, float]:
    code = (
        f"import json; from benchmarks.speed import {module}; "
        f"print(json.dumps({module}.{function}({argument})))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    return json.loads(output.splitlines()[-1])


def run(quick: bool = False) -> list[Row]:
    features = FEATURES[:3] if quick else FEATURES
    lattices = {f: in_own_process("measure_lattice", f) for f in features}
    rows = []
    for f in features:
        found = lattices[f]
        ratio = found["microseconds"] / lattices[12]["microseconds"]
        what = (
            f"default: an iteration on a 2^{f} lattice ({found['constraints']:,.0f} "
            "constraints) / on 2^12"
        )
        shown = f"{found['microseconds']:.1f} us, {ratio:.2f}x, {found['megabytes']:.0f} MB"
        point = ("constraints m", found["constraints"], found["microseconds"])
        rows.append(
            Row(
                what,
                shown,
                "<= 3 at 2^20" if f == 20 else "",
                ratio <= 3.0 if f == 20 else None,
                point=point,
            )
        )
    small, large = (
        in_own_process("measure_orders", count)
        for count in (10_000, 100_000 if quick else 1_000_000)
    )
    ratio = large["microseconds"] / small["microseconds"]
    what = f"LightTouch, k = 8: an iteration at m = {large['constraints']:,} / at m = 10,000"
    rows.append(
        Row(
            what,
            f"{large['microseconds']:.2f} / {small['microseconds']:.2f} us = {ratio:.2f}",
            "<= 2",
            ratio <= 2.0,
        )
    )
    return rows + incremental_looks(quick) + against_dimension(quick) + against_examples(quick)


def incremental_looks(quick: bool) -> list[Row]:
    found = [in_own_process("measure_looks", f) for f in ((12,) if quick else (12, 16))]
    return [
        Row(
            (
                f"FullTouch, {each['constraints']:,.0f} constraints: every one evaluated / "
                "only those whose parameters moved"
            ),
            f"{each['every']:.1f} / {each['moved']:.1f} us = {each['every'] / each['moved']:.1f}x",
            "",
        )
        for each in found
    ]


def against_dimension(quick: bool) -> list[Row]:
    found = [
        in_own_process("measure_dense", d, "sizes")
        for d in (sizes.DIMENSIONS[:3] if quick else sizes.DIMENSIONS)
    ]
    return growth("LightTouch, k = 8, dense rows: an iteration at d", "parameters d", found)


def against_examples(quick: bool) -> list[Row]:
    found = [
        in_own_process("measure_pairs", n, "sizes")
        for n in (sizes.PAIRS[:2] if quick else sizes.PAIRS)
    ]
    return growth(
        "LightTouch, 96 groups; default to its end: an iteration at n", "examples n", found
    )


def growth(what: str, axis: str, found: list[dict[str, float]]) -> list[Row]:
    """A row a size, beside the first of them."""
    first, rows = found[0], []
    for each in found:
        shown = (
            f"{each['microseconds']:.2f} us, {each['microseconds'] / first['microseconds']:.2f}x"
        )
        shown += f"; {each['seconds']:.1f} s" if "seconds" in each else ""
        point = (axis, each["size"], each["microseconds"])
        rows.append(
            Row(f"{what} = {each['size']:,} / at {first['size']:,}", shown, "", point=point)
        )
    return rows
