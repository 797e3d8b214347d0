"""Lattice, Calibrator, Linear and keep_feasible: the core's values, gradients and exact rules."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch

import lighttouch as lt
from lighttouch.torch import Calibrator, Lattice, Linear, keep_feasible

SIZES = (3, 2, 4)
SHAPES = {
    "increasing": lt.lattice.increasing,
    "decreasing": lambda s: lt.lattice.decreasing(s, 0),
    "bounds": lambda s: lt.lattice.bounds(s, -0.1, 0.3),
    "unimodal": lambda s: lt.lattice.unimodal(s, 2, 1),
    "slope": lambda s: lt.lattice.slope(s, 0, 0.1),
    "convex": lambda s: lt.lattice.convex(s, 2),
    "concave": lambda s: lt.lattice.concave(s, 0),
    "dominance": lambda s: lt.lattice.dominance(s, 0, 2),
    "range dominance": lambda s: lt.lattice.range_dominance(s, 0, 2),
    "joint": lambda s: lt.lattice.joint_monotonicity(s, 0, 2),
    "edgeworth": lambda s: lt.lattice.edgeworth(s, 0, 1),
    "trapezoid": lambda s: lt.lattice.trapezoid(s, 0, 1),
    "supermodular": lt.lattice.supermodular,
    "submodular": lt.lattice.submodular,
}


def shaken(layer, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return layer


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_values_are_the_core_s(interpolation):
    layer = shaken(Lattice(SIZES, interpolation=interpolation, dtype=torch.float64))
    x = torch.rand(500, 3, dtype=torch.float64) * 6.0 - 1.0  # also outside
    x[0] = torch.tensor([1.0, 1.0, 2.0])  # at a vertex
    x[1] = torch.tensor([0.25, 0.25, 1.25])  # a tie
    grid, theta = layer.to_core()
    assert np.abs(layer(x).detach().numpy() - grid.evaluate(x.numpy(), theta)).max() < 1e-14
    back = Lattice.from_core(grid, theta, dtype=torch.float64)
    assert torch.equal(back(x), layer(x))


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_gradients(interpolation):
    layer = shaken(Lattice(SIZES, interpolation=interpolation, dtype=torch.float64))
    x = torch.rand(12, 3, dtype=torch.float64) * torch.tensor([2.4, 1.4, 3.4]) - 0.2
    x.requires_grad_()

    def value(x, theta):
        return torch.func.functional_call(layer, {"theta": theta}, (x,))

    assert torch.autograd.gradcheck(value, (x, layer.theta))


def test_counting_orders_like_sorting():
    from lighttouch.torch.interpolation import by_counting, by_sorting

    fractions = torch.rand(300, 5).mul(6.0).floor() / 6.0  # with ties
    strides = torch.tensor([16, 8, 4, 2, 1])
    for ours, sorts in zip(
        by_counting(fractions, strides), by_sorting(fractions, strides), strict=True
    ):
        assert torch.equal(ours, sorts)


def test_a_hypercube_in_chunks(monkeypatch):
    from lighttouch.torch import interpolation
    from lighttouch.torch.costs import TorchCosts

    layer = shaken(Lattice(SIZES, interpolation="hypercube"))
    x = torch.rand(100, 3)
    whole = layer(x)
    (of_whole,) = torch.autograd.grad(whole.square().sum(), layer.theta)
    monkeypatch.setattr(interpolation, "COSTS", TorchCosts(chunk_entries=64))
    parts = layer(x)
    (of_parts,) = torch.autograd.grad(parts.square().sum(), layer.theta)
    assert torch.equal(parts, whole) and torch.allclose(of_parts, of_whole)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_holds_exactly(shape, kind):
    layer = shaken(Lattice(SIZES, rules=SHAPES[shape](SIZES), dtype=kind))
    before = layer.certificate()
    assert not before.holds and before.worst and "violation" in str(before)
    assert layer.project_() is layer
    after = layer.certificate()
    assert after.holds and after.violation == 0.0 and after.rows == SHAPES[shape](SIZES).count
    again = layer.theta.detach().clone()
    layer.project_()
    assert torch.equal(layer.theta, again)


def test_several_rules_at_once_in_single_precision():
    rules = [SHAPES["bounds"](SIZES), SHAPES["edgeworth"](SIZES), SHAPES["slope"](SIZES)]
    layer = shaken(Lattice(SIZES, increasing=[0, 2], rules=rules)).project_()
    assert layer.certificate().holds
    x = torch.rand(200, 3) * 2.0
    higher = x.clone()
    higher[:, 0] += 0.5
    assert bool((layer(higher) >= layer(x) - 1e-6).all())


def test_the_projection_is_the_core_s():
    layer = shaken(Lattice(SIZES, increasing=True, dtype=torch.float64))
    expected = lt.project(layer.theta.detach().numpy(), lt.lattice.increasing(SIZES)).w
    assert np.array_equal(layer.project_().theta.detach().numpy(), expected)


def test_a_new_layer_is_feasible():
    assert Lattice(SIZES, increasing=True).certificate().holds
    assert Lattice(SIZES, rules=lt.lattice.decreasing(SIZES)).certificate().holds
    assert Lattice(SIZES).certificate().rows == 0


def test_nan_inputs_stay_nan():
    layer = Lattice(SIZES)
    x = torch.rand(3, 3)
    x[1, 0] = torch.nan
    assert torch.isnan(layer(x)).tolist() == [False, True, False]


def test_shapes_of_inputs():
    layer = Lattice(SIZES)
    assert layer(torch.rand(5, 7, 3)).shape == (5, 7)
    assert layer(torch.rand(3)).shape == ()
    assert layer(torch.rand(0, 3)).shape == (0,)
    with pytest.raises(lt.DataError, match=r"the 3 features of the lattice, got shape \(5, 2\)"):
        layer(torch.rand(5, 2))


def test_rules_about_something_else():
    with pytest.raises(lt.ConstraintError, match="must speak of 24 parameters, got 5"):
        Lattice(SIZES, rules=lt.ordering(5))
    with pytest.raises(lt.ConstraintError, match="rules must be constraints such as"):
        Lattice(SIZES, rules="increasing")


def test_parameters_that_are_not_finite():
    layer = Lattice(SIZES, increasing=True)
    with torch.no_grad():
        layer.theta[0] = torch.nan
    with pytest.raises(lt.ConstraintError, match="finite to be projected"):
        layer.project_()


def test_contradicting_rules():
    rules = [lt.lattice.bounds(SIZES, 0.0, 1.0), lt.lattice.bounds(SIZES, 2.0, 3.0)]
    with pytest.raises(lt.InfeasibleConstraintsError):
        Lattice(SIZES, rules=rules)


def test_calibrators():
    layer = Calibrator([[0.0, 1.0, 3.0], [0.0, 5.0, 7.0]], increasing=True, lower=0.0, upper=1.0)
    x = torch.tensor([[0.5, 6.0], [9.0, -1.0]])
    assert layer(x).tolist() == [[0.25, 0.75], [1.0, 0.0]]
    shaken(layer).project_()
    assert layer.certificate().holds and layer.certificate().rows == 2 * 8
    alone = Calibrator([0.0, 1.0, 3.0], dtype=torch.float64)
    y = torch.tensor([-1.0, 0.3, 2.9, 5.0], dtype=torch.float64, requires_grad=True)
    assert np.allclose(
        alone(y).detach().numpy(), np.interp(y.detach(), [0.0, 1.0, 3.0], [0.0, 0.5, 1.0])
    )
    assert torch.autograd.gradcheck(
        lambda y, t: torch.func.functional_call(alone, {"theta": t}, (y,)), (y, alone.theta)
    )
    with pytest.raises(ValueError, match="keypoints must ascend"):
        Calibrator([0.0, 0.0])
    with pytest.raises(lt.DataError, match="the 2 features of the calibrator"):
        layer(torch.rand(3, 3))


def test_linear_maps():
    each = shaken(Linear(4, 3, rules=[lt.bounds(4, lower=0.0), lt.ordering(4)])).project_()
    assert each.certificate().holds and each.certificate().rows == 3 * 7
    assert bool((each.weight.diff(dim=1) >= 0.0).all())
    whole = shaken(Linear(2, 2, rules=lt.ordering(4), bias=False)).project_()
    assert bool((whole.weight.flatten().diff() >= 0.0).all())
    x = torch.rand(5, 4)
    assert torch.equal(each(x), torch.nn.functional.linear(x, each.weight, each.bias))
    with pytest.raises(lt.ConstraintError, match="must speak of 4 parameters"):
        Linear(4, 3, rules=lt.ordering(5))


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.Adagrad, torch.optim.SGD])
def test_kept_feasible_while_training(optimizer):
    torch.manual_seed(0)
    x = 5.0 * torch.rand(400, 2)
    y = torch.sin(1.2 * x[:, 0]) + 0.2 * x[:, 1]  # not monotone
    model = torch.nn.Sequential(Lattice([6, 6], increasing=True))
    steps = optimizer(model.parameters(), lr=0.3 if optimizer is torch.optim.Adagrad else 0.05)
    handle = keep_feasible(steps, model, every=10)
    seen = []
    for step in range(1, 301):
        steps.zero_grad()
        (model(x) - y).square().mean().backward()
        steps.step()
        if step % 10 == 0:
            seen.append(model[0].certificate().holds)
    assert all(seen)
    handle.remove()
    loss = float((model(x) - y).square().mean().detach())
    features = lt.Lattice([6, 6]).features(x.numpy())
    problem = lt.Problem(lt.EmpiricalRisk(features, y.numpy()), lt.lattice.increasing([6, 6]))
    best = 2.0 * lt.solve(problem).objective
    assert loss < 1.05 * best + (0.1 if optimizer is torch.optim.SGD else 0.0)
    with torch.no_grad():
        model[0].theta[0] = 100.0
    steps.step()
    assert not model[0].certificate().holds  # nobody projects any more


def test_nothing_to_keep_feasible():
    model = torch.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="module must hold a layer with rules"):
        keep_feasible(torch.optim.SGD(model.parameters(), lr=0.1), model)
    layer = Lattice([2], increasing=True)
    with pytest.raises(ValueError, match="every must be"):
        keep_feasible(torch.optim.SGD(layer.parameters(), lr=0.1), layer, every=0)


def test_states_have_stable_keys_and_come_back():
    model = shaken(
        torch.nn.Sequential(
            Calibrator([0.0, 0.5, 1.0]), Lattice([2, 2], increasing=True), Linear(1, 1)
        )
    )
    assert list(model.state_dict()) == ["0.theta", "0.keypoints", "1.theta", "2.weight", "2.bias"]
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    fresh = torch.nn.Sequential(
        Calibrator([0.0, 0.6, 1.0]), Lattice([2, 2], increasing=True), Linear(1, 1)
    )
    fresh.load_state_dict(torch.load(file, weights_only=True))
    x = torch.rand(4, 2)
    assert torch.equal(fresh[:2](x), model[:2](x))


def test_deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    try:
        gradients = []
        for _ in range(2):
            layer = Lattice([2] * 6)
            x = torch.rand(2_000, 6, generator=torch.Generator().manual_seed(1))
            layer(x.requires_grad_()).square().sum().backward()
            gradients.append((layer.theta.grad, x.grad))
        assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("interpolation", ["simplex", "hypercube"])
def test_compiled_and_exported_layers_predict_the_same(interpolation):
    model = shaken(
        torch.nn.Sequential(
            Calibrator([[0.0, 0.5, 2.0]] * 3), Lattice((2, 3, 2), interpolation=interpolation)
        )
    )
    x = torch.rand(20, 3) * 3.0 - 0.5
    expected = model(x)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), expected, atol=1e-6)
    exported = torch.export.export(
        model, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},)
    )
    assert torch.allclose(exported.module()(x), expected, atol=1e-6)
    assert torch.allclose(exported.module()(x[:7]), expected[:7], atol=1e-6)


def test_onnx_predicts_the_same(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = shaken(torch.nn.Sequential(Lattice((2, 3, 2)))).eval()
    x = torch.rand(20, 3) * 2.0
    file = tmp_path / "model.onnx"
    torch.onnx.export(model, (x,), str(file), dynamo=True, verbose=False)
    session = runtime.InferenceSession(str(file))
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.allclose(found, model(x).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("sizes", [[3, 4], [5], [2, 2, 3]])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_layer_becomes_a_model_file_and_back(sizes, calibrated, tmp_path):
    layer = shaken(Lattice(sizes, increasing=[0], dtype=torch.float64)).project_()
    names = [f"column {place}" for place in range(len(sizes))]
    keypoints = [[0.0, 1.0, 5.0, 9.0]] * len(sizes)
    before = None
    if calibrated:
        top = min(sizes) - 1.0
        before = Calibrator(keypoints, lower=0.0, upper=top, dtype=torch.float64)
        shaken(before, seed=1).project_()
    layer.to_model(names, before).save(tmp_path / "layer.lt")
    model = lt.load(tmp_path / "layer.lt")
    X = np.random.default_rng(0).uniform(-1.0, 10.0, (100, len(sizes)))
    rows = torch.from_numpy(X)
    expected = layer(rows if before is None else before(rows)).detach().numpy()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=names)
    assert np.abs(model.predict(frame) - expected).max() < 1e-12
    assert model.check_constraints().violation == 0.0 and model.check_constraints().rows > 0
    curves, again = Lattice.from_model(model, dtype=torch.float64)
    positions = torch.stack([curve(rows[:, k]) for k, curve in enumerate(curves)], dim=1)
    assert np.abs(again(positions).detach().numpy() - expected).max() < 1e-12
    assert again.certificate().holds and again.certificate().rows == layer.certificate().rows


def test_what_cannot_become_a_model_or_a_layer_is_said():
    layer = Lattice([2, 2])
    with pytest.raises(lt.DataError, match="2 different names"):
        layer.to_model(["a", "a"])
    with pytest.raises(lt.DataError, match="lead into the lattice"):
        layer.to_model(calibrator=Calibrator([[0.0, 1.0]] * 2, lower=0.0, upper=3.0))
    with pytest.raises(lt.DataError, match="each of the 2 features, got 1: give Calibrator one"):
        layer.to_model(calibrator=Calibrator([0.0, 5.0], lower=0.0, upper=1.0))
    alone = Lattice([2]).to_model(calibrator=Calibrator([0.0, 5.0], lower=0.0, upper=1.0))
    assert alone.predict(np.array([[2.5]])).tolist() == [0.5]  # one curve, one feature
    X = np.random.default_rng(0).random((40, 3))
    several = lt.LatticeRegressor(lattices=0, keypoints=3).fit(X, X[:, 0])
    with pytest.raises(lt.DataError, match="one lattice and one output"):
        Lattice.from_model(several)
