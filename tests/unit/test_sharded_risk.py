"""ShardedRisk: the same objective as that of all examples together, whoever computes it."""

from __future__ import annotations

import functools
import hashlib
import pickle

import numpy as np
import pytest

import engine_tasks as tasks
import lighttouch as lt
from lighttouch.objectives import sharded
from lighttouch.solvers.automatic import Automatic
from lighttouch.solvers.averaged import AveragedShards

SIZES = (90, 0, 25, 8)
RULES = lt.ordering(5), lt.Box(-10.0, 10.0)


@pytest.fixture(scope="module")
def two():
    with lt.Processes(2) as engine:
        yield engine


def in_shards(loss: str, **options) -> lt.ShardedRisk:
    shards = [
        functools.partial(tasks.shard, seed, size, loss, **options)
        for seed, size in enumerate(SIZES)
    ]
    return lt.ShardedRisk([*shards, tasks.nothing])


def whole(loss: str, **options) -> lt.EmpiricalRisk:
    parts = [tasks.examples(seed, size, loss) for seed, size in enumerate(SIZES)]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    return lt.EmpiricalRisk(X, y, loss, **options)


def digest(result: lt.Result) -> str:
    numbers = [result.w, [result.objective, result.violation, result.lower_bound]]
    return hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in numbers)).hexdigest()


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_it_is_the_mean_of_all_examples(loss):
    together, apart = whole(loss, l2=0.1, l1=0.02), in_shards(loss, l2=0.1, l1=0.02)
    assert (apart.examples, apart.dimension, apart.l2) == (123, 5, 0.1)
    for w in np.random.default_rng(0).normal(size=(3, 5)):
        assert apart.value(w) == pytest.approx(together.value(w), rel=1e-14)
        np.testing.assert_allclose(apart.gradient(w), together.gradient(w), rtol=0, atol=1e-13)
        assert apart.penalty_value(w) == together.penalty_value(w)


def test_shards_count_by_their_weights():
    parts = [tasks.weighted_shard(seed, size, "squared") for seed, size in enumerate((40, 7))]
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "Xy")
    weights = np.concatenate([part.sample_weight for part in parts])
    together = lt.EmpiricalRisk(X, y, l2=0.1, l1=0.01, sample_weight=weights)
    w = np.ones(5)
    assert lt.ShardedRisk(parts).value(w) == pytest.approx(together.value(w), rel=1e-14)


def test_one_shard_in_memory_is_the_objective_itself():
    together = whole("squared", l2=0.1)
    apart = lt.ShardedRisk([together])
    w = np.ones(5)
    assert apart.value(w) == together.value(w)
    assert (apart.gradient(w) == together.gradient(w)).all()
    found = lt.solve(lt.Problem(apart, *RULES), lt.QuadraticSteps())
    known = lt.solve(lt.Problem(together, *RULES), lt.QuadraticSteps())
    np.testing.assert_allclose(found.w, known.w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "absolute"])
def test_the_same_optimum_and_the_same_certificate(loss):
    """Newton's models and FISTA, each on shards and on all examples."""
    for solver in (lt.QuadraticSteps(1e-7), lt.Accelerated(1e-4)):
        one = lt.solve(lt.Problem(whole(loss, l2=0.1), *RULES), solver)
        other = lt.solve(lt.Problem(in_shards(loss, l2=0.1), *RULES), solver)
        assert one.status is other.status and one.iterations == other.iterations
        assert one.objective == pytest.approx(other.objective, rel=1e-12)
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-10)
        np.testing.assert_allclose(one.w, other.w, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_every_engine_gives_the_same_bits(two, loss):
    """Files and objectives in memory, in this process, and in one and two others."""
    problem = lt.Problem(in_shards(loss, l2=0.1), *RULES)
    known = digest(lt.solve(problem))
    assert digest(lt.solve(lt.Problem(in_shards(loss, l2=0.1), *RULES), engine=two)) == known
    held = [tasks.shard(seed, size, loss, l2=0.1) for seed, size in enumerate(SIZES) if size]
    assert digest(lt.solve(lt.Problem(lt.ShardedRisk(held), *RULES), engine=two)) == known


def test_many_parameters_are_averaged_once_and_finished_with_full_gradients(two):
    shards = [functools.partial(tasks.lattice_shard, seed, 400) for seed in range(3)]
    problem = lt.Problem(
        lt.ShardedRisk(shards), lt.lattice.increasing([2] * 12), lt.Box(-10.0, 10.0)
    )
    chain = Automatic().chain(problem)
    assert isinstance(chain[0], AveragedShards) and isinstance(chain[1], lt.Accelerated)
    known = lt.solve(problem, iterations=4)
    assert known.violation == 0.0
    assert digest(lt.solve(problem, iterations=4, engine=two)) == digest(known)


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, two):
    problem = lt.Problem(in_shards("hinge", l2=0.1), *RULES)
    solver, file = lt.Accelerated(1e-5), tmp_path / "run.ltc"
    known = lt.solve(problem, solver)
    lt.solve(problem, solver, checkpoint=file, iterations=15)
    again = lt.Problem(in_shards("hinge", l2=0.1), *RULES)
    assert digest(lt.solve(again, solver, checkpoint=file, engine=two)) == digest(known)
    other = lt.Problem(in_shards("hinge", l2=0.1), *RULES)
    other.objective.shards = other.objective.shards[:-2] + other.objective.shards[-1:]
    with pytest.raises(lt.CheckpointMismatchError, match="the number of examples was 123"):
        lt.solve(other, solver, checkpoint=file)


# --- what can be wrong with a shard
def test_a_shard_that_cannot_be_read_is_named(monkeypatch, two):
    monkeypatch.setattr(sharded, "READING", sharded.Reading(pause=0.0))
    shards = [functools.partial(tasks.unreadable, f"loans-{k}.parquet") for k in range(2)]
    with pytest.raises(lt.DataError, match=r"shard 0 \(unreadable\('loans-0.parquet'\)\) could not "
                       "be read in 3 attempts: No such file"):  # fmt: skip
        lt.ShardedRisk(shards).value(np.ones(5))
    readable = lt.ShardedRisk([functools.partial(tasks.shard, 0, 9, "squared"), shards[1]])
    with pytest.raises(lt.DataError, match=r"shard 1 \(unreadable\('loans-1.parquet'\)\)"):
        lt.solve(lt.Problem(readable), engine=two)


def test_a_busy_disk_is_tried_again(monkeypatch, tmp_path):
    monkeypatch.setattr(sharded, "READING", sharded.Reading(pause=0.0))
    risk = lt.ShardedRisk([functools.partial(tasks.readable_later, str(tmp_path / "busy"))])
    assert risk.examples == 20


def test_what_is_wrong_in_a_shard_keeps_its_message():
    bad = functools.partial(lt.EmpiricalRisk, [[np.nan]], [1.0])
    with pytest.raises(lt.DataError, match="X") as error:
        lt.ShardedRisk([bad]).value([1.0])
    assert any("in shard 0" in note for note in error.value.__notes__)


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([], "at least one objective or function, got none"),
        ([3], r"got 3 \(int\) at place 0"),
        ([lt.EmpiricalRisk], "the class EmpiricalRisk instead of an instance"),
        ([tasks.nothing], "all 1 shards are empty"),
        ([lt.EmpiricalRisk([[1.0]], [1.0]), lt.EmpiricalRisk([[1.0, 2.0]], [1.0])],
         "shard 1 has 2, others have 1"),
        ([functools.partial(abs, -3)], "must return an objective or None, got 3"),
    ],
)  # fmt: skip
def test_other_shards_are_refused(shards, message):
    with pytest.raises(lt.DataError, match=message):
        lt.ShardedRisk(shards).value(np.ones(1))


def test_sampling_solvers_say_what_can_take_it():
    problem = lt.Problem(in_shards("squared"), lt.ordering(5))
    with pytest.raises(ValueError, match=r"examples are in shards.*use Automatic, Accelerated"):
        lt.solve(problem, lt.LightTouch(1.0, 0.1, 2))


def test_memory_is_said():
    risk = in_shards("squared")
    assert "5 shards with 123 examples on this process: a worker holds one shard" in risk.memory()
    notes = lt.solve(lt.Problem(risk)).notes
    assert any("a worker holds one shard at a time, at most" in note for note in notes)


def test_one_shard_is_held_at_a_time():
    risk = in_shards("squared")
    for _ in risk.each(sharded.value_of, np.ones(5)):
        assert len(sharded._held) == 1


def test_a_problem_is_made_from_the_first_shard_alone():
    """All others are read by the engine of the run."""
    shards = [
        functools.partial(tasks.shard, 0, 9, "squared"),
        functools.partial(tasks.unreadable, "x"),
    ]
    assert lt.Problem(lt.ShardedRisk(shards), lt.ordering(5)).dimension == 5


def test_it_can_be_pickled():
    risk = pickle.loads(pickle.dumps(in_shards("squared")))
    assert risk.value(np.ones(5)) == in_shards("squared").value(np.ones(5))
