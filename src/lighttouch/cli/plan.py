"""`lighttouch plan`: what the theorems of the paper ask for."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from lighttouch import theory
from lighttouch.cli.speaking import OK, Speaker


def run(options: argparse.Namespace) -> int:
    def given(value: float | None, otherwise: float) -> float:
        return otherwise if value is None else value

    constants = theory.Constants(
        constraints=options.constraints,
        diameter=options.diameter,
        objective_gradient=options.objective_gradient,
        constraint_gradient=options.constraint_gradient,
        constraint_lipschitz=given(options.constraint_lipschitz, options.constraint_gradient),
        objective_lipschitz=given(options.objective_lipschitz, options.objective_gradient),
        boundary_gradient=options.boundary_gradient,
        penalty=options.penalty,
        strong_convexity=options.strong_convexity,
    )
    wanted = [options.algorithm] if options.algorithm != "all" else ["full", "light", "mid"]
    if options.algorithm == "all" and options.strong_convexity is None:
        wanted.remove("mid")
    speaker, plans = Speaker(options), {}
    for name in wanted:
        chance = () if name == "mid" else (options.failure_probability,)
        plans[name] = getattr(theory, f"plan_{name}")(constants, options.epsilon, *chance)
    speaker("\n\n".join(str(plan) for plan in plans.values()))
    if "mid" not in wanted and options.algorithm == "all":
        speaker("\n(MidTouch is planned as well when --strong-convexity is given)")
    return speaker.conclude(OK, plans={name: asdict(plan) for name, plan in plans.items()})
