"""The four algorithms against their literal transcription: choice by choice, in forced cases, and
in distribution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lighttouch as lt
import reference
from catalogue import PROBLEMS, Case, Interpreted
from lighttouch.kernels.state.distribution import LOG_WEIGHT, set_reference
from replay import record

GAMMA = 1.7
RULES = {
    "constant": (lambda eta: eta, 0.06),
    "inverse sqrt": (lt.InverseSqrt, 0.3),
    "inverse time": (lt.InverseTime, 1.2),
    "adagrad": (lt.AdaGrad, 0.4),
}
CONSTRAINED = [name for name in PROBLEMS if name != "no constraints"]
# A loss without variance asks for infinitely many constraints: rounding of 0 then decides the sizes
# of Section 5.2.
VARYING = [name for name in CONSTRAINED if name != "cones everywhere"]


def run(case: Case, solver, start, steps, seed=0, problem=None, before=None):
    """The solver's state after so many steps in one piece."""
    problem = problem or case.problem
    state = solver.init(problem, problem.start(start))
    if before is not None:
        before(state)
    solver.advance(problem, state, steps, np.random.default_rng(seed))
    return state


def agree(solver, state, expected: reference.Run, tolerance: float) -> None:
    np.testing.assert_allclose(state.w, expected.last, rtol=0, atol=tolerance)
    np.testing.assert_allclose(solver.average(state), expected.average, rtol=0, atol=tolerance)
    assert state.constraint_checks == expected.checks
    if expected.p is None:
        assert solver.probabilities(state) is None
    else:
        np.testing.assert_allclose(solver.probabilities(state), expected.p, rtol=0, atol=tolerance)


def start_of(case: Case) -> np.ndarray:
    return np.random.default_rng(17).normal(size=case.dimension)


# ------------------------------------------------------------------------------------------------
# the same choices replayed


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", PROBLEMS)
def test_full_touch_replayed(name, batch, rule, monkeypatch):
    case, recording = PROBLEMS[name](), record(monkeypatch)
    build, eta = RULES[rule]
    solver = lt.FullTouch(GAMMA, build(eta), batch)
    state = run(case, solver, start_of(case), 60, problem=Interpreted(case.problem))
    choices = recording.replay()
    agree(
        solver,
        state,
        reference.full_touch(
            case.piece, choices, start_of(case), 60, GAMMA, reference.Steps(rule, eta), batch
        ),
        1e-10,
    )
    assert choices.exhausted()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_light_touch_replayed(name, batch, rule, monkeypatch):
    case, recording = PROBLEMS[name](), record(monkeypatch)
    build, eta = RULES[rule]
    k = min(3, case.problem.constraints.count)
    solver = lt.LightTouch(GAMMA, build(eta), k, weight_step_size=0.3, batch=batch)
    state = run(case, solver, start_of(case), 80, problem=Interpreted(case.problem))
    choices = recording.replay()
    expected = reference.light_touch(
        case.piece, choices, start_of(case), 80, GAMMA, reference.Steps(rule, eta), 0.3, k, batch
    )
    agree(solver, state, expected, 1e-10)
    assert choices.exhausted()


@pytest.mark.parametrize("name", CONSTRAINED)
def test_light_touch_uses_one_step_size_as_in_the_paper(name, monkeypatch):
    case, recording = PROBLEMS[name](), record(monkeypatch)
    solver = lt.LightTouch(GAMMA, 0.05, 1)
    state = run(case, solver, None, 100, problem=Interpreted(case.problem))
    start = np.zeros(case.dimension)
    steps = reference.Steps("constant", 0.05)
    agree(
        solver,
        state,
        reference.light_touch(case.piece, recording.replay(), start, 100, GAMMA, steps, 0.05, 1),
        1e-10,
    )


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_mid_touch_replayed(name, batch, monkeypatch):
    case, recording = PROBLEMS[name](), record(monkeypatch)
    solver = lt.MidTouch(GAMMA, 2.5, 30, 0.3, batch)
    state = run(case, solver, start_of(case), 80, problem=Interpreted(case.problem))
    choices = recording.replay()
    agree(
        solver,
        state,
        reference.mid_touch(case.piece, choices, start_of(case), 30, 50, GAMMA, 2.5, 0.3, batch),
        1e-10,
    )
    assert choices.exhausted()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("memory", [0.999, 0.7])
@pytest.mark.parametrize("name", VARYING)
def test_practical_light_touch_replayed(name, memory, rule, monkeypatch):
    case, recording = PROBLEMS[name](), record(monkeypatch)
    build, eta = RULES[rule]
    solver = lt.PracticalLightTouch(GAMMA, build(eta), 0.3, memory)
    state = run(case, solver, start_of(case), 80, problem=Interpreted(case.problem))
    choices = recording.replay()
    costs = (
        case.problem.objective.cost,
        case.problem.constraints.cost,
        case.problem.constraints.cost,
    )
    steps = reference.Steps(rule, eta)
    expected = reference.practical_light_touch(
        case.piece, choices, start_of(case), 80, GAMMA, steps, 0.3, costs, memory
    )
    agree(solver, state, expected, 1e-10)
    assert choices.exhausted()
    assert solver.batch_sizes(state) == expected.sizes[-1]
    assert state.gradient_samples == 2 * 80
    if case.problem.constraints.group_size == 1 < case.problem.constraints.count:
        assert len(set(expected.sizes)) > 1, "the sizes should follow the variances"


def test_push_batches_grow_with_their_variance(monkeypatch):
    """A large penalty makes the drawn constraints the noisiest part of the gradient, so more of
    them are drawn.
    """
    case, recording = PROBLEMS["dense rows in a box"](), record(monkeypatch)
    solver = lt.PracticalLightTouch(30.0, 1e-3, 1e-3)
    state = run(case, solver, start_of(case), 100, problem=Interpreted(case.problem))
    expected = reference.practical_light_touch(
        case.piece,
        recording.replay(),
        start_of(case),
        100,
        30.0,
        reference.Steps("constant", 1e-3),
        1e-3,
        (6.0, 6.0, 6.0),
    )
    agree(solver, state, expected, 1e-10)
    assert any(2 < pushes < 9 for _, pushes, _ in expected.sizes)


# --- forced cases
def one_example(sparse: bool, domain: str, l2: float, group: int, rows: int) -> Case:
    """A single weighted example, a few constraints."""
    import scipy.sparse

    rng = np.random.default_rng(rows + group)
    X, A = rng.normal(size=(1, 5)), rng.normal(size=(rows, 5))
    A[np.abs(A) < 0.4] = 0.0
    y, b, center = np.array([0.7]), rng.uniform(-0.5, 0.1, size=rows), rng.normal(size=5) * 0.1
    made = {
        "box": (lt.Box(-0.6, 0.5), reference.box(-0.6, 0.5)),
        "ball": (lt.Ball(0.8, center), reference.ball(0.8, center)),
        "everywhere": (lt.Everywhere(), reference.everywhere()),
    }
    ours, theirs = made[domain]
    kind = scipy.sparse.csr_matrix if sparse else np.asarray
    constraints = lt.LinearConstraints(kind(A), b)
    objective = lt.EmpiricalRisk(kind(X), y, l2=l2, sample_weight=[3.0])
    problem = lt.Problem(
        objective, constraints.aggregated(group) if group > 1 else constraints, ours
    )
    piece = reference.Piece(
        **reference.risk(X, y, reference.LOSSES["squared"]),
        **reference.linear(A, b),
        project=theirs,
        l2=l2,
        group=group,
    )
    return Case(problem, piece)


FORCED = [
    (sparse, domain, l2, group)
    for sparse in (False, True)
    for domain in ("box", "ball", "everywhere")
    for l2, group in ((0.0, 1), (0.3, 3))
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("sparse", "domain", "l2", "group"), FORCED)
def test_one_example_forces_full_touch(sparse, domain, l2, group, rule):
    case = one_example(sparse, domain, l2, group, 7)
    build, eta = RULES[rule]
    solver = lt.FullTouch(GAMMA, build(eta))
    state = run(case, solver, start_of(case), 100)
    choices = reference.Choices(np.random.default_rng(5), 1)
    agree(
        solver,
        state,
        reference.full_touch(
            case.piece, choices, start_of(case), 100, GAMMA, reference.Steps(rule, eta)
        ),
        1e-12,
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("sparse", "domain", "l2", "group"), FORCED)
def test_a_certain_p_forces_light_touch(sparse, domain, l2, group, rule):
    """k = m and all weight on one constraint: nothing is left to chance."""
    case = one_example(sparse, domain, l2, group, 7)
    m = case.problem.constraints.count
    build, eta = RULES[rule]
    solver = lt.LightTouch(GAMMA, build(eta), m, weight_step_size=0.05)
    certain = np.zeros(m)
    certain[1] = 5000.0

    def weigh(state):
        state.distribution.law[:, LOG_WEIGHT] = certain
        set_reference(state.distribution)

    state = run(case, solver, start_of(case), 100, before=weigh)
    choices = reference.Choices(np.random.default_rng(5), 1)
    steps = reference.Steps(rule, eta)
    expected = reference.light_touch(
        case.piece, choices, start_of(case), 100, GAMMA, steps, 0.05, m, log_p=certain
    )
    agree(solver, state, expected, 1e-12)
    logs = (
        state.distribution.law[:, LOG_WEIGHT]
        + (101 - state.distribution.law[:, 1]) * 0.05 * GAMMA * state.distribution.law[:, 2]
    )
    assert logs.argmax() == 1 and np.ptp(logs) > 1000


@pytest.mark.parametrize(("sparse", "domain", "l2", "group"), FORCED)
def test_one_constraint_forces_all_four(sparse, domain, l2, group):
    case = one_example(sparse, domain, l2, group, group)
    assert case.problem.constraints.count == 1
    start, steps = start_of(case), reference.Steps("inverse sqrt", 0.3)
    choices = reference.Choices(np.random.default_rng(5), 1)
    light = lt.LightTouch(GAMMA, lt.InverseSqrt(0.3), 1, weight_step_size=0.2)
    agree(
        light,
        run(case, light, start, 80),
        reference.light_touch(case.piece, choices, start, 80, GAMMA, steps, 0.2, 1),
        1e-12,
    )
    mid = lt.MidTouch(GAMMA, 3.0, 30, 0.2)
    agree(
        mid,
        run(case, mid, start, 80),
        reference.mid_touch(case.piece, choices, start, 30, 50, GAMMA, 3.0, 0.2),
        1e-12,
    )
    practical = lt.PracticalLightTouch(GAMMA, lt.InverseSqrt(0.3), 0.2)
    expected = reference.practical_light_touch(
        case.piece, choices, start, 80, GAMMA, steps, 0.2, (1.0, 1.0, 1.0)
    )
    agree(practical, run(case, practical, start, 80), expected, 1e-12)
    full = lt.FullTouch(GAMMA, lt.InverseSqrt(0.3))
    agree(
        full,
        run(case, full, start, 80),
        reference.full_touch(case.piece, choices, start, 80, GAMMA, steps),
        1e-12,
    )


# --- in distribution
SEEDS = 300
STEPS = 30


def compare_means(ours: np.ndarray, theirs: np.ndarray) -> None:
    """Means over seeds differ by no more than 4.5 of their standard errors."""
    error = np.sqrt(ours.var(axis=0, ddof=1) / len(ours) + theirs.var(axis=0, ddof=1) / len(theirs))
    assert (error > 0).any()
    distance = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(error, 1e-12)
    assert distance.max() < 4.5, distance


def outcomes(
    case: Case, solver, transcribed, independent: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    ours, theirs = [], []
    for seed in range(SEEDS):
        state = run(case, solver, start_of(case), STEPS, seed)
        p = solver.probabilities(state)
        ours.append(np.concatenate([solver.average(state), state.w, [] if p is None else p]))
        expected = transcribed(
            reference.Choices(
                np.random.default_rng(10_000 + seed), case.piece.examples, independent
            )
        )
        theirs.append(
            np.concatenate(
                [expected.average, expected.last, [] if expected.p is None else expected.p]
            )
        )
    return np.array(ours), np.array(theirs)


DISTRIBUTED = ["dense rows in a box", "an order in groups", "sparse rows in a ball"]


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_light_touch_in_distribution(name):
    case = PROBLEMS[name]()
    solver = lt.LightTouch(GAMMA, 0.1, 2, weight_step_size=0.6)
    compare_means(
        *outcomes(
            case,
            solver,
            lambda choices: reference.light_touch(
                case.piece,
                choices,
                start_of(case),
                STEPS,
                GAMMA,
                reference.Steps("constant", 0.1),
                0.6,
                2,
            ),
        )
    )


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_mid_touch_in_distribution(name):
    case = PROBLEMS[name]()
    compare_means(
        *outcomes(
            case,
            lt.MidTouch(GAMMA, 2.0, 10, 0.6),
            lambda choices: reference.mid_touch(
                case.piece, choices, start_of(case), 10, STEPS - 10, GAMMA, 2.0, 0.6
            ),
        )
    )


@pytest.mark.parametrize("name", DISTRIBUTED[:2])
def test_practical_light_touch_in_distribution(name):
    case = PROBLEMS[name]()
    costs = (
        case.problem.objective.cost,
        case.problem.constraints.cost,
        case.problem.constraints.cost,
    )
    steps = ("inverse sqrt", 0.3)
    compare_means(
        *outcomes(
            case,
            lt.PracticalLightTouch(GAMMA, lt.InverseSqrt(0.3), 0.4),
            lambda choices: reference.practical_light_touch(
                case.piece,
                choices,
                start_of(case),
                STEPS,
                GAMMA,
                reference.Steps(*steps),
                0.4,
                costs,
            ),
        )
    )


@pytest.mark.parametrize("independent", [False, True])
def test_full_touch_in_distribution(independent):
    case = PROBLEMS["dense rows in a box"]()
    risk = case.problem.objective
    visits = "independent" if independent else "permutations"
    problem = lt.Problem(
        lt.EmpiricalRisk(risk.X, risk.y, visits=visits),
        case.problem.constraints,
        case.problem.domain,
    )
    compare_means(
        *outcomes(
            replace(case, problem=problem),
            lt.FullTouch(GAMMA, 0.1),
            lambda choices: reference.full_touch(
                case.piece, choices, start_of(case), STEPS, GAMMA, reference.Steps("constant", 0.1)
            ),
            independent,
        )
    )
