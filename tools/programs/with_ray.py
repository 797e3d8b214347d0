"""The extra `ray`: two shards, solved on a Ray of this machine as in this process, to the bit."""

import numpy as np
import ray

import lighttouch as lt

rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
shards = [lt.EmpiricalRisk(X[part], y[part]) for part in (slice(0, 150), slice(150, 400))]
problem = lt.Problem(lt.ShardedRisk(shards), lt.ordering(3))
here, there = lt.solve(problem), lt.solve(problem, engine=lt.Ray(workers=2))
assert (here.w == there.w).all() and there.violation == 0.0
print(f"ray {ray.__version__}, the same bits as in one process")
