"""The extra `torch`: a lattice layer that is exactly monotone after two steps of training."""

import torch

from lighttouch.torch import Lattice, keep_feasible

torch.manual_seed(0)
layer = Lattice([3, 3], increasing=True)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
keep_feasible(optimizer, layer, every=1)
x = 2 * torch.rand(64, 2)
for _ in range(2):
    optimizer.zero_grad()
    ((layer(x) + x[:, 0]) ** 2).mean().backward()
    optimizer.step()
assert layer.certificate().holds
print(f"torch {torch.__version__}, {layer.certificate()}")
