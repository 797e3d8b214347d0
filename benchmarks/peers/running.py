"""A peer's run: the problem as plain arrays, its program in its own process, and our judgement of
the parameters it hands back.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import lighttouch as lt
from benchmarks.peers.environments import Unavailable, python_of
from benchmarks.speed.paper_problem import SIZES, projected_objective
from lighttouch.datasets import ranking_pairs

PROGRAMS = Path(__file__).with_name("programs")
GRACE = 300.0  # seconds a program may take beyond its limit: imports, reading, building its model


@dataclass(frozen=True)
class Peer:
    """A library, the packages its environment needs, the program that uses it, and the settings it
    is run with.
    """

    name: str
    folder: str
    requirements: tuple[str, ...]
    program: str
    settings: tuple[Mapping[str, Any], ...] = ({},)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came back: for each moment kept the objective of the projected parameters, and the
    violation before projecting.
    """

    seconds: np.ndarray
    iterations: np.ndarray
    objectives: np.ndarray
    violations: np.ndarray
    told: Mapping[str, Any]
    settings: Mapping[str, Any]

    @property
    def best(self) -> int:
        return int(np.argmin(self.objectives))

    @property
    def microseconds(self) -> float:
        return float(1e6 * self.seconds[-1] / self.iterations[-1])


def save_problem(path: Path, problem: lt.Problem, pairs: int) -> None:
    """Raw features, rows padded to equal width, and the two ends of every constraint."""
    better, worse = ranking_pairs(pairs)
    grid = lt.Lattice(SIZES)
    rows = sp.csr_matrix(grid.features(better) - grid.features(worse))
    indices, values = padded(rows)
    A = problem.constraints.A
    ends = A.indices.reshape(-1, 2)
    first_is_lower = A.data.reshape(-1, 2)[:, 0] > 0
    lower, upper = np.where(first_is_lower, ends.T, ends.T[::-1])
    np.savez(
        path, better=better, worse=worse, indices=indices, values=values, lower=lower, upper=upper,
        dimension=rows.shape[1], bound=float(np.max(problem.domain.upper)),
    )  # fmt: skip


def padded(rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.diff(rows.indptr)
    shape = rows.shape[0], int(lengths.max())
    indices, values = np.zeros(shape, np.int32), np.zeros(shape)
    row = np.repeat(np.arange(shape[0]), lengths)
    column = np.arange(rows.nnz) - rows.indptr[row]
    indices[row, column], values[row, column] = rows.indices, rows.data
    return indices, values


def run_peer(peer: Peer, problem: lt.Problem, data: Path, seconds: float) -> list[Answer]:
    """One answer for each of the peer's settings; raises Unavailable where it cannot run."""
    python = python_of(peer.folder, peer.requirements)
    return [_run(peer, python, problem, data, seconds, settings) for settings in peer.settings]


def _run(
    peer: Peer,
    python: Path,
    problem: lt.Problem,
    data: Path,
    seconds: float,
    settings: Mapping[str, Any],
) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "answer.npz"
        words = [str(python), str(PROGRAMS / peer.program), str(data), str(kept)]
        words += ["--seconds", str(seconds), "--settings", json.dumps(settings)]
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                timeout=seconds + GRACE,
                check=False,
                env={**os.environ, **peer.environment},
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"no answer within {seconds + GRACE:.0f} s") from None
        if done.returncode != 0:
            raise Unavailable(
                f"its program failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            )
        arrays = np.load(kept)
        told = json.loads(done.stdout.splitlines()[-1])
        return judged(
            problem, arrays["seconds"], arrays["iterations"], arrays["parameters"], told, settings
        )


def judged(
    problem: lt.Problem,
    seconds: Any,
    iterations: Any,
    parameters: np.ndarray,
    told: Any,
    settings: Any,
) -> Answer:
    objectives = np.array([projected_objective(problem, w) for w in parameters])
    violations = np.array([problem.violation(w) for w in parameters])
    return Answer(seconds, iterations, objectives, violations, told, settings)
