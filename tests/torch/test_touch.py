"""LightTouch as a criterion: against the core's algorithm on the same draws, its state, its errors,
and what it costs.
"""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
import torch

import lighttouch as lt
from lighttouch.kernels.compiler.compiled import interpreted
from lighttouch.kernels.compiler.intrinsics import HeldGenerator
from lighttouch.kernels.loops.touch import draw_touch
from lighttouch.kernels.state.distribution import new_distribution, probabilities
from lighttouch.torch import LightTouch


def orders(w: torch.Tensor):
    return lambda j: w[j] - w[j + 1]


def trained(
    touch: LightTouch, w: torch.Tensor, target: torch.Tensor, steps: int, rate: float = 0.05
) -> list:
    """Draws of so many steps of gradient descent."""
    drawn = []
    original = touch.violations

    def noted(j):
        drawn.append(j.tolist())
        return original(j)

    touch.violations = noted
    for _ in range(steps):
        loss = 0.5 * (w - target).square().sum() + touch()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= rate * gradient
    touch.violations = original
    return drawn


def fresh(count: int = 40, **more) -> tuple[LightTouch, torch.Tensor, torch.Tensor]:
    target = torch.linspace(1.0, 0.0, count + 1, dtype=torch.float64)
    w = target.clone().requires_grad_()
    return LightTouch(orders(w), count, checks=4, **more), w, target


def test_replays_the_core_on_the_same_draws():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 12)), rng.normal(size=30)
    eta, penalty, k, steps = 0.01, 2.0, 3, 400
    problem = lt.Problem(lt.EmpiricalRisk(X, y), lt.ordering(12))
    solver = lt.LightTouch(penalty, eta, k)
    result = lt.solve(problem, solver, iterations=steps, seed=5, project=False)

    w = torch.zeros(12, dtype=torch.float64, requires_grad=True)
    touch = LightTouch(
        orders(w), 11, checks=k, penalty=penalty, weight_step_size=eta, seed=5, pushes=1
    )
    touch.remember()
    A, b = torch.from_numpy(X), torch.from_numpy(y)
    order = np.arange(30)
    for t in range(steps):
        place = t % 30  # as the core visits examples
        chosen = place + int(touch.generator.random() * (30 - place))
        order[[place, chosen]] = order[[chosen, place]]
        i = order[place]
        loss = 0.5 * (A[i] @ w - b[i]) ** 2 + touch()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= eta * gradient
    assert np.abs(w.detach().numpy() - result.w_last).max() < 1e-12
    theirs = probabilities(result.state.solver_state.distribution)
    assert np.abs(touch.probabilities().numpy() - theirs).max() < 1e-12
    assert touch.generator.bit_generator.state == result.state.generator


def test_same_seed_same_draws_and_another_seed_others():
    runs = [trained(*fresh(seed=seed), steps=30) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_p_learns_what_is_violated():
    w = torch.zeros(1001, dtype=torch.float64)
    w[500] = 1.0  # the only violated one is 500
    touch = LightTouch(orders(w), 1000, checks=50, weight_step_size=0.5)
    for _ in range(60):
        touch()
    p = touch.probabilities()
    assert p.argmax() == 500 and p[500] > 0.99
    assert float(p.sum()) == pytest.approx(1.0)


def test_the_penalty_pushes_to_the_feasible_set():
    touch, w, target = fresh(10, penalty=20.0)
    before = touch.audit(full=True)
    trained(touch, w, target, 2000, rate=0.002)
    assert before.violated == 10
    assert touch.audit(full=True).largest < 0.05 < before.largest  # the steps are constant
    assert float((w - w.mean()).detach().abs().max()) < 0.15  # the optimum is constant


def test_a_resumed_run_has_the_same_draws():
    touch, w, target = fresh(12)  # so few that S is drawn by shuffling
    trained(touch, w, target, 25)
    file = io.BytesIO()
    torch.save({"touch": touch.state_dict(), "w": w.detach().clone()}, file)
    on = trained(touch, w, target, 25)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again, v, target = fresh(12, seed=9)
    again.load_state_dict(saved["touch"])
    with torch.no_grad():
        v.copy_(saved["w"])
    assert trained(again, v, target, 25) == on
    assert torch.equal(v, w)
    assert list(touch.state_dict()) == ["_extra_state"]


def test_a_small_state_of_many_constraints():
    w = torch.zeros(11, requires_grad=True)
    touch = LightTouch(lambda j: w[j % 10] - w[j % 10 + 1] - 1.0, 1_000_000)
    touch()
    file = io.BytesIO()
    torch.save(touch.state_dict(), file)
    assert file.tell() < 1_000_000  # not 100 bytes per constraint


def test_a_state_of_other_constraints_is_refused():
    with pytest.raises(lt.CheckpointMismatchError, match="of 41 constraints, got version 1 and 40"):
        fresh(41)[0].load_state_dict(fresh(40)[0].state_dict())


def test_a_copy_draws_for_itself():
    touch = fresh(seed=4)[0]
    twin = copy.deepcopy(touch)
    ours = [touch.draw().tolist() for _ in range(3)]
    assert [twin.draw().tolist() for _ in range(3)] == ours


def test_draws_by_address_are_the_generator_s():
    held = HeldGenerator(np.random.default_rng(6))
    room, drawn = np.empty(3), []
    for kernel in (draw_touch, interpreted(draw_touch)):
        p, out = new_distribution(np.zeros(20), 0.1), np.empty(5, np.int64)
        kernel(p, 3, 2, held.state, held.draws, room, out)
        drawn.append(out.tolist())
        after = held.generator.random()
        held.generator.bit_generator.state = np.random.default_rng(6).bit_generator.state
    assert drawn[0] == drawn[1]
    held.generator.random(5)  # one number per draw of so few
    assert held.generator.random() == after


def test_evaluation_leaves_everything_as_it_was():
    touch, _, _ = fresh()
    touch()
    before = touch.state_dict()["_extra_state"]["generator"], touch.calls
    touch.eval()
    with torch.no_grad():
        assert float(touch()) == float(touch()) > 0.0
    assert (touch.state_dict()["_extra_state"]["generator"], touch.calls) == before


def test_several_sets_at_once():
    w = torch.tensor([1.0, 0.0], requires_grad=True)
    order = LightTouch(lambda j: (w[0] - w[1]).expand(j.numel()), 3, checks=1, seed=0)
    lower = LightTouch(lambda j: (0.5 - w[1]).expand(j.numel()), 2, checks=1, seed=1)
    both = torch.nn.ModuleList([order, lower])
    (order() + lower()).backward()
    assert w.grad.tolist() == [1.0, -2.0]
    assert list(both.state_dict()) == ["0._extra_state", "1._extra_state"]


def test_accumulated_gradients_are_the_mean_of_the_pushes():
    touch, w, _ = fresh(pushes=8)
    twin = copy.deepcopy(touch)
    twin.violations = touch.violations
    for _ in range(4):
        (touch() / 4).backward()
    singles = [torch.autograd.grad(twin(), w)[0] for _ in range(4)]
    assert torch.allclose(w.grad, torch.stack(singles).mean(0))


def test_gradients_by_finite_differences():
    w = torch.linspace(1.0, 0.0, 6, dtype=torch.float64, requires_grad=True)

    def penalty(w):
        touch = LightTouch(lambda j: (w[j] - w[j + 1]).square() + w[j], 5, checks=2)
        return touch()

    assert torch.autograd.gradcheck(penalty, (w,))


def test_under_autocast_sums_are_not_halves():
    layer = torch.nn.Linear(4, 1)
    x = torch.randn(100, 4)
    touch = LightTouch(lambda j: layer(x[j]).squeeze(-1), 100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        penalty = touch()
    assert penalty.dtype == torch.float32
    penalty.backward()
    assert layer.weight.grad.isfinite().all()


def test_draws_stay_outside_of_compiled_graphs():
    touch, _, _ = fresh()
    plain, _, _ = fresh()
    compiled = torch.compile(touch, backend="eager")
    assert [float(compiled()) for _ in range(5)] == [float(plain()) for _ in range(5)]

    whole = fresh(seed=3)[0]
    step = torch.compile(
        lambda j: whole.violations(j).relu().mean(), backend="eager", fullgraph=True
    )
    assert float(step(whole.draw())) >= 0.0


def test_a_draw_is_used_once():
    touch, _, _ = fresh()
    drawn = touch.draw()
    touch(drawn)
    with pytest.raises(RuntimeError, match="draw again"):
        touch(drawn)


def test_audits_name_the_worst():
    w = torch.zeros(101, dtype=torch.float64)
    w[70], w[20] = 3.0, 2.0
    touch = LightTouch(orders(w), 100)
    found = touch.audit(full=True, batch=7, worst=1)
    assert found.worst == ((70, 3.0),) and found.largest == 3.0
    assert (found.looked_at, found.violated, found.share) == (100, 2, 0.02)
    assert found.mean == pytest.approx(0.05)
    assert "all 100 constraints: 2 violated (2.00%)" in str(found)


def test_an_audit_of_many_is_a_sample():
    touch = LightTouch(lambda j: (j % 4 == 0).double() - 0.5, 1_000_000)
    found = touch.audit()
    assert found.looked_at == 10_000 and abs(found.share - 0.25) < 0.02
    assert touch.audit() == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "count must be"),
        ({"checks": 0}, "checks must be"),
        ({"checks": 11}, "checks must be at most the number of constraints, 10, got 11"),
        ({"penalty": -1.0}, "penalty must be"),
        ({"pushes": 0}, "pushes must be"),
        ({"weight_step_size": -1.0}, "weight_step_size must be"),
    ],
)
def test_numbers_out_of_range(given, message):
    settings = {"count": 10, "checks": 2} | given
    with pytest.raises(ValueError, match=message):
        LightTouch(lambda j: j, **settings)


def test_violations_of_the_wrong_shape():
    touch = LightTouch(lambda j: torch.zeros(j.numel(), 1), 10, checks=2)
    with pytest.raises(lt.ConstraintError, match=r"tensor of shape \(4,\), got \(4, 1\)"):
        touch()


def test_nan_is_named_and_nothing_is_learned():
    w = torch.zeros(11)
    w[7] = torch.nan
    touch = LightTouch(orders(w), 10, checks=10)
    with pytest.raises(lt.ConstraintError, match=r"got nan for constraint [67] in call 1"):
        touch()
    assert touch.calls == 0
    assert touch.probabilities().isfinite().all()
    with pytest.raises(lt.ConstraintError, match="constraint 6 and 2 such values"):
        touch.audit(full=True)
