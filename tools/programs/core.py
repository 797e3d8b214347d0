"""The package without extras: a problem is stated and solved, and its rules hold."""

import sys
from pathlib import Path

import numpy as np

import lighttouch as lt

assert Path(lt.__file__).is_relative_to(sys.prefix), lt.__file__
noisy = np.linspace(0, 1, 50) + 0.2 * np.sin(np.arange(50))
result = lt.solve(lt.Problem(lt.EmpiricalRisk(np.eye(50), noisy), lt.ordering(50)))
assert result.violation == 0.0 and (np.diff(result.w) >= 0).all()
assert result.status is lt.Status.CONVERGED
print(f"lighttouch {lt.__version__}, {result.status.name}, objective {result.objective:.9f}")
