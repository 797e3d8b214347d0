"""Contradictory sets end in an error with few rows that contradict each other on their own;
feasible ones raise no alarm.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from lighttouch.constraints import LinearConstraints, order, ordering, stack
from lighttouch.constraints import bounds as bounds_on
from lighttouch.domains import Ball, Box, Everywhere
from lighttouch.errors import InfeasibleConstraintsError
from lighttouch.projections import project

SETS = Path(__file__).parents[3] / "shared" / "data" / "infeasible_lp"


def sections_of(path):
    """The words of every line of a linear program in MPS form, by section."""
    sections, current = {}, []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("*"):
            continue
        if line[0].isspace():
            current.append(line.split())
        else:
            current = sections.setdefault(line.split()[0], [])
    return sections


def box_of(sections, columns):
    """Variables are at least 0 unless said otherwise."""
    lower, upper = np.zeros(len(columns)), np.full(len(columns), np.inf)
    for kind, _, column, *value in sections.get("BOUNDS", []):
        if kind in ("UP", "FX"):
            upper[columns[column]] = float(value[0])
        if kind in ("LO", "FX"):
            lower[columns[column]] = float(value[0])
        if kind in ("MI", "FR"):
            lower[columns[column]] = -np.inf
    return lower, upper


def read_mps(path):
    """Rows A w <= b (an equality becomes two) and the box of a linear program."""
    sections = sections_of(path)
    assert "RANGES" not in sections, "no test set uses them"
    kinds = {name: kind for kind, name in sections["ROWS"] if kind != "N"}
    place = {name: i for i, name in enumerate(kinds)}
    columns = {
        name: i for i, name in enumerate(dict.fromkeys(words[0] for words in sections["COLUMNS"]))
    }
    matrix, b = sparse.lil_matrix((len(place), len(columns))), np.zeros(len(place))
    for words in sections["COLUMNS"]:
        for name, value in zip(words[1::2], words[2::2], strict=True):
            if name in place:
                matrix[place[name], columns[words[0]]] = float(value)
    for words in sections.get("RHS", []):
        for name, value in zip(words[1::2], words[2::2], strict=True):
            if name in place:
                b[place[name]] = float(value)
    less = np.array([kind in "LE" for kind in kinds.values()])
    more = np.array([kind in "GE" for kind in kinds.values()])
    matrix = sparse.csr_matrix(matrix)
    return (
        sparse.vstack([matrix[less], -matrix[more]], format="csr"),
        np.concatenate([b[less], -b[more]]),
        *box_of(sections, columns),
    )


def has_no_point(A, b, lower, upper):
    """The verdict of an outside solver."""
    answer = linprog(
        np.zeros(A.shape[1]), A_ub=A, b_ub=b, bounds=np.column_stack([lower, upper]), method="highs"
    )
    return answer.status == 2


@pytest.mark.skipif(
    not SETS.exists(), reason="the outside data folder ../shared/data/infeasible_lp is absent"
)
@pytest.mark.parametrize("name", ["galenet", "klein1", "refinery", "woodinfe"])
def test_contradictory_linear_programs_are_found_with_a_verified_conflict(name):
    A, b, lower, upper = read_mps(SETS / f"{name}.mps")
    with pytest.raises(InfeasibleConstraintsError) as caught:
        project(np.zeros(A.shape[1]), LinearConstraints(A, b), Box(lower, upper))
    rows = list(caught.value.rows)
    assert 0 < len(rows) < A.shape[0]
    assert has_no_point(A[rows], b[rows], lower, upper)
    for row in rows:
        rest = [r for r in rows if r != row]
        assert not has_no_point(A[rest], b[rest], lower, upper), (
            "the conflict holds a row it can do without"
        )


def conflict_of(constraints, domain=None, point=None):
    w = np.ones(constraints.dimension) if point is None else point
    with pytest.raises(InfeasibleConstraintsError) as caught:
        project(w, constraints, Everywhere() if domain is None else domain)
    return caught.value


def test_a_cycle_with_margins_is_printed():
    error = conflict_of(order([0, 1, 2, 5], [1, 2, 0, 6], [0.5, 0.0, -0.25, 1.0]))
    assert set(error.rows) == {0, 1, 2}
    assert "cycle" in str(error)
    assert "0.25 > 0" in str(error)


def test_a_long_cycle_is_found_among_many_orders():
    rng = np.random.default_rng(0)
    n = 2000
    lower, upper = np.sort(rng.choice(n, (2, 4000)), axis=0)
    apart = lower != upper
    lower, upper = lower[apart], upper[apart]
    ring = rng.permutation(n)[:300]
    back = np.roll(ring, -1)
    margin = np.concatenate([np.full(lower.size, -1000.0), np.full(300, 0.01)])
    error = conflict_of(order(np.concatenate([lower, ring]), np.concatenate([upper, back]), margin))
    assert sorted(error.rows) == list(range(lower.size, lower.size + 300))


def test_bounds_and_orders_that_leave_no_room():
    error = conflict_of(
        stack(ordering(5), bounds_on(5, [3, -9, -9, -9, -9], [9, 9, 9, 9, 2])), Box(-10, 10)
    )
    assert set(error.rows) == {0, 1, 2, 3, 4, 13}
    assert conflict_of(bounds_on(3, 2.0, 1.0)).rows == (0, 3)
    assert conflict_of(bounds_on(3, 2.0, None), Box(-1, 1)).rows == (0,)
    assert conflict_of(LinearConstraints(np.zeros((2, 2)), [0.0, -1.0])).rows == (1,)
    assert "ball" in str(conflict_of(ordering(2), Ball(1.0, np.array([5.0, 0.0]))))


@pytest.mark.parametrize("far", [0.0, 1.0, 100.0, 1e4])
def test_a_set_empty_by_a_hair_is_never_silently_fine(far):
    A = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    error = conflict_of(LinearConstraints(A, [1.0, -1.0 - 1e-8]), point=np.full(3, far))
    assert error.rows == (0, 1)
    assert "would have passed" in str(error)
    touching = project(np.full(3, far), LinearConstraints(A, [1.0, -1.0]))
    assert touching.violation <= 1e-9


def test_the_conflict_is_named_in_words():
    error = conflict_of(
        LinearConstraints(
            [[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0]],
            [1.0, 1.0, -2.0],
            names=["budget", "balance", "minimum"],
        )
    )
    assert all(word in str(error) for word in ("budget", "balance", "minimum"))


def test_aggregated_constraints_name_single_rows():
    error = conflict_of(
        stack(ordering(4), bounds_on(4, [1, -5, -5, -5], [5, 5, 5, 0])).aggregated(3)
    )
    assert set(error.rows) == {0, 1, 2, 3, 10}
