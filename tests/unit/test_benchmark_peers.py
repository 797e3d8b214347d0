"""The benchmark against other libraries: what they are given, how a missing one is skipped, and how
answers are judged and drawn.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.peers import environments
from benchmarks.peers.comparison import CVXPY, _against, skipped
from benchmarks.peers.environments import Unavailable
from benchmarks.peers.running import _run, judged, padded, save_problem
from benchmarks.speed.paper_problem import Row, paper_problem
from benchmarks.speed.picture import draw, markdown, ratio_of


def test_a_peer_gets_the_same_problem_as_plain_arrays(tmp_path):
    problem = paper_problem(60)
    save_problem(tmp_path / "problem.npz", problem, 60)
    given = np.load(tmp_path / "problem.npz")
    w = np.random.default_rng(0).normal(size=int(given["dimension"]))
    scores = (given["values"] * w[given["indices"]]).sum(axis=1)
    assert np.maximum(0.0, 1.0 - scores).mean() == pytest.approx(
        problem.objective.value(w), rel=1e-12
    )
    np.testing.assert_allclose(
        w[given["lower"]] - w[given["upper"]], problem.constraints.values(w), atol=1e-12
    )


def test_rows_are_padded_with_nothing():
    rows = sp.csr_matrix(np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4.0, 0.0, 0.0]]))
    indices, values = padded(rows)
    assert values.tolist() == [[2.0, 3.0], [0.0, 0.0], [4.0, 0.0]] and indices[0].tolist() == [1, 2]


def test_answers_are_judged_after_projection_and_violation_before_it():
    problem = paper_problem(60)
    bad = -np.arange(4096.0) / 4096
    answer = judged(
        problem, np.array([1.0, 2.0]), np.array([5, 10]), np.array([bad, 0 * bad]), {}, {}
    )
    near = lt.project(bad, problem.constraints, problem.domain).w
    assert answer.objectives[0] == problem.objective.value(near) and answer.objectives[1] == 1.0
    assert answer.violations[0] > 0.4 and answer.violations[1] == 0.0
    assert answer.microseconds == 2e5


def test_a_peer_that_cannot_be_installed_is_skipped_with_the_reason(tmp_path, monkeypatch):
    def fail(words):
        told = "ERROR: some reason\nERROR: No matching distribution found for nonsense\n"
        raise subprocess.CalledProcessError(1, words, stderr=told)

    monkeypatch.setattr(environments, "ROOT", tmp_path)
    monkeypatch.setattr(environments, "_run", fail)
    with pytest.raises(Unavailable, match="No matching distribution found for nonsense") as caught:
        environments.python_of("peer", ("nonsense",))
    assert list(tmp_path.iterdir()) == []
    assert str(skipped(CVXPY, caught.value)).startswith(
        "CVXPY: skipped, not installed: No matching"
    )


def test_a_program_that_fails_is_skipped_with_its_last_words():
    with pytest.raises(Unavailable, match=r"its program failed: .*(No such file|cvxpy|npz)"):
        _run(CVXPY, Path(sys.executable), paper_problem(60), Path("absent.npz"), 1.0, {})


def test_ratios_are_read_drawn_and_tabled(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        Row("C++ / ours", "4.80 / 0.200 s = 24x", ">= 15x", True),
        Row("with / without", "150 / 130 ns = 1.15", "<= 1.5", True),
        _against("peer | ours", None, 0.5, 20.0),
        Row("skipped", "", ""),
        *(
            Row("size", f"{y} us", "", point=("constraints m", x, y))
            for x, y in ((10.0, 1.5), (1e6, 30.0))
        ),
    ]
    assert [ratio_of(row) for row in rows] == [24.0, 1.15, 40.0, None, None, None]
    assert "| peer \\| ours | > 20 / 0.500 s > 40x | > 1x | yes |" in markdown(rows)
    draw(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
