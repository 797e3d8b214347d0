"""Pairs of rows to learn a ranking from."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import DataError
from lighttouch.estimators.examples import Examples, independent_of
from lighttouch.estimators.tables import plain_cell, rows_of
from lighttouch.validation import positive_int

LARGEST_GRADE = 30.0  # relevance up to which gains are 2^relevance - 1, as in NDCG
RANKED = 10  # rows of a list that NDCG looks at. Convention
RandomState = int | np.random.RandomState | None
Numbered = tuple[NDArray[Any] | None, Indices]


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
    return _pairs_of_queries(relevance, _query_numbers(qid, relevance.size), most, random_state)


def _pairs_of_queries(
    relevance: Floats, numbered: Numbered, most: int, random_state: RandomState
) -> tuple[Indices, Indices]:
    limit, seed = positive_int(most, "pairs_per_query"), read_seed(random_state)
    names, queries = numbered
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
    numbered = _query_numbers(qid, relevance.size)
    better, worse = _pairs_of_queries(relevance, numbered, most, random_state)
    queries = numbered[1]
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
    is_used = np.zeros(table.shape[0], dtype=bool)
    is_used[pairs.better] = is_used[pairs.worse] = True
    used, place = np.flatnonzero(is_used), np.cumsum(is_used) - 1
    sides = [place[pairs.better], place[pairs.worse]]
    once, weights = table[used], pairs.weights / total
    return Examples(
        [(rows_of(once, sides[0]), 1.0), (rows_of(once, sides[1]), -1.0)],
        np.ones(pairs.better.size),
        weights,
        independent=independent_of((once, sides), weights),
        source=(once, sides),
    )


def _query_numbers(qid: ArrayLike | None, rows: int) -> Numbered:
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


@functools.lru_cache(maxsize=256)
def _all_pairs(count: int) -> tuple[Indices, Indices]:
    """Every i < j below `count`: many queries have as many rows."""
    return np.triu_indices(count, 1)


def _pairs_of(
    rows: Indices, relevance: Floats, limit: int, seed: int, name: object
) -> tuple[Indices, Indices]:
    count = rows.size
    rng = None
    if count * (count - 1) // 2 <= 20 * limit:
        i, j = _all_pairs(count)
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


def query_numbers(qid: ArrayLike | None, rows: int) -> Indices:
    """Which query each row belongs to."""
    return _query_numbers(qid, rows)[1]


def ndcg_of_queries(scores: Floats, relevance: Floats, queries: Indices) -> Floats:
    """Of the first rows of every query; NaN where no row is relevant."""
    order = np.argsort(queries, kind="stable")
    lists = np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
    return np.array([ndcg(scores[rows], relevance[rows], RANKED) for rows in lists])


def ndcg(scores: Floats, relevance: Floats, most: int) -> float:
    """Normalised discounted cumulative gain of one list (Jarvelin and Kekalainen 2002); NaN where
    no row is relevant. Rows with equal scores share their gains.
    """
    gains = 2.0**relevance - 1.0 if relevance.max(initial=0.0) <= LARGEST_GRADE else relevance
    discounts = 1.0 / np.log2(np.arange(2.0, min(most, gains.size) + 2.0))
    best = float(np.sort(gains)[::-1][: discounts.size] @ discounts)
    _, place = np.unique(-scores, return_inverse=True)
    shared = (np.bincount(place, gains) / np.bincount(place))[place]
    found = float(shared[np.argsort(place, kind="stable")][: discounts.size] @ discounts)
    return found / best if best > 0.0 else float("nan")
