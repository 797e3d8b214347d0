"""PyTorch Lattice: one 2^D lattice layer, increasing in every feature, its constraints applied
after every step.
"""

from __future__ import annotations

import torch
from exchange import Run, vertices
from pytorch_lattice.enums import Interpolation, Monotonicity
from pytorch_lattice.layers import Lattice


def main() -> None:
    run = Run()
    torch.set_num_threads(1)  # as ours; on batches this small a second one only waits
    torch.manual_seed(0)
    better, worse = (torch.from_numpy(run.problem[name]) for name in ("better", "worse"))
    features, bound = better.shape[1], float(run.problem["bound"])
    rules = [Monotonicity.INCREASING] * features
    layer = Lattice(
        [2] * features, -bound, bound, monotonicities=rules, interpolation=Interpolation.SIMPLEX
    )
    layer.kernel.data.zero_()
    corners = torch.from_numpy(vertices(features))
    optimizer = getattr(torch.optim, run.settings["optimizer"])(
        layer.parameters(), lr=run.settings["step"]
    )

    def parameters():
        with torch.no_grad():
            return layer(corners).numpy().copy()

    run.start()
    while run.goes_on(parameters):
        drawn = torch.randint(better.shape[0], (run.settings["batch"],))
        optimizer.param_groups[0]["lr"] = run.step()
        optimizer.zero_grad()
        torch.relu(1.0 - layer(better[drawn]) + layer(worse[drawn])).mean().backward()
        optimizer.step()
        layer.apply_constraints()
    run.finish(version="0.2.0", threads=1)


if __name__ == "__main__":
    main()
