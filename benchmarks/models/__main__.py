"""Run, or go on with, the comparison; see the package's docstring."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks.models.rivals import MODELS
from benchmarks.models.scaling import MODELS as SCALED
from benchmarks.models.scaling import TEST_SEED, run_scaling
from benchmarks.models.summary import markdown
from benchmarks.models.tables import DATA, LEFT_OUT, TABLES
from benchmarks.models.work import Job, do

RANKINGS = ("rank", "synthetic") if DATA.is_dir() else ()


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


def jobs(names: list[str], splits: list[int], models: list[str], free: bool) -> list[Job]:
    """Rankings have their models themselves."""
    found: list[Job] = []
    for seed in splits:
        for name in names:
            whose = [""] if name in RANKINGS else models
            for model in whose:
                found += [(name, seed, model, True)]
                if free and model:
                    found += [(name, seed, model, False)]
    return found


def known(results: Results, job: Job) -> bool:
    name, seed, model, rules = job
    about = {"model": model, "rules": rules} if model else {}
    return results.known(set=name, seed=seed, **about)


def run(results: Results, wanted: list[Job], workers: int) -> None:
    """Each as soon as a worker is free; the slowest model first, table by table, so that no worker
    ends alone if large tables are named first.
    """
    todo = [job for job in wanted if not known(results, job)]
    if workers > 1:
        tables = list(dict.fromkeys(name for name, *_ in wanted))
        todo.sort(key=lambda job: (job[2] != "EBM", tables.index(job[0])))
    at_once = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    for rows in at_once(delayed(do)(job) for job in todo):
        results.add(rows)


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
    arguments.add_argument(
        "--workers", type=int, default=1, help="processes; with more, times are of busy cores"
    )
    arguments.add_argument("--scaling", default="", help="rows, with commas, in place of tables")
    arguments.add_argument(
        "--seeds", default="0", help=f"of the tables that --scaling generates, not {TEST_SEED}"
    )
    arguments.add_argument("--results", type=Path, default=Path("results/models.jsonl"))
    given = arguments.parse_args()
    warnings.filterwarnings("ignore")
    models = [name.replace("; ", ", ") for name in given.models.split(",")]
    if given.scaling:
        sizes, seeds = ([int(n) for n in each.split(",")] for each in (given.scaling, given.seeds))
        if TEST_SEED in seeds:
            raise SystemExit(f"--seeds must not hold {TEST_SEED}, the seed of the test rows")
        run_scaling(sizes, seeds, [model for model in SCALED if model in models])
        return
    unknown = set(models) - set(MODELS)
    if unknown:
        raise SystemExit(f"--models knows {', '.join(MODELS)}; got {', '.join(unknown)}")
    results = Results(given.results)
    names, splits = given.tables.split(","), [int(each) for each in given.splits.split(",")]
    for name, source in LEFT_OUT.items():
        print(f"{name} is left out: {source} is not there", file=sys.stderr)
    missing = set(names) - {*TABLES, *RANKINGS}
    if missing:
        raise SystemExit(f"--tables knows {', '.join([*TABLES, *RANKINGS])}; got {missing}")
    run(results, jobs(names, splits, models, given.no_rules), given.workers)
    print(markdown(results.rows))


if __name__ == "__main__":
    main()
