"""The quick version of `make reliability`: a few of every row that has no test of its own."""

from __future__ import annotations

import pytest

from benchmarks.reliability import answers, inputs  # noqa: F401  (they register rows)
from benchmarks.reliability.card import run

QUICK = ("self-report", "stress-params", "infeasible", "file-fuzz", "report-escape")


@pytest.mark.parametrize("name", QUICK)
def test_a_row_of_the_scorecard(name):
    score = run(name, quick=True)
    assert score.passed, str(score)
