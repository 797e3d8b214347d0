"""Ranking: NDCG of the first five against LightGBM."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import ndcg_score

import lighttouch as lt
from benchmarks.models.tables import DATA


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


def run_ranking(name: str, seed: int) -> list[dict[str, Any]]:
    import lightgbm

    X, y, query, X_test, y_test, query_test = queries_anew(ranking_sets()[name], seed)
    rows = []
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
        rows.append(
            {"set": name, "model": model, "rules": True, "seed": seed, "seconds": seconds}
            | {"measure": "ndcg@5", "score": quality}
        )
    return rows
