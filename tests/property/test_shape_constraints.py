"""The rows are exactly the rule: parameters that keep them give a function that keeps the rule, and
every broken row shows.

Extreme parameters come from small linear programs; the function is looked at only through its
values at points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from lighttouch import lattice
from lighttouch.constraints import LinearConstraints
from lighttouch.lattice import Lattice

POINTS = 6_000
Function = Callable[[np.ndarray], np.ndarray]
Margins = Callable[[Function, np.ndarray, np.random.Generator], np.ndarray]


class Rule(NamedTuple):
    """How a rule is built, and how much room it has at random points (negative: it is broken
    there).
    """

    name: str
    sizes: tuple[int, ...]
    build: Callable[[str], LinearConstraints]
    margins: Margins


def starts(rng, tops, reach):
    """Points x from which every feature can rise by the row's reach; many coordinates at the very
    start or end of a cell.
    """
    room = tops - reach[:, None]
    x = rng.random(room.shape) * room
    cell = np.minimum(np.floor(x), tops - 1)
    where = rng.random(room.shape)
    return np.where(where < 0.25, cell, np.where(where < 0.5, cell + 1 - reach[:, None], x))


def reaches(rng):
    """Small ones stay within a simplex, large ones cross cells."""
    return np.where(rng.random(POINTS) < 0.7, 1e-4, rng.random(POINTS))


def moved(x, reach, **features):
    y = x.copy()
    for feature, factor in features.items():
        y[:, int(feature[1:])] += factor * reach
    return y


def rises(i, direction=1.0, start=0.0, stop=np.inf):
    def margins(f, tops, rng):
        reach = reaches(rng) * min(1.0, min(stop, tops[i]) - start)
        x = starts(rng, tops, reach)
        x[:, i] = start + rng.random(POINTS) * (min(stop, tops[i]) - start - reach)
        return direction * (f(moved(x, reach, **{f"x{i}": 1})) - f(x)) / reach

    return margins


def every(*parts):
    return lambda f, tops, rng: np.concatenate([part(f, tops, rng) for part in parts])


def turns(i, mode, sign, last):
    before, after = rises(i, -sign, 0.0, mode), rises(i, sign, mode)
    return after if mode == 0 else before if mode == last else every(before, after)


def within(lower, upper):
    def margins(f, tops, rng):
        values = f(starts(rng, tops, np.zeros(POINTS)))
        return np.minimum(values - lower, upper - values)

    return margins


def gentle(i, limit):
    def margins(f, tops, rng):
        return limit - np.abs(rises(i)(f, tops, rng))

    return margins


def complements(pairs, sign):
    def margins(f, tops, rng):
        parts = []
        for i, j in pairs:
            reach = reaches(rng)
            x = starts(rng, tops, reach)
            along_i, along_j, both = ({f"x{i}": 1}, {f"x{j}": 1}, {f"x{i}": 1, f"x{j}": 1})
            cross = (
                f(moved(x, reach, **both))
                - f(moved(x, reach, **along_i))
                - f(moved(x, reach, **along_j))
                + f(x)
            )
            parts.append(sign * cross / reach)
        return np.concatenate(parts)

    return margins


def widens(i, j, sign):
    def margins(f, tops, rng):
        reach = reaches(rng)
        x = starts(rng, tops, reach)
        low, high = x.copy(), x.copy()
        low[:, i], high[:, i] = 0.0, tops[i]
        step = {f"x{j}": 1}
        falls = f(low) - f(moved(low, reach, **step))
        return (
            sign
            * np.concatenate([falls, f(moved(high, reach, **step)) - f(high)])
            / np.tile(reach, 2)
        )

    return margins


def dominates(i, j):
    def margins(f, tops, rng):
        reach = reaches(rng)
        x = starts(rng, tops, reach)
        return (f(moved(x, reach, **{f"x{i}": 1})) - f(moved(x, reach, **{f"x{j}": 1}))) / reach

    return margins


def rises_together(i, j):
    def margins(f, tops, rng):
        reach = reaches(rng)
        x = starts(rng, tops, reach)
        return (f(moved(x, reach, **{f"x{i}": 1, f"x{j}": 1})) - f(x)) / reach

    return margins


def outranges(i, j):
    def margins(f, tops, rng):
        x = starts(rng, tops, np.zeros(POINTS))

        def spread(k):
            low, high = x.copy(), x.copy()
            low[:, k], high[:, k] = 0.0, tops[k]
            return f(high) - f(low)

        return spread(i) - spread(j)

    return margins


def bends(i, sign, keypoints):
    def margins(f, tops, rng):
        reach = (keypoints[-1] - keypoints[0]) / 2 * rng.random(POINTS)
        middle = (
            keypoints[0] + reach + rng.random(POINTS) * (keypoints[-1] - keypoints[0] - 2 * reach)
        )
        x = starts(rng, tops, np.zeros(POINTS))

        def value(at):
            y = x.copy()
            y[:, i] = np.interp(at, keypoints, np.arange(len(keypoints)))
            return f(y)

        return sign * (value(middle - reach) - 2 * value(middle) + value(middle + reach)) / reach

    return margins


CUBE, MIXED, TALL, FOUR = (2, 2, 2), (3, 2, 3), (4, 2, 2), (2, 2, 2, 2)
UNEVEN = np.array([0.0, 0.3, 2.0, 2.5])
RULES = [
    Rule(
        "increasing",
        MIXED,
        lambda how: lattice.increasing(MIXED, [0, 1], how),
        every(rises(0), rises(1)),
    ),
    Rule("decreasing", MIXED, lambda how: lattice.decreasing(MIXED, 2, how), rises(2, -1.0)),
    Rule("bounds", MIXED, lambda how: lattice.bounds(MIXED, -0.5, 0.25, how), within(-0.5, 0.25)),
    Rule(
        "valley",
        TALL,
        lambda how: lattice.unimodal(TALL, 0, 1, interpolation=how),
        turns(0, 1, 1.0, 3),
    ),
    Rule("peak", TALL, lambda how: lattice.unimodal(TALL, 0, 2, "peak", how), turns(0, 2, -1.0, 3)),
    Rule(
        "peak at the end",
        TALL,
        lambda how: lattice.unimodal(TALL, 0, 3, "peak", how),
        turns(0, 3, -1.0, 3),
    ),
    Rule(
        "edgeworth",
        MIXED,
        lambda how: lattice.edgeworth(MIXED, 0, 2, 1, how),
        complements([(0, 2)], 1.0),
    ),
    Rule(
        "edgeworth, falling",
        CUBE,
        lambda how: lattice.edgeworth(CUBE, 2, 1, -1, how),
        complements([(1, 2)], -1.0),
    ),
    Rule(
        "supermodular",
        CUBE,
        lambda how: lattice.supermodular(CUBE, None, how),
        complements([(0, 1), (0, 2), (1, 2)], 1.0),
    ),
    Rule(
        "submodular",
        MIXED,
        lambda how: lattice.submodular(MIXED, [(0, 1), (2, 1)], how),
        complements([(0, 1), (1, 2)], -1.0),
    ),
    Rule("trapezoid", MIXED, lambda how: lattice.trapezoid(MIXED, 0, 2, 1, how), widens(0, 2, 1.0)),
    Rule(
        "trapezoid, falling",
        MIXED,
        lambda how: lattice.trapezoid(MIXED, 2, 1, -1, how),
        widens(2, 1, -1.0),
    ),
    Rule(
        "dominance in two",
        (2, 2),
        lambda how: lattice.dominance((2, 2), 1, 0, how),
        dominates(1, 0),
    ),
    Rule("dominance", CUBE, lambda how: lattice.dominance(CUBE, 0, 1, how), dominates(0, 1)),
    Rule(
        "dominance in four", FOUR, lambda how: lattice.dominance(FOUR, 3, 1, how), dominates(3, 1)
    ),
    Rule(
        "dominance, larger sizes",
        MIXED,
        lambda how: lattice.dominance(MIXED, 2, 0, how),
        dominates(2, 0),
    ),
    Rule("dominance, tall", TALL, lambda how: lattice.dominance(TALL, 1, 2, how), dominates(1, 2)),
    Rule(
        "range dominance",
        CUBE,
        lambda how: lattice.range_dominance(CUBE, 0, 2, how),
        outranges(0, 2),
    ),
    Rule(
        "range dominance, larger sizes",
        MIXED,
        lambda how: lattice.range_dominance(MIXED, 2, 0, how),
        outranges(2, 0),
    ),
    Rule(
        "joint monotonicity in two",
        (2, 2),
        lambda how: lattice.joint_monotonicity((2, 2), 0, 1, how),
        rises_together(0, 1),
    ),
    Rule(
        "joint monotonicity",
        CUBE,
        lambda how: lattice.joint_monotonicity(CUBE, 0, 2, how),
        rises_together(0, 2),
    ),
    Rule(
        "joint monotonicity, larger sizes",
        MIXED,
        lambda how: lattice.joint_monotonicity(MIXED, 0, 2, how),
        rises_together(0, 2),
    ),
    Rule(
        "convex alone",
        (4,),
        lambda how: lattice.convex((4,), 0, None, how),
        bends(0, 1.0, np.arange(4.0)),
    ),
    Rule(
        "convex",
        MIXED,
        lambda how: lattice.convex(MIXED, 2, None, how),
        bends(2, 1.0, np.arange(3.0)),
    ),
    Rule(
        "concave, uneven",
        TALL,
        lambda how: lattice.concave(TALL, 0, UNEVEN, how),
        bends(0, -1.0, UNEVEN),
    ),
    Rule("slope", MIXED, lambda how: lattice.slope(MIXED, 2, 0.3, how), gentle(2, 0.3)),
]
BOTH = pytest.mark.parametrize("how", ["simplex", "hypercube"])
EVERY = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def smallest_margin(rule: Rule, how: str, theta: np.ndarray) -> float:
    grid = Lattice(rule.sizes, how)
    tops = np.array(rule.sizes) - 1.0
    return float(
        rule.margins(lambda X: grid.evaluate(X, theta), tops, np.random.default_rng(0)).min()
    )


def extreme(objective: np.ndarray, constraints, without: int | None = None) -> np.ndarray:
    """Parameters in [-1, 1] that keep every row (but `without`) and are farthest in a direction."""
    keep = np.arange(constraints.count) != (-1 if without is None else without)
    A, b = (constraints.A[keep], constraints.b[keep]) if keep.any() else (None, None)
    solved = linprog(-objective, A_ub=A, b_ub=b, bounds=(-1.0, 1.0), method="highs-ds")
    assert solved.status == 0
    return solved.x


def most_room(constraints) -> np.ndarray:
    """Parameters in [-1, 1] that keep every row with as much to spare as possible."""
    A = np.column_stack([constraints.A.toarray(), np.ones(constraints.count)])
    last = np.eye(A.shape[1])[-1]
    return linprog(-last, A_ub=A, b_ub=constraints.b, bounds=(-1.0, 1.0), method="highs-ds").x[:-1]


@BOTH
@EVERY
def test_parameters_that_keep_the_rows_keep_the_rule(rule, how):
    rng = np.random.default_rng(1)
    constraints = rule.build(how)
    for _ in range(8):
        theta = extreme(rng.standard_normal(constraints.dimension), constraints)
        assert smallest_margin(rule, how, theta) >= -1e-9


@BOTH
@EVERY
def test_every_broken_row_breaks_the_rule_somewhere(rule, how):
    rng = np.random.default_rng(2)
    constraints = rule.build(how)
    alone = 0
    for row in rng.permutation(constraints.count)[:20]:
        direction = constraints.A[row].toarray().ravel()
        theta = extreme(direction, constraints, without=row)
        if constraints.values(theta)[row] > 1e-6:
            alone += 1
        else:  # the row follows from others, so it can only be broken along with one of them
            theta = np.sign(direction)
        assert smallest_margin(rule, how, theta) < -1e-6
    assert alone > 0 or rule.name.startswith("joint monotonicity in two")


@BOTH
@EVERY
def test_rows_and_rule_are_kept_or_broken_together(rule, how):
    """Random parameters around the middle of the allowed set: the rows forbid nothing that the rule
    allows.
    """
    rng = np.random.default_rng(3)
    constraints = rule.build(how)
    middle = most_room(constraints)
    seen = set()
    for scale in np.geomspace(0.02, 2.0, 40):
        theta = middle + scale * rng.standard_normal(middle.size)
        worst = constraints.values(theta).max()
        if 0.0 < worst < 0.01:  # shows in too few points
            continue
        broken = smallest_margin(rule, how, theta) < -1e-9
        assert broken == (worst > 0.0)
        seen.add(broken)
    assert seen == {True, False}


PLAIN_ROWS_FAIL = [
    "dominance",
    "dominance in four",
    "joint monotonicity",
    "convex",
    "concave, uneven",
    "dominance, larger sizes",
]


@pytest.mark.parametrize("name", PLAIN_ROWS_FAIL)
def test_the_plain_rows_are_not_enough_for_simplex_interpolation(name):
    rule = next(rule for rule in RULES if rule.name == name)
    plain, exact = rule.build("hypercube"), rule.build("simplex")
    worst = max(
        (extreme(exact.A[row].toarray().ravel(), plain) for row in range(exact.count)),
        key=lambda theta: exact.values(theta).max(),
    )
    assert plain.values(worst).max() <= 1e-9
    assert smallest_margin(rule, "hypercube", worst) >= -1e-9
    assert smallest_margin(rule, "simplex", worst) < -0.1


def test_in_two_features_plain_and_simplex_rows_of_dominance_agree():
    plain, exact = lattice.dominance((2, 2), 0, 1, "hypercube"), lattice.dominance((2, 2), 0, 1)
    assert abs(plain.A - exact.A).max() == 0.0


def test_the_counterexample_of_dominance_by_hand():
    """Both features count only where the third is high: the plain rows hold, yet where 0 > 2 > 1
    the simplex credits all to feature 1.
    """
    a, b, c = np.meshgrid(*[np.arange(2.0)] * 3, indexing="ij")
    theta = (c * (a + b)).ravel()
    assert lattice.dominance(CUBE, 0, 1, "hypercube").values(theta).max() <= 0.0
    assert lattice.increasing(CUBE).values(theta).max() <= 0.0
    assert lattice.dominance(CUBE, 0, 1).values(theta).max() == 1.0
    by_dominant, by_weak = [[0.7, 0.2, 0.4]], [[0.6, 0.3, 0.4]]
    assert np.isclose(
        Lattice(CUBE, "hypercube").evaluate(by_dominant, theta),
        Lattice(CUBE, "hypercube").evaluate(by_weak, theta),
    )
    assert np.isclose(
        Lattice(CUBE).evaluate(by_dominant, theta), Lattice(CUBE).evaluate(by_weak, theta) - 0.1
    )


def test_the_simplex_exact_rows_hold_at_full_size():
    """D = 12: parameters kept by construction, 118,098 rows checked, and the rule looked at in
    points.
    """
    rng = np.random.default_rng(4)
    sizes = (2,) * 12
    axes = np.meshgrid(*[np.arange(2.0)] * 12, indexing="ij")
    others = sum(rng.random() * axis for axis in axes[2:])
    theta = (
        3.0 * axes[0] + axes[1] + 0.1 * np.sqrt(1.0 + axes[0] + axes[1] + others) + others
    ).ravel()
    assert lattice.dominance(sizes, 0, 1).values(theta).max() <= 0.0
    rule = Rule(
        "dominance", sizes, lambda how: lattice.dominance(sizes, 0, 1, how), dominates(0, 1)
    )
    assert smallest_margin(rule, "simplex", theta) >= 0.0
