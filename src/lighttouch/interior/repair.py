"""Slopes that leave nothing over, for a bound: what a step leaves is small, but not rounding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lighttouch.arrays import Booleans, Vector
from lighttouch.interior.costs import COSTS
from lighttouch.interior.path import Point
from lighttouch.interior.program import Program
from lighttouch.interior.systems import System, refined


def repaired(system: System, at: Point, lift: float) -> Iterator[Point]:
    """x and s moved until (P - lift I) x + q + B's = 0 to rounding: each slope by no more than its
    room. The points are good for `dual_bounds` alone.

    The first has all slopes free. In the second, slopes that are nearer to a bound than their slack
    is to 0 are put there first, and stay: what no active row holds then balances exactly. In the
    third also those that the second has made negligible: at a corner of convex regression no slope
    but 0 balances, however small.
    """
    program = system.program
    below, above = program.below, program.above
    delta, none = _deltas(program, at), np.zeros(program.count, dtype=bool)
    found = _balanced(system, delta, at.x, at.s, none, lift)
    if found is not None:
        yield Point(*found, *at.slacks)
    least, most = below & (at.low < at.n), above & (at.high < at.p)
    found = _balanced(system, delta, at.x, _settled(program, at.s, least, most), least | most, lift)
    if found is None:
        return
    yield Point(*found, *at.slacks)
    x, s = found
    small = COSTS.negligible_slope * float(np.abs(s).max(initial=0.0))
    more = below & (s - program.least <= small), above & (program.most - s <= small)
    if np.all(more[0] | more[1] <= least | most):
        return
    least, most = least | more[0], most | more[1]
    found = _balanced(system, delta, x, _settled(program, s, least, most), least | most, lift)
    if found is not None:
        yield Point(*found, *at.slacks)


def _deltas(program: Program, at: Point) -> Vector:
    """By how much a slack gives way per change of its slope: the less, the more room it has."""
    below, above = program.below, program.above
    room = np.where(above, np.where(below, at.low * at.high / (at.low + at.high), at.high), at.low)
    delta = np.where(below | above, 1.0 / room, 0.0) + program.roundness
    if program.smooth:
        _, _, curvature = program.smooth_terms(program.forward(at.x) - program.centre)
        smooth = program.is_smooth
        delta[smooth] = 1.0 / np.maximum(curvature[smooth], COSTS.least_curvature)
    return np.asarray(delta)


def _settled(program: Program, s: Vector, least: Booleans, most: Booleans) -> Vector:
    return np.where(least, program.least, np.where(most, program.most, s))


def _balanced(
    system: System, delta: Vector, x: Vector, s: Vector, settled: Booleans, lift: float
) -> tuple[Vector, Vector] | None:
    """x and s with nothing left over, and the settled slopes where they are; None where the
    equations are singular.
    """
    program, none = system.program, np.zeros(s.size)
    delta = np.where(settled, COSTS.immovable, delta)
    try:
        factor = system.factor(delta, -lift)
        for _ in range(COSTS.repairs):
            rest = program.P @ x - lift * x + program.q + program.backward(s)
            dx, ds, _ = refined(program, factor, delta, -rest, none, -lift)
            x, s = x + dx, np.where(settled, s, s + ds)
    except RuntimeError:  # singular
        return None
    return x, s
