"""One job of the comparison, in whichever process does it: a model on a split of a table."""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import lighttouch as lt
from benchmarks.models.ranking import run_ranking
from benchmarks.models.rivals import MODELS
from benchmarks.models.tables import TABLES, Split

Job = tuple[str, int, str, bool]  # table, split, model, whether with rules


def do(job: Job) -> list[dict[str, Any]]:
    name, seed, model, rules = job
    warnings.filterwarnings("ignore")
    compile_off_the_clock()
    with threadpool_limits(1):
        return [run_one(name, seed, model, rules)] if model else run_ranking(name, seed)


def error(split: Split, predicted: np.ndarray) -> dict[str, Any]:
    if split.classify:
        surprise = float(log_loss(split.y_test, np.clip(predicted, 1e-9, 1 - 1e-9)))
        return {"measure": "log loss", "score": surprise}
    return {
        "measure": "RMSE",
        "score": float(np.sqrt(np.mean((predicted - split.y_test) ** 2))),
    }


def run_one(name: str, seed: int, model: str, rules: bool) -> dict[str, Any]:
    split = TABLES[name](seed)
    began = time.process_time()
    predicted = MODELS[model](split, rules, seed)
    seconds = time.process_time() - began
    about = {"set": name, "model": model, "rules": rules, "seed": seed, "seconds": seconds}
    return about | {"rows": len(split.train)} | error(split, predicted)


@cache
def compile_off_the_clock() -> None:
    """Once in every process."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    y += X[:, 0] * X[:, 1] * X[:, 2]
    lt.LatticeRegressor(monotonic_cst={3: 1}, trees=1).fit(X, y).predict(X)
    lt.LatticeClassifier(monotonic_cst={3: 1}, trees=1).fit(X, y > 0.0).predict(X)
