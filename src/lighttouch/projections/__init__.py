"""The nearest feasible point: exact projection onto {w in W: g_j(w) <= 0}, by the method that fits
the constraints.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import ArrayLike

from lighttouch.constraints.base import RecordConstraints
from lighttouch.domains import Domain, Everywhere
from lighttouch.errors import ConstraintError
from lighttouch.projections.sets import feasible_set
from lighttouch.result import Projected
from lighttouch.running import Engine, OutOfTimeError, within, working_with
from lighttouch.validation import finite_vector, positive, positive_int, told

__all__ = ["OutOfTimeError", "Projected", "project"]

_EVERYWHERE = Everywhere()


def project(
    w: ArrayLike,
    constraints: RecordConstraints,
    domain: Domain = _EVERYWHERE,
    *,
    warm: object = None,
    time_limit: float | None = None,
    engine: Engine | None = None,
    blocks: int | None = None,
) -> Projected:
    """The point of {w in W: g_j(w) <= 0 for all j} nearest to w.

    Parameters
    ----------
    w : array of d numbers
        The point to project.
    constraints : constraint family
        Any, also stacked or aggregated.
    domain : Box, Ball, Simplex or Everywhere, default Everywhere()
        The simple set W.
    warm : object, optional
        The `warm` of an earlier result on the same constraints: successive points are projected
        faster.
    time_limit : float, optional
        Seconds after which the search ends with the best point known, said to be not certified, or
        with an OutOfTimeError. Orders with few edges, which take an instant, do not look at the
        clock.
    engine : Engine, optional
        Where the work in blocks is done: None is this process, `lt.Processes(workers)` several, and
        `lt.Ray(address)` a cluster. It changes no bit of the result.
    blocks : int, optional
        Cut the constraints into about so many blocks, which the engine's workers project, with
        exchange between rounds. Nobody holds more than a block and a few vectors. By default orders
        of a lattice that do not fit into memory are cut, and nothing else.

    Returns
    -------
    Projected
        The point, the method that found it, and the violation recomputed.

    Raises
    ------
    InfeasibleConstraintsError
        Where no point satisfies all constraints; it names a few that contradict each other.
    OutOfTimeError
        Where the time limit passes before any point is known.
    DataError
        Where w is not finite, or the domain is none of the four.
    ConstraintError
        Where a constraint function returns NaN, or constraints cannot be cut into blocks.

    Examples
    --------
    >>> import lighttouch as lt
    >>> lt.project([3.0, 1.0, 2.0], lt.ordering(3), lt.Box(0.0, 1.5)).w
    array([1.5, 1.5, 1.5])
    """
    begun = time.perf_counter()
    if not isinstance(constraints, RecordConstraints):
        raise ConstraintError(
            "constraints must be constraints such as ordering(3) or LinearConstraints(A, b), got "
            f"{told(constraints)}"
        )
    point = finite_vector(w, "w", constraints.dimension)
    count = None if blocks is None else positive_int(blocks, "blocks")
    limit = math.inf if time_limit is None else positive(time_limit, "time_limit")
    with working_with(engine), within(limit):
        found = feasible_set(constraints, domain, count).nearest(point, warm)
    return Projected(
        w=found.w,
        distance=float(np.linalg.norm(found.w - point)),
        violation=constraints.violation(found.w),
        method=found.method + found.certificate.words(),
        seconds=time.perf_counter() - begun,
        gap=found.gap,
        certificate=found.certificate,
        warm=found.warm,
        multipliers_of=found.multipliers,
    )
