"""What a type checker must know of the package from outside; `make dist` checks this file."""

from typing import assert_type

import numpy as np

import lighttouch as lt

rules = lt.stack(lt.ordering(3), lt.bounds(3, 0.0, 1.0))
problem = lt.Problem(lt.EmpiricalRisk(np.eye(3), [0.3, 0.1, 0.2]), rules, lt.Box(-1.0, 1.0))
result = lt.solve(problem, time_limit=1.0, seed=3)
assert_type(result, lt.Result)
assert_type(result.objective, float)
assert_type(result.status, lt.Status)
assert_type(problem.violation(result.w), float)
assert_type(lt.project([3.0, 1.0], lt.ordering(2)), lt.Projected)
model = lt.LatticeRegressor(monotonic_cst={"x": 1})
assert_type(model.fit(np.eye(3), [1.0, 2.0, 3.0]), lt.LatticeRegressor)
