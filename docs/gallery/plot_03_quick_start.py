"""
Quick start: a table of values that obeys two rules
===================================================

*Who has this problem:* whoever fits a curve or a surface and knows beforehand which way it must go.
*What they use today:* a linear model, which cannot bend, or boosted trees with monotone
constraints, which jump.

The data are 1,000 flats: quality, price and age, and how much people liked them. Two things are
known before any data are seen. A better flat is never liked less, and a dearer one never more.
"""

import numpy as np

import lighttouch as lt

rng = np.random.default_rng(0)
X = 3 * rng.random((1_000, 3))  # quality, price and age, each from 0 to 3
y = X[:, 0] - X[:, 1] ** 2 / 3 + rng.normal(size=1_000)  # how much people liked them

model = lt.Lattice((4, 4, 4))  # a table of 4 x 4 x 4 values, interpolated in between
rules = lt.stack(
    lt.lattice.increasing(model.sizes, [0]),  # better is never liked less
    lt.lattice.decreasing(model.sizes, [1]),  # a higher price is never liked more
)
problem = lt.Problem(lt.EmpiricalRisk(model.features(X), y, loss="squared"), rules)
result = lt.solve(problem)
print(result)

# %%
# The result says what is true of the point it returns: the objective, the largest violation over
# all rules (recomputed, not carried over from the solver), and how far from the optimum it can be
# at most.
#
# **Beside it**: the same table without rules, and a straight line. 20,000 new flats without noise
# tell how near each comes to the truth.

from sklearn.linear_model import LinearRegression

free = lt.solve(lt.Problem(problem.objective))
line = LinearRegression().fit(X, y)
new = 3 * rng.random((20_000, 3))
truth = new[:, 0] - new[:, 1] ** 2 / 3
for name, predicted in [
    ("with the rules", model.evaluate(new, result.w)),
    ("without rules", model.evaluate(new, free.w)),
    ("straight line", line.predict(new)),
]:
    print(f"{name:15} error {np.sqrt(np.mean((predicted - truth) ** 2)):.4f}")
broken = int((rules.values(free.w) > 0).sum())
print(f"without rules, {broken} of the {rules.count} rules are broken")

# %%
# The table without rules follows the noise, and says in places that a dearer flat is liked more.
# The rules keep it from that, and here they also bring it nearer to the truth. With fifty times as
# many flats the two tables are much the same, and the rules buy the certainty only.

import matplotlib.pyplot as plt

price = np.linspace(0, 3, 200)
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True)
for axis, age in zip(axes, (0.0, 3.0), strict=True):
    flats = np.column_stack([np.full(200, 3.0), price, np.full(200, age)])
    axis.plot(price, 3 - price**2 / 3, color="grey", linestyle=":", label="truth")
    axis.plot(price, model.evaluate(flats, free.w), color="C1", label="without rules")
    axis.plot(price, model.evaluate(flats, result.w), color="C0", label="with the rules")
    axis.set(xlabel="price", title=f"best quality, age {age:.0f}")
axes[0].set_ylabel("how much it is liked")
axes[0].legend(frameon=False)
figure.tight_layout()
plt.show()
