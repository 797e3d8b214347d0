"""What `LightTouch` carries from step to step: p, the generator, and what is on its way from a
card, in one process or in several. A plain object: attributes of a module cost microseconds each.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed

from lighttouch.arrays import Floats, Indices
from lighttouch.errors import ConstraintError
from lighttouch.kernels.compiler.intrinsics import HeldGenerator
from lighttouch.kernels.loops.touch import draw_touch, learn_touch, take_in
from lighttouch.kernels.state.distribution import NOW, Distribution, new_distribution


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


# -------------------------------------------------------------------------------------------------
# Data parallel training: all ranks draw the same constraints, each looks at its part, and all
# learn what all have found, so that their distributions stay the same bits.


class Ranks:
    """The processes that train together; one where `torch.distributed` is not in use."""

    def __init__(self, group: Any = None) -> None:
        self.group = group

    @property
    def world(self) -> int:
        if not (distributed.is_available() and distributed.is_initialized()):
            return 1
        return int(distributed.get_world_size(self.group))

    @property
    def rank(self) -> int:
        return 0 if self.world == 1 else int(distributed.get_rank(self.group))

    def part(self, drawn: Indices) -> Indices:
        """What of a draw is for this rank."""
        return drawn if self.world == 1 else drawn[self.rank :: self.world]

    def share(self, size: int) -> int:
        """How many of `size` draws are this rank's."""
        world = self.world
        return size if world == 1 else len(range(self.rank, size, world))

    def merged(self, found: Tensor, size: int) -> Tensor:
        """What all ranks have found, in the order of the draws."""
        world = self.world
        if world == 1:
            return found
        most = -(-size // world)
        padded = torch.zeros(most, dtype=found.dtype, device=found.device)
        padded[: found.numel()] = found
        parts = [torch.empty_like(padded) for _ in range(world)]
        distributed.all_gather(parts, padded, group=self.group)
        return torch.stack(parts, dim=1).reshape(-1)[:size]


# -------------------------------------------------------------------------------------------------
# Large arrays that are nearly everywhere the same, in little space, as tensors.


SAMPLED = 1001  # rows of which the most common one is taken for the rest


def packed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The most common row, and the rows that differ from it."""
    rows = array.reshape(array.shape[0], -1)
    if not rows.size:
        return {"shape": list(array.shape), "type": array.dtype.str}
    sample = rows[np.linspace(0, rows.shape[0] - 1, SAMPLED).astype(np.int64)]
    kinds, counts = np.unique(sample, axis=0, return_counts=True)
    common = kinds[counts.argmax()]
    others = np.flatnonzero((rows != common).any(axis=1))
    return {
        "shape": list(array.shape),
        "type": array.dtype.str,
        "common": torch.from_numpy(common.copy()),
        "places": torch.from_numpy(others),
        "rows": torch.from_numpy(rows[others].copy()),
    }


def unpacked(state: dict[str, Any]) -> np.ndarray[Any, Any]:
    """What `packed` was given."""
    out = np.empty(state["shape"], np.dtype(state["type"]))
    if out.size:
        rows = out.reshape(out.shape[0], -1)
        rows[:] = state["common"].cpu().numpy()
        rows[state["places"].cpu().numpy()] = state["rows"].cpu().numpy()
    return out
