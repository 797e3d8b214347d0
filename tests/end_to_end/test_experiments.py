"""The paper's experiments at the small scale: claims within the stated bounds, kept rows, the
user's own pairs.
"""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest

import lighttouch as lt
from lighttouch.cli import main
from lighttouch.cli.speaking import FILE_PROBLEM
from lighttouch.datasets import ranking_pairs
from lighttouch.experiments import EXPERIMENTS, reproduce
from lighttouch.experiments import units as units_module
from lighttouch.experiments.claims import Claim, judge, read_claims
from lighttouch.experiments.curves import (
    averaged,
    cost_to_reach,
    label_rows,
    never_reached,
    ratio_to_reach,
    stays_below,
)
from lighttouch.experiments.pairs import load_pairs, preferred_rows
from lighttouch.experiments.rates import exponents, known_problem, rates, to_accuracy
from lighttouch.experiments.setting import HERE, read_config
from lighttouch.experiments.trajectory import checkpoints, trajectory

pytestmark = pytest.mark.slow  # a minute
PROBLEM = {"pairs": 400, "features": 3, "box": 10.0, "data": None, "data_digest": ""}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return reproduce(
        "small", output=tmp_path_factory.mktemp("reproduce"), progress=False, workers=1
    )


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_small_scale_keeps_the_bounds_of_expected_toml(small, experiment):
    assert small.verdicts[experiment]
    broken = [
        (verdict.claim.name, verdict.measured)
        for verdict in small.verdicts[experiment]
        if not verdict.as_expected
    ]
    assert not broken


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_claim_has_a_finding(small, experiment):
    """A misspelt finding would silently drop a claim from the summary."""
    claims = read_claims(HERE / experiment / "expected.toml")
    assert {claim.finding for claim in claims} <= set(small.measured[experiment].findings)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_rows_pictures_and_provenance_are_written(small, experiment):
    folder = small.folder / experiment
    about = json.loads((folder / "provenance.json").read_text())
    assert about["versions"]["numpy"] == np.__version__
    assert about["units"] and all(unit["wall_seconds"] > 0 for unit in about["units"])
    with open(folder / "rows.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(small.measured[experiment].tables["rows"]) > 0
    for suffix, beginning in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        assert (folder / experiment).with_suffix(suffix).read_bytes().startswith(beginning)


def test_iterates_are_judged_projected_and_all_lines_are_there(small):
    rows = small.measured["figure1"].tables["rows"]
    assert {row["line"] for row in rows} == set(read_config("figure1")["lines"])
    assert {row["seed"] for row in rows} == {0, 1}
    early = [row for row in rows if row["line"] == "LightTouch" and row["violation"] > 1]
    assert early and any(row["objective"] != row["objective_not_projected"] for row in early)


def test_the_summary_says_plainly_what_does_not_hold(small):
    text = (small.folder / "summary.md").read_text()
    failing = [
        verdict for group in small.verdicts.values() for verdict in group if not verdict.holds
    ]
    assert text.count("DOES NOT HOLD") + text.count("| not reached |\n") >= len(
        [one for one in failing if one.measured is not None]
    )
    assert all(f"- {verdict.claim.says}:" in text for verdict in failing)


def test_a_second_call_only_reads_and_draws(small, monkeypatch):
    def refuse(unit):
        raise AssertionError(f"measured again: {unit}")

    monkeypatch.setattr(units_module, "measure", refuse)
    picture = small.folder / "figure1" / "figure1.png"
    picture.unlink()
    again = reproduce(
        "small", only="figure1", output=small.folder.parent, progress=False, workers=1
    )
    assert picture.is_file()
    assert again.measured["figure1"].tables == small.measured["figure1"].tables


def test_an_interrupted_run_goes_on_with_what_is_missing(small, monkeypatch, tmp_path):
    shutil.copytree(small.folder.parent / "cache", tmp_path / "cache")
    removed = next(unit for unit in small.measured["figure1"].units if unit["line"] == "FullTouch")
    (tmp_path / "cache" / f"{units_module.digest(removed)}.json").write_text('{"unit": half a fi')
    measured = []
    monkeypatch.setattr(
        units_module,
        "measure",
        lambda unit, measure=units_module.measure: measured.append(unit) or measure(unit),
    )
    again = reproduce("small", only="figure1", output=tmp_path, progress=False, workers=1)
    assert measured == [removed]
    assert again.measured["figure1"].findings == small.measured["figure1"].findings


def test_checkpoints_do_not_change_a_run():
    unit = {
        "kind": "trajectory",
        "line": "LightTouch",
        "problem": PROBLEM,
        "seed": 3,
        "iterations": 500,
        "seconds": None,
    }
    solver = {"kind": "PracticalLightTouch", "step_size": 16.0}
    few, many = (trajectory(unit | {"solver": solver, "per_decade": often})[-1] for often in (1, 7))
    for name in ("objective", "violation", "constraint_checks", "gradient_samples"):
        assert few[name] == many[name]


def test_a_run_by_seconds_ends_after_them():
    unit = {
        "kind": "trajectory",
        "line": "FullTouch",
        "problem": PROBLEM,
        "seed": 0,
        "iterations": None,
        "seconds": 0.02,
        "per_decade": 3,
    }
    rows = trajectory(
        unit | {"solver": {"kind": "FullTouch", "penalty": 1.0, "step_size": 16.0, "batch": 1}}
    )
    assert rows[-1]["seconds"] >= 0.02 > rows[-2]["seconds"]


def test_checkpoints_are_geometric():
    assert checkpoints(1000, 1) == [1, 10, 100, 1000]
    assert checkpoints(1500, 2)[-2:] == [1000, 1500]


def test_the_digest_follows_every_setting():
    unit = {"kind": "trajectory", "seed": 0, "solver": {"kind": "FullTouch", "step_size": 16.0}}
    same = {"solver": {"step_size": 16.0, "kind": "FullTouch"}, "seed": 0, "kind": "trajectory"}
    assert units_module.digest(unit) == units_module.digest(same)
    assert units_module.digest(unit) != units_module.digest(unit | {"seed": 1})


def _row(iteration, objective, checks=1.0, violation=0.0):
    return {
        "iteration": iteration,
        "seconds": 1.0 * iteration,
        "constraint_checks": checks,
        "objective": objective,
        "violation": violation,
    }


def test_curves_are_means_with_their_spread():
    rows = label_rows([_row(1, 1.0), _row(10, 0.5)], "A", 0) + label_rows(
        [_row(1, 3.0), _row(10, 0.7)], "A", 1
    )
    first, last = averaged(rows)
    assert (first["objective"], first["objective_low"], first["objective_high"]) == (2.0, 1.0, 3.0)
    assert last["objective"] == pytest.approx(0.6)


def test_seeds_that_end_apart_share_an_end():
    rows = label_rows([_row(1, 1.0), _row(10, 0.5)], "A", 0) + label_rows(
        [_row(1, 1.0), _row(30, 0.5)], "A", 1
    )
    assert [curve["iteration"] for curve in averaged(rows)] == [1, 20]


def test_cost_to_reach_interpolates_and_knows_never():
    curves = averaged(label_rows([_row(1, 1.0, 10), _row(100, 0.5, 1000)], "A", 0))
    assert cost_to_reach(curves, "A", 0.75, "constraint_checks") == pytest.approx(100)
    assert cost_to_reach(curves, "A", 0.4, "constraint_checks") is None


def test_a_line_that_never_arrives_bounds_the_ratio_from_below():
    short, far = [_row(1, 1.0, 10), _row(100, 0.5, 1000)], [_row(1, 1.0, 10), _row(9, 0.4, 90)]
    curves = averaged(label_rows(short, "A", 0) + label_rows(far, "B", 0))
    assert ratio_to_reach(curves, "A", "B", 0.4, "constraint_checks") == pytest.approx(1000 / 90)
    assert ratio_to_reach(curves, "B", "A", 0.4, "constraint_checks") is None
    (told,) = never_reached(curves, [0.01])
    assert told.startswith("A did not come within 1% in 100 iterations")


def test_stays_below_is_for_good():
    curves = averaged(
        label_rows(
            [_row(1, 1, violation=0.1), _row(2, 1, violation=5.0), _row(3, 1, violation=0.1)],
            "A",
            0,
        )
    )
    assert stays_below(curves, "A", "violation", 0.2) == 3
    assert stays_below(curves, "A", "violation", 0.05) is None


def test_a_claim_that_fails_is_said_to_fail():
    claim = Claim("ten", "ten times fewer", "Figure 1", "ratio", at_least=10.0, small=(2.0, None))
    (full,), (small_scale,) = (
        judge([claim], {"ratio": 5.0}, "full"),
        judge([claim], {"ratio": 5.0}, "small"),
    )
    assert (full.holds, full.as_expected, full.words) == (False, False, "DOES NOT HOLD")
    assert (small_scale.holds, small_scale.as_expected) == (False, True)
    assert not judge([claim], {"ratio": None}, "small")[0].as_expected


@pytest.mark.parametrize("table", [2, 3])
def test_the_known_optimum_is_optimal(table):
    problem, optimum = known_problem(table, 40, seed=1)
    assert problem.violation(optimum) <= 1e-12
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.1, 0.01):
        other = lt.project(
            optimum + scale * rng.standard_normal(optimum.size), problem.constraints, problem.domain
        ).w
        assert problem.objective.value(other) >= problem.objective.value(optimum) - 1e-9


def test_exponents_and_accuracies_are_recovered():
    points = [
        (m, epsilon, 3.0 * m**0.5 / epsilon**2) for m in (16, 64) for epsilon in (0.1, 0.01, 0.001)
    ]
    assert exponents(points) == pytest.approx((0.5, 2.0))
    rows = [{"error": 1 / t**0.5, "iterations": t} for t in (1, 10, 100, 1000)]
    assert to_accuracy(rows, 0.2, "iterations") == pytest.approx(25)
    assert to_accuracy(rows, 0.01, "iterations") is None


def test_own_pairs_from_csv_parquet_and_two_files_are_the_same(tmp_path):
    pandas = pytest.importorskip("pandas")
    better, worse = ranking_pairs(50, 3)
    names = ["a", "b", "c"]
    left, right = (pandas.DataFrame(rows, columns=names) for rows in (better, worse))
    one = pandas.concat([left.add_prefix("better_"), right.add_prefix("worse_")], axis=1)
    one.to_csv(tmp_path / "pairs.csv", index=False)
    one.to_csv(tmp_path / "pairs.csv.gz", index=False)
    one.to_parquet(tmp_path / "pairs.parquet")
    for name, rows in (("better", better), ("worse", worse)):
        pandas.DataFrame(rows, columns=names).to_csv(tmp_path / f"{name}.csv", index=False)
    sources = ["pairs.csv", "pairs.csv.gz", "pairs.parquet"]
    for data in [
        *(str(tmp_path / name) for name in sources),
        f"{tmp_path / 'better.csv'},{tmp_path / 'worse.csv'}",
    ]:
        found = load_pairs(data, 10**9, 0)
        np.testing.assert_allclose(found[0], better, rtol=1e-12)
        np.testing.assert_allclose(found[1], worse, rtol=1e-12)


def test_svmlight_pairs_are_within_queries_and_scaled(tmp_path):
    path = tmp_path / "rank.svm"
    path.write_text(
        "2 qid:1 1:10 2:0.5\n1 qid:1 1:30 2:0.25\n0 qid:2 1:20 2:1\n1 qid:2 1:10 2:0\n0 "
        "qid:1 1:20 2:0\n"
    )
    better, worse = load_pairs(str(path), 10**9, 0)
    assert better.shape == (4, 2)
    pairs = {(tuple(b), tuple(w)) for b, w in zip(better.tolist(), worse.tolist(), strict=True)}
    assert ((0.0, 0.5), (1.0, 0.25)) in pairs and ((0.0, 0.0), (0.5, 1.0)) in pairs


def test_preferred_rows_against_a_double_loop():
    rng = np.random.default_rng(0)
    label, query = rng.integers(3, size=30), rng.integers(4, size=30)
    expected = {
        (i, j) for i in range(30) for j in range(30) if query[i] == query[j] and label[i] > label[j]
    }
    better, worse = preferred_rows(label, query)
    assert set(
        zip(better.tolist(), worse.tolist(), strict=True)
    ) == expected and better.size == len(expected)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "better_x,y\n1,2\n", "worse_x is missing"),
        ("a.csv", "x,y\n1,2\n", "no column begins with better_"),
        ("a.csv", "better_x,worse_x\n", "at least one row"),
        ("a.csv", "better_x,worse_x\n1,two\n", "numbers only"),
        ("a.csv", "better_x,worse_x\n1,nan\n", "must be finite"),
        ("a.svm", "1 1:0.5\n0 1:0.25\n", "qid"),
        ("a.svm", "1 qid:1 1:0.5\n1 qid:1 1:0.25\n", "no pair"),
        ("a.xyz", "", "must be .csv"),
    ],
)  # fmt: skip
def test_bad_pairs_are_refused_in_words(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(lt.DataError, match=says):
        load_pairs(str(tmp_path / name), 10, 0)


def test_own_pairs_run_through_an_experiment(tmp_path):
    better, worse = ranking_pairs(300, 3)
    header = ",".join([f"better_{k}" for k in range(3)] + [f"worse_{k}" for k in range(3)])
    np.savetxt(
        tmp_path / "mine.csv", np.hstack([better, worse]), delimiter=",", header=header, comments=""
    )
    done = reproduce(
        "small",
        only="figure2",
        data=tmp_path / "mine.csv",
        output=tmp_path / "out",
        progress=False,
        seeds=1,
        workers=1,
    )
    full_touch = [
        row for row in done.measured["figure2"].tables["rows"] if row["line"] == "FullTouch"
    ]
    assert full_touch[0]["checks_per_iteration"] == 12  # a lattice of 2^3 vertices has 12 edges


def test_workers_give_the_same_rows(tmp_path):
    better, worse = ranking_pairs(200, 2)
    np.savetxt(
        tmp_path / "m.csv",
        np.hstack([better, worse]),
        delimiter=",",
        header="better_a,better_b,worse_a,worse_b",
        comments="",
    )
    alone, together = (
        reproduce(
            "small",
            "figure2",
            tmp_path / "m.csv",
            tmp_path / str(n),
            progress=False,
            seeds=1,
            workers=n,
        ).measured["figure2"]
        for n in (1, 2)
    )
    for first, second in zip(alone.tables["rows"], together.tables["rows"], strict=True):
        assert (
            first["objective"] == second["objective"]
            and first["constraint_checks"] == second["constraint_checks"]
        )


def test_the_command_names_bad_data(tmp_path, capsys):
    words = ["--data", str(tmp_path / "none.csv"), "--output", str(tmp_path)]
    assert main(["reproduce", "--scale", "small", *words]) == FILE_PROBLEM
    assert "none.csv" in capsys.readouterr().err


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="only must be one of"):
        reproduce("small", only="figure9", output=tmp_path)
    with pytest.raises(ValueError, match="scale must be one of"):
        reproduce("tiny", output=tmp_path)


@pytest.mark.parametrize("algorithm", ["ProjectedSGD", "OnlineFrankWolfe", "LocalFrankWolfe"])
def test_what_the_tables_compare_with_comes_nearer_the_known_optimum(algorithm):
    """`make bench-rates` measures these with the same code as the paper's own algorithms."""
    unit = {"table": 2, "algorithm": algorithm, "constraints": 16, "lengths": [16, 256], "seeds": 1}
    short, long = rates(unit)
    assert long["error"] < short["error"] and short["iterations"] == 16
