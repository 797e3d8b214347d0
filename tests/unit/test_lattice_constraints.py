"""The builders' rows: counts of the table, rows against a slow reading of it, order of rows,
memory, bad arguments.
"""

from __future__ import annotations

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp

import lighttouch as lt
from lighttouch import lattice
from lighttouch.constraints import LinearConstraints
from lighttouch.errors import ConstraintError

PAPER = [2] * 12
D12_COUNTS = [
    (lambda how: lattice.increasing(PAPER, interpolation=how), 24_576, 24_576),
    (lambda how: lattice.increasing(PAPER, 3, how), 2_048, 2_048),
    (lambda how: lattice.decreasing(PAPER, [1, 5], how), 4_096, 4_096),
    (lambda how: lattice.bounds(PAPER, -1, 1, how), 8_192, 8_192),
    (lambda how: lattice.edgeworth(PAPER, 0, 1, -1, how), 1_024, 1_024),
    (lambda how: lattice.supermodular(PAPER, interpolation=how), 67_584, 67_584),
    (lambda how: lattice.submodular(PAPER, [(0, 1), (3, 2)], how), 2_048, 2_048),
    (lambda how: lattice.trapezoid(PAPER, 0, 11, 1, how), 2_048, 2_048),
    (lambda how: lattice.dominance(PAPER, 4, 7, how), 118_098, 2_048),
    (lambda how: lattice.range_dominance(PAPER, 4, 7, how), 3_072, 3_072),
    (lambda how: lattice.joint_monotonicity(PAPER, 4, 7, how), 118_098, 2_048),
    (lambda how: lattice.slope(PAPER, 2, 0.5, how), 4_096, 4_096),
]


@pytest.mark.parametrize(("build", "simplex", "hypercube"), D12_COUNTS)
def test_counts_on_the_papers_lattice(build, simplex, hypercube):
    for how, expected in (("simplex", simplex), ("hypercube", hypercube)):
        constraints = build(how)
        assert isinstance(constraints, LinearConstraints)
        assert constraints.count == expected
        assert constraints.dimension == 4096
        assert constraints.A.indices.dtype == np.int32
        assert np.abs(constraints.A.data).min() > 0.0


def rows_of(constraints: LinearConstraints) -> list[tuple[frozenset, float]]:
    """Every row as (vertex, coefficient) pairs of its `... >= least` form."""
    A, b = constraints.A, constraints.b
    return [
        (
            frozenset(zip(A.indices[s:e].tolist(), (-A.data[s:e]).tolist(), strict=True)),
            float(-b[r]) + 0.0,
        )
        for r, (s, e) in enumerate(zip(A.indptr[:-1], A.indptr[1:], strict=True))
    ]


class Table:
    """The rows of shape_constraints.md, written out vertex by vertex."""

    def __init__(self, sizes):
        self.sizes, self.rows = sizes, []

    def vertices(self):
        return product(*map(range, self.sizes))

    def add(self, *terms, least=0.0):
        """Add the row, unless one of its vertices does not exist."""
        row = {}
        for coefficient, vertex in terms:
            if any(not 0 <= v < size for v, size in zip(vertex, self.sizes, strict=True)):
                return
            number = int(np.ravel_multi_index(vertex, self.sizes))
            row[number] = row.get(number, 0.0) + coefficient
        self.rows.append((frozenset((k, c) for k, c in row.items() if c), least))


def up(vertex, *features):
    stepped = list(vertex)
    for feature in features:
        stepped[feature] += 1
    return tuple(stepped)


def at(vertex, feature, value):
    return (*vertex[:feature], value, *vertex[feature + 1 :])


def increasing_rows(sizes, feature, direction=1.0):
    table = Table(sizes)
    for v in table.vertices():
        table.add((direction, up(v, feature)), (-direction, v))
    return table.rows


def unimodal_rows(sizes, i, mode, sign):
    table = Table(sizes)
    for v in table.vertices():
        side = -sign if v[i] < mode else sign
        table.add((side, up(v, i)), (-side, v))
    return table.rows


def edgeworth_rows(sizes, i, j, s):
    table = Table(sizes)
    for v in table.vertices():
        table.add((s, up(v, i, j)), (-s, up(v, j)), (-s, up(v, i)), (s, v))
    return table.rows


def trapezoid_rows(sizes, i, j, s):
    table = Table(sizes)
    for v in table.vertices():
        if v[i] == 0:
            table.add((s, v), (-s, up(v, j)))
        if v[i] == sizes[i] - 1:
            table.add((s, up(v, j)), (-s, v))
    return table.rows


def plain_dominance_rows(sizes, i, j):
    table = Table(sizes)
    for v in table.vertices():
        table.add((2.0, up(v, i)), (-1.0, v), (-1.0, up(v, i, j)))
        table.add((1.0, v), (1.0, up(v, i, j)), (-2.0, up(v, j)))
    return table.rows


def nested_sets(sizes, i, j):
    """S <= T <= [D] without i and j."""
    others = [k for k in range(len(sizes)) if k not in (i, j)]
    for size in range(len(others) + 1):
        for T in combinations(others, size):
            for inner in range(size + 1):
                yield from ((S, T) for S in combinations(T, inner))


def exact_dominance_rows(sizes, i, j):
    """The table's simplex-exact rows in every cell."""
    table = Table(sizes)
    for v in product(*(range(size - 1) for size in sizes)):
        for S, T in nested_sets(sizes, i, j):
            table.add(
                (1.0, up(v, *S, i)), (-1.0, up(v, *S)), (-1.0, up(v, *T, i, j)), (1.0, up(v, *T, i))
            )
            table.add(
                (1.0, up(v, *T, i, j)), (-1.0, up(v, *T, j)), (-1.0, up(v, *S, j)), (1.0, up(v, *S))
            )
    return table.rows


def exact_joint_rows(sizes, i, j):
    table = Table(sizes)
    for v in product(*(range(size - 1) for size in sizes)):
        for S, T in nested_sets(sizes, i, j):
            for a in (i, j):
                table.add(
                    (1.0, up(v, *S, a)),
                    (-1.0, up(v, *S)),
                    (1.0, up(v, *T, i, j)),
                    (-1.0, up(v, *T, a)),
                )
    return table.rows


def plain_joint_rows(sizes, i, j):
    table = Table(sizes)
    for v in table.vertices():
        table.add((2.0, up(v, i, j)), (-1.0, up(v, i)), (-1.0, up(v, j)))
        if all(x < size - 1 for x, size in ((v[i], sizes[i]), (v[j], sizes[j]))):
            table.add((1.0, up(v, i)), (1.0, up(v, j)), (-2.0, v))
    return table.rows


def range_dominance_rows(sizes, i, j):
    table = Table(sizes)
    for v in table.vertices():
        last_i, last_j = sizes[i] - 1, sizes[j] - 1
        table.add(
            (1.0, at(v, i, last_i)),
            (-1.0, at(v, i, 0)),
            (-1.0, at(v, j, last_j)),
            (1.0, at(v, j, 0)),
        )
    return table.rows


def plain_convex_rows(sizes, i, keypoints):
    table = Table(sizes)
    h = np.diff(keypoints)
    for v in table.vertices():
        if v[i] < sizes[i] - 2:
            before, after = 1.0 / h[v[i]], 1.0 / h[v[i] + 1]
            table.add((after, up(v, i, i)), (-after, up(v, i)), (-before, up(v, i)), (before, v))
    return table.rows


def exact_convex_rows(sizes, i, keypoints):
    others = [k for k in range(len(sizes)) if k != i]
    rows = [row for k in others for row in edgeworth_rows(sizes, i, k, -1.0)]
    table = Table(sizes)
    h = np.diff(keypoints)
    for v in table.vertices():
        if v[i] < sizes[i] - 2:
            before, after = 1.0 / h[v[i]], 1.0 / h[v[i] + 1]
            table.add(
                (after, up(v, i, i, *others)),
                (-after, up(v, i, *others)),
                (-before, up(v, i)),
                (before, v),
            )
    return rows + table.rows


MIXED = (3, 2, 4)
UNEVEN = [0.0, 0.5, 0.75, 3.0]
SLOW_READING = [
    (lattice.increasing(MIXED), [row for i in range(3) for row in increasing_rows(MIXED, i)]),
    (
        lattice.decreasing(MIXED, [2, 0]),
        [row for i in (2, 0) for row in increasing_rows(MIXED, i, -1.0)],
    ),
    (lattice.unimodal(MIXED, 2, 1), unimodal_rows(MIXED, 2, 1, 1.0)),
    (lattice.unimodal(MIXED, 2, 3, shape="peak"), unimodal_rows(MIXED, 2, 3, -1.0)),
    (lattice.edgeworth(MIXED, 2, 0), edgeworth_rows(MIXED, 2, 0, 1.0)),
    (lattice.edgeworth(MIXED, 0, 1, sign=-1), edgeworth_rows(MIXED, 0, 1, -1.0)),
    (
        lattice.supermodular(MIXED),
        [row for i, j in combinations(range(3), 2) for row in edgeworth_rows(MIXED, i, j, 1.0)],
    ),
    (lattice.submodular(MIXED, [(2, 1)]), edgeworth_rows(MIXED, 2, 1, -1.0)),
    (lattice.trapezoid(MIXED, 0, 2), trapezoid_rows(MIXED, 0, 2, 1.0)),
    (lattice.trapezoid(MIXED, 2, 0, sign=-1), trapezoid_rows(MIXED, 2, 0, -1.0)),
    (lattice.dominance(MIXED, 0, 2, "hypercube"), plain_dominance_rows(MIXED, 0, 2)),
    (lattice.dominance((2, 2, 2, 2), 3, 1), exact_dominance_rows((2, 2, 2, 2), 3, 1)),
    (lattice.joint_monotonicity(MIXED, 2, 1, "hypercube"), plain_joint_rows(MIXED, 2, 1)),
    (lattice.joint_monotonicity((2, 2, 2, 2), 0, 2), exact_joint_rows((2, 2, 2, 2), 0, 2)),
    (lattice.convex(MIXED, 2, interpolation="hypercube"), plain_convex_rows(MIXED, 2, range(4))),
    (
        lattice.convex(MIXED, 2, UNEVEN, interpolation="hypercube"),
        plain_convex_rows(MIXED, 2, UNEVEN),
    ),
    (lattice.convex(MIXED, 2), exact_convex_rows(MIXED, 2, range(4))),
    (lattice.convex(MIXED, 2, UNEVEN), exact_convex_rows(MIXED, 2, UNEVEN)),
    (lattice.convex((4,), 0), plain_convex_rows((4,), 0, range(4))),
]


@pytest.mark.parametrize(("constraints", "expected"), SLOW_READING)
def test_rows_are_those_of_the_table(constraints, expected):
    key = lambda row: (sorted(row[0]), row[1])  # noqa: E731
    assert sorted(map(key, rows_of(constraints))) == sorted(map(key, expected))


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        (lattice.dominance(MIXED, 1, 0), exact_dominance_rows(MIXED, 1, 0)),
        (lattice.joint_monotonicity(MIXED, 2, 1), exact_joint_rows(MIXED, 2, 1)),
        (lattice.range_dominance(MIXED, 0, 2), range_dominance_rows(MIXED, 0, 2)),
        (lattice.range_dominance((2, 2, 2), 2, 0), range_dominance_rows((2, 2, 2), 2, 0)),
    ],
)
def test_rows_shared_by_cells_or_ends_are_kept_once(constraints, expected):
    assert set(rows_of(constraints)) == set(expected)
    assert constraints.count < len(expected)


def test_range_dominance_and_dominance_have_no_duplicate_rows():
    for constraints in (
        lattice.range_dominance(MIXED, 2, 0),
        lattice.dominance(MIXED, 2, 0),
        lattice.dominance([2] * 5, 0, 1),
    ):
        rows = rows_of(constraints)
        assert len(set(rows)) == len(rows) == constraints.count


def test_concave_is_convex_negated():
    for how in ("simplex", "hypercube"):
        convex, concave = (
            lattice.convex(MIXED, 2, UNEVEN, how),
            lattice.concave(MIXED, 2, UNEVEN, how),
        )
        assert abs(convex.A + concave.A).max() == 0.0


def test_rows_of_increasing_are_grouped_by_feature_in_c_order():
    constraints = lattice.increasing(MIXED, [2, 0])
    lower, higher = constraints.A.indices.reshape(-1, 2).T
    assert np.all(constraints.A.data.reshape(-1, 2) == [1.0, -1.0])
    assert np.all(higher[:18] - lower[:18] == 1)
    assert np.all(higher[18:] - lower[18:] == 8)
    assert np.all(np.diff(lower[:18]) > 0)
    assert np.all(np.diff(lower[18:]) > 0)


def test_bounds_and_slopes_carry_their_numbers():
    theta = np.array([-2.0, 0.5, 3.0])
    assert lattice.bounds([3], -1.0, 2.0).values(theta).tolist() == [
        1.0,
        -1.5,
        -4.0,
        -4.0,
        -1.5,
        1.0,
    ]
    assert lattice.bounds([3], upper=2.0).values(theta).tolist() == [-4.0, -1.5, 1.0]
    assert lattice.bounds([3], -1.0, np.inf).values(theta).tolist() == [1.0, -1.5, -4.0]
    assert lattice.slope([3], 0, 1.0).values(theta).tolist() == [1.5, 1.5, -3.5, -3.5]


def test_values_are_the_negated_forms():
    theta = np.random.default_rng(0).standard_normal(24)
    for constraints, expected in SLOW_READING[:5]:
        forms = sorted(-sum(c * theta[k] for k, c in row) for row, _ in expected)
        np.testing.assert_allclose(np.sort(constraints.values(theta)), forms, atol=1e-14)


BAD = [
    (lambda: lattice.unimodal([3, 3], 0, None), "not a convex set"),
    (lambda: lattice.unimodal([2, 3], 0, 1), "at least 3 along feature 0"),
    (lambda: lattice.unimodal([3, 3], 0, 3), "0 .. 2, got 3"),
    (lambda: lattice.unimodal([3, 3], 0, 0.5), "a whole number, got 0.5"),
    (lambda: lattice.unimodal([3, 3], 0, 1, shape="hill"), "'valley' or 'peak'"),
    (lambda: lattice.increasing([2, 2], [0, 2]), r"feature must lie in 0 .. 1 .*, got 2"),
    (lambda: lattice.increasing([2, 2], [0, 0]), "named once"),
    (lambda: lattice.increasing([2, 2], "a"), "feature's position, got 'a'"),
    (lambda: lattice.increasing([2, 2], -1), "got -1"),
    (lambda: lattice.edgeworth([2, 2], 1, 1), "two different features, got 1"),
    (lambda: lattice.edgeworth([2, 2], 0, 1, sign=0), "sign must be 1 or -1, got 0"),
    (lambda: lattice.trapezoid([2, 2], 0, 5), "conditional must lie in 0 .. 1"),
    (lambda: lattice.dominance([2, 2], 0, 0), "dominant and weak must be two different"),
    (lambda: lattice.supermodular([2]), "at least two features"),
    (lambda: lattice.supermodular([2, 2], [0, 1]), "sequence of pairs"),
    (lambda: lattice.supermodular([2, 2], [(0, 1), (1, 0)]), "named once"),
    (lambda: lattice.convex([2, 3], 0), "size of at least 3 along feature 0.*submodular"),
    (lambda: lattice.concave([2, 3], 0), "size of at least 3 along feature 0.*supermodular"),
    (lambda: lattice.convex([2, 3], 0, interpolation="hypercube"), "straight line"),
    (lambda: lattice.convex([3], 0, [0.0, 1.0]), "3 numbers.*got 2"),
    (lambda: lattice.convex([3], 0, [0.0, 1.0, 1.0]), "strictly ascending"),
    (lambda: lattice.convex([3], 0, [0.0, np.nan, 1.0]), "every keypoint must be finite, got nan"),
    (lambda: lattice.slope([3], 0, -1.0), "limit must not be negative"),
    (lambda: lattice.slope([3], 0, np.inf), "limit must be finite"),
    (lambda: lattice.bounds([3], 1.0, 0.0), "lower must not exceed upper"),
    (lambda: lattice.bounds([3]), "got neither"),
    (lambda: lattice.bounds([3], np.nan, 0.0), "lower must be finite, got nan"),
    (lambda: lattice.bounds([3], np.inf), "lower must be finite, got inf"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_arguments_are_named(build, message):
    with pytest.raises(ConstraintError, match=message):
        build()


@pytest.mark.parametrize("name", sorted(set(lattice.__all__) - {"Lattice"}))
def test_every_builder_checks_sizes_and_interpolation(name):
    arguments = {
        "increasing": (),
        "decreasing": (),
        "bounds": (0, 1),
        "unimodal": (0, 1),
        "convex": (0,),
        "concave": (0,),
        "supermodular": (),
        "submodular": (),
        "slope": (0, 1.0),
    }.get(name, (0, 1))
    build = getattr(lattice, name)
    assert build([3, 3], *arguments, interpolation="hypercube").count > 0
    with pytest.raises(ValueError, match="interpolation must be one of"):
        build([3, 3], *arguments, interpolation="linear")
    with pytest.raises(ValueError, match="got 1 for feature 1"):
        build([3, 1], *arguments)


@pytest.mark.parametrize(
    "build",
    [
        lambda: lattice.edgeworth([2] * 45, 0, 1),
        lambda: lattice.dominance([2] * 45, 0, 1),
        lambda: lattice.joint_monotonicity([3] * 30, 0, 1),
        lambda: lattice.supermodular([2] * 45),
        lambda: lattice.convex([3] * 30, 0),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_any_memory_is_taken(build):
    with pytest.raises(
        ConstraintError,
        match=r"on a lattice of sizes .* rows, needs about .* are available; name fewer features",
    ):
        build()


def test_predicted_memory_of_rows_covers_what_they_take(monkeypatch):
    constraints = lattice.trapezoid([2] * 8, 0, 1)
    A = constraints.A
    taken = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes + constraints.b.nbytes
    monkeypatch.setattr("lighttouch.validation.available_memory", lambda: taken - 1)
    with pytest.raises(ConstraintError, match="128 rows"):
        lattice.trapezoid([2] * 8, 0, 1)
    monkeypatch.setattr("lighttouch.validation.available_memory", lambda: 4 * taken)
    assert lattice.trapezoid([2] * 8, 0, 1).count == 128


@pytest.mark.parametrize("sizes", [[2] * 7, [3, 4, 2, 5], [2, 3]])
def test_monotonicity_without_stored_rows_is_the_stored_one(sizes):
    rng = np.random.default_rng(0)
    for implicit in (lattice.increasing(sizes), lattice.decreasing(sizes, [0, 1])):
        stored = LinearConstraints(implicit.A, implicit.b)
        w = rng.normal(size=implicit.dimension)
        assert np.array_equal(implicit.values(w), stored.values(w))
        for size in (3, 16, 100):
            assert np.array_equal(
                implicit.aggregated(size).values(w), stored.aggregated(size).values(w)
            )
        smaller, larger = implicit.pairs()
        assert np.array_equal(smaller, stored.order_rows.smaller)
        assert np.array_equal(larger, stored.order_rows.larger)


def test_a_lattice_of_a_million_vertices_stores_no_rows():
    constraints = lattice.increasing([2] * 20)
    assert constraints.count == 20 * 2**19
    assert "A" not in vars(constraints)
    assert constraints.values(np.zeros(2**20)).max() == 0.0
    assert "A" not in vars(constraints)


def test_violations_of_a_large_lattice_are_found_without_storing_them():
    sizes = [2] * 16
    problem = lt.Problem(
        lt.Quadratic(sp.identity(2**16), np.zeros(2**16)), lt.lattice.increasing(sizes)
    )
    w = np.random.default_rng(0).normal(size=2**16)
    values = problem.constraints.values(w)
    tracemalloc.start()
    try:
        found, relative = problem.violation(w), problem.relative_violation(w)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == values.max() and relative == pytest.approx(
        values.max() / np.sqrt(2.0), rel=1e-15
    )
    assert peak < values.nbytes / 4
