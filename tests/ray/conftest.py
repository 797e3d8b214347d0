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

    @property
    def session(self) -> str:
        return str(self.cluster.head_node.get_session_dir_path())


def processes_of(session: str) -> dict[int, str]:
    """Every process whose command line or environment speaks of the session, by its id."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            belongs = session in command or session.encode() in (folder / "environ").read_bytes()
            dead = ") Z " in (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        if (belongs or command.startswith("ray::")) and not dead:
            found[int(folder.name)] = command
    return found


def workers() -> list[int]:
    """The processes that compute tasks, or wait for one."""
    return [
        pid
        for pid, command in processes_of("no such session").items()
        if command.startswith("ray::") and "RuntimeEnv" not in command and "Agent" not in command
    ]


@pytest.fixture(scope="session")
def nodes():
    made = Nodes()
    yield made
    session = made.session
    made.cluster.shutdown()
    for _ in range(100):
        if not processes_of(session):
            return
        time.sleep(0.1)
    raise AssertionError(f"left running: {processes_of(session)}")
