"""
PyTorch: a free body, a certified head
======================================

*Who has this problem:* teams whose features come out of a network (text, pictures, histories) and
whose decision must still obey rules in a few plain numbers. *What they use today:* penalties
(Cooper, TFCO) that leave violations behind, or networks with positive weights.

**Through a body that is not convex nothing is guaranteed: the head is certified, the rest is
measured.** Here a network reads 20 raw signals of a customer and condenses them to one number. The
head, a lattice over that number, the price and the discount, decides. It must fall with the price
and rise with the discount, whatever the body says.
"""

import torch
from torch import nn

from lighttouch.torch import Lattice, keep_feasible

torch.manual_seed(0)
torch.set_num_threads(1)
signals, offer = torch.randn(2_000, 20), torch.rand(2_000, 2)
taste = torch.tanh(signals[:, :4].sum(1))
chance = torch.sigmoid(2 * taste + 0.5 - offer[:, 0] ** 2 + offer[:, 1])
bought = (torch.rand(2_000) < chance).float()
train, test = slice(0, 1_000), slice(1_000, 2_000)

# %%
# **The certified head** is kept feasible by an exact projection after every hundredth step of any
# optimizer; the training loop does not change. Axis 1 of the lattice is minus the price.

body = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
head = Lattice([3, 4, 4], increasing=[1, 2])


def ruled(signals, offer):
    return head(torch.cat([2 * body(signals), 3 * (1 - offer[:, :1]), 3 * offer[:, 1:]], dim=1))


layers = [nn.Linear(22, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)]
plain_net = nn.Sequential(*layers)


def plain(signals, offer):
    return plain_net(torch.cat([signals, offer], dim=1))[:, 0]


for model, parameters in [
    (ruled, [*body.parameters(), *head.parameters()]),
    (plain, list(plain_net.parameters())),
]:
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    if model is ruled:
        keep_feasible(optimizer, head)
    for _ in range(40):
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(signals[train], offer[train]), bought[train]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(head.project_().certificate())

# %%
# **Beside it**: a plain network with as many layers, trained alike. Every test customer is offered
# 50 prices; for how many does a higher one raise the log-odds, by more than rounding?

prices = torch.linspace(0, 1, 50)
for name, model in [("certified head", ruled), ("plain network", plain)]:
    with torch.no_grad():
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(signals[test], offer[test]), bought[test]
        )
        many = torch.stack(
            [
                model(signals[test], torch.stack([p.expand(1_000), offer[test, 1]], dim=1))
                for p in prices
            ]
        )
    wrong = (many.diff(dim=0) > 1e-5).any(dim=0).float().mean()
    print(
        f"{name:15} log loss on new customers {loss:.4f}, wrong direction for {wrong:.1%} of them"
    )

# %%
# A smaller plain network errs for fewer customers; a penalty would lower its share and leave some.
# The head's share is 0 because its parameters satisfy the rules; only rounding in PyTorch's
# arithmetic is left. The certificate says nothing about the signals, which have no rules. Rules on
# a whole network, ten million of them, are sampled and measured instead:
# :class:`lighttouch.torch.LightTouch`.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for axis, (name, model) in zip(
    axes, [("certified head", ruled), ("plain network", plain)], strict=True
):
    with torch.no_grad():
        for customer in range(1_000, 1_025):
            grid = torch.stack([prices, offer[customer, 1].expand(50)], dim=1)
            curve = torch.sigmoid(model(signals[customer].expand(50, 20), grid))
            falls = bool((curve.diff() <= 1e-6).all())
            axis.plot(prices, curve, color="C0" if falls else "C1", lw=1, alpha=0.8)
    axis.set(xlabel="price", title=name)
axes[0].set_ylabel("chance of buying, 25 new customers")
figure.tight_layout()
plt.show()
