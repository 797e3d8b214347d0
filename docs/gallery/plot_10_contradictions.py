"""
Rules that contradict, found and named
======================================

*Who has this problem:* whoever collects rules from several departments. *What they use today:* a
solver that answers ``infeasible``, and an afternoon of leaving rules out one by one. (Gurobi and
CPLEX name an irreducible set, for linear rules.)

A price list of 40 products: 200 rules come from sales, from the law and from the factory. Three of
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
    names.append(f"{who}: product {dearer} costs at least {by:.0f} more than product {cheaper}")


for _ in range(196):
    cheaper, dearer = sorted(rng.choice(products, 2, replace=False))
    at_least(int(dearer), int(cheaper), float(rng.integers(0, 3)), "sales")
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
# **Is that all of it?** The rows named cannot be satisfied together; leaving out any one of them
# leaves the others satisfiable. Both are checked here, not believed. Then the weakest rule goes,
# and the rest has a solution.


def solvable(rows):
    A, b = rules.A[rows], rules.b[rows]
    try:
        return lt.project(costs, lt.LinearConstraints(A, b)).violation < 1e-9
    except lt.InfeasibleConstraintsError:
        return False


print("all of them:", solvable(conflict))
print("each left out:", [solvable([r for r in conflict if r != row]) for row in conflict])
kept = [row for row in range(rules.count) if row != conflict[0]]
result = lt.solve(lt.Problem(problem.objective, lt.LinearConstraints(rules.A[kept], rules.b[kept])))
print(result)
