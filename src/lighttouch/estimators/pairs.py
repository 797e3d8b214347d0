"""Pairs of rows to learn a ranking from."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.examples import Examples
from lighttouch.estimators.tables import plain_cell
from lighttouch.validation import positive_int

LARGEST_GRADE = 30.0  # relevance up to which gains are 2^relevance - 1, as in NDCG
RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Pairs:
    """Rows of the same query, the better ones first, and what every pair weighs."""

    better: Indices
    worse: Indices
    weights: Floats


def read_seed(random_state: RandomState) -> int:
    """What pairs are drawn by."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def pairs_within_queries(
    relevance: Floats,
    qid: ArrayLike | None,
    most: int,
    random_state: RandomState,
) -> tuple[Indices, Indices]:
    """Rows (better, worse) of the same query with different relevance; at most `most` pairs a
    query, drawn evenly.

    What is drawn for a query depends on its name, not on other queries, so that it is the same in
    whichever part of the rows the query is.
    """
    limit, seed = positive_int(most, "pairs_per_query"), read_seed(random_state)
    names, queries = _query_numbers(qid, relevance.size)
    by_query = np.argsort(queries, kind="stable")
    better: list[Indices] = []
    worse: list[Indices] = []
    for rows in np.split(by_query, np.flatnonzero(np.diff(queries[by_query])) + 1):
        name = None if names is None else names[queries[rows[0]]]
        first, second = _pairs_of(rows, relevance, limit, seed, name)
        better.append(first)
        worse.append(second)
    return np.concatenate(better), np.concatenate(worse)


def weighted_pairs(
    relevance: Floats,
    qid: ArrayLike | None,
    weights: Floats,
    most: int,
    random_state: RandomState,
    by_gain: bool = False,
) -> Pairs:
    """Pairs of rows of the same query; every query counts the same, however many it has.

    By gain, a pair counts by how much its order matters at the top of a list: by the difference of
    the gains 2^relevance of its rows, as in NDCG. That is for grades: whole numbers from 0 to 30 in
    the whole query. Pairs of other queries count the same.
    """
    better, worse = pairs_within_queries(relevance, qid, most, random_state)
    queries = _query_numbers(qid, relevance.size)[1]
    own = queries[better]
    matter = np.ones(better.size)
    if by_gain:
        grades = (relevance == np.floor(relevance)) & (relevance >= 0.0)
        other = np.bincount(queries, ~(grades & (relevance <= LARGEST_GRADE)), minlength=1)
        graded = other[own] == 0.0
        gains = np.exp2(np.clip(relevance, 0.0, LARGEST_GRADE))
        matter = np.where(graded, np.abs(gains[better] - gains[worse]), 1.0)
    together = np.bincount(own, matter, minlength=1)[own]
    return Pairs(better, worse, weights[better] * weights[worse] * matter / together)


def pair_examples(table: Floats, pairs: Pairs, total: float) -> Examples:
    """Better rows minus worse ones; rows that several pairs share are held once."""
    used, place = np.unique(np.concatenate([pairs.better, pairs.worse]), return_inverse=True)
    count = pairs.better.size
    return Examples(
        [(table[pairs.better], 1.0), (table[pairs.worse], -1.0)],
        np.ones(count),
        pairs.weights / total,
        independent=used.size,
        source=(table[used], [place[:count], place[count:]]),
    )


def _query_numbers(qid: ArrayLike | None, rows: int) -> tuple[NDArray[Any] | None, Indices]:
    """The queries' names in order, and which of them each row belongs to."""
    if qid is None:
        return None, np.zeros(rows, dtype=np.int64)
    given = np.asarray(qid)
    if given.shape != (rows,):
        raise DataError(
            f"qid must hold one query for each of the {rows} rows, got shape {given.shape}"
        )
    names, numbers = np.unique(given, return_inverse=True)
    return names, numbers.astype(np.int64)


def _drawn_by(seed: int, name: object) -> np.random.RandomState:
    told = zlib.crc32(repr(plain_cell(name)).encode("utf-8", "surrogatepass"))
    return np.random.RandomState([seed, told])


def _pairs_of(
    rows: Indices, relevance: Floats, limit: int, seed: int, name: object
) -> tuple[Indices, Indices]:
    count = rows.size
    rng = None
    if count * (count - 1) // 2 <= 20 * limit:
        i, j = np.triu_indices(count, 1)
    else:  # too many to list: draw more than enough and keep those that differ
        rng = _drawn_by(seed, name)
        i, j = rng.randint(count, size=8 * limit), rng.randint(count, size=8 * limit)
    first, second = rows[i], rows[j]
    differ = relevance[first] != relevance[second]
    first, second = first[differ], second[differ]
    if first.size > limit:
        rng = _drawn_by(seed, name) if rng is None else rng
        chosen = np.sort(rng.choice(first.size, limit, replace=False))
        first, second = first[chosen], second[chosen]
    higher = relevance[first] > relevance[second]
    return np.where(higher, first, second), np.where(higher, second, first)
