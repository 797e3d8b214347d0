"""The page for users of CVXPY: both sides of every statement run, and have the same optimum."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lighttouch as lt

PAGE = Path(__file__).parents[2] / "docs/coming_from_cvxpy.md"
OURS, THEIRS = "python", "py"


def sections() -> dict[str, list[tuple[str, str]]]:
    """The code blocks under each heading, each with the language of its fence."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE):
        blocks = re.findall(r"^```(python|py)\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
        found[part.splitlines()[0]] = blocks
    return found


def test_the_statements_of_cvxpy_are_not_run_as_ours():
    both = [
        blocks for blocks in sections().values() if {kind for kind, _ in blocks} == {OURS, THEIRS}
    ]
    assert len(both) >= 12
    assert all(
        "cvxpy" not in code
        for _, blocks in sections().items()
        for kind, code in blocks
        if kind == OURS
    )


def test_both_sides_have_the_same_optimum():
    pytest.importorskip("cvxpy")
    names: dict[str, object] = {"__name__": "document"}
    for heading, blocks in sections().items():
        for kind in (THEIRS, OURS):
            for each, code in blocks:
                if each == kind:
                    exec(compile(code, heading, "exec"), names)
        if len(blocks) == 2:
            result, best = names["result"], names["best"]
            assert isinstance(result, lt.Result)
            assert result.objective == pytest.approx(best, rel=2e-3, abs=1e-6), heading
            assert result.violation <= 1e-9, heading
