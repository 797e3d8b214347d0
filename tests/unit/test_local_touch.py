"""LightTouch in rounds on shards: every worker visits its own range of the constraints."""

from __future__ import annotations

import dataclasses
import functools
import pickle

import numpy as np
import pytest

import engine_tasks as tasks
import lighttouch as lt
from lighttouch.constraints.base import ConstraintRange
from lighttouch.kernels.state.distribution import probabilities
from lighttouch.solvers import local_touch

SIZES = (300, 0, 80, 20)  # examples of the shards
RULES = lt.lattice.increasing([2] * 12)  # 24,576 that are never stored
TOUCH = lt.LightTouch(2.0, lt.AdaGrad(0.3), 4, weight_step_size=0.5)


def in_shards(sizes=SIZES) -> lt.Problem:
    shards = [
        functools.partial(tasks.lattice_shard, seed, size) if size else tasks.nothing
        for seed, size in enumerate(sizes)
    ]
    return lt.Problem(lt.ShardedRisk(shards), RULES, lt.Box(-10.0, 10.0))


def after(problem: lt.Problem, rounds: int, solver: lt.LocalTouch, start=None):
    state = solver.init(problem, problem.start(start))
    solver.advance(problem, state, rounds, np.random.default_rng(0))
    return state


@pytest.fixture(scope="module")
def learnt():
    """Some rounds from a point that breaks many constraints, and what is known then."""
    start = np.random.default_rng(0).normal(0.0, 0.1, RULES.dimension)
    problem = in_shards()
    gentle = dataclasses.replace(TOUCH, weight_step_size=1e-3)
    return problem, after(problem, 3, lt.LocalTouch(gentle, 40), start)


def test_every_engine_gives_the_same_bits():
    problem, solver = in_shards(), lt.LocalTouch(TOUCH, 60)
    known = lt.solve(problem, solver, iterations=3, seed=5)
    assert known.violation == 0.0 and known.iterations == 3
    for workers in (1, 2):
        with lt.Processes(workers) as engine:
            same = lt.solve(in_shards(), solver, iterations=3, seed=5, engine=engine)
        assert (same.w == known.w).all() and (same.w_last == known.w_last).all()
        assert (same.constraint_probabilities == known.constraint_probabilities).all()
        assert same.constraint_checks == known.constraint_checks


def test_one_range_of_all_constraints_is_light_touch():
    """To the bit: w, its average, and p."""
    together = lt.Problem(tasks.lattice_shard(0, 200), RULES, lt.Box(-10.0, 10.0))
    start = np.random.default_rng(1).normal(0.0, 0.1, RULES.dimension)
    problem = in_shards((200,))
    found = after(problem, 1, lt.LocalTouch(TOUCH, 150), start)
    seed = int(np.random.default_rng(0).integers(2**63))
    known = TOUCH.init(together, together.start(start))
    TOUCH.advance(together, known, 150, np.random.default_rng((seed, 0)))
    assert (found.w == known.w).all()
    assert (lt.LocalTouch(TOUCH).average(found) == TOUCH.average(known)).all()
    p = lt.LocalTouch(TOUCH).probabilities(found)
    assert known.distribution is not None and (p == probabilities(known.distribution)).all()
    assert found.constraint_checks == known.constraint_checks


def test_p_is_merged_exactly(learnt):
    """The ranges' weights against one sum of all, and every draw weighed as p says."""
    problem, state = learnt
    p = lt.LocalTouch(TOUCH).probabilities(state)
    assert p.sum() == pytest.approx(1.0, abs=1e-12) and p.min() > 0.0 and p.max() > 2.0 / p.size
    ranges = local_touch._ranges(problem.objective, RULES.count, state.learnt)
    masses = local_touch.range_masses(ranges)
    assert [each.stop for each in ranges][-1] == RULES.count and ranges[1].first == ranges[1].stop
    assert masses.sum() == pytest.approx(1.0, abs=1e-15)
    for each, mass in zip(ranges, masses, strict=True):
        assert mass == pytest.approx(p[each.first : each.stop].sum(), rel=1e-10, abs=0.0)


def test_weights_that_no_float_can_hold_are_merged():
    """exp(3000) is infinite, but shares are not."""
    one = local_touch.Learnt(np.array([1]), np.array([3000.0]), np.array([1.0]))
    two = local_touch.Learnt(np.array([0]), np.array([3000.0 + np.log(3.0)]), np.array([1.0]))
    ranges = [local_touch.Range(0, 10, one), local_touch.Range(10, 20, two)]
    np.testing.assert_allclose(local_touch.range_masses(ranges), [0.25, 0.75], rtol=1e-12)
    tiny = [one._replace(numbers=np.array([0]), logs=np.array([-3000.0]))] * 2
    all_known = [local_touch.Range(k, k + 1, each) for k, each in enumerate(tiny)]
    np.testing.assert_allclose(local_touch.range_masses(all_known), [0.5, 0.5], rtol=1e-12)


def test_only_what_was_violated_is_sent():
    """From a feasible start: nothing at first, then no more than was looked at."""
    problem, solver = in_shards(), lt.LocalTouch(TOUCH, 50)
    state = solver.init(problem, problem.start())
    assert state.learnt.numbers.size == 0
    solver.advance(problem, state, 2, np.random.default_rng(0))
    looks = 2 * 50 * 3 * TOUCH.constraint_batch
    assert 0 < state.learnt.numbers.size <= looks
    assert (np.diff(state.learnt.numbers) > 0).all()
    ranges = local_touch._ranges(problem.objective, RULES.count, state.learnt)
    assert len(pickle.dumps(ranges)) < 24 * state.learnt.numbers.size + 4_000
    assert len(pickle.dumps(RULES)) < 10_000


def test_a_range_is_a_part_of_the_family():
    w = np.random.default_rng(2).normal(size=RULES.dimension)
    values = RULES.values(w)
    assert (ConstraintRange(RULES, 100, 9_000).values(w) == values[100:9_000]).all()
    groups = RULES.aggregated(1_000)  # 25, the last of them smaller
    assert (ConstraintRange(groups, 3, 25).values(w) == groups.values(w)[3:]).all()
    assert ConstraintRange(RULES, 100, 200).describe(3) == RULES.describe(103)


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path):
    solver, file = lt.LocalTouch(TOUCH, 30), tmp_path / "run.ltc"
    known = lt.solve(in_shards(), solver, iterations=4, seed=1)
    lt.solve(in_shards(), solver, iterations=2, seed=1, checkpoint=file)
    again = lt.solve(in_shards(), solver, iterations=4, seed=1, checkpoint=file)
    assert (again.w == known.w).all()
    assert (again.constraint_probabilities == known.constraint_probabilities).all()


def test_rounds_come_closer_to_the_optimum():
    """Carried from round to round, AdaGrad's sums do not make it worse, as restarting them does."""
    problem, solver = in_shards((200, 200)), lt.LocalTouch(TOUCH, 200)
    found = [lt.solve(problem, solver, iterations=k, seed=0).objective for k in (1, 4, 16)]
    assert found[0] > found[1] > found[2]


def test_ranges_may_be_empty():
    """Without constraints, and with fewer groups of them than shards: then steps are SGD's."""
    for rules, sizes in ((None, (60, 60)), (RULES.aggregated(4_096), (100, 100, 2))):
        problem = lt.Problem(in_shards(sizes).objective, rules, lt.Box(-10.0, 10.0))
        solver = lt.LocalTouch(lt.LightTouch(2.0, 0.05, 1), 20)
        result = lt.solve(problem, solver, iterations=2, seed=0)
        assert result.objective < 1.0 and result.violation == 0.0
    ranges = local_touch._ranges(problem.objective, 6, local_touch.NOTHING)
    assert [(each.first, each.stop) for each in ranges] == [(0, 3), (3, 6), (6, 6)]


def test_what_it_cannot_take_is_said():
    alone = lt.Problem(tasks.lattice_shard(0, 20), RULES)
    with pytest.raises(ValueError, match=r"in shards \(ShardedRisk\); use LightTouch"):
        lt.solve(alone, lt.LocalTouch(TOUCH), iterations=1)
    with pytest.raises(ValueError, match="touch must be a LightTouch such as"):
        lt.LocalTouch(lt.FullTouch(1.0, 0.1))
    with pytest.raises(ValueError, match="steps"):
        lt.LocalTouch(TOUCH, 0)
