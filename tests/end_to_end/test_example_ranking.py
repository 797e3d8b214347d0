"""What `make demo-ranking` runs, at a small size: every printed figure is a measured one."""

from __future__ import annotations

import re

import pytest

import lighttouch as lt
from examples import ranking
from lighttouch.datasets import ranking_pairs

SMALL = {"pairs": 3000, "features": 5, "seconds": 0.3}


@pytest.fixture(scope="module")
def trained():
    """The results of the two runs, by whether there were constraints, and what was printed."""
    results, printed = {}, []
    original = lt.solve

    def spying(problem, **settings):
        result = original(problem, **settings)
        if settings.get("progress"):
            results[problem.constraints.count > 0] = result
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lt, "solve", spying)
        patch.setattr(
            "builtins.print",
            lambda *values, end="\n", **_: printed.append(" ".join(map(str, values)) + end),
        )
        assert ranking.main(**SMALL) == 0
    return results, "".join(printed)


def row(text: str, label: str, place: int = 0) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip().startswith(label)]
    return re.split(r"\s{2,}", lines[place].strip())[1:]


def test_the_table_repeats_the_results(trained):
    results, text = trained
    ruled, free = results[True], results[False]
    assert row(text, "constraint checks") == [f"{ruled.constraint_checks:,}", "0"]
    assert row(text, "examples seen") == [
        f"{ruled.gradient_samples:,}",
        f"{free.gradient_samples:,}",
    ]
    assert row(text, "seconds of training") == [f"{ruled.seconds:.2f}", f"{free.seconds:.2f}"]


def test_objectives_and_violations_are_those_of_the_models(trained):
    results, text = trained
    grid = lt.Lattice((2,) * 5)
    better, worse = (grid.features(side) for side in ranking_pairs(3000, 5))
    problem = lt.Problem(
        lt.PairwiseRisk(better, worse), lt.lattice.increasing(grid.sizes), lt.Box(-10, 10)
    )
    free = results[False]
    projected = lt.project(free.w, problem.constraints, problem.domain).w
    assert problem.violation(free.w) > 0.01  # or the next lines would say nothing
    assert row(text, "worst violation")[1] == f"{problem.violation(free.w):.3g}"
    assert row(text, "objective", 1) == [
        f"{problem.objective.value(w):.5f}" for w in (results[True].w, projected)
    ]
    assert row(text, "worst violation", 1) == ["0", "0"]
    assert row(text, "rules broken", 1) == ["0", "0"]


def test_it_says_what_to_do_next(trained):
    assert "README.md" in trained[1] and "make test" in trained[1]
