"""FullTouch with incremental looks: the same iterates, bit by bit, from far fewer evaluations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import lighttouch as lt

FAMILIES = ("orders", "sparse rows", "dense rows", "one row", "lattice", "larger lattice")


def examples(d: int, n: int = 400) -> lt.EmpiricalRisk:
    X = sp.random(n, d, 4 / d, random_state=3, format="csr")
    signs = np.sign(np.random.default_rng(7).normal(size=n))
    return lt.EmpiricalRisk(X, signs, loss="hinge")


def families(d: int) -> dict[str, lt.LinearConstraints]:
    rng = np.random.default_rng(8)
    sparse = sp.random(300, d, 3 / d, random_state=5, format="csr")
    ends = np.sort(rng.integers(0, d - 1, size=(250, 2)), axis=1)
    return {
        "orders": lt.order(ends[:, 0], ends[:, 1] + 1, dimension=d),
        "sparse rows": lt.LinearConstraints(sparse, 0.01 * np.abs(rng.normal(size=300))),
        "dense rows": lt.LinearConstraints(rng.normal(size=(37, d)), np.full(37, 0.1)),
        "one row": lt.LinearConstraints(np.ones((1, d)), [0.05]),
        "lattice": lt.lattice.increasing([2] * 6),
        "larger lattice": lt.lattice.decreasing([4, 4, 4], [0, 2]),
    }


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(
    "step_size", [lt.InverseSqrt(0.5), lt.AdaGrad(0.1)], ids=["sqrt", "adagrad"]
)
def test_same_bits_as_a_look_at_all(name, step_size):
    problem = lt.Problem(examples(64), families(64)[name], lt.Box(-1, 1))
    plain = lt.solve(
        problem, lt.FullTouch(1.0, step_size, batch=2), iterations=1500, seed=1, project=False
    )
    tracked = lt.solve(
        problem,
        lt.FullTouch(1.0, step_size, batch=2, incremental=True),
        iterations=1500,
        seed=1,
        project=False,
    )
    assert plain.violation_before_projection == tracked.violation_before_projection
    np.testing.assert_array_equal(plain.w, tracked.w)
    np.testing.assert_array_equal(plain.w_last, tracked.w_last)


def test_work_does_not_grow_with_the_constraints():
    problem = lt.Problem(examples(1024), lt.lattice.increasing([2] * 10), lt.Box(-1, 1))
    result = lt.solve(
        problem,
        lt.FullTouch(1.0, lt.InverseSqrt(0.5), incremental=True),
        iterations=500,
        project=False,
    )
    assert 0 < result.constraint_checks < 500 * problem.constraints.count / 20


def test_resumed_runs_are_the_same_bits():
    problem = lt.Problem(examples(64), lt.lattice.increasing([2] * 6), lt.Box(-1, 1))
    solver = lt.FullTouch(1.0, lt.InverseSqrt(0.5), incremental=True)
    whole = lt.solve(problem, solver, iterations=800, seed=2, project=False)
    half = lt.solve(problem, solver, iterations=300, seed=2, project=False)
    resumed = lt.solve(problem, solver, iterations=800, resume=half.state, project=False)
    np.testing.assert_array_equal(whole.w, resumed.w)


@pytest.mark.parametrize(
    ("constraints", "domain"),
    [
        (lt.NormConstraints(None, np.zeros((3, 64)), None, np.ones(3)), lt.Box(-1, 1)),
        (lt.lattice.increasing([2] * 6), lt.Ball(1.0)),
    ],
    ids=["norms", "ball"],
)
def test_refuses_what_it_cannot_track(constraints, domain):
    with pytest.raises(ValueError, match="incremental"):
        lt.solve(
            lt.Problem(examples(64), constraints, domain),
            lt.FullTouch(1.0, 0.1, incremental=True),
            iterations=10,
        )
