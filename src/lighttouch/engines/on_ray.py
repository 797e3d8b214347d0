"""A Ray cluster, or a Ray of this machine where no address is given.

Tasks are stateless: Ray computes them again where a worker or a whole node was lost. What is shared
is put into its object store once. Ray is imported when the engine is first entered.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lighttouch.engines.sharing import LIMITS, Failure, failure_of, packed
from lighttouch.errors import EngineError
from lighttouch.running import Inline, Shared, check_deadline, named, run_task
from lighttouch.validation import positive, positive_int, told

LOG = logging.getLogger("lighttouch")
LOCAL = {  # a Ray of our own listens on this machine only, and reports to nobody
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ImportError(
            "the engine Ray needs Ray, which is not installed: pip install ray"
        ) from error


class InStore(Shared):
    """A value in Ray's object store; its arrays are read there."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def get(self) -> Any:
        head, buffers = _ray().get(self._reference)
        return pickle.loads(head, buffers=[_writable(buffer) for buffer in buffers])

    def release(self) -> None:
        self._reference = None


def _writable(buffer: Any) -> Any:
    """The same bytes as an ordinary array: kernels are compiled for those, and none writes here."""
    view = (ctypes.c_char * buffer.nbytes).from_address(buffer.ctypes.data)
    view.buffer = buffer  # lives as long as the view
    return np.frombuffer(view, dtype=np.uint8)


def run_remotely(task: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """A task in a worker of Ray: what it raises comes back as a value, without Ray's wrapping."""
    try:
        return run_task(task, arguments)
    except Exception as error:
        return failure_of(error)


class Ray:
    """A Ray cluster.

    Parameters
    ----------
    address : str, default=None
        Of the cluster, such as "10.0.0.1:6379" or "auto"; None is the Ray that this program is
        connected to already, or else one of this machine, which ends with the run.
    workers : int, default=None
        The most tasks at the same time; None is one for each CPU of the cluster.
    timeout : float, default=3600.0
        Seconds that one task may take before the run ends with an error that names it.

    Raises
    ------
    ValueError
        If `address` is not text, or a number is not positive.
    ImportError
        When it is used, if Ray is not installed.
    EngineError
        While working, if workers are lost again and again, or one takes too long.

    Examples
    --------
    >>> lt.Ray("10.0.0.1:6379", workers=8).describe()
    '8 workers of Ray at 10.0.0.1:6379'
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        timeout: float = LIMITS.task_seconds,
    ) -> None:
        if address is not None and not isinstance(address, str):
            raise ValueError(
                f"address must be text such as '10.0.0.1:6379', or None, got {told(address)}"
            )
        self.address = address
        self.most = None if workers is None else positive_int(workers, "workers")
        self.timeout = positive(timeout, "timeout")
        self.session = 0
        self._entered = 0
        self._ours = False  # whether we connected, and so disconnect
        self._remote: Any = None

    def __repr__(self) -> str:
        return f"Ray({self.address!r}, {self.most})"

    @property
    def workers(self) -> int:
        """Tasks at the same time; 1 before a cluster of unknown size was asked."""
        if self.most is not None:
            return self.most
        if not self._entered:
            return 1
        return max(1, int(_ray().cluster_resources().get("CPU", 1)))

    def describe(self) -> str:
        """Where the work is done."""
        many = "all" if self.most is None and not self._entered else str(self.workers)
        where = "on this machine" if self.address is None else f"at {self.address}"
        return f"{many} workers of Ray {where}"

    def __enter__(self) -> Ray:
        """Connect, or start a Ray of this machine."""
        if self._entered == 0:
            self.session += 1
            with _environment(LOCAL if self.address is None else {}):  # read when Ray is imported
                ray = _ray()
                self._ours = not ray.is_initialized()
                if self._ours:
                    self._connect(ray)
            options = {"num_cpus": 1, "max_retries": LIMITS.deaths}
            self._remote = ray.remote(**options)(run_remotely)
        self._entered += 1
        return self

    def _connect(self, ray: Any) -> None:
        """Ray gives its own processes half a minute to start, which a busy machine exceeds."""
        where: dict[str, Any] = {"address": self.address}
        if self.address is None:
            where = {"address": "local", "num_cpus": self.most, "include_dashboard": False}
        for attempt in range(LIMITS.connections):
            try:
                ray.init(log_to_driver=False, logging_level=logging.WARNING, **where)
                return
            except Exception as error:
                ray.shutdown()
                if attempt + 1 == LIMITS.connections:
                    raise EngineError(
                        f"{self.describe()} did not answer in {LIMITS.connections} attempts: "
                        f"{error}; look whether `ray status` does, or use lt.Processes"
                    ) from error

    def __exit__(self, *_: object) -> None:
        """Disconnect; a Ray that was started here ends."""
        self._entered -= 1
        if self._entered == 0:
            self._remote = None
            if self._ours:
                _ray().shutdown()

    def share(self, value: object, lasting: bool = False) -> Shared:
        """Put a value into the object store, once for all workers."""
        head, buffers = packed(value)
        size = len(head) + sum(buffer.nbytes for buffer in buffers)
        if size <= LIMITS.inline_bytes or not self._entered:
            return Inline(value)
        arrays = [np.frombuffer(buffer, dtype=np.uint8) for buffer in buffers]
        return InStore(_ray().put((head, arrays)))

    def map(
        self,
        task: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        names: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """`task(*item)` for every item, in order; see `running.Engine`."""
        with self:
            begun: dict[int, Any] = {}
            most = LIMITS.queue * self.workers
            next_item = 0
            try:
                for place in range(len(items)):
                    while next_item < min(len(items), place + most):
                        begun[next_item] = self._remote.remote(task, items[next_item])
                        next_item += 1
                    answer = self._answer(begun[place], named(names, place))
                    del begun[place]
                    if isinstance(answer, Failure):
                        answer.reraise()
                    yield answer
            finally:
                for reference in begun.values():
                    _ray().cancel(reference, force=True)

    def _answer(self, reference: Any, name: str) -> Any:
        """Wait for one result, looking at the deadlines on the way."""
        ray, since = _ray(), time.perf_counter()
        while not ray.wait([reference], timeout=LIMITS.look_seconds)[0]:
            check_deadline()
            if time.perf_counter() - since > self.timeout:
                raise EngineError(
                    f"{name} was not done within {self.timeout:g} s by {self.describe()}, which "
                    f"has {ray.available_resources().get('CPU', 0):g} CPUs free; allow a longer "
                    "timeout, make the parts smaller, or look whether the cluster has any node"
                )
        try:
            return ray.get(reference)
        except ray.exceptions.RayError as error:
            raise EngineError(
                f"{name} was lost {LIMITS.deaths} times by {self.describe()}: "
                f"{str(error).splitlines()[0]}; a lack of memory is the usual reason: make the "
                "parts smaller"
            ) from error


class _environment:
    """Variables that are set in a block."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in self._values}
        os.environ.update(self._values)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
