"""Counts and amounts, with a log link: `python -m benchmarks.models.amounts`.

Deviance on test rows beside LightGBM and HistGradientBoosting with the same loss and the same
monotone columns; three splits, defaults, one thread, compilation apart.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from threadpoolctl import threadpool_limits

import lighttouch as lt
from benchmarks.models import unseen
from benchmarks.models.rivals import coded, signs
from benchmarks.models.tables import TABLES, Split

CASES = {
    "bikes": "poisson",
    "rain": "poisson",
    "OFP": "poisson",
    "concrete": "gamma",
    "diamonds": "gamma",
    "incomes": "gamma",
    "hotel": "gamma",
}
DEVIANCES = {"poisson": mean_poisson_deviance, "gamma": mean_gamma_deviance}
SPLITS = range(3)


def lighttouch(split: Split, loss: str) -> np.ndarray:
    model = lt.LatticeRegressor(loss=loss, monotonic_cst=split.monotonic, random_state=0)
    return np.asarray(model.fit(split.train, split.y_train).predict(split.test))


def lightgbm(split: Split, loss: str) -> np.ndarray:
    import lightgbm

    train, test = coded(split)
    model = lightgbm.LGBMRegressor(
        objective=loss, monotone_constraints=signs(split, True), verbose=-1, n_jobs=1
    )
    return np.asarray(model.fit(train, split.y_train).predict(test))


def histogram(split: Split, loss: str) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    train, test = coded(split)
    model = HistGradientBoostingRegressor(
        loss=loss, monotonic_cst=signs(split, True), categorical_features="from_dtype"
    )
    return np.asarray(model.fit(train, split.y_train).predict(test))


MODELS: dict[str, Callable[[Split, str], np.ndarray]] = {
    "lighttouch": lighttouch,
    "LightGBM": lightgbm,
    "HistGradientBoosting": histogram,
}


def split_of(name: str, loss: str, seed: int) -> Split:
    """Amounts of the gamma law are positive: rows without one are left out."""
    split = TABLES[name](seed) if name in TABLES else unseen.split_of(name, seed)
    if loss == "gamma":
        train, test = split.y_train > 0.0, split.y_test > 0.0
        split.train, split.y_train = split.train[train], split.y_train[train]
        split.test, split.y_test = split.test[test], split.y_test[test]
    return split


def compared(name: str, loss: str) -> None:
    found: dict[str, list[float]] = {model: [] for model in MODELS}
    seconds: dict[str, list[float]] = {model: [] for model in MODELS}
    lighttouch(split_of(name, loss, 0), loss)  # compiles
    for seed in SPLITS:
        split = split_of(name, loss, seed)
        for model, predicted in MODELS.items():
            began = time.process_time()
            scores = predicted(split, loss)
            seconds[model].append(time.process_time() - began)
            found[model].append(float(DEVIANCES[loss](split.y_test, scores)))
    print(
        f"{name:9} {loss:8}",
        "  ".join(
            f"{model} {np.mean(each):.4g} ± {np.std(each, ddof=1) / len(SPLITS) ** 0.5:.2g} "
            f"({np.median(seconds[model]):.2f} s)"
            for model, each in found.items()
        ),
        flush=True,
    )


def main() -> None:
    warnings.filterwarnings("ignore")
    with threadpool_limits(1):
        for name, loss in CASES.items():
            if name in TABLES or name in unseen.TABLES:
                compared(name, loss)


if __name__ == "__main__":
    main()
