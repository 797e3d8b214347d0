"""`lighttouch plan`, `reproduce`, `warmup` and `completion`."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lighttouch.cli.completion import script
from lighttouch.cli.failures import INTERRUPTED, OK, one_line, say
from lighttouch.cli.tables import readable
from lighttouch.running.interrupts import Interrupts


def plan(options: argparse.Namespace) -> int:
    from lighttouch import theory

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
    blocks = []
    for name in wanted:
        chance = () if name == "mid" else (options.failure_probability,)
        blocks.append(str(getattr(theory, f"plan_{name}")(constants, options.epsilon, *chance)))
    say("\n\n".join(blocks))
    if "mid" not in wanted and options.algorithm == "all":
        say("\n(MidTouch is planned as well when --strong-convexity is given)")
    return OK


def reproduce(options: argparse.Namespace) -> int:
    from lighttouch.experiments.reproduce import reproduce as run

    for part in options.data.split(",") if options.data else ():
        readable(Path(part.strip()))
    asked = (
        options.scale,
        options.only,
        options.data,
        options.output,
        not options.quiet,
        options.seeds,
    )
    try:
        done = run(*asked, resume=not options.fresh, workers=options.workers)
    except KeyboardInterrupt:
        say(
            "\ninterrupted: what was measured is kept, and the same command goes on from here",
            sys.stderr,
        )
        return INTERRUPTED
    say(f"{done}\n\nrows, pictures and provenance: {done.folder}")
    return OK


def warmup(options: argparse.Namespace) -> int:
    """Train one small model of each kind: what they compile is kept for later runs."""
    if options.clean:
        from lighttouch.kernels.compiler.cache import cache_folder, remove_stale_code

        files, size = remove_stale_code()
        say(
            f"Deleted {files:,} outdated files ({size / 1e6:.0f} MB) from "
            f"{one_line(str(cache_folder()))}"
        )
    began = time.perf_counter()
    for name, train in _small_trainings():
        start = time.perf_counter()
        with warnings.catch_warnings(), Interrupts() as interrupts:
            warnings.simplefilter("ignore")
            train()
        if interrupts.raised:
            say("interrupted: what is compiled is kept", sys.stderr)
            return INTERRUPTED
        say(f"{name:<28}{time.perf_counter() - start:6.1f} s")
    say(
        f"Everything is compiled, in {time.perf_counter() - began:.1f} s; a second warmup "
        "shows what is left of that"
    )
    return OK


def _small_trainings() -> list[tuple[str, Any]]:
    import lighttouch as lt
    from lighttouch import estimators

    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    score = X[:, 0] - X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=300)
    rules: dict[str, Any] = {"monotonic_cst": [1, -1, 0], "lattices": [[0, 1]], "max_iter": 5}
    grid = lt.Lattice((2, 2, 2))
    problem = lt.Problem(
        lt.PairwiseRisk(grid.features(X[::2]), grid.features(X[1::2]), loss="hinge"),
        lt.lattice.increasing(grid.sizes),
    )
    curved = [lt.Convex(2)]
    return [
        (
            "regressor",
            lambda: estimators.LatticeRegressor(**rules, shape_constraints=curved).fit(X, score),
        ),
        ("classifier", lambda: estimators.LatticeClassifier(**rules).fit(X, score > 0)),
        ("ranker", lambda: estimators.LatticeRanker(**rules).fit_pairs(X[::2], X[1::2])),
        (
            "linear models",
            lambda: estimators.ConstrainedLinearClassifier(monotonic_cst=[1, -1, 0]).fit(
                X, score > 0
            ),
        ),
        ("the default solver", lambda: lt.solve(problem, iterations=100)),
    ]


def completion(options: argparse.Namespace) -> int:
    from lighttouch.cli.parser import build_parser

    say(script(build_parser(), options.shell).rstrip("\n"))
    return OK
