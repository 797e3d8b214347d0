"""The nearest feasible point: exact projection onto {w in W: g_j(w) <= 0}, by the method that fits
the constraints.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from lighttouch.domains import Everywhere
from lighttouch.errors import DataError, InfeasibleConstraintsError
from lighttouch.projections.engines import engine_for, in_words, largest_violation
from lighttouch.projections.result import Projected
from lighttouch.running.deadline import OutOfTimeError, within
from lighttouch.validation import finite_vector, positive

__all__ = ["OutOfTimeError", "Projected", "project"]


_EVERYWHERE = Everywhere()


def project(
    w: Any,
    constraints: Any,
    domain: Any = _EVERYWHERE,
    *,
    warm: Any = None,
    time_limit: float | None = None,
) -> Projected:
    """The point of {w in W: g_j(w) <= 0 for all j} nearest to w, with the method named and the
    violation recomputed.

    `warm` takes the `warm` of an earlier result on the same constraints: successive points are
    projected faster. After `time_limit` seconds the search ends with the best point known, said to
    be uncertified, or with an OutOfTimeError; orders alone, which are solved in one go, do not look
    at the clock.
    """
    begun = time.perf_counter()
    point = finite_vector(w, "w", constraints.dimension)
    objection = domain.objection_to(constraints.dimension)
    if objection:
        raise DataError(objection)
    try:
        with within(math.inf if time_limit is None else positive(time_limit, "time_limit")):
            found = engine_for(constraints, domain).nearest(point, warm)
    except InfeasibleConstraintsError as error:
        raise in_words(error, constraints) from None
    return Projected(
        w=found.w,
        distance=float(np.linalg.norm(found.w - point)),
        violation=largest_violation(constraints, found.w),
        method=found.method,
        seconds=time.perf_counter() - begun,
        gap=found.gap,
        warm=found.warm,
        found=found,
    )
