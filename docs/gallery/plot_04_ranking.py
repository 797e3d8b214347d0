"""
Learning to rank under 24,576 rules
===================================

*Who has this problem:* search and recommendation. Twelve similarities between a query and a
candidate, each in [0, 1]; a candidate that matches better in one of them, and equally in the
others, must never rank lower. *What they use today:* TensorFlow Lattice, or LightGBM's ranker with
monotone constraints.

This is the problem of the paper this package implements (Cotter, Gupta and Pfeifer, 2016): a
lattice with 4,096 parameters (12 axes of 2 vertices) and 24,576 constraints, one per edge. Its
pairs were Google's and are not public; ours are generated, as many as the paper
has: 612,587.
"""

# sphinx_gallery_slow = True

import lighttouch as lt
from lighttouch.datasets import ranking_pairs

grid = lt.Lattice((2,) * 12)
better, worse = (grid.features(side) for side in ranking_pairs(612_587, 12, seed=0))
rules = lt.lattice.increasing(grid.sizes)
ruled = lt.Problem(lt.PairwiseRisk(better, worse, loss="hinge"), rules, lt.Box(-10, 10))
solver = lt.SampledAdaGrad()  # how the default begins; it would go on and prove its answer
result = lt.solve(ruled, solver)
print(result)

# %%
# **Beside it**: the same model without rules, trained alike, and the paper's own algorithm, stopped
# after 50,000 iterations. How many new pairs are put in the users' true order is what counts.

import numpy as np

from lighttouch.datasets import utility

free = lt.solve(lt.Problem(ruled.objective, None, ruled.domain), solver)
paper = lt.solve(ruled, lt.PracticalLightTouch(), iterations=50_000)
first, second = ranking_pairs(50_000, 12, seed=1)
second = np.roll(second, 1, axis=0)  # candidates of different users
print(f"{'':15} {'loss':>7} {'broken rules':>13} {'new pairs in order':>19} {'examples seen':>14}")
for name, run in [("with the rules", result), ("without rules", free), ("the paper's", paper)]:
    learnt = grid.evaluate(first, run.w) - grid.evaluate(second, run.w)
    right = np.mean(learnt * (utility(first) - utility(second)) > 0)
    broken, seen = int((rules.values(run.w) > 0).sum()), run.gradient_samples
    print(f"{name:15} {run.objective:7.4f} {broken:13,} {right:19.1%} {seen:14,}")

# %%
# Without rules the training loss is smaller, as it must be, and fewer new pairs come out right: the
# rules tell the model something true. The paper's algorithm gets there too; it takes longer.

import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(7, 3.4))
edges = np.linspace(-4, 5, 121)
for name, run, color in [("without rules", free, "C1"), ("with the rules", result, "C0")]:
    axis.hist(-rules.values(run.w), edges, histtype="step", lw=1.5, color=color, label=name)
axis.axvline(0, color="grey", lw=1)
axis.set(
    xlabel="change of the score along an edge of the lattice (below 0: a broken rule)",
    ylabel="rules",
    yscale="log",
)
axis.legend(frameon=False)
figure.tight_layout()
plt.show()
