"""What every solver of the catalogue owes, on every problem of the catalogue."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import os
import pickle
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import lighttouch as lt
from catalogue import ALL_PROBLEMS, EVERY, FIRST_PHASE, PROBLEMS, SOLVERS, Interpreted
from lighttouch.result import COLUMNS, Status

STEPS = 60


SIMPLE = ("dense rows in a box", "no constraints")


SLOW = (pytest.mark.slow,)


def often(solver: int, problem: int, name: str) -> bool:
    """Whether `make test` runs this pair: every solver meets every 16th problem and the simple
    ones, and every problem every 16th solver. What users compile is not cached: one solver meets
    it.
    """
    if name.startswith(("generated", "a user")):
        return solver == 0
    return name in SIMPLE or (solver + problem) % 16 == 0


def pytest_generate_tests(metafunc):
    """Every solver meets every problem that the catalogue says it takes; see `often`.

    `entry` is any solver, `lasting` one that runs until it is told to stop, `ending` one that stops
    by itself.
    """
    names = set(metafunc.fixturenames)
    which = names & {"entry", "lasting", "ending"}
    if not which:
        return
    (solver,) = which
    chosen = [n for n, e in SOLVERS.items() if solver == "entry" or e.ends == (solver == "ending")]
    if "case" in names or "simple" in names:
        problem = "case" if "case" in names else "simple"
        pairs = [
            pytest.param(
                ALL_PROBLEMS[p](), SOLVERS[s], id=f"{p}-{s}", marks=() if often(i, j, p) else SLOW
            )
            for i, s in enumerate(chosen)
            for j, p in enumerate(SOLVERS[s].takes)
            if problem == "case" or p in SIMPLE
        ]
        metafunc.parametrize((problem, solver), pairs)
    else:
        metafunc.parametrize(solver, [SOLVERS[s] for s in chosen], ids=chosen)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_takes_what_the_catalogue_says_and_nothing_else(name):
    """Of the large problems only what it is tested on: most take them, in their own time."""
    entry = SOLVERS[name]
    for title in {*EVERY, *entry.takes}:
        problem = ALL_PROBLEMS[title]().problem
        objection = entry.build(problem).objection_to(problem)
        assert (objection is None) == (title in entry.takes), (title, objection)
        assert objection is None or len(objection) > 20


def leaves(value) -> list[np.ndarray]:
    """Every array and number of a state; what is derived from them is left out."""
    if hasattr(value, "__dataclass_fields__"):
        parts = value.__dataclass_fields__.values()
        value = tuple(getattr(value, part.name) for part in parts if part.init)
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [np.asarray(value)]


def assert_same_bits(first, second) -> None:
    for ours, theirs in zip(leaves(first), leaves(second), strict=True):
        assert ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def advanced(problem, solver, pieces, start=None, seed=3):
    """The state after the pieces; a solver may stop early at each call, or for good."""
    state, rng, goal = solver.init(problem, problem.start(start)), np.random.default_rng(seed), 0
    for steps in pieces:
        goal += steps
        solver.advance(problem, state, 0, rng)
        while state.iteration < goal and solver.finished(state) is None:
            solver.advance(problem, state, goal - state.iteration, rng)
    return state


def solved(case, entry, **options):
    options = {"iterations": STEPS, "seed": 3, "project": False, **options}
    return lt.solve(case.problem, entry.build(case.problem), **options)


_WHOLE: dict[tuple[int, int], lt.Result] = {}
_IN_ONE_PIECE: dict[tuple[int, int], Any] = {}  # the state; nothing advances it further


def whole_run(case, entry):
    """What `solved(case, entry)` gives, run once: every test gets a copy of its own. Cases and
    entries are the catalogue's, which keeps them.
    """
    key = id(case), id(entry)
    if key not in _WHOLE:
        _WHOLE[key] = solved(case, entry)
    kept = _WHOLE[key]
    return dataclasses.replace(kept, state=pickle.loads(pickle.dumps(kept.state)))


# --------------------------------------------------------------------------------------------------
# ----------- same bits


def test_compiled_and_interpreted_runs_are_the_same_bits(case, entry):
    solver = entry.build(case.problem)
    assert_same_bits(
        advanced(case.problem, solver, [STEPS]),
        advanced(Interpreted(case.problem), solver, [STEPS]),
    )


@pytest.mark.parametrize(
    "pieces", [[1] * STEPS, [7, 0, 30, 23], [FIRST_PHASE, STEPS - FIRST_PHASE]]
)
def test_chunks_do_not_change_a_run(case, entry, pieces):
    solver = entry.build(case.problem)
    key = id(case), id(entry)
    if key not in _IN_ONE_PIECE:
        _IN_ONE_PIECE[key] = advanced(case.problem, solver, [STEPS])
    assert_same_bits(_IN_ONE_PIECE[key], advanced(case.problem, solver, pieces))


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not(case, entry):
    first, second, other = (solved(case, entry, seed=seed) for seed in (5, 5, 6))
    assert_same_bits(first.state.solver_state, second.state.solver_state)
    assert first.w.tobytes() == second.w.tobytes() and first.objective == second.objective
    if case.problem.objective.examples > 1 and entry.random:
        assert first.w_last.tobytes() != other.w_last.tobytes()


@pytest.mark.parametrize("pause", [1, FIRST_PHASE, 41])
def test_a_resumed_run_equals_an_uninterrupted_one(case, entry, pause):
    whole = whole_run(case, entry)
    half = solved(case, entry, iterations=pause)
    kept = pickle.loads(pickle.dumps(half.state))
    if half.iterations < pause:  # it had ended by then
        assert half.w.tobytes() == whole.w.tobytes()
        return
    resumed = solved(case, entry, resume=half.state, seed=99)
    assert_same_bits(whole.state.solver_state, resumed.state.solver_state)
    assert_same_bits(half.state.solver_state, kept.solver_state)
    assert resumed.w.tobytes() == whole.w.tobytes()
    assert resumed.iterations == whole.iterations and resumed.seed == whole.seed == 3
    assert resumed.constraint_checks == whole.constraint_checks and resumed.seconds >= half.seconds


def test_record_every_and_callbacks_do_not_change_a_run(simple, entry):
    plain = whole_run(simple, entry)
    watched = solved(simple, entry, record_every=7, callback=lambda progress: None, progress=False)
    assert_same_bits(plain.state.solver_state, watched.state.solver_state)


def test_a_state_is_arrays_and_numbers(case, entry):
    state = whole_run(case, entry).state.solver_state
    assert all(leaf.dtype.kind in "fiub" for leaf in leaves(state))
    assert_same_bits(state, copy.deepcopy(state))
    twin = state.copy()
    assert_same_bits(state, twin)
    assert all(
        not np.shares_memory(a, b)
        for a, b in zip(leaves(state), leaves(twin), strict=True)
        if a.ndim and a.size
    )


# -------------------------------------------------------------------------------------------------
# what a result says is true


def test_a_result_can_be_recomputed(case, entry):
    result = whole_run(case, entry)
    piece = case.piece
    assert result.objective == pytest.approx(piece.objective(result.w), rel=1e-10, abs=1e-12)
    assert result.violation == pytest.approx(
        max(0.0, piece.g(result.w).max(initial=0.0)), rel=1e-10, abs=1e-12
    )
    assert result.violation_before_projection == result.violation
    inside = case.problem.domain.project(result.w)  # an average may round outwards
    np.testing.assert_allclose(result.w, inside, rtol=1e-15, atol=1e-15)
    assert result.iterations == STEPS or (entry.ends and 0 < result.iterations < STEPS)
    assert (result.status is Status.ITERATION_LIMIT) == (result.iterations == STEPS)
    assert result.projection == "not projected"
    p = result.constraint_probabilities
    groups = () if p is None or entry.own_groups else (case.problem.constraints.count,)
    assert p is None or (
        p.shape == (groups or p.shape) and p.min() >= 0 and abs(p.sum() - 1) < 1e-12
    )


def test_history_is_true(case, entry):
    seen = []
    result = solved(case, entry, record_every=9, callback=seen.append)
    assert {len(result.history[column]) for column in COLUMNS} == {len(result.history)}
    assert result.history.iteration.tolist() == [
        *range(0, result.iterations, 9),
        result.iterations,
    ]
    if entry.ends:  # its last row has no callback
        seen.append(lt.Progress(**last_row(result), w=result.w_last, w_average=result.w_average))
        seen = list({progress.iteration: progress for progress in seen}.values())
    assert [progress.iteration for progress in seen] == result.history.iteration.tolist()
    for row, progress in enumerate(seen):
        assert result.history.objective[row] == pytest.approx(
            case.piece.objective(progress.w), rel=1e-10, abs=1e-12
        )
        assert result.history.violation[row] == pytest.approx(
            max(0.0, case.piece.g(progress.w).max(initial=0.0)), rel=1e-10, abs=1e-12
        )
        assert result.history.constraint_checks[row] == progress.constraint_checks
    assert np.all(np.diff(result.history.seconds) >= 0) and np.all(
        np.diff(result.history.constraint_checks) >= 0
    )
    assert np.all(result.history.loss_batch >= (0 if entry.ends else 1)), (
        "batch_sizes(state) must begin with the examples per step, at least 1"
    )
    assert list(result.history.to_frame().columns) == list(COLUMNS)
    assert np.array_equal(seen[-1].w, result.w_last) and np.array_equal(
        seen[-1].w_average, result.w_average
    )


def last_row(result):
    row = result.history.last()
    return {name: row[name] for name in COLUMNS[:5]}


def test_history_at_powers_of_four_by_default(simple, lasting):
    assert solved(simple, lasting, iterations=300).history.iteration.tolist() == [
        0,
        1,
        4,
        16,
        64,
        256,
        300,
    ]


def test_averages_are_means_of_the_iterates(case, lasting):
    entry, iterates = lasting, []
    result = solved(
        case, entry, record_every=1, callback=lambda progress: iterates.append(progress.w)
    )
    first = FIRST_PHASE if type(result.solver) is lt.MidTouch else 0
    iterates[first] = after_first_phase(case, entry, iterates) if first else iterates[first]
    np.testing.assert_allclose(
        result.w_average,
        np.mean(iterates[first:STEPS], axis=0),
        rtol=0,
        atol=1e-12,
        err_msg="average(state) must be the mean of the iterates: the start counts, the last does "
        "not (AveragingSolver does this; the default of BaseSolver is the last iterate)",
    )
    assert np.array_equal(result.w_last, iterates[STEPS])
    assert np.array_equal(result.w, result.w_average) == entry.averages, (
        "solution(state) must be average(state), unless the entry says averages=False"
    )


def after_first_phase(case, entry, iterates):
    """MidTouch's second phase starts from the first one's average, not from the last iterate
    recorded.
    """
    return np.mean(iterates[:FIRST_PHASE], axis=0)


def test_checks_are_counted_as_in_the_paper(case, entry):
    result = whole_run(case, entry)
    groups = case.problem.constraints.group_size > 1
    if entry.checks is None or (groups and not isinstance(result.solver, lt.FullTouch)):
        assert (result.constraint_checks > 0) == (case.problem.constraints.count > 0)
        return
    assert result.constraint_checks == entry.checks(case.problem.constraints.members, STEPS)


def test_examples_are_counted(simple, entry):
    result = whole_run(simple, entry)
    if entry.samples is None:  # not fixed beforehand
        assert result.gradient_samples > 0
        return
    assert result.gradient_samples == entry.samples * STEPS


def test_the_projected_result_is_feasible(case, entry):
    result = solved(case, entry, project=True)
    assert result.violation <= 1e-7
    assert result.violation == pytest.approx(
        max(0.0, case.piece.g(result.w).max(initial=0.0)), abs=1e-12
    )
    assert result.objective == pytest.approx(case.piece.objective(result.w), rel=1e-10)
    if entry.averages and not entry.ends:
        assert result.objective_before_projection == pytest.approx(
            case.piece.objective(result.w_average), rel=1e-10
        )
    assert str(result.status.value) in str(result)


@functools.cache
def trusted(problem) -> lt.Result:
    """Proven by the interior point, whose bounds are theorems, where it takes the problem."""
    exact = lt.InteriorPoint(1e-8)
    solver = exact if exact.objection_to(problem) is None else lt.Automatic(1e-8)
    return lt.solve(problem, solver, time_limit=20.0)


def test_a_solver_that_stops_has_found_the_optimum(case, ending):
    """Within its tolerance where it says so; elsewhere at least half of the way from the start."""
    problem, solver = case.problem, ending.build(case.problem)
    best, result = trusted(problem), lt.solve(problem, solver, seed=3, time_limit=20.0)
    begun = lt.project(problem.start(), problem.constraints, problem.domain).w
    claimed = getattr(solver, "tolerance", 1e-3) * max(abs(best.objective), 1e-6)
    if result.status is not Status.CONVERGED:
        claimed += 0.5 * (problem.objective.value(begun) - best.objective)
    assert result.violation <= 1e-7
    assert best.lower_bound - 1e-9 <= result.objective <= best.objective + claimed


# --------------------------------------------------------------------------------------------------
# ----- starts and no rules


def test_a_start_of_none_is_the_projection_of_zero(case, entry):
    none = whole_run(case, entry)
    zero = solved(case, entry, start=np.zeros(case.dimension))
    assert_same_bits(none.state.solver_state, zero.state.solver_state)
    begun = solved(case, entry, iterations=0)
    if entry.feasible_start:
        assert begun.violation <= 1e-9
    else:
        assert np.array_equal(begun.w, case.problem.domain.project(np.zeros(case.dimension)))
    assert (
        begun.status is Status.ITERATION_LIMIT
        and len(begun.history) == 1
        and begun.constraint_checks == 0
    )


def test_an_infeasible_start_is_accepted(case, entry):
    start = np.full(case.dimension, 50.0)
    result = solved(case, entry, start=start)
    assert np.isfinite(result.w).all() and result.history.iteration[0] == 0
    expected = (
        0.0
        if entry.feasible_start
        else max(0.0, case.piece.g(case.problem.domain.project(start)).max(initial=0.0))
    )
    assert result.history.violation[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [name for name, entry in SOLVERS.items() if entry.plain_sgd])
def test_no_constraints_is_plain_sgd(name):
    case = PROBLEMS["no constraints"]()
    solver = SOLVERS[name].build(case.problem)
    if isinstance(solver, lt.MidTouch):
        plain = lt.FullTouch(1.0, lt.InverseTime(1.0 / solver.strong_convexity), solver.batch)
        ours, theirs = (
            lt.solve(case.problem, s, iterations=FIRST_PHASE, project=False)
            for s in (solver, plain)
        )
    else:
        plain = lt.FullTouch(1.0, solver.step_size, getattr(solver, "batch", 2))
        ours, theirs = (
            lt.solve(case.problem, s, iterations=STEPS, project=False) for s in (solver, plain)
        )
    assert (
        ours.w.tobytes() == theirs.w.tobytes() and ours.w_last.tobytes() == theirs.w_last.tobytes()
    )
    assert ours.constraint_checks == 0 and ours.violation == 0.0
    assert ours.constraint_probabilities is None or ours.constraint_probabilities.size == 0


# --------------------------------------------------------------------------------------------------
# ------------- endings


def test_a_callback_can_stop_a_run(simple, lasting):
    for true in (True, np.True_):
        result = solved(
            simple,
            lasting,
            record_every=5,
            callback=lambda progress, true=true: true if progress.iteration >= 20 else None,
        )
        assert result.status is Status.INTERRUPTED and result.iterations == 20
        assert_same_bits(
            result.state.solver_state, solved(simple, lasting, iterations=20).state.solver_state
        )
    never = solved(
        simple, lasting, record_every=5, callback=lambda progress: "not a reason to stop"
    )
    assert never.status is Status.ITERATION_LIMIT


def test_an_exception_in_a_callback_reaches_the_user(simple, lasting):
    before = signal.getsignal(signal.SIGINT)
    kept = solved(simple, lasting, iterations=10)
    frozen = copy.deepcopy(kept.state)

    def fail(progress):
        if progress.iteration >= 20:
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        solved(simple, lasting, record_every=5, callback=fail, resume=kept.state)
    assert signal.getsignal(signal.SIGINT) is before
    assert_same_bits(frozen.solver_state, kept.state.solver_state)
    resumed = solved(simple, lasting, resume=kept.state)
    assert_same_bits(resumed.state.solver_state, solved(simple, lasting).state.solver_state)


def test_a_time_limit_is_kept(simple, lasting):
    solved(simple, lasting)
    began = time.process_time()  # what another process takes from this one is not its fault
    result = solved(simple, lasting, iterations=None, time_limit=0.15)
    assert result.status is Status.TIME_LIMIT and result.iterations > 0
    assert time.process_time() - began < 0.15 + 0.5
    assert result.history.iteration[-1] == result.iterations and np.isfinite(result.w).all()
    both = solved(simple, lasting, iterations=20, time_limit=60)
    assert both.status is Status.ITERATION_LIMIT and both.iterations == 20


def test_the_first_ctrl_c_gives_a_result(simple, lasting):
    before = signal.getsignal(signal.SIGINT)

    def press(progress):
        if progress.iteration == 20:
            signal.raise_signal(signal.SIGINT)

    solved(simple, lasting, iterations=20)  # compiles: a signal would end that at once
    result = solved(simple, lasting, iterations=10**9, record_every=5, callback=press)
    assert result.status is Status.INTERRUPTED and 20 <= result.iterations <= 25
    assert np.isfinite(result.w).all() and signal.getsignal(signal.SIGINT) is before
    assert_same_bits(
        result.state.solver_state,
        solved(simple, lasting, iterations=result.iterations).state.solver_state,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_long_run_within_a_second(number):
    case, entry = PROBLEMS["dense rows in a box"](), SOLVERS["light touch"]
    solved(case, entry)
    sent = []

    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), number)

    threading.Timer(0.5, send).start()
    result = solved(case, entry, iterations=10**12)
    assert time.process_time() - sent[0] < 1.0
    assert result.status is Status.INTERRUPTED and result.iterations > 1000


def test_a_second_ctrl_c_raises():
    case, entry = PROBLEMS["dense rows in a box"](), SOLVERS["light touch"]

    def press(progress):
        if progress.iteration == 20:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        solved(case, entry, iterations=10**9, record_every=5, callback=press)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_outside_the_main_thread(entry):
    case, results = ALL_PROBLEMS[entry.takes[0]](), []
    thread = threading.Thread(target=lambda: results.append(solved(case, entry)))
    thread.start()
    thread.join()
    assert_same_bits(results[0].state.solver_state, solved(case, entry).state.solver_state)


DIVERGING = {
    "full touch": lambda eta: lt.FullTouch(1.0, eta),
    "light touch": lambda eta: lt.LightTouch(1.0, eta, 3),
    "mid touch": lambda eta: lt.MidTouch(1.0, 1.0 / eta, 10, eta),
    "practical light touch": lambda eta: lt.PracticalLightTouch(1.0, eta, eta),
}


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("eta", [1e5, 1e200])
@pytest.mark.parametrize("name", DIVERGING)
def test_divergence_is_said_and_w_is_finite(name, eta, project):
    case = PROBLEMS["dense rows in a box"]()
    problem = lt.Problem(case.problem.objective, case.problem.constraints)
    result = lt.solve(problem, DIVERGING[name](eta), iterations=100_000, project=project)
    assert result.status is Status.DIVERGED and "smaller step" in str(result.status)
    assert all(np.isfinite(w).all() for w in (result.w, result.w_average, result.w_last))
    assert math.isfinite(result.violation) and math.isfinite(result.objective)
    assert result.objective == pytest.approx(case.piece.objective(result.w), rel=1e-9)


def test_a_box_keeps_any_step_finite():
    """Penalty and step far too large, but W is bounded: a truthful ending, never an infinite
    number.
    """
    case = PROBLEMS["dense rows in a box"]()
    result = lt.solve(case.problem, lt.LightTouch(1e6, 1e6, 3), iterations=STEPS, project=False)
    assert result.status is Status.ITERATION_LIMIT and np.isfinite(result.w).all()
    assert abs(result.constraint_probabilities.sum() - 1.0) < 1e-12


# --------------------------------------------------------------------------------------------------
# -------------- refusals


def test_resuming_something_else_is_refused(simple, lasting):
    state = solved(simple, lasting).state
    with pytest.raises(lt.CheckpointMismatchError, match="the solver was"):
        lt.solve(simple.problem, lt.FullTouch(7.0, 0.123), iterations=100, resume=state)
    other = PROBLEMS["sparse rows in a ball"]().problem
    if lasting.build(simple.problem).objection_to(other) is None:
        with pytest.raises(lt.CheckpointMismatchError, match="the number of"):
            lt.solve(other, lasting.build(simple.problem), iterations=100, resume=state)
    with pytest.raises(ValueError, match="it must exceed the 60 already done"):
        solved(simple, lasting, resume=state)
    with pytest.raises(ValueError, match="start and resume"):
        solved(simple, lasting, iterations=100, resume=state, start=np.zeros(simple.dimension))


def test_solvers_are_frozen_and_comparable(entry, simple):
    solver = entry.build(simple.problem)
    assert solver == entry.build(simple.problem) and repr(solver) == repr(
        entry.build(simple.problem)
    )
    with pytest.raises(AttributeError):
        solver.penalty = 3.0
    assert pickle.loads(pickle.dumps(solver)) == solver
