"""`python -m benchmarks.coupled [case ...] [--reference]`: coupled rows and kinked losses, solved
by `lt.solve` and, with `--reference`, by CVXPY with Clarabel in the same run.

Our seconds are the wall time of a second call on a problem built anew, so that compilation is
apart. Objective and violation are recomputed by NumPy in the same units for both. `known` stands in
for the reference where the optimum is known. `--list` names the cases; `maros/HS21` is one problem
of the set.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from typing import Any

import lighttouch as lt
from benchmarks.coupled import convex, models, programs  # noqa: F401 - they register the cases
from benchmarks.coupled.case import BUILDERS, Case, NotYet

WARM_SECONDS = 20.0  # the most that the first call, which compiles, may take otherwise
RIGHT = 1e-3  # relative distance to the optimum that counts as right

DONE: dict[str, tuple[float, str, float]] = {}  # references that have run
HEAD = (
    f"{'case':22s} {'ours s':>8s} {'ref s':>8s} {'ratio':>7s} {'ours':>14s} {'reference':>14s} "
    f"{'off':>9s} {'violation':>9s} {'lower bound':>14s} {'gap':>9s} {'MB':>6s}  status"
)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return function(), time.perf_counter() - began


def our_seconds(
    build: Callable[[], Case], tolerance: float | None, limit: float | None
) -> tuple[Case, Any, float]:
    """The second call, on a problem made anew; an exception stands for the result of a crash."""
    case = build()
    solver = lt.Automatic(tolerance=case.tolerance if tolerance is None else tolerance)
    most = case.time_limit if limit is None else limit
    try:
        lt.solve(case.problem, solver, time_limit=min(most, WARM_SECONDS))
        case = build()
        result, seconds = timed(lambda: lt.solve(case.problem, solver, time_limit=most))
    except Exception as error:
        return case, error, math.nan
    return case, result, seconds


def line(case: Case, result: Any, seconds: float, reference: tuple[float, str, float]) -> str:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    theirs, their_status, their_seconds = reference
    if isinstance(result, Exception):
        return f"{case.name:22s} CRASH {type(result).__name__}: {str(result)[:150]}"
    ours = case.evaluate(result.w)
    bound = case.scale * getattr(result, "lower_bound", -math.inf) + case.offset
    gap = case.scale * getattr(result, "gap", math.inf)
    off = (ours - theirs) / max(abs(theirs), 1e-6)
    return (
        f"{case.name:22s} {seconds:8.2f} {their_seconds:8.2f} {their_seconds / seconds:6.1f}x "
        f"{ours:14.8g} {theirs:14.8g} {off:9.1e} {case.violation(result.w):9.1e} {bound:14.8g} "
        f"{gap:9.1e} {peak:6.0f}  {result.status.name} | {their_status}"
    )


def reference_of(case: Case, wanted: bool) -> tuple[float, str, float]:
    name = case.same_as or case.name
    if wanted and case.reference is not None:
        if name not in DONE:
            DONE[name] = run_reference(case.reference)
        return DONE[name]
    return (math.nan, "-", math.nan) if case.known is None else (case.known, "known", math.nan)


def run_reference(reference: Callable[[], tuple[float, str]]) -> tuple[float, str, float]:
    try:
        (value, status), seconds = timed(reference)
    except Exception as error:
        return math.nan, f"{type(error).__name__}: {str(error)[:80]}", math.nan
    return value, status, seconds


def builds(name: str) -> list[Callable[[], Case]]:
    """One builder for each case of a name, each making its problem anew."""
    group, _, only = name.partition("/")
    count = range(len(BUILDERS[group]()))
    found = [lambda k=k: BUILDERS[group]()[k] for k in count]
    return [build for build in found if not only or build().name.split()[-1] == only]


def verdict(case: Case, result: Any) -> str:
    """Of a problem with a known optimum: right, wrong (claimed and not so), not yet, or crash."""
    if isinstance(result, Exception):
        return "crash"
    off = abs(case.evaluate(result.w) - case.known) / max(abs(case.known or 0.0), 1e-6)
    if off <= RIGHT and case.violation(result.w) <= 1e-6 * (1.0 + abs(result.w).max()):
        return "right"
    return "claimed wrongly" if result.status is lt.Status.CONVERGED else "not solved"


def run(name: str, options: argparse.Namespace) -> list[str]:
    try:
        found = builds(name)
    except NotYet as reason:
        print(f"{name:22s} skipped: {reason}", flush=True)
        return []
    verdicts = []
    for build in found:
        case, result, seconds = our_seconds(build, options.tolerance, options.time_limit)
        print(line(case, result, seconds, reference_of(case, options.reference)), flush=True)
        if case.known is not None:
            verdicts.append(verdict(case, result))
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="names, or none for all")
    parser.add_argument("--reference", action="store_true", help="solve by CVXPY as well")
    parser.add_argument("--tolerance", type=float, help="instead of each case's own")
    parser.add_argument("--time-limit", type=float, help="instead of each case's own")
    parser.add_argument("--list", action="store_true", help="name the cases")
    options = parser.parse_args()
    if options.list:
        print("\n".join(BUILDERS))
        return
    print(HEAD, flush=True)
    for name in options.cases or BUILDERS:
        verdicts = run(name, options)
        if len(verdicts) > 1:
            counted = {kind: verdicts.count(kind) for kind in sorted(set(verdicts))}
            print(f"{name}: of {len(verdicts)} with a known optimum: {counted}", flush=True)


if __name__ == "__main__":
    main()
