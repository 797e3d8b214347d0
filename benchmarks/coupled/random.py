"""`python -m benchmarks.coupled.random [--count 1000] [--seed 0] [--limit 20]`: random small
problems of all losses, families, domains and degeneracies against CVXPY.

Counted are false claims (CONVERGED, and yet a feasible point is better by more than the tolerance;
or CONVERGED and infeasible), false bounds (a feasible point lies below `lower_bound`, or beyond a
"proven within" of the notes), crashes, problems called infeasible that are not, objectives that
differ from NumPy's, and the share within 0.1% of the optimum. `--only SEED` shows one problem.

A false claim needs a witness: a point of CVXPY's that NumPy finds feasible and better. A second
solver must find one too, so that what is blamed is not the reference.
"""

from __future__ import annotations

import argparse
import math
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.coupled.case import NotYet
from benchmarks.coupled.instances import Instance, draw

WITHIN = 1e-3
SLACK = 1e-6  # of the size of the objective, for the accuracy of the reference
FEASIBLE = 1e-7  # excess, relative to rows' norms, of a witness
CLAIMED_FEASIBLE = 1e-6  # and of a point that is called CONVERGED
TIGHT: list[tuple[str, dict[str, float]]] = [
    ("CLARABEL", {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}),
    ("ECOS", {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10}),
    ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 200_000}),
]


@dataclass
class Outcome:
    """What happened on one problem, in units of its objective in u."""

    instance: Instance
    seconds: float = math.nan
    result: Any = None
    faults: list[str] = field(default_factory=list)
    off: float = math.nan
    optimum: float = math.nan
    size: float = 1.0
    skipped: str = ""

    @property
    def right(self) -> bool:
        return self.off <= WITHIN * abs(self.optimum) + SLACK * self.size

    def __str__(self) -> str:
        status = self.result.status.name if self.result is not None else "-"
        ours = self.optimum + self.off
        return (
            f"seed {self.instance.seed}: {', '.join(self.faults) or 'no fault'}; {status}, ours "
            f"{ours:.8g}, optimum {self.optimum:.8g}, {self.seconds:.2f} s; "
            f"{', '.join(self.instance.words)}"
        )


def witness(it: Instance, solver: str, options: dict[str, float]) -> tuple[float, float, str]:
    """Value and violation of a solver's point, by NumPy; infinite where it has none."""
    import cvxpy as cp

    v = cp.Variable(it.d)
    assert it.reference_value is not None
    said = [rule for part in it.said for rule in part(cp, v)]
    problem = cp.Problem(cp.Minimize(it.reference_value(cp, v)), said)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=solver, **options)
    except Exception as error:
        return math.inf, math.inf, type(error).__name__
    if v.value is None:
        return math.inf, math.inf, str(problem.status)
    return it.value(v.value), it.violation(v.value), str(problem.status)


def reference(it: Instance) -> tuple[float, str]:
    """The least value of a feasible point that some solver calls optimal."""
    said = ""
    for solver, options in [("CLARABEL", {}), *TIGHT]:
        value, violation, status = witness(it, solver, options)
        if status == "optimal" and violation <= FEASIBLE:
            return value, ""
        said += f" {solver} {status} violation {violation:.1e};"
    return math.nan, said


def confirmed(it: Instance, above: float) -> bool:
    """Whether two of the solvers, set tightly, have a feasible point whose value is below."""
    found = 0
    for solver, options in TIGHT:
        value, violation, _ = witness(it, solver, options)
        found += value < above and violation <= FEASIBLE
    return found >= 2


def solved(it: Instance, outcome: Outcome, limit: float) -> bool:
    """Run ours; False where it ended with an error."""
    assert it.problem is not None
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome.result = lt.solve(it.problem, time_limit=limit)
    except lt.InfeasibleConstraintsError as error:
        outcome.faults.append(f"FALSE INFEASIBLE: {str(error)[:100]}")
    except Exception as error:
        outcome.faults.append(f"CRASH {type(error).__name__}: {str(error)[:150]}")
    outcome.seconds = time.perf_counter() - began
    if outcome.result is None:
        return False
    outcome.seconds -= outcome.result.preparation_seconds
    return True


def judge(it: Instance, limit: float) -> Outcome:
    outcome = Outcome(it)
    outcome.optimum, outcome.skipped = reference(it)
    if outcome.skipped:
        return outcome
    if not solved(it, outcome, limit):
        return outcome
    result, u = outcome.result, it.back(outcome.result.w)
    ours = it.value(u)
    outcome.size = max(abs(outcome.optimum), abs(it.value(it.inside)))
    outcome.off = ours - outcome.optimum
    slack = SLACK * outcome.size
    if abs(it.problem.objective.value(result.w) / it.unit - ours) > 10.0 * slack:  # type: ignore[union-attr]
        outcome.faults.append("OBJECTIVE differs from NumPy's")
    _judge_claim(outcome, ours, it.violation(u), slack)
    _judge_bounds(outcome, ours, slack)
    if outcome.seconds > limit:
        outcome.faults.append(f"SLOW {outcome.seconds:.1f} s")
    return outcome


def _judge_claim(outcome: Outcome, ours: float, violation: float, slack: float) -> None:
    it = outcome.instance
    if outcome.result.status is not lt.Status.CONVERGED:
        return
    allowed = CLAIMED_FEASIBLE * max(1.0, float(np.abs(it.inside).max()))
    if violation > allowed + it.rounding(outcome.result.w):
        outcome.faults.append(f"FALSE CLAIM: violation {violation:.1e}")
    least = ours - WITHIN * max(abs(ours), abs(outcome.optimum)) - slack
    if outcome.optimum < least and confirmed(it, least):
        outcome.faults.append("FALSE CLAIM: a feasible point is better")


def _judge_bounds(outcome: Outcome, ours: float, slack: float) -> None:
    it, result = outcome.instance, outcome.result
    bounds = [getattr(result, "lower_bound", -math.inf) / it.unit]
    for note in result.notes:
        proven = re.search(r"proven within ([-+.\deinf]+)", note)
        if proven:
            bounds.append(ours - float(proven.group(1).rstrip(".")) / it.unit)
    worst = max(bounds) - slack
    if outcome.optimum < worst and confirmed(it, worst):
        outcome.faults.append(f"FALSE BOUND {max(bounds):.8g}")


def outcomes(seeds: Iterator[int] | range, limit: float) -> Iterator[Outcome]:
    for seed in seeds:
        try:
            it = draw(seed)
        except NotYet:
            continue  # the same seeds are the same problems in every version
        except Exception as error:
            print(f"seed {seed}: cannot be stated: {type(error).__name__}: {error}", flush=True)
            continue
        yield judge(it, limit)


def report(found: list[Outcome]) -> str:
    judged = [each for each in found if not each.skipped]
    right = sum(each.right for each in judged)
    statuses = Counter(each.result.status.name for each in judged if each.result is not None)
    slowest = sorted(judged, key=lambda each: -np.nan_to_num(each.seconds))[:5]
    lines = [
        f"{len(judged)} problems, {len(found) - len(judged)} without a reference",
        f"within 0.1%: {right} ({right / max(1, len(judged)):.1%})",
        f"statuses: {dict(statuses)}",
        f"false claims: {_number(judged, 'FALSE CLAIM')}",
        f"false bounds: {_number(judged, 'FALSE BOUND')}",
        f"called infeasible: {_number(judged, 'FALSE INFEASIBLE')}",
        f"crashes: {_number(judged, 'CRASH')}",
        f"other objective: {_number(judged, 'OBJECTIVE')}",
        f"over the limit: {_number(judged, 'SLOW')}",
        f"proven (CONVERGED) of those right: {statuses['CONVERGED'] / max(1, right):.1%}",
        "slowest: "
        + ", ".join(f"{each.seconds:.1f} s (seed {each.instance.seed})" for each in slowest),
    ]
    return "\n".join(lines)


def _number(judged: list[Outcome], kind: str) -> int:
    return sum(any(fault.startswith(kind) for fault in each.faults) for each in judged)


def show(seed: int, limit: float) -> None:
    it = draw(seed)
    print(it.problem)
    outcome = judge(it, limit)
    print(outcome.skipped or outcome)
    for solver, options in TIGHT:
        print(
            f"{solver:9s} value {{:.10g}} violation {{:.1e}} {{}}".format(
                *witness(it, solver, options)
            )
        )
    if outcome.result is not None:
        print(f"ours      violation {it.violation(it.back(outcome.result.w)):.1e}")
        print(outcome.result)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for each problem")
    parser.add_argument("--only", type=int, help="show the problem of this seed")
    options = parser.parse_args()
    if options.only is not None:
        show(options.only, options.limit)
        return
    found = []
    for outcome in outcomes(range(options.seed, options.seed + options.count), options.limit):
        found.append(outcome)
        if outcome.faults or not (outcome.right or outcome.skipped):
            print(outcome, flush=True)
        elif outcome.skipped:
            print(
                f"seed {outcome.instance.seed}: no reference:{outcome.skipped} "
                f"{', '.join(outcome.instance.words)}",
                flush=True,
            )
    print(report(found))


if __name__ == "__main__":
    main()
