"""ApproxSGD against a literal transcription of its description, and its promise that every iterate
is feasible.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_rivals import assert_same_bits

import lighttouch as lt
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.loops.approx_sgd.heaps import new_move
from lighttouch.kernels.loops.approx_sgd.loop import approx_sgd
from lighttouch.kernels.state.iterate import new_gradient
from lighttouch.solvers.approx_sgd import order_links
from lighttouch.solvers.steps import step_numbers

Array = np.ndarray


def literal_move(
    w: Array,
    direction: Array,
    smaller: Array,
    larger: Array,
    room: Array,
    lower: Array,
    upper: Array,
) -> Array:
    """Section 6.1 word for word: go on until the next constraint is tight, tie its parameters,
    repeat. Slow, no shared code.
    """
    w, now = w.copy(), 0.0
    groups = [{i} for i in range(w.size)]
    held: list[set[int]] = [set() for _ in groups]  # the signs of the bounds that hold a group

    def velocity(g: int) -> float:
        mean = sum(direction[i] for i in groups[g]) / len(groups[g])
        held[g] &= {1} if mean > 0 else {-1} if mean < 0 else {1, -1}
        return 0.0 if held[g] else mean

    while True:
        speeds = [velocity(g) for g in range(len(groups))]
        where = {i: g for g, members in enumerate(groups) for i in members}
        events = []
        for row, (i, j) in enumerate(zip(smaller, larger, strict=True)):
            closing = speeds[where[i]] - speeds[where[j]]
            if where[i] != where[j] and closing > 0.0:
                events.append(
                    (
                        now + max(0.0, room[row] - (w[i] - w[j])) / closing,
                        -closing,
                        row,
                        where[i],
                        where[j],
                    )
                )
        for i in range(w.size):
            speed, g = speeds[where[i]], where[i]
            wall = upper[i] if speed > 0.0 else lower[i]
            if speed != 0.0 and np.isfinite(wall):
                events.append(
                    (now + max(0.0, (wall - w[i]) / speed), -abs(speed), len(smaller) + i, g, None)
                )
        time, _, _, g, h = min(events, default=(1.0, 0, 0, 0, 0))
        time = min(1.0, time)
        for i in range(w.size):
            w[i] += speeds[where[i]] * (time - now)
        now = time
        if now >= 1.0:
            return w
        if h is None:
            held[g].add(1 if speeds[g] > 0.0 else -1)
        else:
            groups[g] |= groups[h]
            held[g] |= held[h]
            del groups[h], held[h]


def one_step(
    constraints: lt.LinearConstraints, domain: lt.Box | lt.Everywhere, w: Array, direction: Array
) -> Array:
    """A single step of ApproxSGD along a given direction."""
    constant = lt.Quadratic(np.zeros((w.size, w.size)), -direction)
    return lt.solve(
        lt.Problem(constant, constraints, domain),
        lt.ApproxSGD(1.0),
        iterations=1,
        start=w,
        project=False,
    ).w_last


def random_orders(rng: np.random.Generator, d: int, kind: str) -> tuple[Array, Array]:
    if kind == "chain":
        return np.arange(d - 1), np.arange(1, d)
    if kind == "lattice":
        rows = lt.lattice.increasing([2, 2, 2]).order_rows
        return rows.smaller.astype(int), rows.larger.astype(int)
    pairs = rng.integers(0, d, size=(2 * d, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return pairs[:, 0], pairs[:, 1]


@pytest.mark.parametrize("kind", ["chain", "lattice", "graph"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("margins", [False, True])
def test_approx_sgd_agrees_with_the_literal_transcription(
    kind: str, sparse: bool, margins: bool
) -> None:
    rng = np.random.default_rng([len(kind), sparse, margins])
    moved = tied = held = 0
    for case in range(60):
        d = 8 if kind == "lattice" else int(rng.integers(2, 10))
        smaller, larger = random_orders(rng, d, kind)
        margin = rng.integers(-4, 3, size=smaller.size) / 8 if margins else np.zeros(smaller.size)
        w = tied_start(rng, d, smaller, larger, margin)
        lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
        if case % 2:
            lower, upper = (
                w - np.where(rng.random(d) < 0.2, 0.0, rng.random(d)),
                w + np.where(rng.random(d) < 0.2, 0.0, rng.random(d)),
            )
        direction = 2.0 * rng.normal(size=d) * (rng.random(d) < (0.3 if sparse else 1.0))
        constraints = lt.order(smaller, larger, margin=margin, dimension=d)
        expected = literal_move(w, direction, smaller, larger, -margin, lower, upper)
        found = one_step(constraints, lt.Box(lower, upper), w, direction)
        np.testing.assert_allclose(found, expected, atol=1e-11, err_msg=f"case {case}")
        assert (
            constraints.values(found).max(initial=0.0) <= 0.0
            and np.all(found >= lower)
            and np.all(found <= upper)
        )
        free = np.clip(w + direction, lower, upper)
        moved += not np.allclose(found, w)
        tied += not np.allclose(found, free)
        held += not np.allclose(free, w + direction)
    assert moved >= 30 and tied >= 10 and held >= 10


def tied_start(
    rng: np.random.Generator, d: int, smaller: Array, larger: Array, margin: Array
) -> Array:
    """A feasible point, every second parameter tied to one below it, in eighths so that ties are
    exact.
    """
    w = rng.integers(-8, 8, size=d) / 8
    for j in range(d):  # lower indices come first in every order used here
        below = [w[i] + gap for i, k, gap in zip(smaller, larger, margin, strict=True) if k == j]
        if below:
            w[j] = max(below) + (0.0 if rng.random() < 0.5 else rng.integers(1, 9) / 8)
    return w


def test_a_single_push_from_a_tie_is_projected_exactly() -> None:
    """From all zeros, one raised parameter takes everything above it along by the average: then the
    projection is the same.
    """
    constraints = lt.lattice.increasing([2] * 6)
    for vertex in (0, 5, 63, 40):
        push = np.zeros(64)
        push[vertex] = 3.0
        np.testing.assert_allclose(
            one_step(constraints, lt.Box(-1, 1), np.zeros(64), push),
            lt.project(push, constraints, lt.Box(-1, 1)).w,
        )


@pytest.mark.parametrize(
    "constraints",
    [
        lt.lattice.increasing([2] * 6),
        lt.order(np.arange(63), np.arange(1, 64), margin=0.1 * np.sin(np.arange(63))),
        lt.stack(
            lt.lattice.increasing([4, 4, 4]),
            lt.lattice.slope([4, 4, 4], 0, 0.7),
            lt.bounds(64, -0.9, 1.1),
        ),
        lt.LinearConstraints(0.3 * lt.ordering(64).A, np.zeros(63)),
        lt.lattice.increasing([4, 4, 4]).aggregated(16),
        lt.stack(
            lt.order([0, 5, 9], [5, 9, 0], dimension=64), lt.order([9, 1], [20, 0], dimension=64)
        ),
    ],
    ids=["lattice", "margins", "slope and bounds", "scaled", "aggregated", "cycle"],
)
@pytest.mark.parametrize(
    "step_size", [lt.InverseSqrt(0.3), lt.AdaGrad(0.1)], ids=["sqrt", "adagrad"]
)
def test_every_iterate_of_approx_sgd_is_feasible_to_the_last_bit(
    constraints: lt.LinearConstraints, step_size: lt.AdaGrad
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 64)) * (rng.random((80, 64)) < 0.1)
    y = X @ np.linspace(-1.5, 1.5, 64) + rng.normal(size=80)
    problem = lt.Problem(lt.EmpiricalRisk(X, y, loss="squared"), constraints, lt.Box(-1.0, 1.0))
    result = lt.solve(
        problem, lt.ApproxSGD(step_size, batch=2), iterations=400, record_every=1, project=False
    )
    assert np.all(result.history.violation == 0.0) and np.all(np.abs(result.w_last) <= 1.0)
    assert result.history.objective[-1] < result.history.objective[0]
    assert not np.array_equal(
        result.w_last, lt.project(np.zeros(64), constraints, problem.domain).w
    )


def test_approx_sgd_examines_only_what_could_be_violated() -> None:
    """A step that touches one of a thousand parameters looks at that one's constraints, and at
    those of what it ties.
    """
    constraints = lt.ordering(1000)
    w, push = np.arange(1000.0), np.zeros(1000)
    push[500] = 0.5
    constant = lt.Quadratic(np.zeros((1000, 1000)), -push)
    result = lt.solve(lt.Problem(constant, constraints), lt.ApproxSGD(1.0), iterations=1, start=w)
    assert result.constraint_checks == 2
    push[500] = (
        # meets 501 after a quarter of the step; both, now half as fast, meet 502 after three
        # quarters
        4.0
    )
    constant = lt.Quadratic(np.zeros((1000, 1000)), -push)
    result = lt.solve(lt.Problem(constant, constraints), lt.ApproxSGD(1.0), iterations=1, start=w)
    np.testing.assert_allclose(
        result.w_last[499:504], [499.0, 502 + 1 / 3, 502 + 1 / 3, 502 + 1 / 3, 503.0]
    )
    assert result.constraint_checks == 6


def test_approx_sgd_interpreted_and_compiled_are_the_same_bits() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 16)) * (rng.random((20, 16)) < 0.3)
    problem = lt.Problem(
        lt.EmpiricalRisk(X, rng.normal(size=20), loss="absolute", l2=0.01),
        lt.lattice.increasing([2] * 4),
        lt.Box(-1, 1),
    )
    solver, links = lt.ApproxSGD(lt.InverseSqrt(2.0)), order_links(problem)
    compiled = solver.init(problem, problem.start())
    plain = compiled.copy()
    solver.advance(problem, compiled, 60, np.random.default_rng(1))
    interpreted(approx_sgd)(
        problem.objective.record,
        links,
        step_numbers(lt.InverseSqrt(2.0), 1, 0.01),
        plain.iterate,
        plain.visits,
        new_gradient(16),
        new_move(16, links.smaller.size),
        plain.counters,
        60,
        np.random.default_rng(1),
    )
    assert_same_bits(compiled, plain)
