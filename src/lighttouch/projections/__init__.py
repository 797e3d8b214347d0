"""The nearest feasible point: exact projection onto {w in W: g_j(w) <= 0}, by the method that fits the constraints."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lighttouch.checks import finite_vector
from lighttouch.domains import Everywhere
from lighttouch.errors import DataError
from lighttouch.projections.engines import engine_for
from lighttouch.projections.result import Projected

__all__ = ["Projected", "project"]


def project(w: Any, constraints: Any, domain: Any = None, *, warm: Any = None) -> Projected:
    """The point of {w in W: g_j(w) <= 0 for all j} nearest to w, with the method named and the violation recomputed.

    `warm` takes the `warm` of an earlier result on the same constraints: successive points are projected faster.
    """
    begun = time.perf_counter()
    domain = Everywhere() if domain is None else domain
    point = finite_vector(w, "w", constraints.dimension)
    objection = domain.objection_to(constraints.dimension)
    if objection:
        raise DataError(objection)
    found = engine_for(constraints, domain).nearest(point, warm)
    values = constraints.values(found.w)
    return Projected(
        w=found.w,
        distance=float(np.linalg.norm(found.w - point)),
        violation=max(0.0, float(np.max(values, initial=0.0))),
        method=found.method,
        seconds=time.perf_counter() - begun,
        gap=found.gap,
        multipliers=found.multipliers,
        warm=found.warm,
    )
