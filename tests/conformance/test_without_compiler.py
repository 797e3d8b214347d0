"""With numba switched off altogether, every loop of the package runs as plain Python: the same
bits, in another process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_solvers import often

import lighttouch
from catalogue import PROBLEMS, SOLVERS

STEPS = 30


def digests(every: bool) -> dict[str, str]:
    """One digest per run of the catalogue, or of the part that `make test` runs: iterates,
    averages, p, and the values recomputed from them.
    """
    found = {}
    for j, (problem_name, make) in enumerate(PROBLEMS.items()):
        problem = make().problem
        for i, (solver_name, entry) in enumerate(SOLVERS.items()):
            if entry.ends or problem_name not in entry.takes:  # the paper's, and its rivals
                continue
            if not (every or often(i, j, problem_name)):
                continue
            solver = entry.build(problem)
            state = solver.init(problem, problem.start(np.full(problem.dimension, 0.3)))
            solver.advance(problem, state, STEPS, np.random.default_rng(1))
            p = solver.probabilities(state)
            numbers = [
                state.w,
                solver.average(state),
                [] if p is None else p,
                problem.constraints.values(state.w),
            ]
            hasher = hashlib.sha256(np.concatenate(numbers).tobytes())
            hasher.update(
                np.array([problem.objective.value(state.w), problem.violation(state.w)]).tobytes()
            )
            hasher.update(problem.objective.gradient(state.w).tobytes())
            found[f"{problem_name}: {solver_name}"] = hasher.hexdigest()[:16]
    return found


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"]
)
def test_plain_python_gives_the_same_bits(every):
    here = Path(__file__).resolve()
    path = os.pathsep.join(
        str(folder)
        for folder in (here.parent, here.parent.parent, Path(lighttouch.__file__).parents[1])
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    script = (
        f"import json, test_without_compiler as these; print(json.dumps(these.digests({every})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    plain = json.loads(ran.stdout.splitlines()[-1])
    compiled = digests(every)
    assert plain.keys() == compiled.keys()
    assert {name for name in plain if plain[name] != compiled[name]} == set()
