"""
The quick start
===============

**Who has this problem.** Everybody who fits a smooth function and knows that it must not fall in
one column and must not rise in another.

**What they use today.** Boosted trees with monotone columns, or CVXPY on a grid.
"""

# %%
# Flats have a quality, a price and an age, each from 0 to 3. People like better flats more, and
# cheaper flats more.
import matplotlib.pyplot as plt
import numpy as np

import lighttouch as lt

rng = np.random.default_rng(0)
X = 3 * rng.random((50_000, 3))
y = X[:, 0] - X[:, 1] ** 2 / 3 + rng.normal(size=50_000)

# %%
# The model is a table of 4 x 4 x 4 values, interpolated in between. The rules are rows on it.
model = lt.Lattice((4, 4, 4))
rules = lt.stack(
    lt.lattice.increasing(model.sizes, [0]),
    lt.lattice.decreasing(model.sizes, [1]),
)
problem = lt.Problem(lt.EmpiricalRisk(model.features(X), y, loss="squared"), rules)
result = lt.solve(problem)
print(result)

# %%
# Predictions are monotone to the last bit.
price = np.linspace(0, 3, 61)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for quality in (0.5, 1.5, 2.5):
    points = np.column_stack([np.full(61, quality), price, np.ones(61)])
    ax.plot(price, model.evaluate(points, result.w), label=f"quality {quality}")
ax.set(xlabel="price", ylabel="how much people like it")
ax.legend(frameon=False)
plt.show()
