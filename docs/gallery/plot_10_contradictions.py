"""
Rules that contradict, found and named
======================================

*Who has this problem:* whoever collects rules from several departments. *What they use today:* a
solver that answers ``infeasible``, and an afternoon of leaving rules out one by one. (Gurobi and
CPLEX name an irreducible set, for linear rules.)

A price list of 40 products, and 200 rules from sales, from the law and from the factory. A few of
them cannot all hold, and nobody knows which.
"""

import numpy as np

import lighttouch as lt

rng = np.random.default_rng(0)
products = 40
names, low, high, gap = [], [], [], []


def at_least(dearer, cheaper, by, who):
    low.append(cheaper)
    high.append(dearer)
    gap.append(by)
    words = f"at least {by:.0f} more" if by >= 0 else f"at most {-by:.0f} less"
    names.append(f"{who}: product {dearer} costs {words} than product {cheaper}")


for _ in range(196):
    cheaper, dearer = sorted(rng.choice(products, 2, replace=False))
    at_least(int(dearer), int(cheaper), 0.0, "sales")
at_least(31, 12, 6.0, "factory")
at_least(22, 31, -2.0, "law")  # 22 may be cheaper than 31, by no more than 2
at_least(12, 22, -3.0, "law")
at_least(39, 0, 30.0, "factory")
rules = lt.order(np.array(low), np.array(high), np.array(gap))
costs = 100 + 3.0 * np.arange(products) + rng.normal(size=products)
problem = lt.Problem(lt.EmpiricalRisk(np.eye(products), costs, loss="squared"), rules)
try:
    lt.solve(problem)
except lt.InfeasibleConstraintsError as error:
    print(error)
    conflict = list(error.rows)
    for row in conflict:
        print("   ", names[row])

# %%
# **Is that all of it?** The rows named cannot be satisfied together, and leaving out any one of
# them leaves the others satisfiable. Both are tried here with another solver, not believed.

import time

from scipy.optimize import linprog


def satisfiable(rows):
    answer = linprog(np.zeros(products), rules.A[rows], rules.b[rows], bounds=(None, None))
    return answer.status == 0


print("satisfiable together:", satisfiable(conflict))
print("with one left out:", [satisfiable([r for r in conflict if r != row]) for row in conflict])

# %%
# **Beside it**: what one does with a solver that only says *infeasible*. Leave out rule after rule,
# and keep each whose absence makes the rest satisfiable: one linear program per rule.

began = time.process_time()
rest = list(range(rules.count))
for row in range(rules.count):
    without = [other for other in rest if other != row]
    rest = rest if satisfiable(without) else without
seconds = time.process_time() - began
print(f"{rules.count} programs, {seconds:.2f} s, the same rows: {sorted(rest) == sorted(conflict)}")

# %%
# With 200 rules that is bearable; with 24,576 it is not. For orders like these the rows named are a
# cycle, and so as few as possible. For other rows they are a set that cannot hold together, which
# need not be the smallest.
#
# One of the rules named has to go. The law stays, so the factory gives way, and the prices nearest
# to the costs follow.

import matplotlib.pyplot as plt

factory = next(row for row in conflict if names[row].startswith("factory"))
kept = [row for row in range(rules.count) if row != factory]
result = lt.solve(lt.Problem(problem.objective, lt.LinearConstraints(rules.A[kept], rules.b[kept])))
print(result)
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
axis.plot(costs, ".", color="grey", label="costs")
axis.plot(result.w, color="C0", drawstyle="steps-mid", label="prices that obey the other 199 rules")
for row in conflict:
    ends = (low[row], result.w[low[row]]), (high[row], result.w[high[row]])
    arrow = {"arrowstyle": "->", "color": "C1", "connectionstyle": "arc3,rad=-0.5"}
    axis.annotate("", ends[1], ends[0], arrowprops=arrow)
axis.plot([], color="C1", label="the rules that contradict")
axis.set(xlabel="product", ylabel="price")
axis.legend(frameon=False)
plt.show()
