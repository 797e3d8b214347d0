"""Contradictory sets end in an error with few rows that contradict each other on their own; feasible ones raise no alarm."""

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


def read_mps(path):
    """Rows A w <= b (an equality becomes two) and the box of a fixed-format linear program."""
    kinds, columns, entries, right, low, high, ranges = {}, {}, {}, {}, {}, {}, {}
    section = ""
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("*"):
            continue
        words = line.split()
        if not line[0].isspace():
            section = words[0]
            continue
        if section == "ROWS":
            kinds[words[1]] = words[0]
        elif section == "COLUMNS" and "'MARKER'" not in words:
            columns.setdefault(words[0], len(columns))
            for name, value in zip(words[1::2], words[2::2], strict=True):
                entries[name, words[0]] = float(value)
        elif section in ("RHS", "RANGES"):
            target = right if section == "RHS" else ranges
            words = words[1:] if len(words) % 2 else words
            target.update((name, float(value)) for name, value in zip(words[0::2], words[1::2], strict=True))
        elif section == "BOUNDS":
            kind, column = words[0], words[2]
            value = float(words[3]) if len(words) > 3 else 0.0
            if kind in ("UP", "FX"):
                high[column] = value
            if kind in ("LO", "FX"):
                low[column] = value
            if kind in ("MI", "FR"):
                low[column] = -np.inf
    assert not ranges, "no test set uses them"
    names = [name for name, kind in kinds.items() if kind != "N"]
    matrix = sparse.lil_matrix((len(names), len(columns)))
    place = {name: i for i, name in enumerate(names)}
    for (name, column), value in entries.items():
        if name in place:
            matrix[place[name], columns[column]] = value
    b = np.array([right.get(name, 0.0) for name in names])
    less = np.array([kinds[name] in "LE" for name in names])
    more = np.array([kinds[name] in "GE" for name in names])
    matrix = sparse.csr_matrix(matrix)
    lower = np.array([low.get(column, 0.0) for column in columns])
    upper = np.array([high.get(column, np.inf) for column in columns])
    return sparse.vstack([matrix[less], -matrix[more]], format="csr"), np.concatenate([b[less], -b[more]]), lower, upper


def has_no_point(A, b, lower, upper):
    """The verdict of an outside solver."""
    answer = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=b, bounds=np.column_stack([lower, upper]), method="highs")
    return answer.status == 2


@pytest.mark.skipif(not SETS.exists(), reason="the outside data folder ../shared/data/infeasible_lp is absent")
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
        assert not has_no_point(A[rest], b[rest], lower, upper), "the conflict holds a row it can do without"
