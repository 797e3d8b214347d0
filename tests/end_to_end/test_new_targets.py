"""The command line with quantiles, counts, ordered classes and limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt
from lighttouch.cli.main import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "b": rng.random(300)})
    frame["years"] = rng.uniform(0.2, 2.0, 300)
    frame["claims"] = rng.poisson(3.0 * frame.years * np.exp(frame.a))
    frame["y"] = frame.a + (0.1 + frame.b) * rng.normal(size=300)
    frame["grade"] = np.array(["low", "mid", "high"])[np.digitize(frame.y, [0.2, 0.8])]
    frame["kind"] = rng.choice(["new", "old"], 300)
    frame.to_csv(folder / "data.csv", index=False)
    return folder


def train(place, name: str, target: str, *words: str) -> int:
    others = {"y", "grade", "claims"} - {target}
    others |= set() if name == "any" else {"kind"}
    path = str(place / f"{name}.lt")
    drop = ["--drop", ",".join(others)]
    return main(["train", str(place / "data.csv"), "--target", target, *drop, "-o", path, *words])


def predicted(place, name: str) -> pd.DataFrame:
    out = place / f"{name}.csv"
    words = ["predict", str(place / f"{name}.lt"), str(place / "data.csv"), "-o", str(out)]
    assert main([*words, "--quiet", "--overwrite"]) == 0
    return pd.read_csv(out)


def test_counts_with_exposure(place, capsys):
    rules = place / "rules.toml"
    rules.write_text('[[rule]]\nkind = "Concave"\ncolumn = "b"\n', encoding="utf-8")
    words = ["--loss", "poisson", "--exposure", "years", "--increasing", "a"]
    assert train(place, "claims", "claims", *words, "--rules", str(rules)) == 0
    told = capsys.readouterr().out
    assert "Concave(b): on the log-mean, not on the mean; all other rules hold on both" in told
    model = lt.load(place / "claims.lt")
    assert model.columns_.names == ["a", "b"], "the exposure is no column to learn from"
    frame = pd.read_csv(place / "data.csv")
    assert (
        abs((predicted(place, "claims").prediction * frame.years).sum() / frame.claims.sum() - 1)
        < 0.01
    )
    assert main(["check", str(place / "claims.lt"), str(place / "data.csv")]) == 0
    assert "predictions on X: Concave(b)" in capsys.readouterr().out
    page = (place / "claims.html").read_text(encoding="utf-8")
    assert "Concave(b), on the log-mean" in page and "log-mean along b" in page


def test_quantiles_in_columns(place, capsys):
    assert (
        train(place, "q", "y", "--drop", "years", "--quantile", "0.1,0.9", "--increasing", "a") == 0
    )
    told = capsys.readouterr().out
    assert "quantiles in order" in told
    assert "quantile 0.9" in (place / "q.html").read_text(encoding="utf-8")
    found = predicted(place, "q")
    assert list(found.columns) == ["quantile_0.1", "quantile_0.9"]
    assert (found["quantile_0.1"] <= found["quantile_0.9"]).all()


def test_ordered_classes(place, capsys):
    words = ["--ordinal", "low,mid,high", "--increasing", "a", "--drop", "years"]
    assert train(place, "grade", "grade", *words) == 0
    assert "cumulative probability" in capsys.readouterr().out
    found = predicted(place, "grade")
    assert list(found.columns)[1:] == ["probability_low", "probability_mid", "probability_high"]
    assert main(["check", str(place / "grade.lt"), str(place / "data.csv")]) == 0


def test_unordered_classes(place, capsys):
    assert train(place, "any", "grade", "--task", "classification", "--drop", "years") == 0
    assert set(predicted(place, "any").prediction) <= {"low", "mid", "high"}
    assert main(["check", str(place / "any.lt"), str(place / "data.csv")]) == 0
    words = ["--task", "classification", "--increasing", "a"]
    assert train(place, "none", "grade", *words) == 2
    told = capsys.readouterr().err
    assert "rules need two classes or ordered ones" in told and "--ordinal" in told


def test_limits(place):
    assert train(place, "in", "y", "--output-min", "0", "--output-max", "0.7") == 0
    found = predicted(place, "in").prediction
    assert found.min() >= 0.0 and found.max() == 0.7


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--loss", "poison"], "--loss must be one of"),
        (["--loss", "huber", "--quantile", "0.5"], "--quantile needs"),
        (["--exposure", "years"], "--exposure needs"),
        (["--linear", "--output-min", "0"], "--output-min is for"),
        (["--linear", "--quantile", "0.1,0.9"], "one quantile"),
        (["--linear", "--loss", "poisson"], "--loss must be one of"),
    ],
)
def test_options_that_do_not_fit(place, capsys, words, part):
    assert train(place, "x", "y", *words) == 2
    assert part in capsys.readouterr().err
    assert not (place / "x.lt").exists()


def test_ordinal_lists_the_classes(place, capsys):
    assert train(place, "x", "grade", "--ordinal", "low,hi") == 2
    assert "--ordinal must list" in capsys.readouterr().err
