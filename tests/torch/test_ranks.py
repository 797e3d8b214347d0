"""Data parallel: two gloo processes draw the same constraints, share the work, merge what they
find, and end where one process ends.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.multiprocessing as processes
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import lighttouch as lt
from lighttouch.torch import LightTouch

STEPS, COUNT = 20, 500


class Body(torch.nn.Module):
    """A small network and the scores of 501 points that must ascend."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        ).double()
        self.points = torch.linspace(-2.0, 2.0, COUNT + 1, dtype=torch.float64)[:, None]

    def forward(self, j: torch.Tensor) -> torch.Tensor:
        low, high = self.layers(self.points[j]), self.layers(self.points[j + 1])
        return (low - high)[:, 0]


def trained(rank: int, world: int, looks: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Parameters and p after a fixed schedule, on this rank."""
    body = Body()
    model = DistributedDataParallel(body) if world > 1 else body
    touch = LightTouch(
        model, COUNT, checks=looks, pushes=6, penalty=50.0, seed=3, weight_step_size=1.0
    )
    steps = torch.optim.SGD(body.parameters(), lr=0.05)
    for _ in range(STEPS):
        steps.zero_grad()
        touch().backward()
        steps.step()
    return torch.cat([p.detach().flatten() for p in body.parameters()]), touch.probabilities()


def work(rank: int, world: int, folder: str, looks: int) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store{looks}", rank=rank, world_size=world
    )
    torch.save(trained(rank, world, looks), f"{folder}/{looks}-{rank}.pt")
    distributed.destroy_process_group()


def test_one_and_two_processes_agree(tmp_path):
    looks = 7  # which cannot be shared evenly
    processes.spawn(work, args=(2, str(tmp_path), looks), nprocs=2)
    first, second = (torch.load(tmp_path / f"{looks}-{rank}.pt") for rank in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))  # the same bits
    alone = trained(0, 1, looks)
    assert torch.allclose(first[0], alone[0], atol=1e-10)
    assert torch.allclose(first[1], alone[1], atol=1e-10)
    assert float(alone[1].max()) > 1.5 / COUNT  # something was learned


def test_nothing_is_shared_without_a_group():
    touch = LightTouch(lambda j: j.double(), 10, checks=3)
    assert touch.draw().shape == (6,)
    assert np.isclose(float(touch.probabilities().sum()), 1.0)
    assert lt.__version__
