"""Every subcommand in a process of its own, as a shell runs it: what it writes, its exit code, and
what it says to bad input.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.cli import main

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

HOSTILE = [
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    'quo"te',
    "new\nline",
    "\x1b[31mred",
    "größe 📏",
    "a b",
]
PLAN = [
    "plan",
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


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(lt.__file__).parents[1])}


def lighttouch(
    *words: object, cwd: Path, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "lighttouch", *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False
    )


def refused(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith(("lighttouch: error: ", "usage: lighttouch ")), done.stderr
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A table with hostile column names, a model trained on it by the command line, and files that
    are no tables or models.
    """
    folder = tmp_path_factory.mktemp("processes")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((150, len(HOSTILE))), columns=HOSTILE)
    frame["y"] = 3 * frame[HOSTILE[0]] - frame[HOSTILE[1]] + rng.normal(0, 0.1, 150)
    frame.to_csv(folder / "table.csv", index=False)
    frame.assign(y=frame["y"].where(frame.index != 7)).to_csv(folder / "gap.csv", index=False)
    frame.drop(columns=HOSTILE[0]).to_csv(folder / "lacks.csv", index=False)
    (folder / "empty.csv").write_text("")
    words = ["--target", "y", "--increasing", HOSTILE[0], "--decreasing", HOSTILE[1]]
    done = lighttouch("train", "table.csv", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "saved as table.lt" in done.stdout and "\x1b" not in done.stdout + done.stderr
    content = (folder / "table.lt").read_bytes()
    (folder / "cut.lt").write_bytes(content[: len(content) // 2])
    (folder / "flip.lt").write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
    return folder


def test_hostile_column_names_do_nothing_in_model_report_and_predictions(place):
    model = lt.load(place / "table.lt")
    assert list(model.feature_names_in_) == HOSTILE and model.check_constraints().violation == 0.0
    page = (place / "table.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page and "\x1b" not in page
    done = lighttouch("predict", "table.lt", "table.csv", "--keep", HOSTILE[1], cwd=place)
    assert done.returncode == 0, done.stderr
    header, first = done.stdout.splitlines()[:2]
    assert "'=HYPERLINK(1)" in header and "prediction" in header and len(first.split(",")) == 2


def test_predictions_are_the_same_bits_in_every_front(place, tmp_path):
    """Command line (to a file and to the screen), the loaded model, and scikit-learn's: alone,
    cloned and in a pipeline.
    """
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    exact = (
        {}
        if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
        else {"float_precision": "round_trip"}
    )
    X = pd.read_csv(place / "table.csv", **exact)
    y = X.pop("y")
    words = ["predict", "table.lt", "table.csv", "-o", tmp_path / "out.parquet"]
    done = lighttouch(*words, cwd=place)
    assert (done.returncode, done.stdout) == (0, "") and "150 predictions" in done.stderr
    shown = lighttouch("predict", "table.lt", "table.csv", cwd=place).stdout
    ours = lt.LatticeRegressor(monotonic_cst={HOSTILE[0]: 1, HOSTILE[1]: -1}, random_state=0).fit(
        X, y.to_numpy()
    )
    fronts = {
        "file": pd.read_parquet(tmp_path / "out.parquet")["prediction"].to_numpy(),
        "screen": np.array([float(line) for line in shown.splitlines()[1:]]),
        "loaded": lt.load(place / "table.lt").predict(X),
        "clone": clone(ours).fit(X, y.to_numpy()).predict(X),
        "pipeline": make_pipeline(clone(ours)).fit(X, y.to_numpy()).predict(X),
    }
    for name, predictions in fronts.items():
        np.testing.assert_array_equal(predictions, ours.predict(X), err_msg=name)


def test_check_says_yes(place):
    done = lighttouch("check", "table.lt", "table.csv", cwd=place)
    assert (done.returncode, done.stderr) == (0, "") and "every rule holds" in done.stdout


BAD = [
    (["train", "absent.csv", "--target", "y"], 5, ["no file absent.csv"]),
    (["train", "empty.csv", "--target", "y"], 2, ["empty.csv is empty"]),
    (["train", "table.csv", "--target", "z", "-o", "n.lt"], 2, ["'z' is not a column"]),
    (
        ["train", "table.csv", "--target", "y", "--increasing", "a  b", "-o", "n.lt"],
        2,
        ["'a  b'", "did you mean 'a b'?"],
    ),
    (
        ["train", "gap.csv", "--target", "y"],
        2,
        ["the target 'y' is missing in 1 row(s)", "row 8 (line"],
    ),
    (["train", "table.csv", "--target", "y"], 5, ["table.lt exists already", "--overwrite"]),
    (["predict", "absent.lt", "table.csv"], 5, ["absent.lt"]),
    (["predict", "flip.lt", "table.csv"], 5, ["flip.lt"]),
    (["predict", "table.lt", "absent.csv"], 5, ["no file absent.csv"]),
    (["predict", "table.lt", "lacks.csv"], 2, ["needs a column that is missing"]),
    (["predict", "table.lt", "table.csv", "-o", "gap.csv"], 5, ["gap.csv exists already"]),
    (["check", "cut.lt"], 5, ["cut.lt"]),
    ([*PLAN, "--epsilon", "0"], 2, ["epsilon must be positive"]),
    (["reproduce", "--scale", "huge"], 2, ["invalid choice: 'huge'"]),
    (["reproduce", "--only", "figure9"], 2, ["figure9"]),
    (["reproduce", "--scale", "small", "--data", "absent.csv"], 5, ["absent.csv"]),
    (["warmup", "now"], 2, ["unrecognized arguments: now"]),
]
IN_A_PROCESS = [  # one of a kind; the others differ in the words only
    ["train", "gap.csv", "--target", "y"],
    ["predict", "absent.lt", "table.csv"],
    ["warmup", "now"],
]


@pytest.mark.parametrize(("words", "code", "parts"), BAD)
def test_bad_input_is_refused_with_its_code_and_nothing_is_written(
    place, words, code, parts, monkeypatch, capsys
):
    before = sorted(place.iterdir())
    if words in IN_A_PROCESS:
        refused(lighttouch(*words, cwd=place), code, *parts)
    monkeypatch.chdir(place)
    refused(called(words, capsys), code, *parts)
    assert sorted(place.iterdir()) == before


def called(words: list[str], capsys) -> subprocess.CompletedProcess[str]:
    """The same command within this process, which need not import everything again."""
    try:
        code = main(words)
    except SystemExit as ended:  # argparse
        code = ended.code
    told = capsys.readouterr()
    return subprocess.CompletedProcess(words, code, told.out, told.err)


@pytest.mark.skipif(os.name == "nt", reason="permissions differ on Windows")
def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path):
    """As root every folder can be written, so root first gives that power up."""
    powerless = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    )
    if (
        powerless
        and subprocess.run([*powerless, "true"], capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("root can write everywhere, and setpriv is not there to change that")
    (tmp_path / "t.csv").write_text("a,y\n1,1\n2,2\n3,4\n")
    tmp_path.chmod(0o555)
    try:
        refused(
            lighttouch("train", "t.csv", "--target", "y", cwd=tmp_path, before=powerless),
            5,
            "no permission to write",
        )
    finally:
        tmp_path.chmod(0o755)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_plan_prints_what_the_theory_says(place):
    done = lighttouch(*PLAN, "--epsilon", "0.1", "--algorithm", "light", cwd=place)
    plan = lt.theory.plan_light(
        lt.theory.Constants(1000, 1.0, 1.0, 1.0, 1.0, 1.0, penalty=2.0), 0.1
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(plan), "")


@pytest.mark.slow
def test_reproduce_writes_rows_pictures_and_verdicts_and_reads_them_the_second_time(tmp_path):
    words = ["reproduce", "--scale", "small", "--only", "tables", "-o", "out", "--workers", "1"]
    words += ["--seeds", "1"]
    first = lighttouch(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert (
        "rows, pictures and provenance: out/small" in first.stdout and "| tables |" in first.stdout
    )
    assert {path.name for path in (tmp_path / "out/small/tables").iterdir()} >= {
        "rows.csv",
        "costs.csv",
        "provenance.json",
    }
    second = lighttouch(*words, cwd=tmp_path)
    assert second.returncode == 0 and "8 of 8 runs kept from before" in second.stderr


@pytest.mark.slow
def test_warmup_deletes_what_is_outdated_and_compiles_the_rest(place):
    done = lighttouch("warmup", "--clean", cwd=place)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("Deleted ") and "Everything is compiled" in done.stdout


def test_output_into_a_closed_pipe_is_no_error(place):
    command = (
        f"{sys.executable} -m lighttouch predict table.lt table.csv | head -n 1; exit "
        f"${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "prediction\n")
    assert not done.stderr or done.stderr.startswith("drift: "), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_during_reproduce_keeps_what_was_measured(tmp_path, workers):
    """The signal goes to the whole group, as a terminal sends it."""
    words = [
        "reproduce",
        "--scale",
        "small",
        "--only",
        "figure1",
        "-o",
        "out",
        "--workers",
        workers,
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "lighttouch", *words],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not list(tmp_path.glob("out/cache/*.json")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "the same command goes on from here" in told and "Traceback" not in told
    assert list(tmp_path.glob("out/cache/*.json")) and not list(tmp_path.glob("out/cache/*.part"))
