"""Several processes of this machine, started afresh (spawn), with arrays in shared memory.

A worker that dies is noticed by the end of its pipe; another one takes its place, and what it had
been given is computed again. Workers end when the process that started them is gone.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from lighttouch.engines.sharing import LIMITS, Failure, failure_of, mapped, packed, pickled
from lighttouch.errors import EngineError
from lighttouch.running import Inline, Shared, check_deadline, named, run_task
from lighttouch.validation import positive, positive_int

NUMBER = 8  # bytes in front of a message: which task it is
READY = b""  # what a worker says first


def work(connection: Connection, folder: Path) -> None:
    """The life of a worker: task after task, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that waits for us
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, messages, folder), daemon=True).start()
    connection.send_bytes(READY)
    while True:
        connection.send_bytes(_answer(messages.get()))


def _receive(connection: Connection, messages: SimpleQueue[bytes], folder: Path) -> None:
    """Always ready to take what comes: two that both only send would wait for each other. The pipe
    ends when it is closed on the other side, or when that process is gone, however it went; what it
    shared goes with it.
    """
    while True:
        try:
            messages.put(connection.recv_bytes())
        except (EOFError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)


def _answer(message: bytes) -> bytes:
    number = int.from_bytes(message[:NUMBER], "little")
    try:
        task, arguments = pickle.loads(memoryview(message)[NUMBER:])
        return pickle.dumps((number, run_task(task, arguments)), protocol=5)
    except Exception as error:
        return pickle.dumps((number, failure_of(error)), protocol=5)


class _Worker:
    """One process, the pipe to it, and the numbers of the tasks that it has been given."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(
            target=work, args=(other, folder), daemon=True, name="lighttouch worker"
        )
        self.process.start()
        other.close()
        self.ready = False  # whether it has started
        self.given: deque[int] = deque()
        self.since = time.perf_counter()  # when it, or the first of its tasks, began

    def give(self, number: int, message: bytes) -> None:
        if not self.given and self.ready:
            self.since = time.perf_counter()
        self.given.append(number)
        with suppress(OSError):  # it has died: `take` will see
            self.connection.send_bytes(message)

    def take(self) -> tuple[int, Any] | None:
        """The next answer; None where it is only ready, EOFError where it has died."""
        try:
            message = self.connection.recv_bytes()
        except OSError as error:
            raise EOFError from error
        self.since = time.perf_counter()
        if message == READY:
            self.ready = True
            return None
        self.given.popleft()
        return pickle.loads(message)  # type: ignore[no-any-return]

    def overdue(self, task_seconds: float) -> bool:
        """Whether it takes too long, for its task or to start."""
        allowed = task_seconds if self.ready else LIMITS.start_seconds
        return bool(self.given) and time.perf_counter() - self.since > allowed

    def stop(self, patience: float) -> None:
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class Processes:
    """Several processes of this machine.

    The program that uses them must be guarded, as with everything that starts Python processes:
    what it does belongs under `if __name__ == "__main__":`.

    Parameters
    ----------
    workers : int, default=None
        How many; None is one for each core that this process may use.
    timeout : float, default=3600.0
        Seconds that one task may take before the run ends with an error that names it.

    Raises
    ------
    ValueError
        If the number of workers is not a positive whole number.
    EngineError
        While working, if workers are lost again and again, or one takes too long.

    Examples
    --------
    >>> lt.Processes(2).describe()
    '2 processes on this machine'
    """

    def __init__(self, workers: int | None = None, timeout: float = LIMITS.task_seconds) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.workers = positive_int(cores or 1 if workers is None else workers, "workers")
        self.timeout = positive(timeout, "timeout")
        self.session = 0
        self._entered = 0
        self._pool: list[_Worker] = []
        self._folder: Path | None = None
        self._numbers = itertools.count()
        self._messages: dict[int, bytes] = {}  # of the tasks that are not done
        self._answers: dict[int, Any] = {}
        self._deaths: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Processes({self.workers})"

    def describe(self) -> str:
        """Where the work is done."""
        plural = "es" if self.workers > 1 else ""
        return f"{self.workers} process{plural} on this machine"

    def __enter__(self) -> Processes:
        """Start the workers; they stay until the end of the outermost block."""
        self._entered += 1
        if self._entered == 1:
            self.session += 1
            memory = Path("/dev/shm")  # a file system in memory, where there is one
            place = memory if os.access(memory, os.W_OK) else None
            self._folder = Path(tempfile.mkdtemp(prefix="lighttouch-", dir=place))
            self._pool = [_Worker(self._folder) for _ in range(self.workers)]
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the workers and remove what was shared."""
        self._entered -= 1
        if self._entered:
            return
        pool, self._pool = self._pool, []
        for worker in pool:
            worker.stop(0.0 if worker.given else LIMITS.stop_seconds)
        self._messages.clear()
        self._answers.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def share(self, value: object, lasting: bool = False) -> Shared:
        """Put a value where every worker can read it without a copy."""
        head, buffers = packed(value)
        size = len(head) + sum(buffer.nbytes for buffer in buffers)
        if size <= LIMITS.inline_bytes or self._folder is None:
            return Inline(value)
        return mapped(head, buffers, self._folder, lasting)

    def map(
        self,
        task: Callable[..., Any],
        items: Sequence[tuple[Any, ...]],
        names: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """`task(*item)` for every item, in order; see `running.Engine`."""
        with self:
            numbers = [next(self._numbers) for _ in items]
            places = {number: place for place, number in enumerate(numbers)}
            begun = 0
            try:
                for place, number in enumerate(numbers):
                    while number not in self._answers:
                        most = min(len(items), place + LIMITS.queue * self.workers)
                        for k in range(begun, most):
                            self._messages[numbers[k]] = numbers[k].to_bytes(
                                NUMBER, "little"
                            ) + pickled((task, items[k]))
                        begun = max(begun, most)
                        self._hand_out()
                        self._wait(lambda k: named(names, places[k]) if k in places else "a task")
                    answer = self._answers.pop(number)
                    if isinstance(answer, Failure):
                        answer.reraise()
                    yield answer
            finally:
                self._forget(numbers)

    def _hand_out(self) -> None:
        """Give waiting tasks, the oldest first, to the workers that have the fewest."""
        given = {number for worker in self._pool for number in worker.given}
        able = [worker for worker in self._pool if worker.ready] or self._pool
        for number in sorted(set(self._messages) - given):
            worker = min(able, key=lambda each: len(each.given))
            if len(worker.given) >= LIMITS.queue:
                return
            worker.give(number, self._messages[number])

    def _wait(self, name: Callable[[int], str]) -> None:
        """Until a worker answers or dies, or it is time to look at the deadlines again."""
        check_deadline()
        ready = wait([worker.connection for worker in self._pool], LIMITS.look_seconds)
        for place, worker in enumerate(self._pool):
            if worker.connection in ready:
                try:
                    answered = worker.take()
                except EOFError:
                    self._replace(place, name)
                    continue
                if answered and self._messages.pop(answered[0], None) is not None:
                    self._answers[answered[0]] = answered[1]
            elif worker.overdue(self.timeout):
                raise EngineError(self._too_long(worker, name(worker.given[0])))

    def _too_long(self, worker: _Worker, task: str) -> str:
        if not worker.ready:
            return (
                f"process {worker.process.pid} did not start within {LIMITS.start_seconds:g} s, "
                f"for {task}; look whether the machine is overloaded, or use fewer workers"
            )
        return (
            f"{task} was not done within {self.timeout:g} s by process {worker.process.pid}; allow "
            "a longer timeout, or make the parts smaller"
        )

    def _replace(self, place: int, name: Callable[[int], str]) -> None:
        """A worker has died: its first task may be to blame, the others were only waiting."""
        worker = self._pool[place]
        worker.process.join()
        code, given, began = worker.process.exitcode, list(worker.given), worker.ready
        worker.stop(0.0)
        assert self._folder is not None
        self._pool[place] = _Worker(self._folder)
        if not given:
            return
        deaths = self._deaths[given[0]] = self._deaths.get(given[0], 0) + 1
        if deaths >= LIMITS.deaths:
            advice = (
                "-9 is usually a lack of memory; make the parts smaller, or use fewer workers"
                if began
                else 'before they began: guard the program by `if __name__ == "__main__":`'
            )
            raise EngineError(
                f"{name(given[0])} ended {deaths} processes, the last with exit code {code}: "
                f"{advice}"
            )

    def _forget(self, numbers: Sequence[int]) -> None:
        """What is still computed of them is dropped when it comes."""
        for number in numbers:
            self._messages.pop(number, None)
            self._answers.pop(number, None)
            self._deaths.pop(number, None)
