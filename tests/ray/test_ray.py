"""Real Ray clusters of one, two and four nodes; killed workers, nodes and drivers: the same bits.

The tests run in their order, on one cluster that grows: starting a node takes seconds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from problems import SOLVER, TOUCH, digest, in_ranges, problem

import engine_tasks as tasks
import lighttouch as lt
from conftest import Nodes, assert_all_end, offspring

ray = pytest.importorskip("ray", reason="make test-ray installs it")

# And two nodes: twenty in all. CI kills fewer workers: each is waited for.
WORKER_KILLS, DRIVER_KILLS = int(os.environ.get("LIGHTTOUCH_KILLS", "16")), 2
PATIENCE = 400.0  # seconds for a driver to begin; a busy machine takes long to import Ray


@pytest.fixture(scope="module")
def known() -> str:
    """What one process finds, without a cluster."""
    return digest(lt.solve(problem(), SOLVER))


def test_one_node(nodes: Nodes, known: str):
    with lt.Ray(nodes.address) as engine:
        assert engine.workers == 1
        assert digest(lt.solve(problem(), SOLVER, engine=engine)) == known
        shared = engine.share(np.arange(100_000.0))
        assert list(engine.map(tasks.entry, [(shared, k, 0.0) for k in range(5)])) == [
            0,
            1,
            2,
            3,
            4,
        ]
        with pytest.raises(KeyError, match="three"):
            list(engine.map(tasks.fails_at_three, [(k,) for k in range(6)]))
        engine.timeout = 1.0
        with pytest.raises(lt.EngineError, match=r"shard [01] was not done within 1 s by 1 work"):
            list(engine.map(time.sleep, [(0.0,), (60.0,)], ["shard 0", "shard 1"]))


def test_constraints_in_ranges(nodes: Nodes):
    known = lt.solve(in_ranges(), TOUCH, iterations=3, seed=0)
    with lt.Ray(nodes.address) as engine:
        same = lt.solve(in_ranges(), TOUCH, iterations=3, seed=0, engine=engine)
    assert digest(same) == digest(known)
    assert (same.constraint_probabilities == known.constraint_probabilities).all()


def test_projections_by_blocks(nodes: Nodes):
    rules, v = lt.lattice.increasing([2] * 8), np.random.default_rng(0).normal(size=256)
    known = lt.project(v, rules, blocks=4)
    with lt.Ray(nodes.address) as engine:
        same = lt.project(v, rules, blocks=4, engine=engine)
    assert same.w.tobytes() == known.w.tobytes() and same.gap == known.gap


def test_everything_listens_on_this_machine_only(nodes: Nodes):
    """Of every process of the cluster: the sockets that wait for connections."""
    inodes = {link for pid in offspring(os.getpid()) for link in _open_files(pid)}
    outside = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="utf-8").splitlines()[1:]:
            parts = line.split()
            address, state, inode = parts[1].split(":")[0], parts[3], parts[9]
            if state == "0A" and f"socket:[{inode}]" in inodes and not address.endswith("0100007F"):
                outside.append(parts[1])
    assert not outside


def _open_files(pid: int) -> Iterator[str]:
    """What its descriptors lead to; some are closed while we look."""
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(link.readlink())


def test_two_nodes_and_a_driver_that_is_killed(nodes: Nodes, known: str, tmp_path: Path):
    """kill -9 at random moments after its checkpoint has grown; the last start finishes."""
    nodes.grow_to(2)
    draw = random.Random(0)
    checkpoint, result = tmp_path / "run.ltc", tmp_path / "result"
    program = [sys.executable, Path(__file__).with_name("driver.py"), nodes.address]
    killed = 0
    while not result.exists():
        driver = subprocess.Popen([*map(str, program), str(checkpoint), str(result)])
        try:
            killed += _killed_after_a_checkpoint(driver, checkpoint, draw, killed < DRIVER_KILLS)
            assert driver.wait(PATIENCE) in (0, -signal.SIGKILL)
        finally:
            driver.kill()
    assert result.read_text(encoding="utf-8") == known
    assert killed == DRIVER_KILLS


def _killed_after_a_checkpoint(
    driver: subprocess.Popen[bytes], checkpoint: Path, draw: random.Random, kill: bool
) -> bool:
    """Whether the driver was killed, at a random moment after it wrote its file anew."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    until = time.monotonic() + PATIENCE
    while kill and driver.poll() is None:
        assert time.monotonic() < until, "the driver does not write its checkpoint"
        if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
            time.sleep(draw.uniform(0.0, 0.1))
            driver.kill()
            return True
        time.sleep(0.005)
    return False


def test_four_nodes_with_workers_and_nodes_killed(nodes: Nodes, known: str):
    nodes.grow_to(4)
    draw, killed, done = random.Random(1), [], threading.Event()
    nodes_at = [WORKER_KILLS // 4, WORKER_KILLS // 2]  # after so many workers a node is killed

    def kill() -> None:
        while len(killed) < WORKER_KILLS and not done.is_set():
            time.sleep(draw.uniform(0.0, 0.3))
            if nodes_at and len(killed) >= nodes_at[0]:
                del nodes_at[0]
                nodes.kill_a_node()
            if found := nodes.workers():
                try:
                    os.kill(draw.choice(found), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(time.monotonic())

    with lt.Ray(nodes.address) as engine:
        killer = threading.Thread(target=kill)
        killer.start()
        runs = 0
        try:
            while len(killed) < WORKER_KILLS and runs < 20:
                assert digest(lt.solve(problem(0.02), SOLVER, engine=engine)) == known
                runs += 1
        finally:
            done.set()
            killer.join()
    assert len(killed) == WORKER_KILLS and len(nodes.cluster.list_all_nodes()) == 2


def test_a_ray_of_this_machine_ends_with_the_run(known: str):
    before, during = offspring(os.getpid()), set()

    def look(progress: lt.Progress) -> None:
        during.update(offspring(os.getpid()) - before)

    found = lt.solve(problem(), SOLVER, engine=lt.Ray(workers=1), callback=look)
    assert digest(found) == known
    assert during and not ray.is_initialized()
    assert_all_end(during)
