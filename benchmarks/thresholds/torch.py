"""The numbers of `lighttouch.torch.costs`, on the processor unless it says
otherwise; without PyTorch they measure nothing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

import lighttouch as lt
from benchmarks.thresholds import Comparison, experiment, sides
from benchmarks.thresholds.working_sets import scattered
from lighttouch.arrays import Matrix

LIMIT = 3.0  # seconds of the turns of one case
NEVER = float("inf")
_found = importlib.util.find_spec("torch")
INSTALLED = _found is not None and _found.origin is not None  # a folder of that name has none


def value(field: str) -> Any:
    """Of a field, where it can be read."""
    if not INSTALLED:
        return "unknown, as PyTorch is not installed"
    from lighttouch.torch.costs import COSTS

    return getattr(COSTS, field)


@experiment(
    "vertices_per_corner", value("vertices_per_corner"), "rows interpolated from all corners",
    "product of matrices", "corner by corner",
)  # fmt: skip
def vertices_per_corner() -> Iterator[Comparison]:
    """Values and gradients of 2,000 rows on lattices of so many vertices per corner of a cell."""
    if not INSTALLED:
        return
    import torch

    from lighttouch.torch import interpolation
    from lighttouch.torch.costs import COSTS

    torch.set_num_threads(1)
    for sizes in ([2] * 8, [2] * 12, [3] * 4, [3] * 6, [4] * 4, [3] * 8, [6] * 4, [5] * 5):
        rng, last = np.random.default_rng(0), np.array(sizes) - 1.0
        x = torch.tensor(rng.random((2_000, len(sizes))) * last)
        theta = torch.tensor(rng.normal(size=int(np.prod(sizes))), requires_grad=True)
        strides = torch.tensor(np.cumprod([1, *sizes[:0:-1]])[::-1].copy())
        known = (x, theta, torch.tensor(last), strides, tuple(sizes))

        def run(known: Any = known) -> None:
            interpolation.hypercube(*known).square().sum().backward()

        times = sides(COSTS, "vertices_per_corner", NEVER, 0.0, run, limit=LIMIT)
        yield Comparison(theta.numel() / 2 ** len(sizes), *times, f"{sizes[0]}^{len(sizes)}")


@experiment(
    "device_all_rows_per_parameter", value("device_all_rows_per_parameter"),
    "rows of 3 entries, d = 300, on a card if there is one", "all", "broken ones",
)  # fmt: skip
def device_all_rows_per_parameter() -> Iterator[Comparison]:
    if not INSTALLED:
        return
    import torch

    from lighttouch.torch.costs import COSTS

    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 300))
    y = X @ rng.normal(size=300) + rng.normal(size=600)
    for share in (5, 20, 60, 200):
        A = scattered(300 * share, 300, 3)

        def run(A: Matrix = A) -> object:
            rules = lt.LinearConstraints(A, np.ones(A.shape[0]))
            return lt.solve(lt.Problem(lt.EmpiricalRisk(X, y, "squared"), rules), device=device)

        times = sides(COSTS, "device_all_rows_per_parameter", NEVER, 0.0, run, limit=LIMIT)
        yield Comparison(share, *times)
