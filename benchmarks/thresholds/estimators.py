"""The numbers of `estimators/training.py` and of quadratic steps that decide how labels are
trained, and how often a matrix of second derivatives is formed.

Times are of whole fits to generated labels, with named lattices, so that nothing is searched for:
smoothing and training are what these numbers are about.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

import lighttouch as lt
from benchmarks.models.scaling import INCREASING, table
from benchmarks.thresholds import Comparison, experiment, seconds, sides, with_values
from lighttouch.estimators.costs import LIMITS
from lighttouch.estimators.training import COSTS as TRAINING
from lighttouch.solvers.costs import COSTS as SOLVING
from lighttouch.solvers.quadratic_model import gram

PAIRS = [(0, 1), (1, 2), (0, 2), (3, 4), (5, 6), (7, 8), (9, 10), (4, 11)]
LIMIT = 120.0  # seconds of a fit
NEVER = float("inf")


def fitted(rows: int) -> lt.LatticeClassifier:
    X, y = table(rows, 0, classify=True)
    rules: dict[str | int, int] = dict.fromkeys(INCREASING, 1)
    return lt.LatticeClassifier(monotonic_cst=rules, lattices=PAIRS, random_state=0).fit(X, y)


def fit_seconds(rows: int, record: Any, **values: float) -> float:
    with with_values(record, **values):
        return seconds(lambda: fitted(rows), LIMIT)


def other_values(record: Any, field: str, tried: tuple[float, ...]) -> Iterator[Comparison]:
    """Fits to 40,000 rows with the value that is chosen, and with others."""
    fitted(1_000)  # compiles
    chosen = seconds(lambda: fitted(40_000), LIMIT)
    for value in tried:
        yield Comparison(value, chosen, fit_seconds(40_000, record, **{field: value}))


@experiment("model_stale", SOLVING.model_stale, "40,000 labels", "chosen value", "this value", True)
def model_stale() -> Iterator[Comparison]:
    yield from other_values(SOLVING, "model_stale", (0.02, 0.1, 0.5))


@experiment("gram_dense", SOLVING.gram_dense, "5,000 rows of 1,000 columns", "sparse", "dense")
def gram_dense() -> Iterator[Comparison]:
    rng, rows, columns = np.random.default_rng(0), 5_000, 1_000
    for share in (0.05, 0.1, 0.2, 0.35, 0.5):
        X = _grouped_rows(rng, rows, columns, int(share * columns) // 2)
        weights, times = rng.random(rows), []
        for above in (NEVER, 0.0):
            with with_values(SOLVING, gram_dense=above):
                times.append(seconds(functools.partial(gram, X, weights), LIMIT))
        yield Comparison(share, *times)


@experiment(
    "gram_nonzero",
    SOLVING.gram_nonzero,
    "20,000 rows of 3,000 columns",
    "without zeros",
    "by groups",
)
def gram_nonzero() -> Iterator[Comparison]:
    rng, rows, columns = np.random.default_rng(0), 20_000, 3_000
    for share in (0.3, 0.5, 0.8, 1.0):
        X = _grouped_rows(rng, rows, columns, 80)
        X.data[rng.random(X.nnz) > share] = 0.0
        weights, times = rng.random(rows), []
        for above in (NEVER, 0.0):
            with with_values(SOLVING, gram_nonzero=above):
                times.append(seconds(functools.partial(gram, X, weights), LIMIT))
        yield Comparison(share, *times)


def _grouped_rows(rng: np.random.Generator, rows: int, columns: int, groups: int) -> Any:
    """Two entries in each of several groups of columns."""
    size = columns // groups
    low = rng.integers(0, size - 1, size=(rows, groups)) + size * np.arange(groups)
    places = np.stack([low, low + 1], axis=-1).ravel()
    ends = np.arange(0, places.size + 1, 2 * groups)
    return sparse.csr_matrix((rng.random(places.size), places, ends), shape=(rows, columns))


@experiment(
    "smooth_models", TRAINING.smooth_models, "labels, 12 columns", "quadratic steps", "sampling"
)
def smooth_models() -> Iterator[Comparison]:
    """Fits by either solver, and how many matrices the quadratic one formed while it trained."""
    for rows in (50_000, 200_000):
        steps = fit_seconds(rows, TRAINING, advantage=NEVER)
        sampled = fit_seconds(rows, TRAINING, product_seconds=NEVER)
        yield Comparison(rows, steps, sampled, f"{_formed(rows)} formed")


def _formed(rows: int) -> int:
    """Matrices that quadratic steps form for so many rows."""
    from lighttouch.solvers import quadratic_model

    count, plain = [0], quadratic_model.gram

    def counted(X: Any, weights: np.ndarray) -> np.ndarray:
        count[0] += 1
        return plain(X, weights)

    quadratic_model.gram = counted
    try:
        with with_values(TRAINING, advantage=NEVER):
            fitted(rows)
    finally:
        quadratic_model.gram = plain
    return count[0]


@experiment(
    "largest_gram", TRAINING.largest_gram, "parameters, labels, 12 columns",
    "by a dense factor", "by conjugate gradients",
)  # fmt: skip
def largest_gram() -> Iterator[Comparison]:
    fitted(1_000)  # compiles
    for rows, most in ((3_000, 1_500), (10_000, 1_500), (10_000, 4_000)):
        with with_values(LIMITS, most_parameters=most, parameters_per_row=0.5):
            size = fitted(rows).parameters_.size
            run = functools.partial(fitted, rows)
            times = sides(TRAINING, "largest_gram", 10**9, 0, run, rounds=1, limit=1.0)
        yield Comparison(size, *times, f"{rows:,} rows")


@experiment(
    "sampled_entries", TRAINING.sampled_entries, "entries, labels, 12 columns, 4,400 parameters",
    "quadratic steps", "automatic solver",
)  # fmt: skip
def sampled_entries() -> Iterator[Comparison]:
    """A minute or two: both ways end at the same objective."""
    for rows in (2_000, 20_000, 100_000):
        X, y = table(rows, 0, classify=True)
        model = lt.LatticeClassifier(
            monotonic_cst=dict.fromkeys(INCREASING, 1),
            lattices=[(0, 1, 2, 3)],
            lattice_size=8,
            trees=0,
            random_state=0,
        )
        run = functools.partial(model.fit, X, y)
        times = sides(TRAINING, "sampled_entries", NEVER, 0.0, run, rounds=0)
        yield Comparison(float(rows * model.model_.row_entries), *times, f"{rows:,} rows")
