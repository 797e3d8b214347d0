"""Processor seconds and memory of fits on generated tables of 12 columns beside LightGBM's.

Every fit runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 12
MODELS = ("lighttouch", "LightGBM")
INCREASING = (0, 1, 2, 4, 5)
TEST_ROWS = 50_000
TEST_SEED = 2  # of the rows that are predicted; no table to train on has it


def table(rows: int, seed: int, classify: bool) -> tuple[np.ndarray, np.ndarray]:
    """Smooth, with a product of three columns; noise of 0.5, or logistic."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, COLUMNS))
    score = (
        3.0 * X[:, 0] * X[:, 1] * X[:, 2]
        + np.sin(4.0 * X[:, 3])
        + X[:, 4] ** 2
        + 2.0 * np.sqrt(X[:, 5] * X[:, 6])
        + np.abs(X[:, 7] - 0.5) * X[:, 8]
        + 0.5 * X[:, 9]
    )
    if classify:
        return X, 2.0 * (score - 3.0) + rng.logistic(size=rows) > 0.0
    return X, score + rng.normal(0.0, 0.5, rows)


def memory_from_here_on() -> float:
    """Megabytes that the process holds now; its peak is counted anew. That of `getrusage` begins
    with the peak of the process that started this one.
    """
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(field: str) -> float:
    """One field of /proc/self/status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1.024e-3 for line in lines if line.startswith(field))


def measure(model: str, rows: int, classify: bool, seed: int) -> dict[str, Any]:
    """One fit, in this process."""
    from sklearn.metrics import log_loss

    if model == "lighttouch":
        import lighttouch as lt

        kind = lt.LatticeClassifier if classify else lt.LatticeRegressor
        make = lambda: kind(monotonic_cst=dict.fromkeys(INCREASING, 1), random_state=0)  # noqa: E731
        make().fit(*table(600, 1, classify))  # compile off the clock
    else:
        import lightgbm

        signs = [int(c in INCREASING) for c in range(COLUMNS)]
        chosen = lightgbm.LGBMClassifier if classify else lightgbm.LGBMRegressor
        make = lambda: chosen(monotone_constraints=signs, n_jobs=1, verbose=-1)  # noqa: E731
    X, y = table(rows, seed, classify)
    before = memory_from_here_on()
    began = time.process_time()
    fitted = make().fit(X, y)
    seconds = time.process_time() - began
    peak = memory("VmHWM")
    X_test, y_test = table(TEST_ROWS, TEST_SEED, classify)
    began = time.process_time()
    if classify:
        score = float(log_loss(y_test, fitted.predict_proba(X_test)[:, 1]))
    else:
        score = float(np.sqrt(np.mean((fitted.predict(X_test) - y_test) ** 2)))
    predicting = time.process_time() - began
    return {
        "model": model,
        "rows": rows,
        "classify": classify,
        "seed": seed,
        "seconds": seconds,
        "score": score,
        "data_mb": X.nbytes / 1e6,
        "more_mb": peak - before,
        "predicted_per_second": TEST_ROWS / predicting,
    }


def run_scaling(sizes: list[int], seeds: list[int], models: list[str]) -> list[dict[str, Any]]:
    """All sizes, both kinds, all tables, all models."""
    found = []
    for rows, classify, seed, model in product(sizes, (False, True), seeds, models):
        code = (
            "import json; from benchmarks.models.scaling import measure; "
            f"print(json.dumps(measure({model!r}, {rows}, {classify}, {seed})))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(found[-1], flush=True)
    return found
