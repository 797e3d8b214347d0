"""Models from files: the same as from a table in memory, whatever engine reads them."""

from __future__ import annotations

import hashlib
import itertools
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lighttouch as lt
from lighttouch.cli import main
from lighttouch.cli.speaking import BAD_USAGE, FILE_PROBLEM, OK
from lighttouch.cli.train_files import _frame_of
from lighttouch.errors import FileProblem
from lighttouch.estimators.examples import Examples
from lighttouch.estimators.streaming import fitting, source
from lighttouch.estimators.streaming.examples import _recorded
from lighttouch.estimators.streaming.reading import Cutter, Dialect, files_of

FEATURES = ["a", "b", "c"]
ROWS = 300
CUTS = (0, 90, 90, 200, ROWS)  # unequal files, one of them empty


@dataclass(frozen=True)
class Case:
    """An estimator, what it learns, and from which columns."""

    make: Any
    target: str
    parts: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ("a", "b", "c")

    def in_memory(self, frame: pd.DataFrame) -> Any:
        parts = {name: frame[column].to_numpy() for name, column in self.parts.items()}
        return self.make().fit(frame[list(self.features)], frame[self.target].to_numpy(), **parts)

    def from_files(self, folder: Path, frame: pd.DataFrame, **more: Any) -> Any:
        used = {*self.features, self.target, *self.parts.values()}
        drop = [name for name in frame.columns if name not in used]
        paths = folder / "*.parquet"
        return self.make().fit_files(paths, target=self.target, drop=drop, **self.parts, **more)


CASES = {
    "regressor": Case(lambda: lt.LatticeRegressor(monotonic_cst={"a": 1}, keypoints=5), "y", {}),
    "weights": Case(
        lambda: lt.LatticeRegressor(monotonic_cst={"a": 1}, keypoints=4, lattices=0),
        "y",
        {"sample_weight": "weight"},
    ),
    "huber": Case(
        lambda: lt.LatticeRegressor(loss="huber", keypoints=4, lattices=0), "y", {}, ("a", "b")
    ),
    "exposure": Case(
        lambda: lt.LatticeRegressor(loss="poisson", keypoints=4, lattices=0),
        "count",
        {"exposure": "weight"},
    ),
    "classifier": Case(
        lambda: lt.LatticeClassifier(monotonic_cst={"a": 1}, keypoints=4, lattices=0), "label"
    ),
    "ordinal": Case(lambda: lt.LatticeClassifier(ordinal=True, keypoints=4, lattices=0), "grade"),
    "ranker": Case(
        lambda: lt.LatticeRanker(monotonic_cst={"a": 1}, keypoints=4, lattices=0),
        "grade",
        {"qid": "query"},
    ),
    "linear regressor": Case(
        lambda: lt.ConstrainedLinearRegressor(monotonic_cst={"a": 1}), "y", {}, ("a", "b")
    ),
    "linear huber": Case(lambda: lt.ConstrainedLinearRegressor(loss="huber"), "y", {}, ("a", "b")),
    "linear classifier": Case(
        lambda: lt.ConstrainedLinearClassifier(monotonic_cst={"a": 1}), "label", {}, ("a", "b")
    ),
}
FIVE = ("regressor", "classifier", "ranker", "linear regressor", "linear classifier")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.random(ROWS), rng.random(ROWS)
    c = rng.choice(["north", "south"], ROWS)
    y = a + np.sin(3.0 * b) * (c == "north") + rng.normal(0.0, 0.1, ROWS)
    query = np.repeat(np.arange(ROWS // 10), 10)
    found = pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "query": query})
    found["label"] = np.where(y > 0.8, "yes", "no")
    found["grade"] = np.digitize(y, [0.5, 1.0])
    found["count"] = rng.poisson(np.exp(y))
    found["weight"] = rng.random(ROWS) + 0.5
    return found


@pytest.fixture(scope="module")
def folder(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows")
    for k, (first, last) in enumerate(itertools.pairwise(CUTS)):
        frame[first:last].to_parquet(place / f"part-{k}.parquet", row_group_size=64)
    return place


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "STREAMING", replace(fitting.STREAMING, rows=100))


def vector(model: Any) -> Any:
    if hasattr(model, "coef_"):
        return np.append(model.coef_, model.intercept_)
    return np.append(model._trained(), model.constraint_report_.objective)


def digest(model: Any) -> str:
    return hashlib.sha256(vector(model).tobytes()).hexdigest()


def scores(model: Any, X: pd.DataFrame) -> Any:
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("name", [name for name in CASES if name != "ranker"])  # files are parts
def test_one_part_gives_the_same_bits_as_memory(name, frame, folder):
    case = CASES[name]
    model, other = case.from_files(folder, frame), case.in_memory(frame)
    assert digest(model) == digest(other)
    assert model.status_ == other.status_
    assert model.feature_names_in_.tolist() == list(case.features)
    assert model.training_record_.rows == other.training_record_.rows
    assert model.training_record_.columns == other.training_record_.columns


@pytest.mark.parametrize("name", CASES)
def test_several_parts_give_the_same_model_to_rounding(name, frame, folder, small_parts):
    case = CASES[name]
    model, other = case.from_files(folder, frame), case.in_memory(frame)
    X = frame[list(case.features)]
    assert np.abs(scores(model, X) - scores(other, X)).max() < 1e-8
    assert abs(vector(model)[-1] - vector(other)[-1]) < 1e-10  # the objective, or the intercept
    assert model.constraint_report_.violation == 0.0
    assert model.status_ == other.status_


def test_every_engine_gives_the_same_bits(frame, folder, small_parts):
    expected = {name: digest(CASES[name].from_files(folder, frame)) for name in FIVE}
    for workers in (1, 2):
        with lt.Processes(workers) as engine:
            found = {
                name: digest(CASES[name].from_files(folder, frame, engine=engine)) for name in FIVE
            }
        assert found == expected


def test_one_part_is_held_at_a_time(frame, folder, monkeypatch, small_parts):
    """Not even as what a few rows of it are a view of."""
    tables: list[Any] = []
    read = source.Reader._rows

    def noted(reader, shard, features):
        rows = read(reader, shard, features)
        if features:
            tables.append(weakref.ref(rows.table))
            alive = [table() for table in tables if table() is not None]
            assert len({id(each) for each in alive}) <= 2  # this one and the one before
        return rows

    monkeypatch.setattr(source.Reader, "_rows", noted)
    CASES["linear regressor"].from_files(folder, frame)
    assert len(tables) > 8


def test_a_sample_of_rows_is_no_view(folder):
    parts = source.Parts("y", None, None, None, ("c", "query", "label", "grade", "count", "weight"))
    piece = Cutter(Dialect(), 100)(folder / "part-0.parquet")[0]
    some = _frame_of(source.Source(("a", "b"), parts, Dialect()), 8, ((piece,), 0))
    array = some["a"].to_numpy()
    while isinstance(array.base, np.ndarray):
        array = array.base
    assert array.size < piece.rows
    whole = Examples([(np.ones((30, 2)), 1.0)], np.ones(30), np.ones(30))
    assert _recorded(0, 10, True, whole)[0].base is None


def test_a_saved_model_and_its_drift(frame, folder, small_parts, tmp_path):
    model = CASES["regressor"].from_files(folder, frame)
    model.save(tmp_path / "model.lt")
    again = lt.load(tmp_path / "model.lt")
    assert np.array_equal(again.predict(frame[FEATURES]), model.predict(frame[FEATURES]))
    assert model.drift(frame[FEATURES]).largest < 0.05


# -------------------------------------------------------------------------------------------------
# reading


def write_all_kinds(frame: pd.DataFrame, place: Path) -> None:
    plain = frame[["a", "c", "grade"]]
    plain.to_csv(place / "plain.csv", index=False)
    plain.to_csv(place / "zipped.csv.gz", index=False)
    plain.to_parquet(place / "groups.parquet", row_group_size=110)
    broken = plain.copy()
    broken.loc[3, "c"] = "line\nbreak"
    broken.to_csv(place / "breaks.csv", index=False)
    text = (place / "plain.csv").read_bytes().replace(b"\n", b"\r\n")
    (place / "mark.csv").write_bytes(b"\xef\xbb\xbf\r\n" + text[:-2])


def test_pieces_of_files_are_the_files(frame, tmp_path):
    write_all_kinds(frame, tmp_path)
    for path in files_of(tmp_path):
        pieces = Cutter(Dialect(), 80)(path)
        parts = [piece.read(Dialect()) for piece in pieces]
        assert len(parts) > 2 and max(map(len, parts)) <= 80
        expected = frame[["a", "c", "grade"]].copy()
        if path.name == "breaks.csv":
            expected.loc[3, "c"] = "line\nbreak"
        pd.testing.assert_frame_equal(pd.concat(parts), expected, check_dtype=False)


def test_files_without_rows_have_no_pieces(frame, tmp_path):
    frame[:0].to_csv(tmp_path / "header.csv", index=False)
    frame[:0].to_parquet(tmp_path / "header.parquet")
    (tmp_path / "nothing.csv").write_bytes(b"")
    assert [Cutter(Dialect(), 80)(path) for path in files_of(tmp_path)] == [[], [], []]
    with pytest.raises(lt.DataError, match=r"no rows at all.*header\.csv"):
        lt.LatticeRegressor().fit_files(tmp_path, target="y")


def test_a_csv_column_that_is_text_anywhere_is_text_everywhere(tmp_path, small_parts):
    numbers = pd.DataFrame({"code": ["1", "2"] * 75, "y": np.arange(150.0)})
    letters = pd.DataFrame({"code": ["1", "A"] * 75, "y": np.arange(150.0)})
    numbers.to_csv(tmp_path / "1.csv", index=False)
    letters.to_csv(tmp_path / "2.csv", index=False)
    model = lt.LatticeRegressor().fit_files(tmp_path / "*.csv", target="y")
    assert model.columns_[0].categories == ("1", "2", "A")


def other_files(kind: str, place: Path) -> Path:
    rows = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    rows.to_parquet(place / "1.parquet")
    if kind == "lacks":
        rows.rename(columns={"a": "b"}).to_parquet(place / "2.parquet")
    elif kind == "more":
        rows.assign(extra=1.0).to_parquet(place / "2.parquet")
    elif kind == "text":
        rows.assign(a="x").to_parquet(place / "2.parquet")
    elif kind == "gap":
        rows.assign(y=[1.0, None, 2.0]).to_parquet(place / "2.parquet")
    elif kind == "infinite":
        rows.assign(a=[1.0, np.inf, 2.0]).to_parquet(place / "2.parquet")
    else:
        (place / "2.parquet").write_bytes(b"PAR1 nonsense")
    return place


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("lacks", "same columns: .*2.parquet lacks 'a'"),
        ("more", "same columns: .*2.parquet has 'extra'"),
        ("text", "text in .*2.parquet and numbers in .*1.parquet"),
        ("gap", "2.parquet.*target 'y' is missing in 1 row"),
        ("infinite", "2.parquet.*column 'a' holds infinity"),
        ("damaged", "2.parquet is not a Parquet file, or is damaged"),
    ],
)
def test_errors_name_the_file(kind, told, tmp_path):
    with pytest.raises(lt.DataError, match=told):
        lt.LatticeRegressor().fit_files(other_files(kind, tmp_path), target="y")


def test_a_query_must_lie_in_one_file(frame, tmp_path):
    for k, part in enumerate((frame[:95], frame[95:])):
        part[["a", "query", "grade"]].to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(lt.DataError, match=r"query 9 is in .*0.parquet.* and in .*1.parquet"):
        lt.LatticeRanker().fit_files(tmp_path, target="grade", qid="query")


def test_parts_that_an_estimator_does_not_take(folder):
    with pytest.raises(ValueError, match="LatticeClassifier takes no qid"):
        lt.LatticeClassifier().fit_files(folder, target="label", qid="query")
    with pytest.raises(lt.DataError, match=r"target must name a column.*the columns are 'a'"):
        lt.LatticeRegressor().fit_files(folder, target="Y")
    with pytest.raises(FileProblem, match="no file matches"):
        lt.LatticeRegressor().fit_files(folder / "*.csv", target="y")


# -------------------------------------------------------------------------------------------------
# the command line


def test_train_and_predict_take_patterns(frame, folder, tmp_path, monkeypatch, capsys, small_parts):
    monkeypatch.chdir(tmp_path)
    columns = ["--drop", "query,label,grade,count,weight", "--increasing", "a"]
    pattern, model = f"{folder}/*.parquet", f"{folder.name}.lt"
    assert main(["train", pattern, "--target", "y", *columns]) == OK
    told = capsys.readouterr().out
    assert "Read 300 rows of 3 columns in 4 files" in told and "No report" in told
    assert main(["predict", model, pattern, "-o", "some.csv"]) == OK
    frame.to_parquet("all.parquet")
    assert main(["predict", model, "all.parquet", "-o", "all.csv"]) == OK
    assert Path("some.csv").read_bytes() == Path("all.csv").read_bytes()
    assert lt.load(model).training_record_.rows == ROWS


@pytest.mark.parametrize(
    ("more", "told", "code"),
    [
        (["--target", "y", "--holdout", "0.2"], "--holdout needs all rows in memory", BAD_USAGE),
        (["--target", "y", "--workers", "2"], "--workers needs --engine", BAD_USAGE),
        ([], "Name it with --target", BAD_USAGE),
        (["--target", "y", "--overwrite", "-o"], "also an input", FILE_PROBLEM),
    ],
)
def test_train_refuses_what_files_cannot_do(more, told, code, folder, capsys):
    if more[-1:] == ["-o"]:
        more = [*more, str(folder / "part-0.parquet")]
    assert main(["train", str(folder), *more]) == code
    assert told in capsys.readouterr().err
