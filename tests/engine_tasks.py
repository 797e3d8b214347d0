"""Tasks and shards for the tests of engines: other processes import them from here."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lighttouch as lt
from lighttouch.engines.sharing import LIMITS

FEW_DEATHS = replace(LIMITS, deaths=2)
TRUTH = np.array([1.0, 3.0, 2.0, 5.0, 4.0])


def entry(numbers: np.ndarray, k: int, pause: float) -> float:
    time.sleep(pause)
    return float(numbers[k])


def fails_at_three(k: int) -> int:
    if k == 3:
        raise KeyError("three")
    return k


class UnpicklableError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


def fails_strangely(k: int) -> int:
    raise UnpicklableError("gone", "far")


def dies(k: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return k


def dies_once(mark: str, k: int) -> int:
    if k == 2 and not Path(mark).exists():
        Path(mark).touch()
        dies(k)
    return k


def examples(seed: int, count: int, loss: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, TRUTH.size))
    y = X @ TRUTH + rng.normal(size=count)
    return X, np.sign(y) if loss in ("hinge", "logistic") else y


def shard(seed: int, count: int, loss: str, **options: Any) -> lt.EmpiricalRisk:
    """With 0 examples it raises what EmpiricalRisk raises."""
    return lt.EmpiricalRisk(*examples(seed, count, loss), loss, **options)


def weighted_shard(seed: int, count: int, loss: str) -> lt.EmpiricalRisk:
    weights = np.arange(1.0, count + 1.0)
    return shard(seed, count, loss, l2=0.1, l1=0.01, sample_weight=weights)


def nothing() -> None:
    return None


def unreadable(path: str) -> lt.EmpiricalRisk:
    raise FileNotFoundError(f"No such file: {path}")


def readable_later(path: str) -> lt.EmpiricalRisk:
    if not Path(path).exists():
        Path(path).touch()
        raise OSError("the disk is busy")
    return shard(0, 20, "squared")


def slow_shard(seed: int, count: int, loss: str, seconds: float) -> lt.EmpiricalRisk:
    time.sleep(seconds)
    return shard(seed, count, loss, l2=0.1)


def lattice_shard(seed: int, count: int) -> lt.EmpiricalRisk:
    """Hinge losses on a lattice of 4,096 parameters: too many for quadratic models."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, 12))
    y = np.where(x.sum(axis=1) + rng.normal(size=count) > 6.0, 1.0, -1.0)
    return lt.EmpiricalRisk(lt.Lattice([2] * 12).features(x), y, "hinge")
