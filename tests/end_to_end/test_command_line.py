"""The command line end to end: every subcommand, what it prints, its exit codes, and bad input of
every kind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.cli import main

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SUBCOMMANDS = ("train", "predict", "check", "plan", "reproduce", "warmup")


def flats(rows: int = 400, seed: int = 0):
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(20, 200, rows), rng.integers(0, 90, rows)
    kind = rng.choice(["loft", "studio", "villa"], rows)
    price = 3 * area - 2 * age + 40 * (kind == "villa") + rng.normal(0, 40, rows)
    return pd.DataFrame(
        {
            "area": area,
            "age": age,
            "kind": kind,
            "price": price,
            "dear": np.where(price > 300, "yes", "no"),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flats().to_csv("flats.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A regressor and a classifier, trained once by the command line."""
    place = tmp_path_factory.mktemp("trained")
    flats().to_csv(place / "flats.csv", index=False)
    common = ["--increasing", "area", "--decreasing", "age", "--quiet"]
    prices = ["--target", "price", "--drop", "dear", "-o", str(place / "price.lt")]
    assert main(["train", str(place / "flats.csv"), *prices, *common]) == 0
    dear = ["--target", "dear", "--drop", "price", "-o", str(place / "dear.lt"), "--no-report"]
    assert main(["train", str(place / "flats.csv"), *dear, *common]) == 0
    return place


def exactly(path):
    """A CSV with every number as the nearest double, which pandas does by itself since 3.1."""
    options = (
        {}
        if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
        else {"float_precision": "round_trip"}
    )
    return pd.read_csv(path, **options)


def refused(capsys, code: int, *parts: str) -> str:
    told = capsys.readouterr().err
    for part in parts:
        assert part in told, told
    assert "Traceback" not in told
    assert told.startswith("lighttouch: error: ")
    return told


# --- training


def test_training_saves_a_model_that_obeys_the_rules_and_a_report(trained):
    model = lt.load(trained / "price.lt")
    assert type(model).__name__ == "LatticeRegressor"
    assert model.check_constraints().violation == 0.0
    assert {rule.rule for rule in model.check_constraints().rules} == {
        "increasing in area",
        "decreasing in age",
    }
    page = (trained / "price.html").read_text(encoding="utf-8")
    assert "All 2 rules hold" in page
    assert not (trained / "dear.html").exists()
    assert type(lt.load(trained / "dear.lt")).__name__ == "LatticeClassifier"


def test_the_same_model_as_in_python(trained):
    frame = exactly(trained / "flats.csv").drop(columns="dear")
    y = frame.pop("price")
    twin = lt.LatticeRegressor(monotonic_cst={"area": 1, "age": -1}, random_state=0).fit(
        frame, y.to_numpy()
    )
    np.testing.assert_array_equal(lt.load(trained / "price.lt").parameters_, twin.parameters_)


def test_a_rules_file_states_any_rule(folder, capsys):
    (folder / "rules.toml").write_text(
        'increasing = ["area"]\ndecreasing = ["age"]\n'
        '[[rule]]\nkind = "Concave"\ncolumn = "area"\n'
        '[[rule]]\nkind = "CategoryOrder"\ncolumn = "kind"\npairs = [["studio", "villa"]]\n',
        encoding="utf-8",
    )
    words = [
        "train",
        "flats.csv",
        "--target",
        "price",
        "--drop",
        "dear",
        "--rules",
        "rules.toml",
        "--holdout",
        "0.25",
    ]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "under 4 rules" in told and "held out (25%) (100)" in told
    model = lt.load("flats.lt")
    assert model.check_constraints().violation == 0.0
    assert len(model.check_constraints().rules) == 4
    assert (folder / "flats.html").exists()


def test_linear_models_pairs_and_queries(folder):
    assert (
        main(
            [
                "train",
                "flats.csv",
                "--target",
                "price",
                "--drop",
                "dear,kind",
                "--linear",
                "--increasing",
                "area",
                "--quiet",
            ]
        )
        == 0
    )
    model = lt.load("flats.lt")
    assert type(model).__name__ == "ConstrainedLinearRegressor" and model.coef_[0] >= 0

    rng = np.random.default_rng(0)
    better, worse = rng.random((200, 2)) + np.array([0.2, 0.0]), rng.random((200, 2))
    columns = ["better_a", "better_b", "worse_a", "worse_b"]
    pd.DataFrame(np.hstack([better, worse]), columns=columns).to_parquet("pairs.parquet")
    assert main(["train", "pairs.parquet", "--pairs", "--increasing", "a", "--quiet"]) == 0
    assert type(lt.load("pairs.lt")).__name__ == "LatticeRanker"

    lists = pd.DataFrame({"a": rng.random(120), "q": np.repeat(np.arange(12), 10)}).assign(
        stars=lambda f: (3 * f.a).astype(int)
    )
    lists.to_csv("lists.csv.gz", index=False)
    assert (
        main(
            [
                "train",
                "lists.csv.gz",
                "--target",
                "stars",
                "--qid",
                "q",
                "--increasing",
                "a",
                "--quiet",
                "--holdout",
                "0.3",
            ]
        )
        == 0
    )
    assert type(lt.load("lists.lt")).__name__ == "LatticeRanker"
    assert "pairs in the right order" in (folder / "lists.html").read_text(encoding="utf-8")


def test_canonical_examples_from_a_file(folder):
    pd.DataFrame({"area": [100.0], "age": [10], "kind": ["loft"], "price": [500.0]}).to_csv(
        "musts.csv", index=False
    )
    (folder / "rules.toml").write_text(
        'canonical_examples = "musts.csv"\ncanonical_margin = 5.0\n', encoding="utf-8"
    )
    assert (
        main(
            [
                "train",
                "flats.csv",
                "--target",
                "price",
                "--drop",
                "dear",
                "--rules",
                "rules.toml",
                "--quiet",
                "--no-report",
            ]
        )
        == 0
    )
    assert (
        abs(lt.load("flats.lt").predict(pd.read_csv("musts.csv").drop(columns="price"))[0] - 500.0)
        <= 5.0
    )


def test_contradictory_rules_have_their_own_exit_code(folder, capsys):
    pd.DataFrame(
        {"area": [100.0, 100.0], "age": [1, 1], "kind": ["loft"] * 2, "price": [100.0, 900.0]}
    ).to_csv("musts.csv", index=False)
    (folder / "rules.toml").write_text(
        'canonical_examples = "musts.csv"\ncanonical_margin = 5.0\n', encoding="utf-8"
    )
    assert (
        main(["train", "flats.csv", "--target", "price", "--drop", "dear", "--rules", "rules.toml"])
        == 3
    )
    refused(capsys, 3, "canonical examples", "contradict")
    assert not (folder / "flats.lt").exists()


def test_a_time_limit_that_comes_first_is_said_and_the_model_is_usable(folder, capsys):
    words = [
        "train",
        "flats.csv",
        "--target",
        "dear",
        "--drop",
        "price",
        "--decreasing",  # what the data do not say, so that training has something to do
        "area",
        "--time-limit",
        "1e-6",
        "--quiet",
    ]
    assert main(words) == 4
    assert "time limit" in capsys.readouterr().err
    assert lt.load("flats.lt").check_constraints().violation == 0.0


# --- prediction


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_predictions_are_the_same_bits_as_in_python(trained, tmp_path, suffix, monkeypatch):
    monkeypatch.setattr("lighttouch.cli.tables.chunks.__defaults__", (50, (), False))
    data, out = tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}"
    new = flats(333, seed=5).assign(number=np.arange(333))
    new.to_parquet(data) if suffix == "parquet" else new.to_csv(data, index=False)
    for name, target in (("price", "prediction"), ("dear", "probability")):
        words = [
            "predict",
            str(trained / f"{name}.lt"),
            str(data),
            "-o",
            str(out),
            "--overwrite",
            "--keep",
            "number",
            "--quiet",
        ]
        assert main(words) == 0
        written = pd.read_parquet(out) if suffix == "parquet" else exactly(out)
        model = lt.load(trained / f"{name}.lt")
        X = new[list(model.feature_names_in_)]
        expected = model.predict(X) if name == "price" else model.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(written[target].to_numpy(), expected)
        np.testing.assert_array_equal(written["number"], new["number"])
        if name == "dear":
            assert list(written["prediction"]) == list(model.predict(X))


def test_a_category_of_digits_stays_text_in_every_chunk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    code = np.array(["7", "x"])[rng.integers(0, 2, 300)]
    pd.DataFrame(
        {"code": code, "a": rng.random(300), "y": (code == "7") * 5.0 + rng.random(300)}
    ).to_csv("t.csv", index=False)
    assert (
        main(["train", "t.csv", "--target", "y", "--categorical", "code", "--quiet", "--no-report"])
        == 0
    )
    pd.DataFrame({"code": ["7", "7"], "a": [0.5, 0.5]}).to_csv("new.csv", index=False)
    assert main(["predict", "t.lt", "new.csv", "-o", "out.csv", "--quiet"]) == 0
    assert (pd.read_csv("out.csv")["prediction"] > 4.0).all()


def test_unseen_and_missing_categories_and_values_out_of_range_are_predicted(trained, tmp_path):
    rows = "area,age,kind\n,5,castle\n1e6,-3,\n100,10,loft\n"
    (tmp_path / "odd.csv").write_text(rows, encoding="utf-8")
    assert (
        main(
            [
                "predict",
                str(trained / "price.lt"),
                str(tmp_path / "odd.csv"),
                "-o",
                str(tmp_path / "o.csv"),
                "--quiet",
            ]
        )
        == 0
    )
    assert np.isfinite(pd.read_csv(tmp_path / "o.csv")["prediction"]).all()


def test_formulas_are_made_harmless_in_text_only(trained, tmp_path):
    new = flats(3).assign(note=["=1+1", "@x", "plain"], minus=[-1.5, 2.0, -3.0])
    new.to_csv(tmp_path / "n.csv", index=False)
    words = [
        "predict",
        str(trained / "price.lt"),
        str(tmp_path / "n.csv"),
        "--keep",
        "note,minus",
        "--quiet",
    ]
    assert main([*words, "-o", str(tmp_path / "a.csv")]) == 0
    assert main([*words, "-o", str(tmp_path / "b.csv"), "--raw"]) == 0
    safe, raw = pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv")
    assert list(safe["note"]) == ["'=1+1", "'@x", "plain"] and list(safe["minus"]) == [
        -1.5,
        2.0,
        -3.0,
    ]
    assert list(raw["note"]) == ["=1+1", "@x", "plain"]


def test_predictions_go_to_the_screen_without_an_output(trained, capsys):
    assert main(["predict", str(trained / "price.lt"), str(trained / "flats.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction" and len(lines) == 401


def test_a_failed_prediction_leaves_nothing_behind(trained, tmp_path, capsys):
    (tmp_path / "bad.csv").write_text("area,age,kind\n1,2,loft\n3,old,loft\n", encoding="utf-8")
    assert (
        main(
            [
                "predict",
                str(trained / "price.lt"),
                str(tmp_path / "bad.csv"),
                "-o",
                str(tmp_path / "o.csv"),
            ]
        )
        == 2
    )
    refused(capsys, 2, "'age'", "'old'", "row 2 (line 3)")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.csv"]


# --- checking


def test_check_says_yes_and_no(trained, tmp_path, capsys):
    assert main(["check", str(trained / "price.lt")]) == 0
    assert "every rule holds" in capsys.readouterr().out
    assert main(["check", str(trained / "dear.lt"), str(trained / "flats.csv")]) == 0
    assert "predictions on X monotone in area" in capsys.readouterr().out
    model = lt.load(trained / "price.lt")
    own = model.model_.calibrator_of(0)
    model.parameters_[model.model_.part(own)] = model.parameters_[model.model_.part(own)][
        ::-1
    ].copy()
    model.save(tmp_path / "broken.lt")
    assert main(["check", str(tmp_path / "broken.lt")]) == 1
    told = capsys.readouterr().out
    assert "BROKEN" in told and "1 of 2 rules are broken" in told
    assert main(["check", str(tmp_path / "broken.lt"), "--quiet"]) == 1
    assert capsys.readouterr().out == ""


# --- files


def test_nothing_is_overwritten_unasked_and_it_is_refused_before_reading(folder, capsys):
    (folder / "model.lt").write_text("precious", encoding="utf-8")
    words = ["train", "absent.csv", "--target", "price", "-o", "model.lt"]
    assert main(words) == 5
    refused(capsys, 5, "model.lt exists already", "--overwrite")
    assert (folder / "model.lt").read_text(encoding="utf-8") == "precious"
    (folder / "there.html").write_text("precious", encoding="utf-8")
    assert main(["train", "flats.csv", "--target", "price", "--report", "there.html"]) == 5
    refused(capsys, 5, "report there.html exists already")
    assert not (folder / "flats.lt").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["-o", "."], ["is a folder"]),
        (["-o", "flats.csv", "--overwrite"], ["also an input"]),
        (["-o", "./flats.csv", "--overwrite"], ["also an input"]),
        (["-o", "nowhere/model.lt"], ["no folder nowhere"]),
        (["-o", "m.lt", "--report", "m.lt"], ["also an input of this command"]),
        (["--rules", "absent.toml"], ["absent.toml", "cannot be read"]),
        (["--test", "flat.csv"], ["no file flat.csv", "did you mean 'flats.csv'?"]),
    ],
)
def test_file_problems(folder, capsys, words, parts):
    assert main(["train", "flats.csv", "--target", "price", "--drop", "dear", *words]) == 5
    refused(capsys, 5, *parts)
    assert sorted(each.name for each in folder.iterdir()) == ["flats.csv"]


def test_damaged_and_foreign_model_files(trained, folder, capsys):
    content = (trained / "price.lt").read_bytes()
    (folder / "cut.lt").write_bytes(content[: len(content) // 2])
    (folder / "flip.lt").write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    (folder / "text.lt").write_text("hello", encoding="utf-8")
    for name in ("cut.lt", "flip.lt", "text.lt", "absent.lt", "flats.csv", "."):
        assert main(["check", name]) == 5, name
        refused(capsys, 5)
        assert main(["predict", name, "flats.csv"]) == 5, name
        refused(capsys, 5)


# --- bad data


@pytest.mark.parametrize(
    ("content", "words", "parts"),
    [
        ("", [], ["is empty"]),
        ("\n", [], ["is empty"]),
        ("a,y\n", [], ["a header and no rows"]),
        ("y\n1\n2\n3\n", [], ["no column left"]),
        ("a,a,y\n1,2,3\n", [], ["'a' is the name of columns 0 and 1"]),
        ("a,y\n1,2,3\n4,5,6\n", [], ["more cells than the header has names (2)"]),
        ("a,y\n1,2\n3,4,5\n", [], ["Expected 2 fields in line 3, saw 3"]),
        ("a,y\n1,1\n2,\n3,5\n", [], ["the target 'y' is missing in 1 row(s)", "row 2 (line 3)"]),
        ("a,y\n1,7\n2,7\n", [], ["'y' is", "7 in all 2 rows"]),
        ("a,y\n1,u\n2,v\n3,w\n", [], ["must hold numbers or two classes", "'u', 'v', 'w'"]),
        ("a,y\n1,1\n2,2\n3,oops\n", [], ["must hold numbers or two classes", "'oops'"]),
        (
            "a,y\n1,1\n2,2\nthree,3\n4,4\n",
            [],
            ["column 'a'", "'three'", "row 3 (line 4)", "--missing", "--categorical"],
        ),
        ('a;y\n"1,5";1\n"2,5";2\n"3,5";4\n', [], ["decimal commas", "'1,5'", "--decimal ,"]),
        (
            "a,y\n2024-01-05,1\n2024-01-06,2\n2024-02-01,4\n",
            [],
            ["holds dates", "'2024-01-05'", "--drop a"],
        ),
        ("a,y\n1,1\ninf,2\n3,4\n", [], ["column 'a'", "infinity", "row 2 (line 3)"]),
        ("a,y\n1,1\n2,inf\n3,4\n", [], ["column 'y'", "infinity", "row 2 (line 3)"]),
        (
            "a,y\n1,1\n2,2\n3,4\n",
            ["--increasing", "aa"],
            ["'aa' is not a column", "did you mean 'a'?"],
        ),
        ("a,y\n1,1\n2,2\n3,4\n", ["--increasing", "y"], ["names the target"]),
        (
            "a,y\nu,1\nv,2\nw,4\n",
            ["--increasing", "a"],
            ["'a' must hold numbers", "'u'", "row 1 (line 2)"],
        ),
        (
            "a,y\n1,1\n2,2\n3,4\n",
            ["--increasing", "a", "--decreasing", "a"],
            ["both increasing and decreasing"],
        ),
        ("a,y\n1,1\n2,2\n3,4\n", ["--drop", "b"], ["--drop 'b' is not a column"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--qid", "b"], ["--qid 'b' is not a column"]),
        (
            "a,y\n1,1\n2,2\n3,4\n",
            ["--loss", "poisson", "--exposure", "b"],
            ["--exposure 'b' is not a column", "the columns are 'a', 'y'"],
        ),
        ("a,y\n1,1\n2,2\n3,4\n", ["--by", "yy"], ["--by 'yy'", "the columns are 'a', 'y'"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--task", "ranking"], ["--qid", "--pairs"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--task", "classification", "--increasing", "a"], ["ordered"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--quantile", "0.1,0.9", "--loss", "huber"], ["--quantile"]),
        ("a,t,y\n1,1,1\n2,1,2\n3,1,4\n", ["--exposure", "t"], ["--exposure needs"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--pairs"], ["--pairs needs no --target"]),
        ("a,y\nu,1\nv,2\nw,4\n", ["--linear"], ["--linear", "'u'"]),
        ("a,y\n,1\n2,2\n3,4\n", ["--linear"], ["no cell may be missing", "row 1 (line 2)"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--holdout", "0.9"], ["leaves nothing to train on"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--holdout", "0.5", "--test", "t.csv"], ["pass one of them"]),
        ("a,y\n1,1\n2,2\n3,4\n", ["--encoding", "klingon"], ["no text encoding 'klingon'"]),
    ],
)
def test_bad_tables(tmp_path, monkeypatch, capsys, content, words, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    assert main(["train", "t.csv", "--target", "y", *words]) == 2
    refused(capsys, 2, *parts)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t.csv"]


def test_identifiers_encodings_and_damaged_archives(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": [f"n{k}" for k in range(200)], "y": np.arange(200)}).to_csv(
        "ids.csv", index=False
    )
    assert main(["train", "ids.csv", "--target", "y"]) == 2
    refused(capsys, 2, "looks like an identifier", "--drop id")
    (tmp_path / "latin.csv").write_bytes("größe,y\n1,2\n2,3\n".encode("latin-1"))
    assert main(["train", "latin.csv", "--target", "y"]) == 2
    refused(capsys, 2, "--encoding latin-1")
    (tmp_path / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08\x00 not gzip")
    assert main(["train", "cut.csv.gz", "--target", "y"]) == 5
    refused(capsys, 5)
    (tmp_path / "fake.parquet").write_bytes(b"PAR1 no")
    assert main(["train", "fake.parquet", "--target", "y"]) == 2
    refused(capsys, 2, "not a Parquet file")
    assert main(["train", "ids.csv"]) == 2
    refused(capsys, 2, "--target", "'id', 'y'")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zip"])
def test_a_damaged_archive_is_a_file_problem(tmp_path, monkeypatch, capsys, suffix):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.random(500), "y": rng.random(500)}).to_csv(f"t.csv{suffix}", index=False)
    content = bytearray((tmp_path / f"t.csv{suffix}").read_bytes())
    content[200:260] = b"X" * 60
    (tmp_path / f"t.csv{suffix}").write_bytes(content)
    assert main(["train", f"t.csv{suffix}", "--target", "y"]) == 5
    refused(capsys, 5, f"t.csv{suffix} cannot be decompressed")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("increasing = [", ["not TOML"]),
        ("rule = [1, 2]", ["[[rule]]"]),
        ("increasin = ['a']", ["'increasin'", "did you mean 'increasing'?"]),
        ("increasing = 3", ["list of column names"]),
        ("[[rule]]\nkind = 'Convx'\ncolumn = 'a'", ["'Convx'", "did you mean 'Convex'?"]),
        ("[[rule]]\nkind = 'Convex'\ncolum = 'a'", ["'colum'", "did you mean 'column'?"]),
        ("[[rule]]\nkind = 'Dominates'\ndominant = 'a'", ["also needs weak"]),
        ("[[rule]]\nkind = 'SlopeBound'\ncolumn = 'a'\nlimit = -1", ["rule 1", "limit must be"]),
        ("[rule]\nkind = 'Convex'", ["[[rule]]"]),
        ("[[rule]]\nkind = 'Convex'\ncolumn = 'b'", ["'b' is not a column"]),
    ],
)
def test_bad_rules_files(tmp_path, monkeypatch, capsys, content, parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,y\n1,1\n2,2\n3,4\n", encoding="utf-8")
    (tmp_path / "rules.toml").write_text(content, encoding="utf-8")
    assert main(["train", "t.csv", "--target", "y", "--rules", "rules.toml"]) == 2
    refused(capsys, 2, *parts)


def test_rules_on_the_log_odds_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a = rng.random(200)
    label = np.where(a - a**2 + 0.1 * rng.normal(size=200) > 0.15, "yes", "no")
    pd.DataFrame({"a": a, "y": label}).to_csv("t.csv", index=False)
    (tmp_path / "rules.toml").write_text("[[rule]]\nkind = 'Concave'\ncolumn = 'a'\n")
    assert main(["train", "t.csv", "--target", "y", "--rules", "rules.toml"]) == 0
    assert main(["check", "t.lt"]) == 0
    told = capsys.readouterr().out
    assert told.count("Concave(a): on the log-odds of yes, not on its probability") == 2


def test_columns_missing_at_predict_time_are_named_with_the_nearest(trained, tmp_path, capsys):
    flats(5).rename(columns={"area": "aera"}).to_csv(tmp_path / "n.csv", index=False)
    assert main(["predict", str(trained / "price.lt"), str(tmp_path / "n.csv")]) == 2
    refused(capsys, 2, "'area' is not a column", "did you mean 'aera'?")


def test_the_target_is_never_suggested_for_a_missing_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,bad\n1,2,1\n2,1,2\n3,3,4\n", encoding="utf-8")
    assert main(["train", "t.csv", "--target", "bad", "--no-report"]) == 0
    (tmp_path / "n.csv").write_text("b,bad\n1,2\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["predict", "t.lt", "n.csv"]) == 2
    refused(capsys, 2, "'a' is not a column of n.csv; the columns are 'b', 'bad'")


@pytest.mark.parametrize("data", ["t.csv", "t"])
def test_a_column_that_the_test_rows_lack_is_named_before_training(
    tmp_path, monkeypatch, capsys, data
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    for path in (tmp_path / "t.csv", tmp_path / "t" / "1.csv"):
        path.write_text("a,b,y\n1,2,1\n2,1,2\n3,3,4\n", encoding="utf-8")
    (tmp_path / "n.csv").write_text("b,y\n1,2\n", encoding="utf-8")
    assert main(["train", data, "--target", "y", "-o", "m.lt", "--test", "n.csv"]) == 2
    told = capsys.readouterr()
    assert "'a' is not a column of n.csv" in told.err and "Training" not in told.out


def test_control_characters_never_reach_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text('"a\x1b[31m",y\n1,1\n2,2\n3,4\n', encoding="utf-8")
    assert main(["train", "t.csv", "--target", "y", "--increasing", "a\x1b[31m"]) == 0
    assert main(["check", "t.lt"]) == 0
    assert main(["train", "t.csv", "--target", "z\x1b", "--overwrite"]) == 2
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err


# --- the rest


def test_plan_agrees_with_the_theory(capsys):
    words = [
        "--constraints",
        "1000",
        "--diameter",
        "1",
        "--objective-gradient",
        "1",
        "--constraint-gradient",
        "1",
        "--penalty",
        "2",
    ]
    assert main(["plan", *words, "--epsilon", "0.1", "--strong-convexity", "0.1"]) == 0
    told = capsys.readouterr().out
    constants = lt.theory.Constants(
        1000, 1.0, 1.0, 1.0, 1.0, 1.0, penalty=2.0, strong_convexity=0.1
    )
    for plan in (
        lt.theory.plan_full(constants, 0.1),
        lt.theory.plan_light(constants, 0.1),
        lt.theory.plan_mid(constants, 0.1),
    ):
        assert str(plan) in told
    assert main(["plan", *words, "--epsilon", "-1"]) == 2
    refused(capsys, 2, "epsilon must be positive")
    assert main(["plan", *words, "--epsilon", "0.1", "--algorithm", "mid"]) == 2
    refused(capsys, 2, "strong_convexity must be given")


def test_reproduce_hands_its_options_on(monkeypatch, tmp_path, capsys):
    import importlib
    from types import SimpleNamespace

    seen = {}

    def fake(scale, only, data, output, progress, seeds, resume, workers):
        seen.update(
            scale=scale, only=only, output=output, progress=progress, seeds=seeds, resume=resume
        )
        return SimpleNamespace(folder=output)

    monkeypatch.setattr(
        importlib.import_module("lighttouch.experiments.reproduce"), "reproduce", fake
    )
    assert (
        main(
            [
                "reproduce",
                "--scale",
                "small",
                "--only",
                "figure1",
                "-o",
                str(tmp_path),
                "--seeds",
                "1",
                "--quiet",
            ]
        )
        == 0
    )
    assert seen == {
        "scale": "small",
        "only": ["figure1"],
        "output": tmp_path,
        "progress": False,
        "seeds": 1,
        "resume": True,
    }


def test_warmup_trains_one_model_of_each_kind(capsys):
    assert main(["warmup"]) == 0
    told = capsys.readouterr().out
    for kind in ("regressor", "classifier", "ranker", "linear models", "default solver"):
        assert kind in told


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_help_teaches(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert "usage: lighttouch " + command in told
    if command not in ("warmup",):
        assert "lighttouch " + command in told.split("example", 1)[1]


def test_bad_usage(capsys):
    assert main([]) == 2
    for words in (
        ["trian"],
        ["train"],
        ["train", "x.csv", "--holdout", "2"],
        ["train", "x.csv", "--time-limit", "0"],
        ["predict", "m"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    capsys.readouterr()


def test_debug_shows_where_an_error_came_from(folder):
    with pytest.raises(OSError, match=r"no file absent\.csv"):
        main(["train", "absent.csv", "--target", "y", "--debug"])
    with pytest.raises(OSError, match=r"no file absent\.csv"):
        main(["--debug", "train", "absent.csv", "--target", "y"])


def command(*words):
    return [sys.executable, "-m", "lighttouch", *map(str, words)]


@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
@pytest.mark.slow
def test_ctrl_c_leaves_a_usable_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((10_000, 8))
    y = X @ np.arange(8.0) + X[:, 0] * X[:, 1] + rng.normal(size=10_000) > 14
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=np.where(y, "good", "bad"))
    frame.to_parquet(tmp_path / "t.parquet")
    words = command("train", "t.parquet", "--target", "y", "--increasing", "a,b,c")
    first = [*words, "--no-report", "-o", "first.lt"]  # compiles: a signal would end that at once
    subprocess.run(first, cwd=tmp_path, capture_output=True, check=False)
    process = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if line.startswith("Training"):
            break
    time.sleep(1.0)  # what is compiled has been read: a compilation would end at once
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130, told
    assert "holds the best model so far" in told and "Traceback" not in told
    model = lt.load(tmp_path / "t.lt")
    assert model.status_ == "interrupted"
    assert model.check_constraints().violation == 0.0
    assert np.mean(model.predict(frame.drop(columns="y")) == frame["y"]) > 0.7
    assert (tmp_path / "t.html").exists()
