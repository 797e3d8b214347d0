"""`python -m benchmarks.torch`: what `touch()` costs, and Cooper on the same network.

CPU seconds of one thread (`time.process_time`), so that other programs on the machine count for
little. Cooper is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from lighttouch.torch import Audit, LightTouch

ITEMS, PAIRS, CHECKED = 5_000, 1_000_000, 128


def cost() -> list[dict[str, float]]:
    """CPU microseconds of one touch(), at three numbers of constraints."""
    found = []
    w = torch.zeros(1_000, requires_grad=True)
    for count in (1_000, 100_000, 10_000_000):
        touch = LightTouch(lambda j: w[j % 999] - w[j % 999 + 1] - 1.0, count)
        for _ in range(100):
            touch()
        drawn = touch.draw()
        alone = _best(lambda touch=touch, drawn=drawn: touch.violations(drawn))
        found.append({"count": count, "us": _best(touch), "violations_us": alone})
        print(f"touch() at {count:>10,} constraints: {found[-1]['us']:6.0f} us", end="")
        print(f", of which the violations take {alone:.0f} us")
    print(f"largest / smallest: {max(f['us'] for f in found) / min(f['us'] for f in found):.2f}")
    return found


def _best(call: Callable[[], object], repeats: int = 7, calls: int = 300) -> float:
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        for _ in range(calls):
            call()
        seconds.append((time.process_time() - began) / calls)
    return 1e6 * min(seconds)


class Task:
    """Noisy clicks on items that experts have graded; pairs of different grades must be ordered."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.x = torch.rand(ITEMS, 8)
        grade = (4 * (self.x[:, 0] + self.x[:, 1] * self.x[:, 2])).floor()
        self.clicks = grade + 3.0 * self.x[:, 3] + 2.0 * torch.randn(ITEMS)
        pairs = torch.randint(0, ITEMS, (2, 2 * PAIRS))
        pairs = pairs[:, grade[pairs[0]] != grade[pairs[1]]][:, :PAIRS]
        self.worse, self.better = torch.where(
            grade[pairs[0]] < grade[pairs[1]], pairs, pairs.flip(0)
        )

    def network(self) -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))

    def loss(self, model: nn.Module) -> Tensor:
        rows = torch.randint(0, ITEMS, (256,))
        return nn.functional.mse_loss(model(self.x[rows]), self.clicks[rows])

    def violations(self, model: nn.Module) -> Callable[[Tensor], Tensor]:
        def of(j: Tensor) -> Tensor:
            low, high = model(torch.cat([self.x[self.worse[j]], self.x[self.better[j]]])).chunk(2)
            return low - high

        return of

    def judged(self, model: nn.Module, steps: int, seconds: float) -> dict[str, float]:
        audit: Audit = LightTouch(self.violations(model), PAIRS).audit(full=True)
        with torch.no_grad():
            loss = float(nn.functional.mse_loss(model(self.x), self.clicks))
        return {
            "loss": loss,
            "mean": audit.mean,
            "worst": audit.largest,
            "share": audit.share,
            "us_per_step": 1e6 * seconds / steps,
            "steps": steps,
        }


def _until(seconds: float, step: Callable[[], object]) -> tuple[int, float]:
    steps, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        for _ in range(20):
            step()
        steps += 20
    return steps, time.process_time() - began


def ours(task: Task, penalty: float, seconds: float) -> dict[str, float]:
    model = task.network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    touch = LightTouch(task.violations(model), PAIRS, checks=CHECKED // 2, penalty=penalty)

    def step() -> None:
        loss = task.loss(model) + touch()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return task.judged(model, *_until(seconds, step))


def cooper_s(task: Task, dual_step: float, seconds: float) -> dict[str, float]:
    """Cooper draws none itself: pairs evenly, one multiplier for each."""
    import cooper

    model = task.network()
    violations = task.violations(model)

    class Ordered(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            self.rules = cooper.Constraint(
                cooper.ConstraintType.INEQUALITY,
                cooper.formulations.Lagrangian,
                cooper.multipliers.IndexedMultiplier(PAIRS),
            )

        def compute_cmp_state(self) -> cooper.CMPState:
            chosen = torch.randint(PAIRS, (CHECKED,))
            state = cooper.ConstraintState(violations(chosen), constraint_features=chosen)
            return cooper.CMPState(task.loss(model), {self.rules: state})

    problem = Ordered()
    primal = torch.optim.Adam(model.parameters(), lr=0.01)
    dual = torch.optim.SGD(problem.dual_parameters(), lr=dual_step, maximize=True)
    optimizer = cooper.optim.SimultaneousOptimizer(problem, primal, dual)
    return task.judged(model, *_until(seconds, optimizer.roll))


def beside(seconds: float) -> dict[str, dict[str, float]]:
    """Both for the same CPU seconds; each with the best of a search over its own number."""
    task, found = Task(), {}
    for penalty in (0.0, 1.0, 3.0, 10.0, 30.0):
        found[f"LightTouch, penalty {penalty:g}"] = ours(task, penalty, seconds)
    if importlib.util.find_spec("cooper") is None:
        print("Cooper is not installed: pip install cooper-optim")
    else:
        for dual_step in (0.1, 1.0, 10.0, 100.0, 1000.0):
            name = f"Cooper, dual step {dual_step:g}"
            found[name] = cooper_s(task, dual_step, seconds)
    for name, row in found.items():
        print(
            f"{name:26s} loss {row['loss']:6.3f}  violations: mean {row['mean']:.4f}  worst "
            f"{row['worst']:.2f}  share {row['share']:6.2%}  {row['us_per_step']:6.0f} us/step"
        )
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=10.0, help="of training, for each")
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    found = {"cost": cost(), "beside": beside(given.seconds)}
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
