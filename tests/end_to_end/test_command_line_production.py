"""The command line as a nightly job uses it: JSON, records, drift, pipes, checkpoints, signals."""

from __future__ import annotations

import gzip
import io
import json
import logging
import lzma
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from test_command_line import flats

import lighttouch as lt
from lighttouch.cli import main

pd = pytest.importorskip("pandas")

TRAIN = ["--target", "price", "--drop", "dear", "--increasing", "area"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nightly")
    flats().to_csv(folder / "flats.csv", index=False)
    (folder / "rules.toml").write_text('decreasing = ["age"]\n')
    words = ["train", str(folder / "flats.csv"), *TRAIN, "--rules", str(folder / "rules.toml")]
    assert main([*words, "--quiet", "-o", str(folder / "m.lt")]) == 0
    return folder


@pytest.fixture
def here(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("flats.csv", "m.lt", "rules.toml"):
        (tmp_path / name).write_bytes((place / name).read_bytes())
    return tmp_path


def facts(capsys) -> dict:
    """The one JSON object on stdout."""
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 1, lines
    return json.loads(lines[0])


def test_every_command_speaks_json(here, capsys):
    assert main(["train", "flats.csv", *TRAIN, "--json", "--overwrite", "-o", "n.lt"]) == 0
    told = facts(capsys)
    assert told["status"] == "converged" and told["exit_code"] == 0 and told["rows"] == 400
    assert told["rules"][0]["holds"] and told["accuracy"][0]["rows"] == 400
    assert told["model"] == "n.lt" and told["report"] == "n.html" and len(told["data"]) == 64
    assert main(["check", "m.lt", "flats.csv", "--json"]) == 0
    assert facts(capsys)["violation"] == 0.0
    assert main(["info", "m.lt", "--json"]) == 0
    record = facts(capsys)["record"]
    assert record["rows"] == 400 and "decreasing" in record["notes"]["rules"]
    assert "lighttouch train" in record["notes"]["command"] and record["libraries"]["numpy"]
    plan = ["--constraints", "100", "--diameter", "1", "--objective-gradient", "1"]
    more = ["--constraint-gradient", "1", "--penalty", "2", "--epsilon", "0.1", "--json"]
    assert main(["plan", *plan, *more]) == 0
    assert facts(capsys)["plans"]["full"]["iterations"] > 0
    assert main(["predict", "m.lt", "absent.csv", "--json"]) == 5
    told = facts(capsys)
    assert told["exit_code"] == 5 and told["error"].startswith("there is no file absent.csv")


def test_info_shows_where_a_model_comes_from(here, capsys):
    assert main(["info", "m.lt"]) == 0
    text = capsys.readouterr().out
    for part in ("LatticeRegressor", "400 rows of 3 columns", "SHA-256", "decreasing in age"):
        assert part in text, text
    assert "kind: 3 categories" in text and "area: 2" in text
    assert main(["info", "m.lt", "--quiet"]) == 0 and not capsys.readouterr().out


def test_drift_is_told_and_strict_makes_it_an_exit_code(here, capsys):
    good = ["predict", "m.lt", "flats.csv", "-o", "out.csv", "--overwrite", "--strict"]
    assert main(good) == 0 and "largest PSI 0.0" in capsys.readouterr().err
    before = (here / "out.csv").read_bytes()
    new = flats(seed=1)
    new["area"] *= 12
    new["kind"] = "Mars"
    new.to_csv("new.csv", index=False)
    bad = ["predict", "m.lt", "new.csv", "-o", "out.csv", "--overwrite"]
    assert main([*bad, "--strict"]) == 6
    told = capsys.readouterr().err
    assert "differ from those of training" in told and "unseen categories of kind" in told
    assert (here / "out.csv").read_bytes() == before and not list(here.glob(".*"))
    assert (
        main([*bad, "--strict", "--max-psi", "99", "--max-unseen", "1", "--max-outside", "1"]) == 0
    )
    assert "400 with unseen categories" in capsys.readouterr().err
    assert main([*bad, "--json"]) == 0
    drift = facts(capsys)["drift"]
    assert drift["columns"][2]["unseen"] == 400 and drift["largest"] > 1


def test_pipes(here, monkeypatch, capsysbinary):
    class Stdin:
        buffer = io.BytesIO((here / "flats.csv").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert main(["predict", "m.lt", "-", "-o", "-", "--quiet"]) == 0
    out = capsysbinary.readouterr().out
    assert out.startswith(b"prediction\n") and len(out.splitlines()) == 401
    Stdin.buffer = io.BytesIO((here / "flats.csv").read_bytes())
    assert main(["train", "-", *TRAIN, "-o", "-", "--quiet"]) == 0
    (here / "piped.lt").write_bytes(capsysbinary.readouterr().out)
    expected = lt.load("m.lt").predict(flats())
    assert np.corrcoef(lt.load("piped.lt").predict(flats()), expected)[0, 1] > 0.9
    Stdin.buffer = io.BytesIO(b"a,b\n1,2\n")
    assert main(["train", "-", "--target", "b"]) == 2


def test_training_starts_from_an_earlier_model(here, capsys):
    words = ["train", "flats.csv", *TRAIN, "--no-report", "--quiet"]
    assert main([*words, "--from", "m.lt", "-o", "n.lt"]) == 0
    old, new = lt.load("m.lt"), lt.load("n.lt")
    assert [t.columns for t in new.model_.terms] == [t.columns for t in old.model_.terms]
    assert main([*words, "--from", "m.lt", "-o", "m.lt", "--overwrite"]) == 5
    assert "also an input" in capsys.readouterr().err
    assert main([*words, "--linear", "--from", "m.lt", "-o", "l.lt"]) == 2


def test_a_finished_training_leaves_no_checkpoint_and_another_is_refused(here, capsys):
    words = ["train", "flats.csv", *TRAIN, "--no-report", "--quiet", "--checkpoint", "c.ltc"]
    assert main([*words, "-o", "n.lt"]) == 0 and not (here / "c.ltc").exists()
    (here / "c.ltc").write_bytes(b"not a checkpoint, but long enough to be looked at all the same")
    assert main([*words, "-o", "o.lt"]) == 5
    assert "c.ltc: this is not a lighttouch checkpoint file" in capsys.readouterr().err


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d.csv", content)
    return buffer.getvalue()


DAMAGED = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zip": zipped,
}


@pytest.mark.parametrize("ending", DAMAGED)
def test_damaged_archives_are_the_files_fault(here, ending, capsys):
    whole = DAMAGED[ending]((here / "flats.csv").read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(20):
        spoilt = bytearray(whole)
        place = int(rng.integers(len(whole) - 8))
        spoilt[place : place + 8] = b"XXXXXXXX"
        (here / f"d.csv.{ending}").write_bytes(spoilt[: rng.integers(place, len(whole) + 1)])
        assert main(["train", f"d.csv.{ending}", *TRAIN, "--overwrite", "--quiet"]) in (0, 2, 5)
        assert "is a mistake of lighttouch" not in capsys.readouterr().err


def test_absent_packages_and_odd_rules_are_bad_usage(here, capsys, monkeypatch):
    (here / "d.csv.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert main(["train", "d.csv.zst", *TRAIN]) in (2, 5)
    for rules in ("rule = [1, 2]", "rule = 5", "increasing = 3", "increasing = [[1]]", "x = 1"):
        (here / "r.toml").write_text(rules)
        assert main(["train", "flats.csv", *TRAIN, "--rules", "r.toml"]) == 2, rules
    assert "Traceback" not in capsys.readouterr().err


def test_a_huge_cell_is_refused_at_once(here, capsys):
    frame = flats(50)
    frame["kind"] = "x" * 3_000_000
    frame.to_csv("huge.csv", index=False)
    began = time.process_time()
    assert main(["train", "huge.csv", *TRAIN, "-o", "h.lt"]) == 2
    assert "a text of 3,000,000 letters" in capsys.readouterr().err
    assert time.process_time() - began < 20


def test_model_and_report_are_replaced_together(here, monkeypatch, capsys):
    words = ["train", "flats.csv", *TRAIN, "--quiet", "--overwrite", "-o", "m.lt"]
    assert main(words) == 0
    before = {path.name: path.read_bytes() for path in here.iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for broken in ("lighttouch.report.page.write_whole", "lighttouch.files._flush"):
        with monkeypatch.context() as patched:
            patched.setattr(broken, full)
            assert main([*words, "--seed", "3"]) == 5
        told = capsys.readouterr().err
        assert "No space left on device" in told and "m.lt" in told, told
        assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def start(*words: str, cwd) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "lighttouch", *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
def test_sigterm_ends_predict_without_leftovers(here):
    pd.concat([flats()] * 2000).to_csv("large.csv", index=False)
    run = start("predict", "m.lt", "large.csv", "-o", "out.csv", cwd=here)
    while not list(here.glob(".out.csv.*.part")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    _, told = run.communicate(timeout=60)
    assert run.returncode == 143 and "interrupted" in told
    assert not (here / "out.csv").exists() and not list(here.glob(".out*"))
    run = start("predict", "m.lt", "large.csv", "-o", "out.csv", cwd=here)
    while not list(here.glob(".out.csv.*.part")):
        time.sleep(0.01)
    run.kill()
    run.communicate()
    assert list(here.glob(".out.csv.*.part"))
    assert main(["predict", "m.lt", "flats.csv", "-o", "out.csv", "--quiet"]) == 0
    assert not list(here.glob(".out*"))


def test_the_library_logs_and_stays_quiet_by_itself(here, caplog, capsys):
    X = np.random.default_rng(0).random((40, 2))
    with caplog.at_level(logging.INFO, logger="lighttouch"):
        lt.solve(lt.Problem(lt.EmpiricalRisk(X, X[:, 0]), lt.ordering(2)))
    told = [record.getMessage() for record in caplog.records]
    assert any("solving Problem" in each for each in told)
    assert any(each.startswith(("CONVERGED", "STALLED")) for each in told)
    assert capsys.readouterr() == ("", "")
