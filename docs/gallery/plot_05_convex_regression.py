"""
Convex regression under 250,000 constraints
===========================================

*Who has this problem:* economists who estimate production and cost functions, operations research
(value functions), engineers who need a convex surrogate. *What they use today:* a modelling
language and a commercial solver; pyStoNED with MOSEK is the usual pair.

pyStoNED's documentation has a seeded example: 500 firms, two inputs, an output that is concave and
increasing in them. Each firm gets a value f_i and slopes g_i >= 0, and no firm may lie above the
plane of another: f_j <= f_i + g_i (x_j - x_i) for all 249,500 ordered pairs. For this seed it shows
MOSEK's objective, 205.579, and its time, 30.25 s.
"""

import numpy as np

n = 500
random = np.random.RandomState(0)
x = random.uniform(low=1, high=10, size=(n, 2))
y = x[:, 0] ** 0.4 * x[:, 1] ** 0.4 + random.normal(loc=0, scale=0.7, size=n)

# %%
# **The rows are never stored.** A function writes row k from its number; it is compiled.

import time
from typing import NamedTuple

import scipy.sparse as sp

import lighttouch as lt


class Firms(NamedTuple):
    x: np.ndarray


def below_plane(firms, k, columns, values):
    n = firms.x.shape[0]
    i, j = k // (n - 1), k % (n - 1)
    j += j >= i  # all pairs but i = j
    columns[0], values[0] = j, 1.0  # f_j
    columns[1], values[1] = i, -1.0  # - f_i
    for a in range(2):  # - g_i (x_j - x_i)
        columns[2 + a], values[2 + a] = n + 2 * i + a, firms.x[i, a] - firms.x[j, a]
    return 4, 0.0  # four numbers; the row is <= 0


rules = lt.GeneratedRows(3 * n, n * (n - 1), Firms(x), below_plane, entries=4)
P = sp.diags(np.concatenate([np.ones(n), np.full(2 * n, 1e-10)]))
lower = np.concatenate([np.full(n, -np.inf), np.zeros(2 * n)])  # slopes are not negative
q = np.concatenate([-y, np.zeros(2 * n)])
problem = lt.Problem(lt.Quadratic(P.tocsr(), q), rules, lt.Box(lower, np.inf))
lt.solve(problem, iterations=1)  # compiles
began = time.process_time()
result = lt.solve(problem, lt.Automatic(tolerance=1e-6))
took = time.process_time() - began
print(result)

# %%
# **Beside it**: the published number. The sum of squares is recomputed here, and so is the largest
# violation over all pairs, from f and g alone.

f, g = result.w[:n], result.w[n:].reshape(n, 2)
excess = f[None, :] - f[:, None] - g @ x.T + (g * x).sum(axis=1)[:, None]
print(f"sum of squares {np.sum((f - y) ** 2):.4f} (MOSEK as published: 205.579)")
print(f"largest violation over {rules.count:,} rows: {max(excess.max(), -g.min()):.1e}")
print(f"processor seconds {took:.1f} (MOSEK as published: 30.25, on another machine)")

# %%
# The machines differ, so the ratio of the two times is a hint and not a measurement. MOSEK takes
# all rows at once; here only those that some point has broken enter the interior point.
# :class:`lighttouch.ConvexRegressor` states such problems in one line and predicts new firms.

import matplotlib.pyplot as plt

side = np.linspace(1, 10, 80)
points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
surface = np.min(f + points @ g.T - (x * g).sum(axis=1), axis=1)  # the lowest plane
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6))
drawn = axes[0].contour(side, side, surface.reshape(80, 80), levels=8, colors="C0")
axes[0].clabel(drawn, fontsize=8)
axes[0].plot(*x.T, ".", color="grey", markersize=2)
axes[0].set(xlabel="first input", ylabel="second input", title="fitted output")
axes[1].plot(x[:, 0] ** 0.4 * x[:, 1] ** 0.4, f, ".", color="C0", markersize=3)
axes[1].plot([1, 6.3], [1, 6.3], color="grey", lw=1)
axes[1].set(xlabel="true output", ylabel="fitted output", title="500 firms")
figure.tight_layout()
plt.show()
