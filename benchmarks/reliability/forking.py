"""Programs that begin at once: a process that has imported lighttouch and compiled what they need
forks itself for each of them. Each is a process of its own that begins, gets signals and ends as
any Python program does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
STREAMS = "stdout", "stderr"  # files in a program's folder
PAUSE = 0.02  # seconds between two looks at a program
TICKS = os.sysconf("SC_CLK_TCK")


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(HERE / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path} | more


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit code (minus the signal that ended it), seconds of processor time
    in all, and what it said.
    """

    code: int
    seconds: float
    output: str
    errors: str


class Program:
    """A running program; `began` is when it was started."""

    def __init__(self, server: Server, pid: int, folder: Path) -> None:
        self.pid, self.began = pid, time.perf_counter()
        self._server, self._folder = server, folder

    def said(self, word: str, timeout: float) -> bool:
        """Wait until its output holds a word."""
        until = time.perf_counter() + timeout
        while time.perf_counter() < until and not self.has_ended:
            if word in (self._folder / "stdout").read_text():
                return True
            time.sleep(PAUSE)
        return False

    @property
    def seconds(self) -> float:
        """Of processor time, so far (Linux)."""
        fields = self._fields()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def has_ended(self) -> bool:
        return self._fields()[0] == "Z"

    def _fields(self) -> list[str]:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float) -> Ended | None:
        """How it ended; None where it had to be killed."""
        until = time.perf_counter() + timeout
        while not self.has_ended and time.perf_counter() < until:
            time.sleep(PAUSE)
        in_time = self.has_ended
        if not in_time:
            self.signal(signal.SIGKILL)
        code, seconds = self._server.reaped(self.pid)
        parts = [(self._folder / name).read_text() for name in STREAMS]
        return Ended(code, seconds, *parts) if in_time else None


class Server:
    """The process that forks: `with Server(warm_up) as server: server.start(program, folder)`."""

    def __init__(self, warm_up: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from benchmarks.reliability.forking import serve; serve()"],
            cwd=HERE,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ask(program=warm_up)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def start(self, program: str, folder: str) -> Program:
        for name in STREAMS:
            (Path(folder) / name).touch()
        return Program(self, self._ask(program=program, folder=folder), Path(folder))

    def reaped(self, pid: int) -> tuple[int, float]:
        code, seconds = self._ask(reap=pid)
        return int(code), float(seconds)

    def _ask(self, **what: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def serve() -> None:
    """The loop of the forking process; in a child it returns, when the child's program has ended.

    A child ends as the interpreter does, with everything that is registered for that.
    """
    for line in sys.stdin:
        asked = json.loads(line)
        if "reap" in asked:
            _, status, used = os.wait4(asked["reap"], 0)
            answer: Any = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        elif "folder" not in asked:
            exec(asked["program"], {})
            gc.freeze()  # a child that looked through what it shares would copy all of it
            answer = None
        else:
            answer = os.fork()
            if answer == 0:
                _become(asked["folder"])
                exec(asked["program"], {"__name__": "__main__"})
                return
        print(json.dumps(answer), flush=True)


def _become(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    os.chdir(folder)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, name in enumerate(STREAMS, start=1):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), number)
