"""The models that are compared: each fits the training rows and scores the test rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import lighttouch as lt
from benchmarks.models.tables import Split

EARLY_STOPPING: dict[str, Any] = {"share": 0.15, "trees": 2000, "patience": 50}


def coded(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Text columns as pandas categories with the training table's values, as trees want them."""
    train, test = split.train.copy(), split.test.copy()
    for name in train:
        if not pd.api.types.is_numeric_dtype(train[name]):
            kind = pd.CategoricalDtype(sorted(train[name].dropna().unique()))
            train[name], test[name] = train[name].astype(kind), test[name].astype(kind)
    return train, test


def signs(split: Split, monotone: bool) -> list[int]:
    return [split.monotonic.get(name, 0) if monotone else 0 for name in split.train]


def lighttouch(split: Split, monotone: bool, seed: int) -> np.ndarray:
    kind = lt.LatticeClassifier if split.classify else lt.LatticeRegressor
    model = kind(monotonic_cst=split.monotonic if monotone else None, random_state=seed).fit(
        split.train, split.y_train
    )
    return scores(model, split.test, split.classify)


def histogram(split: Split, monotone: bool, seed: int) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    train, test = coded(split)
    kind = HistGradientBoostingClassifier if split.classify else HistGradientBoostingRegressor
    model = kind(
        monotonic_cst=signs(split, monotone), categorical_features="from_dtype", random_state=seed
    ).fit(train, split.y_train)
    return scores(model, test, split.classify)


def lightgbm(split: Split, monotone: bool, seed: int) -> np.ndarray:
    import lightgbm

    train, test = coded(split)
    kind = lightgbm.LGBMClassifier if split.classify else lightgbm.LGBMRegressor
    model = kind(
        monotone_constraints=signs(split, monotone), random_state=seed, verbose=-1, n_jobs=1
    ).fit(train, split.y_train)
    return scores(model, test, split.classify)


def xgboost(split: Split, monotone: bool, seed: int) -> np.ndarray:
    import xgboost

    train, test = coded(split)
    kind = xgboost.XGBClassifier if split.classify else xgboost.XGBRegressor
    model = kind(
        monotone_constraints=tuple(signs(split, monotone)),
        random_state=seed,
        enable_categorical=True,
        n_jobs=1,
    )
    return scores(model.fit(train, split.y_train), test, split.classify)


def stopped_early(split: Split, seed: int) -> tuple[Any, ...]:
    """Coded training rows without 15% of them, those 15%, and test rows."""
    train, test = coded(split)
    share = EARLY_STOPPING["share"]
    return (*train_test_split(train, split.y_train, test_size=share, random_state=seed), test)


def lightgbm_stopped(split: Split, monotone: bool, seed: int) -> np.ndarray:
    import lightgbm

    train, held, y, y_held, test = stopped_early(split, seed)
    kind = lightgbm.LGBMClassifier if split.classify else lightgbm.LGBMRegressor
    model = kind(
        n_estimators=EARLY_STOPPING["trees"],
        monotone_constraints=signs(split, monotone),
        random_state=seed,
        verbose=-1,
        n_jobs=1,
    )
    stop = lightgbm.early_stopping(EARLY_STOPPING["patience"], verbose=False)
    model.fit(train, y, eval_set=[(held, y_held)], callbacks=[stop])
    return scores(model, test, split.classify)


def xgboost_stopped(split: Split, monotone: bool, seed: int) -> np.ndarray:
    import xgboost

    train, held, y, y_held, test = stopped_early(split, seed)
    kind = xgboost.XGBClassifier if split.classify else xgboost.XGBRegressor
    model = kind(
        n_estimators=EARLY_STOPPING["trees"],
        early_stopping_rounds=EARLY_STOPPING["patience"],
        learning_rate=0.1,
        monotone_constraints=tuple(signs(split, monotone)),
        random_state=seed,
        enable_categorical=True,
        n_jobs=1,
    )
    model.fit(train, y, eval_set=[(held, y_held)], verbose=False)
    return scores(model, test, split.classify)


def histogram_stopped(split: Split, monotone: bool, seed: int) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    train, test = coded(split)
    kind = HistGradientBoostingClassifier if split.classify else HistGradientBoostingRegressor
    model = kind(
        monotonic_cst=signs(split, monotone),
        categorical_features="from_dtype",
        max_iter=EARLY_STOPPING["trees"],
        early_stopping=True,
        validation_fraction=EARLY_STOPPING["share"],
        n_iter_no_change=EARLY_STOPPING["patience"],
        random_state=seed,
    ).fit(train, split.y_train)
    return scores(model, test, split.classify)


def explainable_boosting(split: Split, monotone: bool, seed: int) -> np.ndarray:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if split.classify else ExplainableBoostingRegressor
    model = kind(
        monotone_constraints=signs(split, monotone) if monotone else None,
        random_state=seed,
        n_jobs=1,
    ).fit(split.train, split.y_train)
    return scores(model, split.test, split.classify)


def scores(model: Any, test: pd.DataFrame, classify: bool) -> np.ndarray:
    return np.asarray(model.predict_proba(test)[:, 1] if classify else model.predict(test))


MODELS: dict[str, Callable[[Split, bool, int], np.ndarray]] = {
    "lighttouch": lighttouch,
    "LightGBM": lightgbm,
    "LightGBM, stopped early": lightgbm_stopped,
    "XGBoost": xgboost,
    "XGBoost, stopped early": xgboost_stopped,
    "HistGradientBoosting": histogram,
    "HistGradientBoosting, stopped early": histogram_stopped,
}
if find_spec("interpret"):
    MODELS["EBM"] = explainable_boosting
