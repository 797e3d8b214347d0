"""The comparison of models: what it does, and that it goes on where it was stopped."""

from __future__ import annotations

import numpy as np

from benchmarks.models import __main__ as comparison
from benchmarks.models.__main__ import Results, jobs, known, run

ABOUT = {"set": "steps", "model": "EBM", "rules": True, "seed": 0, "score": 1.0, "seconds": 1.0}


def test_every_model_meets_every_table_and_rankings_bring_their_own(monkeypatch):
    monkeypatch.setattr(comparison, "RANKINGS", ("rank",))
    assert jobs(["steps", "rank"], [0, 1], ["a", "b"], free=True) == [
        ("steps", 0, "a", True),
        ("steps", 0, "a", False),
        ("steps", 0, "b", True),
        ("steps", 0, "b", False),
        ("rank", 0, "", True),
        ("steps", 1, "a", True),
        ("steps", 1, "a", False),
        ("steps", 1, "b", True),
        ("steps", 1, "b", False),
        ("rank", 1, "", True),
    ]


def test_what_is_known_is_not_done_again(tmp_path, monkeypatch, capsys):
    done = []
    monkeypatch.setattr(comparison, "do", lambda job: done.append(job) or [ABOUT])
    wanted = jobs(["steps"], [0], ["EBM"], free=False)
    results = Results(tmp_path / "results.jsonl")
    assert not known(results, wanted[0])
    run(results, wanted, workers=1)
    again = Results(tmp_path / "results.jsonl")
    assert again.rows == [ABOUT] and known(again, wanted[0])
    run(again, wanted, workers=1)
    assert done == wanted and "steps  split 0  EBM" in capsys.readouterr().err


def test_two_workers_measure_what_one_does(tmp_path):
    """They start as processes of their own: once, they could not."""
    wanted = jobs(["steps"], [0], ["lighttouch", "HistGradientBoosting"], free=False)
    found = [Results(tmp_path / f"{workers}.jsonl") for workers in (1, 2)]
    for workers, results in zip((1, 2), found, strict=True):
        run(results, wanted, workers)
    one, two = ({row["model"]: row["score"] for row in each.rows} for each in found)
    assert one.keys() == {"lighttouch", "HistGradientBoosting"}
    np.testing.assert_allclose([two[name] for name in one], list(one.values()), rtol=1e-9)
