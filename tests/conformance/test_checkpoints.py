"""Every solver goes on from a file to the same bits as a run that was never interrupted."""

from __future__ import annotations

import numpy as np
import pytest
from test_solvers import assert_same_bits, solved

import lighttouch as lt
from catalogue import ALL_PROBLEMS, FIRST_PHASE, SOLVERS

CASES = [
    pytest.param(
        solver, problem, id=f"{solver}, {problem}", marks=(pytest.mark.slow,) if place else ()
    )
    for solver, entry in SOLVERS.items()
    for place, problem in enumerate(entry.takes[:3])
]


@pytest.mark.parametrize(("solver", "problem"), CASES)
def test_a_run_goes_on_from_its_file(solver, problem, tmp_path):
    case, entry = ALL_PROBLEMS[problem](), SOLVERS[solver]
    whole, path = solved(case, entry), tmp_path / "run.ltc"
    for pause in (1, FIRST_PHASE, 41, 60, 60):
        part = solved(case, entry, iterations=pause, checkpoint=path, checkpoint_every=0)
    assert_same_bits(whole.state.solver_state, part.state.solver_state)
    assert part.w.tobytes() == whole.w.tobytes() and part.status is whole.status
    for name in ("iteration", "objective", "violation", "constraint_checks"):
        last = part.history[name][-1] == whole.history[name][-1]
        assert last or np.isnan(whole.history[name][-1])
    assert [each.name for each in tmp_path.iterdir()] == ["run.ltc"]
    with pytest.raises(lt.CheckpointMismatchError, match="the seed was 3, now it is 4"):
        solved(case, entry, checkpoint=path, seed=4)
