"""A ranking network in PyTorch: a free body, a certified head, and 10 million pair constraints.

Clicks are noisy; experts have graded the items. No item may be scored above one of a higher grade.
`LightTouch` learns which of 10 million such pairs to look at, 128 per step; the head is a lattice
that is exactly monotone. The head is certified, the rest is measured. Needs PyTorch:
`python examples/pytorch_ranking.py`, about half a minute.
"""

import torch
from torch import nn

from lighttouch.torch import Lattice, LightTouch, keep_feasible

torch.manual_seed(0)
x = torch.rand(20_000, 8)
grade = (4 * (x[:, 0] + x[:, 1] * x[:, 2])).floor()
clicks = grade + 3.0 * x[:, 3] + 2.0 * torch.randn(20_000)  # users like x[3], experts do not
pairs = torch.randint(0, 20_000, (2, 14_000_000))
pairs = pairs[:, grade[pairs[0]] != grade[pairs[1]]][:, :10_000_000]
worse, better = torch.where(grade[pairs[0]] < grade[pairs[1]], pairs, pairs.flip(0))


def trained(penalty: float) -> tuple[float, LightTouch, Lattice]:
    torch.manual_seed(1)
    body = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3), nn.Sigmoid())
    head = Lattice([3, 3, 3], increasing=True)
    model = nn.ModuleList([body, head])

    def score(rows: torch.Tensor) -> torch.Tensor:
        return head(2 * body(x[rows]))

    touch = LightTouch(lambda j: score(worse[j]) - score(better[j]), 10_000_000, penalty=penalty)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    keep_feasible(optimizer, head, every=100)
    for _ in range(1_500):
        rows = torch.randint(0, 20_000, (256,))
        loss = nn.functional.mse_loss(score(rows), clicks[rows]) + touch()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    head.project_()
    with torch.no_grad():
        error = float(nn.functional.mse_loss(score(torch.arange(20_000)), clicks))
    return error, touch, head


if __name__ == "__main__":
    for penalty in (0.0, 5.0):
        error, touch, head = trained(penalty)
        print(f"penalty {penalty}: squared error {error:.3f}; head: {head.certificate()}")
        print(f"  {touch.audit(worst=3)}")
