"""Generated data: a stand-in for the click log on which the paper's experiments ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lighttouch.arrays import Floats

LIST_LENGTH = 5
LISTS_PER_CHUNK = 8192
FAMILY_SIZE = 4

WATCHED_SHARE, CANDIDATE_SHARE, FAMILY_SHARE, OWN_SHARE = 0.15, 0.25, 0.20, 0.40
CHOICE_NOISE = 1.75
POSITION_COST = 0.1
OLD_RANKER_NOISE = 1.0


class Population(NamedTuple):
    """What a feature, or a pair of neighbours k and k + 1, is worth to users and the old ranker."""

    weights: Floats
    products: Floats
    weaker_of_two: Floats
    old_ranker: Floats


def ranking_pairs(n: int = 612_587, features: int = 12, seed: int = 0) -> tuple[Floats, Floats]:
    """Pairs of a clicked candidate and the candidate just above it, both with features in [0, 1].

    The model, from one user to a pair (the page "The generated click log" has every constant):

    - A user has watched a video and is shown a list of 5 candidates. Feature k of a candidate
      measures in one way how similar it is to the watched video: 0.15 a + 0.25 c + 0.20 s + 0.40 e,
      all four uniform on [0, 1]. Here a belongs to the watched video, c to the candidate, s to the
      candidate and the family of 4 features that k is in, and e to this feature alone. The mixture
      x is spread to 3x² - 2x³, and every third feature is squared on top.
    - Its utility never falls when a feature rises. It is a weighted sum, plus products of
      neighbouring features (one helps more where the other is high), plus the smaller of two
      neighbours (both are needed). The last quarter of the features is worth next to nothing.
    - The list was sorted by an old ranker: its own weighted sum, which trusts the nearly worthless
      features most, plus normal noise. So the candidate above tends to be ahead in just those
      features, and the log seems to say that they do harm. An unconstrained fit believes it; there
      the monotonicity constraints bind.
    - The user clicks the candidate of largest utility, less 0.1 for each place down the list, plus
      normal noise.
    - A click on the first place is thrown out; any other gives the pair (clicked, the one above).

    The model is the same for every seed; the seed draws the users. So another seed gives a test set
    of the same population, and a smaller n the beginning of a larger one.

    Parameters
    ----------
    n : int, default 612_587
        How many pairs; the default is the paper's.
    features : int, default 12
        How many features a candidate has.
    seed : int, default 0
        What the users are drawn from.

    Returns
    -------
    tuple of two arrays of shape (n, features)
        The clicked candidates and those just above them.

    Examples
    --------
    >>> from lighttouch.datasets import ranking_pairs
    >>> better, worse = ranking_pairs(n=5, features=3)
    >>> better.shape
    (5, 3)
    """
    if n < 1 or features < 1:
        raise ValueError(f"n and features must be at least 1, got n={n} and features={features}")
    better, worse = np.empty((n, features)), np.empty((n, features))
    filled = 0
    for clicked, above in _chunks(features, seed):
        taken = min(clicked.shape[1], n - filled)
        better[filled : filled + taken] = clicked[:, :taken].T
        worse[filled : filled + taken] = above[:, :taken].T
        filled += taken
        if filled == n:
            return better, worse
    raise AssertionError("the stream of chunks has no end")


def utility(x: Floats) -> Floats:
    """What the model's users want, without the noise.

    Parameters
    ----------
    x : array of shape (n, features)
        Candidates, with features in [0, 1].

    Returns
    -------
    array of shape (n,)
        The utility of each candidate.
    """
    return _utility(
        np.ascontiguousarray(np.asarray(x, dtype=np.float64).T), _population(x.shape[1])
    )


def _chunks(features: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Endless (clicked, above) columns of feature vectors, one chunk of lists at a time."""
    population = _population(features)
    root = np.random.SeedSequence(seed)
    while True:
        rng = np.random.Generator(np.random.PCG64(root.spawn(1)[0]))
        candidates = _similarities(features, rng)
        order = _list_order(candidates, population, rng)
        place = _clicked_place(candidates, order, population, rng)
        lists = np.flatnonzero(place > 0)
        clicked, above = order[place[lists], lists], order[place[lists] - 1, lists]
        yield candidates[:, clicked, lists], candidates[:, above, lists]


def _population(features: int) -> Population:
    k = np.arange(features)
    relevant = k < features - features // 4
    linked = relevant[:-1] & relevant[1:]
    even = k[:-1] % 2 == 0
    return Population(
        weights=np.where(relevant, 0.5 + 0.25 * (k % 3), 0.02),
        products=np.where(linked & even, 1.0, 0.0),
        weaker_of_two=np.where(linked & ~even, 0.75, 0.0),
        old_ranker=np.where(relevant, 0.25, 1.0),
    )


def _similarities(features: int, rng: np.random.Generator) -> Floats:
    """One chunk of lists: features x places x lists."""
    shape = (LIST_LENGTH, LISTS_PER_CHUNK)
    common = WATCHED_SHARE * rng.random(LISTS_PER_CHUNK) + CANDIDATE_SHARE * rng.random(shape)
    candidates = np.empty((features, *shape))
    for k in range(features):
        if k % FAMILY_SIZE == 0:
            family = common + FAMILY_SHARE * rng.random(shape)
        x = rng.random(shape)
        x *= OWN_SHARE
        x += family
        np.multiply(x * x, 3.0 - 2.0 * x, out=candidates[k])
        if k % 3 == 2:
            candidates[k] *= candidates[k]
    return candidates


def _utility(x: Floats, population: Population) -> Floats:
    """Element by element, so that the bits depend on no linear algebra library."""
    total = np.zeros(x.shape[1:])
    for k, weight in enumerate(population.weights):
        total += weight * x[k]
    for k, weight in enumerate(population.products):
        if weight:
            total += weight * (x[k] * x[k + 1])
    for k, weight in enumerate(population.weaker_of_two):
        if weight:
            total += weight * np.minimum(x[k], x[k + 1])
    return total


def _list_order(
    candidates: Floats, population: Population, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Which candidate stands at each place of each list: places x lists."""
    score = OLD_RANKER_NOISE * rng.standard_normal(candidates.shape[1:])
    for weight, x in zip(population.old_ranker, candidates, strict=True):
        score += weight * x
    return np.asarray(np.argsort(-score, axis=0, kind="stable"))


def _clicked_place(
    candidates: Floats, order: NDArray[np.intp], population: Population, rng: np.random.Generator
) -> NDArray[np.intp]:
    wanted = np.take_along_axis(_utility(candidates, population), order, axis=0)
    wanted += CHOICE_NOISE * rng.standard_normal(wanted.shape)
    wanted -= POSITION_COST * np.arange(LIST_LENGTH)[:, None]
    return np.asarray(wanted.argmax(axis=0))
