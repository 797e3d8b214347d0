"""Pairs of rows to learn a ranking from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.validation import positive_int

RandomState = int | np.random.RandomState | None


def pairs_within_queries(
    relevance: Floats,
    qid: ArrayLike | None,
    most: int,
    random_state: RandomState,
) -> tuple[Indices, Indices]:
    """Rows (better, worse) of the same query with different relevance; at most `most` pairs a
    query, drawn evenly.
    """
    limit = positive_int(most, "pairs_per_query")
    rng = check_random_state(0 if random_state is None else random_state)
    queries = (
        np.zeros(relevance.size, dtype=np.int64)
        if qid is None
        else _query_numbers(qid, relevance.size)
    )
    by_query = np.argsort(queries, kind="stable")
    better: list[Indices] = []
    worse: list[Indices] = []
    for rows in np.split(by_query, np.flatnonzero(np.diff(queries[by_query])) + 1):
        first, second = _pairs_of(rows, relevance, limit, rng)
        better.append(first)
        worse.append(second)
    return np.concatenate(better), np.concatenate(worse)


def pairs_of_the_same_query(better: Indices, qid: ArrayLike | None, rows: int) -> Indices:
    """For every pair, how many pairs its query has."""
    queries = np.zeros(rows, dtype=np.int64) if qid is None else _query_numbers(qid, rows)
    return np.bincount(queries[better], minlength=1)[queries[better]]


def _query_numbers(qid: ArrayLike | None, rows: int) -> Indices:
    given = np.asarray(qid)
    if given.shape != (rows,):
        raise DataError(
            f"qid must hold one query for each of the {rows} rows, got shape {given.shape}"
        )
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _pairs_of(
    rows: Indices, relevance: Floats, limit: int, rng: np.random.RandomState
) -> tuple[Indices, Indices]:
    count = rows.size
    if count * (count - 1) // 2 <= 20 * limit:
        i, j = np.triu_indices(count, 1)
    else:  # too many to list: draw more than enough and keep those that differ
        i, j = rng.randint(count, size=8 * limit), rng.randint(count, size=8 * limit)
    first, second = rows[i], rows[j]
    differ = relevance[first] != relevance[second]
    first, second = first[differ], second[differ]
    if first.size > limit:
        chosen = np.sort(rng.choice(first.size, limit, replace=False))
        first, second = first[chosen], second[chosen]
    higher = relevance[first] > relevance[second]
    return np.where(higher, first, second), np.where(higher, second, first)
