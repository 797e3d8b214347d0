"""solve(problem, device=...) against the core: every loss, every kind of rows, proofs and errors.

The device is the CPU here; `benchmarks/torch/on_the_card.py` does the same on a card.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse
import torch

import lighttouch as lt
from lighttouch.interior.costs import COSTS
from lighttouch.interior.program import Program, with_rows
from lighttouch.torch import TensorRows, balance, device, working_rows
from lighttouch.torch.working_rows import Elsewhere, LatticeHeld, SparseHeld, Streamed, held

CPU = torch.device("cpu")


def rows(m: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, d))
    return A / np.linalg.norm(A, axis=1, keepdims=True), rng.uniform(0.3, 1.0, m)


def risk(d: int, loss, n: int = 80) -> lt.EmpiricalRisk:
    rng = np.random.default_rng(1)
    X, w = rng.normal(size=(n, d)), rng.normal(size=d)
    y = X @ w + 0.1 * rng.normal(size=n)
    if loss in ("logistic", "hinge", "squared_hinge"):
        y = np.where(y > 0.0, 1.0, -1.0)
    if loss in ("poisson", "gamma"):
        y = rng.poisson(2.0, n) + 0.5
    return lt.EmpiricalRisk(X, y, loss=loss)


def agree(problem: lt.Problem, **more) -> lt.Result:
    ours = lt.solve(problem, device="cpu", **more)
    core = lt.solve(problem, lt.InteriorPoint())
    size = 1.0 + abs(core.objective)
    assert abs(ours.objective - core.objective) < 3e-6 * size
    assert ours.status is lt.Status.CONVERGED
    assert 0.0 <= ours.gap <= 1.1e-6 * size
    assert ours.lower_bound <= core.objective + 1e-9 * size
    return ours


LOSSES = [
    "squared",
    "absolute",
    "hinge",
    "logistic",
    "poisson",
    "gamma",
    lt.Huber(0.5),
    lt.Quantile(0.8),
    lt.EpsilonInsensitive(0.2),
    lt.Tweedie(1.5),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_every_loss_under_dense_rows(loss):
    y = "poisson" if isinstance(loss, lt.Tweedie) else loss
    f = risk(12, y)
    problem = lt.Problem(
        lt.EmpiricalRisk(f.X, f.y, loss=loss), lt.LinearConstraints(*rows(600, 12))
    )
    assert agree(problem).violation == 0.0


class Gaps(NamedTuple):
    largest: np.ndarray


def gap(record, j, columns, values):
    columns[0], values[0] = j % 19 + 1, 1.0
    columns[1], values[1] = j % 19, -1.0
    return 2, record.largest[j]


@functools.cache
def generated() -> lt.GeneratedRows:
    largest = np.random.default_rng(2).uniform(0.01, 0.1, 190)
    return lt.GeneratedRows(20, 190, Gaps(largest), gap, entries=2)


def on_lattice() -> lt.Problem:
    rng, sizes = np.random.default_rng(2), (3, 3, 3)
    X = lt.Lattice(sizes).features(rng.uniform(0, 2, (300, 3)))
    return lt.Problem(lt.EmpiricalRisk(X, rng.normal(size=300)), lt.lattice.increasing(sizes))


def sparse_rows() -> lt.LinearConstraints:
    few = scipy.sparse.random(900, 20, density=0.2, random_state=0, format="csr")
    return lt.LinearConstraints(few, np.full(900, 0.05))


def dense_rows() -> lt.LinearConstraints:
    return lt.LinearConstraints(*rows(300, 20))


def squares(constraints=None, domain=None) -> lt.Problem:
    return lt.Problem(risk(20, "squared"), constraints, domain)


def sparse_examples() -> lt.Problem:
    f = risk(20, "squared")
    X = scipy.sparse.csr_matrix(np.round(f.X))
    return lt.Problem(lt.EmpiricalRisk(X, f.y, loss="absolute"), dense_rows())


def equalities() -> lt.LinearEqualities:
    return lt.LinearEqualities(np.random.default_rng(2).normal(size=(2, 20)), [0.5, -0.5])


FAMILIES = {
    "sparse": lambda: squares(sparse_rows()),
    "generated": lambda: squares(generated()),
    "lattice": on_lattice,
    "box": lambda: squares(dense_rows(), lt.Box(-0.2, 0.3)),
    "simplex": lambda: squares(dense_rows(), lt.Simplex()),
    "stacked": lambda: squares(lt.stack(lt.ordering(20), generated())),
    "equalities": lambda: squares(lt.stack(dense_rows(), equalities())),
    "opposite rows": lambda: squares(lt.LinearConstraints([[1.0] * 20, [-1.0] * 20], [0.5, -0.5])),
    "sparse examples": sparse_examples,
    "nothing": squares,
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_kind_of_rows(name):
    found = agree(FAMILIES[name]())
    if name in ("simplex", "equalities", "opposite rows"):
        assert found.violation < 1e-9
    else:
        assert found.violation == 0.0


def test_rows_in_single_precision_are_exactly_satisfied():
    A, b = rows(5_000, 15)
    family = TensorRows(torch.from_numpy(A).float(), torch.from_numpy(b).float())
    problem = lt.Problem(risk(15, "logistic"), family)
    result = lt.solve(problem)  # where its rows are
    assert result.status is lt.Status.CONVERGED and result.violation == 0.0
    exact = family.A.double().numpy() @ result.w - family.right.double().numpy()
    assert exact.max() <= 0.0
    doubles = lt.LinearConstraints(family.A.double().numpy(), family.right.double().numpy())
    core = lt.solve(lt.Problem(problem.objective, doubles), lt.InteriorPoint())
    assert result.objective == pytest.approx(core.objective, rel=2e-6)
    assert "matrices and rows on cpu" in result.notes


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_tensor_rows_answer_in_double(kind):
    A, b = rows(400, 30)
    family = TensorRows(torch.from_numpy(A).to(kind), torch.from_numpy(b).to(kind))
    w = np.random.default_rng(0).normal(size=30)
    exact = family.A.double().numpy() @ w - family.right.double().numpy()
    assert np.abs(family.values(w) - exact).max() < 1e-13
    assert family.largest(w) == pytest.approx(exact.max(), abs=1e-13)
    assert family.largest_relative(w) == pytest.approx((exact / family.row_scales()).max())
    assert family.violation(w) == pytest.approx(exact.max(), abs=1e-13)
    assert family.broken(w, 400).tolist() == np.flatnonzero(exact > 0.0).tolist()
    worst = family.broken(w, 5)
    assert exact[worst].min() >= np.sort(exact)[-6]
    matrix, right = family.rows_at([3, 7])
    assert np.array_equal(matrix.toarray(), family.A[[3, 7]].double().numpy())
    assert right.tolist() == family.right[[3, 7]].double().tolist()


def test_a_close_call_is_decided_in_double():
    A = torch.tensor([[1.0, 1e-9], [1.0, 0.0]])
    family = TensorRows(A, torch.tensor([1.0, 1.0]))
    assert family.broken(np.array([1.0, 1.0]), 2).tolist() == [0]
    assert 0.0 < family.largest(np.array([1.0, 1.0])) < 2e-9


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        ([[1.0]], [1.0], "A must be a tensor of floats"),
        (torch.ones(2), torch.ones(2), "two dimensions"),
        (torch.ones(2, 3), torch.ones(3), "b must be a tensor of 2 numbers"),
        (torch.tensor([[1.0], [torch.nan]]), torch.ones(2), "in row 1"),
    ],
)
def test_tensors_that_are_no_rows(A, b, message):
    with pytest.raises(lt.ConstraintError, match=message):
        TensorRows(A, b)


def test_rows_that_do_not_fit_are_streamed_or_left(monkeypatch):
    monkeypatch.setattr(working_rows, "free_memory", lambda _: 0.0)
    assert isinstance(held(dense_rows(), CPU), Streamed)
    assert isinstance(held(sparse_rows(), CPU), Elsewhere)
    agree(squares(dense_rows()))
    agree(squares(sparse_rows()))


@pytest.mark.parametrize("name", ["lattice", "sparse", "generated"])
def test_held_rows_are_the_core_s(name):
    family = FAMILIES[name]().constraints
    kept = held(family, CPU)
    assert isinstance(kept, LatticeHeld if name == "lattice" else SparseHeld)
    w = np.random.default_rng(5).normal(size=family.dimension)
    excess = family.values(w) / family.row_scales()
    scale = np.sqrt(2.0) if name == "lattice" else 1.0
    assert np.allclose(kept.excess(w).numpy() / scale, excess)
    broken = kept.broken(w, family.count)
    assert set(broken) == set(np.flatnonzero(excess > 0.0))
    dense, right = kept.dense_rows(np.array([0, 4]))
    matrix, expected = family.rows_at([0, 4])
    assert np.array_equal(dense.numpy(), matrix.toarray()) and np.array_equal(right, expected)


def test_the_bound_is_recomputed_here():
    problem = FAMILIES["box"]()
    solver = device.DeviceInteriorPoint(device="cpu")
    result = lt.solve(problem, device="cpu")
    again = solver.model(problem).prove(np.inf)
    assert result.lower_bound == pytest.approx(again, rel=1e-6) and again <= result.objective


def test_moves_found_on_a_device_hold_those_that_balance(monkeypatch):
    monkeypatch.setattr(balance, "INTERIOR", replace(COSTS, free_dense_dimension=0))
    rng, d, m = np.random.default_rng(4), 8, 30
    half = rng.normal(size=(3, d))
    none = np.zeros(0)
    program = Program(half.T @ half, np.zeros(d), (), *[none] * 4)
    program = with_rows(program, (rng.normal(size=(m, d)),), np.zeros(m), np.zeros(m, dtype=bool))
    x, room, free = rng.normal(size=d), rng.uniform(0.5, 1.0, m), np.arange(d) < 6
    rest = 1e-6 * np.abs(rng.normal(size=d))
    moves = balance.moves_on(CPU)(program, x, room, rest, free)
    rows, P = program.blocks[0], program.P
    H = (P + rows.T @ (room[:, None] * rows))[np.ix_(free, free)]
    for signs in rng.choice([-1.0, 1.0], (50, 6)):
        h = np.zeros(d)
        h[free] = np.linalg.solve(H, signs * rest[free])
        slopes = room * (rows @ h)
        assert np.all(np.abs(slopes) <= moves.slopes)
        assert np.all(np.abs(P @ h + rows.T @ slopes)[~free] <= moves.rest[~free])
        assert (x + h) @ P @ (x + h) / 2 - x @ P @ x / 2 <= moves.bent
    assert moves.slopes.max() < 100.0 * np.abs(slopes).max()  # and they are not idle


def test_same_bits_twice():
    first, second = (lt.solve(FAMILIES["sparse"](), device="cpu") for _ in range(2))
    assert np.array_equal(first.w, second.w) and first.lower_bound == second.lower_bound


def test_limits_and_resuming():
    problem = FAMILIES["box"]()
    part = lt.solve(problem, device="cpu", iterations=3)
    assert part.status is lt.Status.ITERATION_LIMIT and part.iterations == 3
    whole = lt.solve(problem, device="cpu", resume=part.state)
    assert whole.status is lt.Status.CONVERGED
    assert whole.objective == pytest.approx(lt.solve(problem, device="cpu").objective, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "card"}, "device must be 'cuda', 'cuda:1' or 'cpu', got 'card'"),
        ({"device": "cpu", "solver": lt.FullTouch(1.0, 0.1)}, "must be InteriorPoint or None"),
    ],
)
def test_wrong_devices(given, message):
    with pytest.raises(ValueError, match=message):
        lt.solve(FAMILIES["box"](), **given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_no_card():
    with pytest.raises(ValueError, match=r"needs a CUDA card, and PyTorch .* sees none"):
        lt.solve(FAMILIES["box"](), device="cuda")


def test_curved_constraints_are_refused():
    curved = lt.QuadraticConstraints(np.eye(20)[None], np.zeros((1, 20)), [1.0])
    with pytest.raises(ValueError, match="must be linear rows"):
        lt.solve(lt.Problem(risk(20, "squared"), curved), device="cpu")


def test_memory_is_planned(monkeypatch):
    monkeypatch.setattr(device, "free_memory", lambda _: 1e4)
    with pytest.raises(ValueError, match=r"need about .* GiB on cpu, where .* GiB are free"):
        lt.solve(FAMILIES["box"](), device="cpu")


def test_out_of_memory_is_one_clear_error(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. More")

    monkeypatch.setattr(device, "program_on_device", full)
    with pytest.raises(MemoryError, match=r"cpu ran out of memory: .* GiB are free now"):
        lt.solve(FAMILIES["box"](), device="cpu")


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    for name in [each for each in sys.modules if each.startswith("lighttouch.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match="needs PyTorch, which is not installed: pip install torch"
    ):
        lt.solve(FAMILIES["box"](), device="cpu")


def test_dense_rows_on_a_device_are_dense_wherever_they_are_stored() -> None:
    A, b = rows(400, 30)
    for family in (TensorRows(torch.tensor(A), torch.tensor(b)), lt.LinearConstraints(A, b)):
        found = working_rows.DeviceRows((family,), 30, CPU)
        assert found.any_dense and not found.few
