"""The sets and the points to project: the paper's lattices, deep orders, general rows, balls."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import lighttouch as lt


@dataclass(frozen=True)
class Case:
    """One set with one point: rows @ w <= right, a box, balls; and the same for lighttouch."""

    name: str
    point: np.ndarray
    constraints: Any
    rows: Any
    right: np.ndarray
    lower: float = -np.inf
    upper: float = np.inf
    centers: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    radii: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def domain(self) -> Any:
        return lt.Box(self.lower, self.upper) if np.isfinite(self.lower) else lt.Everywhere()

    def violation(self, w: np.ndarray) -> float:
        """Over everything; rows in units of their length."""
        length = (
            np.sqrt(np.asarray(self.rows.multiply(self.rows).sum(axis=1)).ravel())
            if self.right.size
            else np.ones(0)
        )
        worst = float(np.max((self.rows @ w - self.right) / length, initial=0.0))
        worst = max(
            worst,
            float(np.max(self.lower - w, initial=0.0)),
            float(np.max(w - self.upper, initial=0.0)),
        )
        balls = (
            np.linalg.norm(w - self.centers, axis=1) - self.radii
            if self.radii.size
            else np.zeros(0)
        )
        return max(worst, float(np.max(balls, initial=0.0)))


def fitted_lattice(features: int, rng: np.random.Generator) -> np.ndarray:
    """Monotone and flat in places, as fitted lattices are: a saturating function of weighted
    features, some of them nearly irrelevant.
    """
    corner = np.indices((2,) * features).reshape(features, -1)
    weight = rng.uniform(0.2, 1.2, features) * 6.0 / features
    weight[rng.permutation(features)[: max(1, features // 4)]] *= 0.01
    score = weight @ (corner - 0.5)
    for i, j in rng.permutation(features)[: 2 * (features // 4)].reshape(-1, 2):
        score = score + 0.2 * corner[i] * corner[j]
    return 4.0 * np.tanh(1.5 * score - 0.1)


def lattice(features: int, kind: str) -> Case:
    rng = np.random.default_rng(1000 * features)
    realistic = fitted_lattice(features, rng) + 0.01 * rng.standard_normal(2**features)
    point = realistic if kind == "realistic" else rng.standard_normal(2**features)
    constraints = lt.lattice.increasing([2] * features)
    return Case(
        f"2^{features} lattice, {kind}",
        point,
        constraints,
        constraints.A,
        constraints.b,
        -10.0,
        10.0,
    )


def chain(length: int) -> Case:
    point = np.linspace(0.0, 1.0, length) + np.random.default_rng(0).standard_normal(length)
    constraints = lt.ordering(length)
    return Case(f"chain of {length:,}", point, constraints, constraints.A, constraints.b)


def ladder(length: int) -> Case:
    """Two chains with rungs: as deep as a chain, and no chain."""
    sizes = [length, 2]
    slope = np.add.outer(np.linspace(0.0, 1.0, length), [0.0, 0.1]).ravel()
    point = slope + np.random.default_rng(0).standard_normal(2 * length)
    constraints = lt.lattice.increasing(sizes)
    return Case(f"ladder of 2 x {length:,}", point, constraints, constraints.A, constraints.b)


def general_rows(count: int, dimension: int, entries: int, far: float) -> Case:
    """Random rows around a known inner point; the point to project is `far` away from it."""
    rng = np.random.default_rng(count + entries)
    if entries == dimension:
        rows = sp.csr_matrix(rng.standard_normal((count, dimension)))
    else:
        columns = rng.integers(0, dimension, (count, entries)).ravel()
        starts = np.arange(0, count * entries + 1, entries)
        rows = sp.csr_matrix(
            (rng.standard_normal(count * entries), columns, starts), (count, dimension)
        )
        rows.sum_duplicates()
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    right = length * (0.05 + rng.random(count))
    point = far * rng.standard_normal(dimension)
    given = rows.toarray() if entries == dimension else rows
    words = "full rows" if entries == dimension else f"{entries} entries per row"
    name = f"{count:,} rows in {dimension:,} dimensions, {words}, {'far' if far > 0.3 else 'near'}"
    return Case(name, point, lt.LinearConstraints(given, right), rows, right)


def convex_sequence(length: int) -> Case:
    """Second differences: rows so ill conditioned that their Gram matrix is singular in doubles."""
    rows = sp.diags([-1.0, 2.0, -1.0], [0, 1, 2], shape=(length - 2, length), format="csr")
    point = np.linspace(-1.0, 1.0, length) ** 2 + 0.1 * np.random.default_rng(0).standard_normal(
        length
    )
    return Case(
        f"convex sequence of {length:,}",
        point,
        lt.LinearConstraints(rows, np.zeros(length - 2)),
        rows,
        np.zeros(length - 2),
    )


def balls(count: int, dimension: int) -> Case:
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((count, dimension))
    radii = np.linalg.norm(centers, axis=1) * (1.0 + 0.2 * rng.random(count))
    constraints = lt.NormConstraints(None, -centers, None, radii)
    name, point = f"{count:,} balls in {dimension} dimensions", rng.standard_normal(dimension)
    return Case(
        name,
        point,
        constraints,
        sp.csr_matrix((0, dimension)),
        np.zeros(0),
        centers=centers,
        radii=radii,
    )


def lattice_cases(quick: bool) -> list[partial[Case]]:
    return [
        partial(lattice, features, kind)
        for features in ((8, 10) if quick else (8, 10, 12, 14, 16))
        for kind in ("realistic", "noise")
    ]


def other_cases(quick: bool) -> list[partial[Case]]:
    if quick:
        return [
            partial(chain, 500),
            partial(ladder, 500),
            partial(general_rows, 5_000, 200, 20, 0.3),
            partial(convex_sequence, 500),
            partial(balls, 100, 20),
        ]
    return [
        partial(chain, 2_000),
        partial(ladder, 2_000),
        partial(general_rows, 100_000, 2_000, 20, 0.2),
        partial(general_rows, 100_000, 2_000, 20, 1.0),
        partial(general_rows, 20_000, 500, 500, 0.2),
        partial(convex_sequence, 2_000),
        partial(balls, 2_000, 200),
    ]
