"""The extra `conic`: the nearest point within two balls, by Clarabel."""

import clarabel
import numpy as np

import lighttouch as lt

both = lt.NormConstraints([np.eye(3)] * 2, [np.zeros(3), -np.ones(3)], None, [1.0, 1.5])
found = lt.project([3.0, 0.0, 0.0], both)
assert found.violation <= 1e-8
print(f"clarabel {clarabel.__version__}, violation {found.violation:.1e} by {found.method}")
