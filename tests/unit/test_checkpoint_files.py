"""Checkpoint files: whole or not there, of one problem, and going on to the same bits."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import lighttouch as lt
from lighttouch import signals
from lighttouch.fingerprints import fingerprint


def problem(seed: int = 0, **changes) -> lt.Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    y = X @ np.arange(6.0) + rng.normal(size=400)
    given = {"X": X, "y": y, "loss": "absolute", "b": 1.0, "domain": lt.Box(-5, 5)} | changes
    risk = lt.EmpiricalRisk(given["X"], given["y"], loss=given["loss"])
    rows = lt.LinearConstraints(rng.normal(size=(9, 6)), np.full(9, given["b"]))
    return lt.Problem(risk, rows, given["domain"])


SOLVER = lt.LightTouch(1.0, 0.01, 4)


def test_the_default_solver_goes_on_in_the_middle_of_its_chain(tmp_path, monkeypatch):
    given, solver = problem(loss="logistic", y=np.sign(np.arange(400.0) - 150.5)), lt.Automatic()
    chain = (lt.SampledAdaGrad(1e-2), lt.Accelerated(1e-6, near=True))
    monkeypatch.setattr(lt.Automatic, "choices", lambda *_: iter(chain))
    whole = lt.solve(given, solver)
    path, seen = tmp_path / "run.ltc", set()
    for limit in range(0, 10**6, max(1, whole.iterations // 9)):
        part = lt.solve(given, solver, iterations=limit, checkpoint=path)
        seen.add(part.state.solver_state.place)
        if part.status is not lt.Status.ITERATION_LIMIT:
            break
    assert seen == {0, 1} and part.status is whole.status
    assert part.w.tobytes() == whole.w.tobytes()


CHANGES = {
    "the loss": {"loss": "huber"},
    "the data": {"y": np.zeros(400)},
    "the constraints": {"b": 2.0},
    "the domain": {"domain": lt.Box(-5, 6)},
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("how", ["file", "state", "pickled state"])
def test_a_run_belongs_to_its_problem(tmp_path, what, how):
    path = tmp_path / "run.ltc"
    half = lt.solve(problem(), SOLVER, iterations=50, seed=3, checkpoint=path)
    state = pickle.loads(pickle.dumps(half.state)) if how == "pickled state" else half.state
    given = {"checkpoint": path} if how == "file" else {"resume": state}
    whole = lt.solve(problem(), SOLVER, iterations=100, seed=3)
    before = path.read_bytes()
    with pytest.raises(lt.CheckpointMismatchError, match=f"{what} differ") as told:
        lt.solve(problem(**CHANGES[what]), SOLVER, iterations=100, seed=3, **given)
    others = set(CHANGES) - {what}
    assert not any(other in str(told.value) for other in others)
    assert path.read_bytes() == before
    same = lt.solve(problem(), SOLVER, iterations=100, seed=3, **given)
    assert same.w.tobytes() == whole.w.tobytes()
    assert ("went on from iteration 50 of run.ltc" in same.notes) == (how == "file")


def test_other_solvers_starts_versions_and_fewer_iterations_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.ltc"
    lt.solve(problem(), SOLVER, iterations=50, checkpoint=path)
    with pytest.raises(lt.CheckpointMismatchError, match=r"run\.ltc: .*the solver was"):
        lt.solve(problem(), lt.LightTouch(1.0, 0.02, 4), iterations=100, checkpoint=path)
    with pytest.raises(lt.CheckpointMismatchError, match="the start differs"):
        lt.solve(problem(), SOLVER, iterations=100, checkpoint=path, start=np.ones(6))
    with pytest.raises(lt.CheckpointMismatchError, match="50 iterations"):
        lt.solve(problem(), SOLVER, iterations=20, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint and resume"):
        state = lt.solve(problem(), SOLVER, iterations=5).state
        lt.solve(problem(), SOLVER, iterations=50, resume=state, checkpoint=path)
    monkeypatch.setattr("lighttouch.checkpoints.own_version", lambda: "9.9")
    with pytest.raises(lt.CheckpointMismatchError, match=r"the version of lighttouch was .*9\.9"):
        lt.solve(problem(), SOLVER, iterations=100, checkpoint=path)


def test_a_damaged_file_is_refused_and_a_resealed_one_too(tmp_path):
    path = tmp_path / "run.ltc"
    lt.solve(problem(), SOLVER, iterations=50, checkpoint=path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for trial in range(300):
        changed = bytearray(content)
        place = int(rng.integers(len(content)))
        changed[place] ^= 1 << int(rng.integers(8))
        if trial % 3 == 0:
            changed = changed[: int(rng.integers(len(content)))]
        if trial % 2:
            changed = changed[:-32] + hashlib.sha256(changed[:-32]).digest()
        if bytes(changed) == content:
            continue
        path.write_bytes(changed)
        with pytest.raises((lt.ModelFileError, lt.CheckpointMismatchError), match=r"run\.ltc"):
            lt.solve(problem(), SOLVER, iterations=100, checkpoint=path)


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    with pytest.raises(lt.ModelFileError, match="there is no folder"):
        lt.solve(problem(), SOLVER, checkpoint=tmp_path / "none" / "run.ltc")
    with pytest.raises(lt.ModelFileError, match="is a folder"):
        lt.solve(problem(), SOLVER, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint_every must be"):
        lt.solve(problem(), SOLVER, checkpoint=tmp_path / "run.ltc", checkpoint_every=-1.0)
    with pytest.raises(ValueError, match="checkpoint must be a path"):
        lt.solve(problem(), SOLVER, checkpoint=5)


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(tmp_path, monkeypatch):
    path = tmp_path / "run.ltc"
    lt.solve(problem(), SOLVER, iterations=50, checkpoint=path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lighttouch.files._flush", full)
    with pytest.warns(RuntimeWarning, match=r"run\.ltc cannot be written: No space left"):
        result = lt.solve(problem(), SOLVER, iterations=100, checkpoint=path)
    assert result.iterations == 100 and path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["run.ltc"]


def test_an_interrupted_run_leaves_its_checkpoint(tmp_path):
    path, whole = tmp_path / "run.ltc", lt.solve(problem(), SOLVER, iterations=5000)

    def press(progress):
        if progress.iteration == 1024:
            signal.raise_signal(signal.SIGINT)

    part = lt.solve(problem(), SOLVER, iterations=5000, checkpoint=path, callback=press)
    assert part.status is lt.Status.INTERRUPTED and part.iterations < 5000
    rest = lt.solve(problem(), SOLVER, iterations=5000, checkpoint=path)
    assert rest.w.tobytes() == whole.w.tobytes()
    assert np.array_equal(rest.history.objective, whole.history.objective)


def test_fingerprints_see_every_part_and_only_the_content():
    X = np.arange(6.0).reshape(2, 3)
    base = {"a": X, "b": [1, 2.0, "x", None]}
    same = {"a": np.asfortranarray(X), "b": [1, 2.0, "x", None]}
    assert fingerprint(base) == fingerprint(same)
    others = [
        {"a": X.astype(np.float32), "b": base["b"]},
        {"a": X.T, "b": base["b"]},
        {"a": X, "b": [1, 2, "x", None]},
        {"a": X, "b": [1, 2.0, "y", None]},
        {"c": X, "b": base["b"]},
    ]
    scale = 3.0
    functions = [lambda w: 2.0 * w, lambda w: 3.0 * w, lambda w: scale * w]
    prints = [fingerprint(each) for each in [base, *others, *functions]]
    assert len(set(prints)) == len(prints)


SCRIPT = """
import sys, numpy as np, lighttouch as lt
sys.path.insert(0, {tests!r})
from unit.test_checkpoint_files import problem, SOLVER
result = lt.solve(problem(), SOLVER, iterations=400_000, checkpoint=sys.argv[1],
                  checkpoint_every=0.02)
print(result.w.tobytes().hex())
"""


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    """kill -9 a few times at random moments, then to the end."""
    tests = os.path.dirname(os.path.dirname(__file__))
    script, path = tmp_path / "run.py", tmp_path / "run.ltc"
    script.write_text(SCRIPT.format(tests=tests))
    whole = lt.solve(problem(), SOLVER, iterations=400_000)
    rng, kills = np.random.default_rng(0), 0
    while True:
        run = subprocess.Popen(
            [sys.executable, script, path], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        )
        if kills < 3:
            while not path.exists() and run.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.2))
            run.kill()
            kills += 1
        output, _ = run.communicate()
        if run.returncode == 0:
            break
        assert run.returncode == -signal.SIGKILL  # any other end would come again and again
    assert output.strip() == whole.w.tobytes().hex()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run.ltc", "run.py"]


def ended(program: str, number: int, wait_for: str = "begun") -> tuple[int, str, float]:
    """Exit code, output and delay of a program that gets a signal once it says so."""
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    while wait_for not in run.stdout.readline():
        assert run.poll() is None
    time.sleep(0.2)
    run.send_signal(number)
    began = time.perf_counter()
    output, _ = run.communicate(timeout=60)
    return run.returncode, output, time.perf_counter() - began


PROGRAM = """
    import numpy as np, lighttouch as lt, signal, sys
    X = np.random.default_rng(0).normal(size=(300, 4))
    P = lt.Problem(lt.EmpiricalRisk(X, X @ np.arange(4.0)), lt.ordering(4))
    lt.solve(P, lt.FullTouch(1.0, 0.01), iterations=10)
    print("begun", flush=True)
"""


def test_sigterm_ends_a_loop_of_solves_after_a_result():
    loop = (
        PROGRAM
        + """
    while True:
        print(lt.solve(P, lt.FullTouch(1.0, 0.001), iterations=10**12).status.name, flush=True)
    """
    )
    code, output, _ = ended(loop, signal.SIGTERM)
    assert output.split() == ["INTERRUPTED"] and code == 143


def test_sigterm_is_what_a_program_with_one_solve_ends_with():
    single = (
        PROGRAM
        + """
    print(lt.solve(P, lt.FullTouch(1.0, 0.001), iterations=10**12).status.name)
    print("done")
    """
    )
    code, output, _ = ended(single, signal.SIGTERM)
    assert output.split() == ["INTERRUPTED", "done"] and code == -signal.SIGTERM


def test_a_handler_of_the_program_gets_sigterm():
    handled = (
        PROGRAM
        + """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mine"))
    lt.solve(P, lt.FullTouch(1.0, 0.001), iterations=10**12)
    """
    )
    code, _, _ = ended(handled, signal.SIGTERM)
    assert code == 1


def test_a_signal_while_the_answer_is_projected_keeps_the_result(monkeypatch):
    monkeypatch.setattr(signals, "WORTH_WAITING", 0.0)  # what is compiled then is waited for
    sent = []

    def value(j, w):
        if not sent and any(f.f_code.co_name == "best_projection" for f in frames()):
            sent.append(1)
            signal.raise_signal(signal.SIGINT)
        return float(w[0] - 0.2)

    def frames():
        frame = sys._getframe(1)
        while frame is not None:
            yield frame
            frame = frame.f_back

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rule = lt.ConvexConstraints(3, 1, value, lambda j, w: np.array([1.0, 0.0, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lt.solve(
            lt.Problem(lt.EmpiricalRisk(X, X @ [1.0, 2.0, -1.0]), rule),
            lt.FullTouch(1.0, 0.01),
            iterations=50,
        )
    assert sent and result.violation <= 1e-8
