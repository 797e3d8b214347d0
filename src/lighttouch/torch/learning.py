"""What `LightTouch` carries from step to step: p, the generator, and what is on its way from a
card. A plain object: attributes of a module cost microseconds each.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import ConstraintError
from lighttouch.kernels.compiler.intrinsics import HeldGenerator
from lighttouch.kernels.loops.touch import draw_touch, learn_touch, take_in
from lighttouch.kernels.state.distribution import NOW, Distribution, new_distribution
from lighttouch.torch.packing import packed, unpacked
from lighttouch.torch.ranks import Ranks


class Learner:
    """Draws from p and learns it; what a step found is learned before the next draw."""

    def __init__(self, count: int, pushes: int, looks: int, rate: float, seed: int) -> None:
        self.count, self.pushes, self.looks, self.rate = count, pushes, looks, rate
        self._held = HeldGenerator(np.random.default_rng(seed))
        self.p: Distribution = new_distribution(np.zeros(count), rate)
        self._rests, self._looked = np.empty(pushes), np.empty(looks)  # room for the kernels
        self._drawn: Indices | None = None  # of the step that is under way
        self._own: Indices | None = None  # this rank's part of it
        self._values: Tensor | None = None
        self._found: Tensor | None = None
        self._event: Any = None

    @property
    def generator(self) -> np.random.Generator:
        return self._held.generator

    def begin(self, remembered: Floats) -> None:
        """A uniform p, with these violations remembered."""
        self._drawn = self._values = None
        self.p = new_distribution(remembered, self.rate)

    def draw(self, ranks: Ranks, keep: bool) -> Tensor:
        """The numbers of the next step; where they are not kept the generator stays as it was."""
        self.settle()
        out = np.empty(self.pushes + self.looks, np.int64)
        before = None if keep else self.generator.bit_generator.state
        at = self._held
        draw_touch(self.p, self.pushes, self.looks, at.state, at.draws, self._rests, out)
        own = out
        if ranks.world > 1:
            parts = (out[: self.pushes], out[self.pushes :])
            own = np.concatenate([ranks.part(part) for part in parts])
        if before is None:
            self._drawn, self._own = out, own
        else:
            self.generator.bit_generator.state = before
        return torch.from_numpy(own)

    def taken_in(self, values: Tensor, scale: float) -> Tensor:
        """Learn at once what this step found, on the CPU and alone; returns the slope of the
        penalty in each violation: `scale` for those that push and are violated, else 0.
        """
        self._refuse_second_use()
        here = np.ascontiguousarray(values.numpy())
        weights = np.empty_like(here)
        own, self._drawn, self._own = self._own, None, None
        if not take_in(self.p, here, self.pushes, scale, self._looked, weights):
            assert own is not None
            refuse_not_finite(own, here, int(self.p.clock[NOW]))
        return torch.from_numpy(weights)

    def _refuse_second_use(self) -> None:
        if self._drawn is None:
            raise RuntimeError("every draw() can be used for one step: draw again before touch()")

    def found(self, values: Tensor, own_pushes: int, ranks: Ranks) -> None:
        """Take note of what this step found."""
        self._refuse_second_use()
        found = None if ranks.world == 1 else ranks.merged(values[own_pushes:], self.looks)
        if values.device.type == "cpu":
            self._values, self._found = values, found
            self.settle()
            return
        self._values = _on_its_way(values)
        self._found = None if found is None else _on_its_way(found)
        self._event = torch.cuda.Event()
        self._event.record()

    def settle(self) -> None:
        """Learn what the last step found."""
        if self._values is None:
            return
        if self._event is not None:
            self._event.synchronize()
        values, merged, own = self._values.numpy(), self._found, self._own
        found = values[self.pushes :] if merged is None else merged.numpy()
        self._values = self._found = self._event = self._drawn = self._own = None
        finite = math.isfinite(values.sum())  # NaN and infinities stay in a sum
        if not finite or not learn_touch(self.p, found.astype(np.float64)):
            assert own is not None
            refuse_not_finite(own, values, int(self.p.clock[NOW]))

    def state(self) -> dict[str, Any]:
        """Everything that the next draws depend on, as tensors and plain values."""
        self.settle()
        moved = self.p.shuffled - np.arange(self.count, dtype=self.p.shuffled.dtype)
        known = self.p._replace(shuffled=moved)  # nearly all 0
        arrays = {name: packed(getattr(known, name)) for name in Distribution._fields}
        return {"generator": json.dumps(self.generator.bit_generator.state), **arrays}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned."""
        self.p = Distribution(*(unpacked(state[name]) for name in Distribution._fields))
        np.add(self.p.shuffled, np.arange(self.count), out=self.p.shuffled, casting="unsafe")
        self.generator.bit_generator.state = json.loads(state["generator"])
        self._drawn = self._values = self._event = None


def _on_its_way(values: Tensor) -> Tensor:
    """A copy in the host's memory that arrives while the host goes on."""
    there = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    return there.copy_(values, non_blocking=True)


def refuse_not_finite(numbers: Indices, values: Floats, call: int | None) -> None:
    """Raise the error for violations that are not numbers."""
    wrong = np.flatnonzero(~np.isfinite(values))
    when = "" if call is None else f" in call {call}"
    if not wrong.size:
        raise ConstraintError(
            f"violations(indices) must return finite numbers: another rank found others{when}"
        )
    first = int(wrong[0])
    raise ConstraintError(
        f"violations(indices) must return finite numbers, got {values[first]} for constraint "
        f"{int(numbers[first])}{when} and {wrong.size} such values in all; look for a learning "
        "rate that is too large, or a logarithm or root of a negative number"
    )
