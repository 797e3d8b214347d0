"""Engines: order, messages, lost workers, deadlines, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import engine_tasks as tasks
import lighttouch as lt
from lighttouch.engines.sharing import LIMITS
from lighttouch.running import HERE, Engine, OutOfTimeError, current_engine, within, working_with


@pytest.fixture(scope="module")
def two():
    with lt.Processes(2) as engine:
        yield engine


def test_they_satisfy_the_protocol():
    for engine in (HERE, lt.Processes(2), lt.Ray()):
        assert isinstance(engine, Engine)


def test_results_come_in_order_and_arrays_are_shared(two):
    numbers = np.arange(200_000.0)  # above LIMITS.inline_bytes
    assert numbers.nbytes > LIMITS.inline_bytes
    for engine in (HERE, two):
        shared = engine.share(numbers)
        items = [(shared, k, 0.02 * (k == 0)) for k in range(9)]
        assert list(engine.map(tasks.entry, items)) == [float(k) for k in range(9)]
        shared.release()


def test_a_task_raises_with_its_own_message(two):
    for engine in (HERE, two):
        with pytest.raises(KeyError, match="three"):
            list(engine.map(tasks.fails_at_three, [(k,) for k in range(6)]))
    assert list(two.map(tasks.fails_at_three, [(1,), (2,)])) == [1, 2]  # and it goes on


def test_an_exception_that_cannot_travel_is_told(two):
    with pytest.raises(lt.EngineError, match="UnpicklableError: gone"):
        list(two.map(tasks.fails_strangely, [(1,)]))


def test_what_cannot_be_pickled_is_said(two):
    with pytest.raises(ValueError, match=r"must be picklable.*functools\.partial"):
        list(two.map(lambda k: k, [(1,)]))


def test_a_killed_worker_is_replaced_and_its_task_computed_again(two, tmp_path):
    before = {worker.process.pid for worker in two._pool}
    mark = str(tmp_path / "died")
    assert list(two.map(tasks.dies_once, [(mark, k) for k in range(6)])) == list(range(6))
    assert {worker.process.pid for worker in two._pool} != before


def test_a_task_that_outlives_its_deadline_is_named(two):
    two.timeout = 0.5
    try:
        with pytest.raises(lt.EngineError, match=r"shard 1 was not done within 0\.5 s by process"):
            list(two.map(time.sleep, [(0.0,), (20.0,)], ["shard 0", "shard 1"]))
    finally:
        two.timeout = LIMITS.task_seconds
        for worker in two._pool:
            worker.process.kill()
    assert list(two.map(abs, [(-1,)])) == [1]


def test_the_deadline_of_a_run_ends_the_wait(two):
    with within(0.3), pytest.raises(OutOfTimeError):
        list(two.map(time.sleep, [(3.0,), (3.0,)]))


def test_a_task_that_kills_every_worker_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("lighttouch.engines.processes.LIMITS", tasks.FEW_DEATHS)
    with lt.Processes(1) as one, pytest.raises(lt.EngineError, match="shard 0 ended 2 processes"):
        list(one.map(tasks.dies, [(1,)], ["shard 0"]))


def test_nothing_is_left_behind(tmp_path):
    with lt.Processes(1) as one:
        shared = one.share(np.zeros(100_000))
        folder, pid = one._folder, one._pool[0].process.pid
        assert list(one.map(len, [(shared,)])) == [100_000]
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_workers_end_with_a_killed_driver(tmp_path):
    program = tmp_path / "driver.py"
    program.write_text(
        "import os, signal, lighttouch as lt\n"
        "if __name__ == '__main__':\n"
        "    with lt.Processes(1) as engine:\n"
        "        list(engine.map(abs, [(-1,)]))\n"
        "        print(engine._pool[0].process.pid, engine._folder, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert found.returncode == -9, found.stderr
    pid, folder = int(found.stdout.split()[0]), Path(found.stdout.split()[1])
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "Z (zombie)" in Path(
            f"/proc/{pid}/status"
        ).read_text(encoding="utf-8"):
            assert not folder.exists()
            return
        time.sleep(0.1)
    pytest.fail(f"worker {pid} outlived its driver")


def test_the_engine_of_a_run_is_ambient(two):
    assert current_engine() is HERE
    with working_with(two):
        assert current_engine() is two
        with working_with(None):
            assert current_engine() is two
    assert current_engine() is HERE


@pytest.mark.parametrize("engine", ["ray", lt.Processes, 3])
def test_what_is_no_engine_is_refused(engine):
    problem = lt.Problem(lt.EmpiricalRisk(np.eye(2), [1.0, 2.0]))
    with pytest.raises(ValueError, match="engine must be None for this process, Processes"):
        lt.solve(problem, engine=engine)


def test_ray_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="pip install ray"), lt.Ray():
        pass
