"""What every peer's program shares: the problem it reads, the clock, and the answer it writes.
NumPy only: lighttouch is not there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LATER = 1.3  # each answer is kept this many times later than the one before


class Run:
    """One training run under a time limit. Keeping an answer stops the clock."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("problem", help="arrays of the problem (.npz)")
        parser.add_argument("answer", help="where the parameters kept on the way go (.npz)")
        parser.add_argument("--seconds", type=float, required=True)
        parser.add_argument("--settings", type=json.loads, default={})
        given = parser.parse_args()
        self.problem: Any = np.load(given.problem)
        self.settings: dict[str, Any] = given.settings
        self.limit, self.path = given.seconds, given.answer
        self.kept: list[tuple[float, int, np.ndarray]] = []
        self.began, self.iterations, self.due, self.share = 0.0, 0, 0.05, 0.0

    def start(self) -> None:
        self.began = time.perf_counter()

    def goes_on(self, parameters: Callable[[], np.ndarray]) -> bool:
        """To be asked after every step."""
        self.iterations += 1
        seconds = time.perf_counter() - self.began
        self.share = seconds / self.limit
        if seconds >= self.due or seconds >= self.limit:
            stopped = time.perf_counter()
            self.keep(seconds, parameters())
            self.due = LATER * seconds
            self.began += time.perf_counter() - stopped
        return seconds < self.limit

    def step(self) -> float:
        """The step size now: constant, or falling to 0 at the time limit where the settings say
        so.
        """
        return self.settings["step"] * (
            1.0 - min(self.share, 1.0) if self.settings.get("falling") else 1.0
        )

    def keep(self, seconds: float, parameters: np.ndarray) -> None:
        self.kept.append(
            (seconds, self.iterations, np.asarray(parameters, dtype=np.float64).ravel())
        )

    def finish(self, **told: Any) -> None:
        seconds, iterations, parameters = zip(*self.kept, strict=True)
        np.savez(self.path, seconds=seconds, iterations=iterations, parameters=np.array(parameters))
        print(json.dumps({"seconds": seconds[-1], "iterations": iterations[-1], **told}))


def vertices(features: int) -> np.ndarray:
    """The corners of the unit cube in C order: a lattice's values there are its parameters."""
    return np.ascontiguousarray(
        np.array(np.unravel_index(np.arange(2**features), [2] * features), dtype=np.float64).T
    )
