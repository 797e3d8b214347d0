"""`python -m benchmarks.torch.lattices`: forward and backward of a lattice layer of 2^12 vertices,
ours and pytorch-lattice's, on the CPU with one thread. `lattices_tensorflow.py` is TensorFlow's.

pytorch-lattice asks for numpy < 2: install it by itself (`pip install --no-deps --target DIR
pytorch-lattice tqdm pydantic ...`) and put DIR on PYTHONPATH. CPU seconds, the best of three.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from lighttouch.torch import Lattice

ROWS, COLUMNS = 20_000, 12


def seconds(layer: nn.Module, x: Tensor) -> tuple[float, Tensor]:
    """Of a pass forward and back, and what it predicts."""
    found, taken = torch.empty(0), []
    for _ in range(3):
        began = time.process_time()
        found = layer(x)
        found.sum().backward()
        taken.append(time.process_time() - began)
    return min(taken), found.detach().reshape(-1)


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.random((ROWS, COLUMNS), dtype=np.float32))
    theta = torch.from_numpy(rng.standard_normal(2**COLUMNS, dtype=np.float32))
    layers: dict[str, Callable[[str], nn.Module]] = {"lighttouch": lambda kind: _ours(kind, theta)}
    if importlib.util.find_spec("pytorch_lattice") is None:
        print("pytorch-lattice is not here")
    else:
        layers["pytorch-lattice"] = lambda kind: _theirs(kind, theta)
    for kind in ("simplex", "hypercube"):
        answers = []
        for name, make in layers.items():
            taken, found = seconds(make(kind), x)
            answers.append(found)
            print(
                f"{kind}: {name} {1e3 * taken:.0f} ms for {ROWS:,} x {COLUMNS}, predictions add up "
                f"to {float(found.double().sum()):.3f}",
                flush=True,
            )
        if len(answers) == 2:
            print(f"{kind}: largest difference {float((answers[0] - answers[1]).abs().max()):.2g}")


def _ours(kind: str, theta: Tensor) -> nn.Module:
    layer = Lattice([2] * COLUMNS, interpolation=kind)
    with torch.no_grad():
        layer.theta.copy_(theta)
    return layer


def _theirs(kind: str, theta: Tensor) -> nn.Module:
    from pytorch_lattice import Interpolation
    from pytorch_lattice.layers import Lattice as Theirs

    layer = Theirs([2] * COLUMNS, interpolation=getattr(Interpolation, kind.upper()))
    with torch.no_grad():
        layer.kernel.copy_(theta[:, None])
    return layer


if __name__ == "__main__":
    main()
