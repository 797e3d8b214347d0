"""The loops are compiled without reference counts: what runs inside them may not leak, and users'
functions may still allocate.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import lighttouch as lt


class Centers(NamedTuple):
    centers: np.ndarray


def value(record, j, w):
    return np.abs(w - record.centers[j]).max() - 1.0


def subgradient(record, j, w, out):
    away = w - record.centers[j]
    widest = np.argmax(np.abs(away))
    out[widest] = 1.0 if away[widest] > 0 else -1.0


def distance(record, i, w):
    return 0.5 * ((w - record.centers[i]) ** 2).sum()


def direction(record, i, w, out):
    out[:] = w - record.centers[i]


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_users_functions_may_allocate():
    centers = np.random.default_rng(0).normal(size=(40, 6))
    objective = lt.CustomObjective(6, distance, direction, examples=40, record=Centers(centers))
    constraints = lt.ConvexConstraints(
        6, 40, numba.njit(value), subgradient, record=Centers(0.1 * centers)
    )
    result = lt.solve(
        lt.Problem(objective, constraints),
        lt.FullTouch(1.5, lt.InverseSqrt(0.05)),
        iterations=2000,
        project=False,
    )
    assert result.objective < objective.value(np.zeros(6))
    assert result.violation < 0.1


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="needs Linux to read the memory in use"
)
@pytest.mark.parametrize(
    "solver", [lt.FullTouch(1.5, 0.01), lt.LightTouch(1.5, 0.01, 50)], ids=["full", "light"]
)
def test_norm_constraints_do_not_leak(solver):
    rng = np.random.default_rng(1)
    centers = 0.1 * rng.normal(size=(100, 200))
    problem = lt.Problem(
        lt.Quadratic(np.eye(200), rng.normal(size=200)),
        lt.NormConstraints(None, centers, None, np.ones(100)),
    )
    lt.solve(problem, solver, iterations=10, project=False)
    before = memory()
    result = lt.solve(problem, solver, iterations=2000, project=False)
    assert result.constraint_checks >= 100_000
    assert memory() - before < 0.2 * 1600 * result.constraint_checks
