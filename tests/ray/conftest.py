"""A Ray cluster of this machine, on 127.0.0.1 only, that grows from one node to four."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray stays on 127.0.0.1; read at import
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["PYTHONPATH"] = os.pathsep.join(  # of workers and drivers that are started here
    filter(None, [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH")])
)
sys.path[:0] = [str(TESTS)]

STORE = 80_000_000  # bytes of each node's object store: the least that Ray takes, about
ATTEMPTS = 3  # Ray gives a node half a minute to start, which a busy machine exceeds


class Nodes:
    """Ray's own test cluster, and the processes that belong to it."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster()
        self.add()

    def add(self) -> object:
        for attempt in range(ATTEMPTS):
            try:
                node = self.cluster.add_node(
                    num_cpus=1,
                    node_ip_address="127.0.0.1",
                    include_dashboard=False,
                    object_store_memory=STORE,
                )
            except Exception:
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                self.cluster.wait_for_nodes()
                return node
        raise AssertionError

    def grow_to(self, count: int) -> None:
        while len(self.cluster.list_all_nodes()) < count:
            self.add()

    def kill_a_node(self) -> None:
        """All its processes at once, as a power cut does."""
        node = self.cluster.list_all_nodes()[-1]
        self.cluster.remove_node(node, allow_graceful=False)

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def workers(self) -> list[int]:
        """The processes that compute tasks, or wait for one: children of our own raylets."""
        raylets = {
            each.process.pid
            for node in self.cluster.list_all_nodes()
            for each in node.all_processes["raylet"]
        }
        return [
            pid
            for pid, (parent, command) in processes().items()
            if parent in raylets and command.startswith("ray::") and "Agent" not in command
        ]


def processes() -> dict[int, tuple[int, str]]:
    """Every process that is not dead, by its id: its parent and its command."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            state, parent = (
                (folder / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:2]
            )
        except (OSError, UnicodeDecodeError):
            continue
        if state != "Z":
            found[int(folder.name)] = (int(parent), command)
    return found


def offspring(ancestor: int) -> set[int]:
    """The children of a process, their children, and so on."""
    alive, found, new = processes(), set(), {ancestor}
    while new:
        new = {pid for pid, (parent, _) in alive.items() if parent in new}
        found |= new
    return found


def assert_all_end(pids: set[int]) -> None:
    for _ in range(200):
        left = {pid: command for pid, (_, command) in processes().items() if pid in pids}
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"left running: {left}")


@pytest.fixture(scope="session")
def nodes():
    before = offspring(os.getpid())
    made = Nodes()
    yield made
    begun = offspring(os.getpid()) - before
    made.cluster.shutdown()
    assert_all_end(begun)
