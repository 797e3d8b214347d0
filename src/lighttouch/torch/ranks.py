"""Data parallel training: all ranks draw the same constraints, each looks at its part, and all
learn what all have found, so that their distributions stay the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed

from lighttouch.arrays import Indices


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
