"""`lighttouch warmup`: compile what training needs."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import lighttouch as lt
from lighttouch.cli.speaking import OK, Speaker, say
from lighttouch.kernels.compiler.cache import cache_folder, remove_stale_code
from lighttouch.signals import Interrupts
from lighttouch.text import printable


def run(options: argparse.Namespace) -> int:
    """Train one small model of each kind: what they compile is kept for later runs."""
    speaker = Speaker(options)
    if options.clean:
        files, size = remove_stale_code()
        speaker(
            f"Deleted {files:,} outdated files ({size / 1e6:.0f} MB) from "
            f"{printable(str(cache_folder()))}"
        )
    began = time.perf_counter()
    for name, train in _small_trainings():
        start = time.perf_counter()
        with warnings.catch_warnings(), Interrupts(ends_program=True) as interrupts:
            warnings.simplefilter("ignore")
            train()
        if interrupts.raised:
            say("interrupted: what is compiled is kept", sys.stderr)
            return interrupts.exit_code
        speaker(f"{name:<28}{time.perf_counter() - start:6.1f} s")
    speaker(
        f"Everything is compiled, in {time.perf_counter() - began:.1f} s; a second warmup "
        "shows what is left of that"
    )
    return speaker.conclude(OK, folder=str(cache_folder()), seconds=time.perf_counter() - began)


def _small_trainings() -> list[tuple[str, Callable[[], object]]]:
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
            lambda: lt.LatticeRegressor(**rules, trees=1, shape_constraints=curved).fit(X, score),
        ),
        ("classifier", lambda: lt.LatticeClassifier(**rules, trees=1).fit(X, score > 0)),
        ("ranker", lambda: lt.LatticeRanker(**rules).fit_pairs(X[::2], X[1::2])),
        (
            "linear models",
            lambda: lt.ConstrainedLinearClassifier(monotonic_cst=[1, -1, 0]).fit(X, score > 0),
        ),
        ("the default solver", lambda: lt.solve(problem, iterations=100)),
    ]
