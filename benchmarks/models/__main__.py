"""Run, or go on with, the comparison; see the package's docstring."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import lighttouch as lt
from benchmarks.models.ranking import run_ranking
from benchmarks.models.rivals import MODELS
from benchmarks.models.scaling import run_scaling
from benchmarks.models.summary import markdown
from benchmarks.models.tables import TABLES, Split

RANKINGS = ("rank", "synthetic")


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


class Results:
    """One JSON object per line, written as soon as it is known: a run that was stopped goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def known(self, **about: Any) -> bool:
        return any(all(row[key] == value for key, value in about.items()) for row in self.rows)

    def add(self, rows: list[dict[str, Any]]) -> None:
        self.rows += rows
        with self.path.open("a") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
                print(
                    f"{row['set']}  split {row['seed']}  {row['model']}"
                    f"{'' if row['rules'] else ', no rules'}  {row['score']:.5g}  "
                    f"{row['seconds']:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )


def run(
    results: Results, names: list[str], splits: list[int], models: list[str], free: bool
) -> None:
    for seed in splits:
        for name in names:
            if name in RANKINGS:
                if not results.known(set=name, seed=seed):
                    results.add(run_ranking(name, seed))
                continue
            for model in models:
                for rules in (True, False) if free else (True,):
                    if not results.known(set=name, seed=seed, model=model, rules=rules):
                        results.add([run_one(name, seed, model, rules)])


def compile_off_the_clock() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    y += X[:, 0] * X[:, 1] * X[:, 2]
    lt.LatticeRegressor(monotonic_cst={3: 1}, trees=1).fit(X, y).predict(X)
    lt.LatticeClassifier(monotonic_cst={3: 1}, trees=1).fit(X, y > 0.0).predict(X)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tables", default=",".join([*TABLES, *RANKINGS]))
    arguments.add_argument("--splits", default="0,1,2,3,4", help="numbers, with commas")
    arguments.add_argument(
        "--models",
        default=",".join(name.replace(", ", "; ") for name in MODELS),
        help="names, with commas; the comma within a name is written as ;",
    )
    arguments.add_argument("--no-rules", action="store_true", help="each model without rules too")
    arguments.add_argument("--scaling", default="", help="rows, with commas, in place of tables")
    arguments.add_argument("--results", type=Path, default=Path("results/models.jsonl"))
    given = arguments.parse_args()
    warnings.filterwarnings("ignore")
    if given.scaling:
        run_scaling([int(rows) for rows in given.scaling.split(",")])
        return
    models = [name.replace("; ", ", ") for name in given.models.split(",")]
    unknown = set(models) - set(MODELS)
    if unknown:
        raise SystemExit(f"--models knows {', '.join(MODELS)}; got {', '.join(unknown)}")
    results = Results(given.results)
    compile_off_the_clock()
    with threadpool_limits(1):
        names, splits = given.tables.split(","), [int(each) for each in given.splits.split(",")]
        run(results, names, splits, models, given.no_rules)
    print(markdown(results.rows))


if __name__ == "__main__":
    main()
