"""The pairs the experiments rank: generated, or the user's own from CSV, Parquet or svmlight
files.
"""

from __future__ import annotations

import gzip
import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats
from lighttouch.datasets import ranking_pairs
from lighttouch.errors import DataError

Pairs = tuple[Floats, Floats]

BETTER, WORSE = "better_", "worse_"
MOST_FEATURES = 16
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".train", ".test", ".dat", ".txt")


def load_pairs(data: str | None, count: int, features: int) -> Pairs:
    """`count` pairs of `features` features: generated when data is None, else the first ones of the
    user's own.

    `data` is a path, or two joined by a comma (better rows, worse rows in the same order):

    - CSV (.csv, .csv.gz) or Parquet, one file: columns better_NAME and worse_NAME for every feature
    NAME;
    - CSV or Parquet, two files: the same columns in both, row i of the first is preferred to row i
    of the second;
    - svmlight with qid (as of SVMrank): within a query every row of a larger label is preferred to
    every row of a smaller one.

    A feature that leaves [0, 1] is rescaled from its own range to it; larger must mean better.
    """
    if data is None:
        return ranking_pairs(count, features)
    better, worse = _read(data)
    if better.shape[1] > MOST_FEATURES:
        raise DataError(
            f"{data} must have at most {MOST_FEATURES} features, got {better.shape[1]}: a "
            "lattice doubles with each; keep fewer columns"
        )
    return _to_unit(better[:count], worse[:count], data)


def data_digest(data: str | None) -> str:
    """What identifies the user's files; empty for generated data, which its sizes identify."""
    if data is None:
        return ""
    digest = hashlib.sha256()
    for path in _paths(data):
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    return digest.hexdigest()


def _paths(data: str) -> list[Path]:
    paths = [Path(part.strip()) for part in str(data).split(",")]
    for path in paths:
        if not path.is_file():
            raise DataError(
                f"data must name existing files, got {path}; give one file of pairs, or "
                "two joined by a comma"
            )
    if len(paths) > 2:
        raise DataError(f"data must be one file or two (better rows, worse rows), got {len(paths)}")
    return paths


def _read(data: str) -> Pairs:
    paths = _paths(data)
    if len(paths) == 1 and _is_svmlight(paths[0]):
        return _pairs_within_queries(paths[0])
    tables = [_table(path) for path in paths]
    return (
        _two_tables(tables[0], tables[1], data) if len(tables) == 2 else _one_table(tables[0], data)
    )


def _is_svmlight(path: Path) -> bool:
    return path.suffix in SVMLIGHT or path.with_suffix("").suffix in SVMLIGHT


def _table(path: Path) -> tuple[list[str], Floats]:
    if path.suffix in (".parquet", ".pq"):
        return _parquet(path)
    if ".csv" in path.suffixes:
        return _csv(path)
    raise DataError(
        f"{path} must be .csv, .csv.gz, .parquet or svmlight ({', '.join(SVMLIGHT)}), got "
        f"{path.suffix or 'no suffix'}"
    )


def _csv(path: Path) -> tuple[list[str], Floats]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path, encoding="utf-8") as file:
        names = [name.strip().strip('"') for name in file.readline().rstrip("\r\n").split(",")]
        try:
            with warnings.catch_warnings(action="ignore"):  # of no data, refused below
                values = np.loadtxt(file, delimiter=",", ndmin=2, dtype=np.float64)
        except ValueError as problem:
            raise DataError(f"{path} must hold a header and numbers only: {problem}") from None
    if values.size == 0:
        raise DataError(f"{path} must hold at least one row below its header, got none")
    if values.shape[1] != len(names):
        raise DataError(
            f"{path} must have as many names as columns, got {len(names)} names and "
            f"{values.shape[1]} columns"
        )
    return names, values


def _parquet(path: Path) -> tuple[list[str], Floats]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"reading {path} needs pyarrow: pip install pyarrow, or give CSV") from None
    table = pyarrow.parquet.read_table(path)
    try:
        columns = [
            np.asarray(table.column(name).to_numpy(), dtype=np.float64)
            for name in table.column_names
        ]
    except (TypeError, ValueError) as problem:
        raise DataError(f"{path} must hold numbers only: {problem}") from None
    return list(table.column_names), np.column_stack(columns)


def _one_table(table: tuple[list[str], Floats], data: str) -> Pairs:
    names, values = table
    features = [name[len(BETTER) :] for name in names if name.startswith(BETTER)]
    missing = [name for name in features if WORSE + name not in names]
    if not features or missing:
        told = f"{WORSE}{missing[0]} is missing" if missing else f"no column begins with {BETTER}"
        raise DataError(
            f"{data} must hold columns {BETTER}NAME and {WORSE}NAME for every feature: "
            f"{told}; or give two files"
        )
    place = {name: column for column, name in enumerate(names)}
    return values[:, [place[BETTER + name] for name in features]], values[
        :, [place[WORSE + name] for name in features]
    ]


def _two_tables(
    better: tuple[list[str], Floats], worse: tuple[list[str], Floats], data: str
) -> Pairs:
    if better[0] != worse[0] or len(better[1]) != len(worse[1]):
        raise DataError(
            f"the two files of {data} must have the same columns and rows, got "
            f"{len(better[0])} and {len(worse[0])} columns, "
            f"{len(better[1])} and {len(worse[1])} rows"
        )
    return better[1], worse[1]


def _pairs_within_queries(path: Path) -> Pairs:
    from sklearn.datasets import load_svmlight_file

    try:
        X, label, query = load_svmlight_file(str(path), query_id=True)
    except ValueError as problem:
        raise DataError(f"{path} must be svmlight text with qid: {problem}") from None
    better, worse = preferred_rows(label, query)
    if better.size == 0:
        raise DataError(
            f"{path} holds no two rows of one qid with different labels, so no pair; check "
            "the qid column"
        )
    dense = X.toarray()
    return dense[better], dense[worse]


def preferred_rows(label: Any, query: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All (row of larger label, row of smaller label) of the same query."""
    better: list[NDArray[np.intp]] = [np.zeros(0, np.intp)]
    worse: list[NDArray[np.intp]] = [np.zeros(0, np.intp)]
    order = np.argsort(query, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        first, second = np.nonzero(label[rows][:, None] > label[rows][None, :])
        better.append(rows[first])
        worse.append(rows[second])
    return np.concatenate(better), np.concatenate(worse)


def _to_unit(better: Floats, worse: Floats, data: str) -> Pairs:
    for name, rows in (("better", better), ("worse", worse)):
        if not np.isfinite(rows).all():
            row, column = (int(place) for place in np.argwhere(~np.isfinite(rows))[0])
            found = f"row {row}, feature {column} is {rows[row, column]}"
            raise DataError(f"the {name} rows of {data} must be finite: {found}; drop or impute it")
    low = np.minimum(better.min(axis=0), worse.min(axis=0))
    high = np.maximum(better.max(axis=0), worse.max(axis=0))
    inside = (low >= 0.0) & (high <= 1.0)
    low, width = np.where(inside, 0.0, low), np.where(inside | (high <= low), 1.0, high - low)
    return (better - low) / width, (worse - low) / width


def as_text(data: object) -> str | None:
    """One path or two, given as text, Path or a pair of them."""
    if data is None:
        return None
    if isinstance(data, Sequence) and not isinstance(data, str):
        return ",".join(str(Path(part).resolve()) for part in data)
    return ",".join(str(Path(part.strip()).resolve()) for part in str(data).split(","))
