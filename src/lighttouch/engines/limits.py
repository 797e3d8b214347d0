"""Every number that decides in the engines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """When an engine gives up, and how it hands out work."""

    task_seconds: float = 3600.0
    """Seconds that one task may take by default: a shard that is read from a slow disk and solved
    takes minutes; a task without end must not hold a run for ever."""

    deaths: int = 5
    """Workers that one task may lose before it is the task's fault: a worker is killed by chance
    once or twice, one that runs out of memory is killed every time."""

    queue: int = 2
    """Tasks per worker: one that runs and one that waits there, so that no worker waits for us."""

    inline_bytes: int = 1 << 18
    """A value up to this size travels with every task: a file or an object of its own costs as
    much as 256 kB through a pipe, about 0.2 ms."""

    start_seconds: float = 120.0
    """Seconds for a worker to start, or for a cluster to answer: importing takes 2 s, on a machine
    with ten times as many processes as cores 20 s."""

    connections: int = 3
    """Attempts to start a Ray of this machine, or to reach a cluster."""

    stop_seconds: float = 5.0
    """Seconds for a worker to end by itself before it is killed."""

    look_seconds: float = 0.5
    """Seconds between two looks at deadlines and lost workers while waiting."""


LIMITS = Limits()
