"""What `make run` runs: the commands it shows are the ones it runs, and they succeed."""

from __future__ import annotations

import pytest

import lighttouch as lt
from examples import diabetes

pytest.importorskip("pandas")


def test_the_demonstration_trains_checks_and_predicts(tmp_path, capsys):
    assert diabetes.main(tmp_path) == 0
    told = capsys.readouterr().out
    assert [line.split()[2] for line in told.splitlines() if line.startswith("$ lighttouch")] == [
        "train",
        "check",
        "predict",
    ]
    assert "every rule holds" in told
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "diabetes.csv",
        "diabetes.html",
        "diabetes.lt",
        "predictions.csv",
    ]
    model = lt.load(tmp_path / "diabetes.lt")
    assert model.check_constraints().violation == 0.0 and len(model.check_constraints().rules) == 5
    assert diabetes.main(tmp_path) == 0  # a second run replaces what the first left
