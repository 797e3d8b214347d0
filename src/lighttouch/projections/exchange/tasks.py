"""What workers do: project a part onto its own constraints. Deterministic in the arguments."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np

from lighttouch.arrays import Indices, Vector
from lighttouch.constraints.base import LatticeAxes, RecordConstraints
from lighttouch.domains import Domain
from lighttouch.projections.costs import COSTS
from lighttouch.projections.orders.graphs import prepare_order
from lighttouch.projections.orders.nearest import on_graph

Rules = tuple[RecordConstraints, Domain]

_kept: OrderedDict[str, Rules] = OrderedDict()  # with what was prepared for them


def nearest_in_block(key: str, rules: Rules, z: Vector) -> tuple[Vector, float]:
    """The nearest point of a block and its gap, NaN where that is not certified. What is prepared
    for a key is kept for the next rounds.
    """
    from lighttouch.projections.sets import feasible_set  # it imports the methods

    if key:
        rules = _kept.setdefault(key, rules)
        _kept.move_to_end(key)
        while len(_kept) > COSTS.kept_blocks:
            _kept.popitem(last=False)
    found = feasible_set(*rules).nearest(z)
    gap = found.gap if found.certificate.holds else None
    return found.w, math.nan if gap is None else float(gap)


def nearest_tied_vertices(
    axes: LatticeAxes, members: Indices, groups: Indices, v: Vector
) -> tuple[Vector, float]:
    """The nearest point under the orders between neighbours of a lattice that are in one group."""
    lower, upper = [], []
    for feature, stride, sign in zip(axes.features, axes.strides, axes.signs, strict=True):
        inner = members // stride % axes.sizes[feature] < axes.sizes[feature] - 1
        low = np.flatnonzero(inner)
        high = np.searchsorted(members, members[low] + stride)
        there = high < members.size
        low, high = low[there], high[there]
        same = (members[high] == members[low] + stride) & (groups[high] == groups[low])
        low, high = low[same], high[same]
        lower.append(low if sign > 0.0 else high)
        upper.append(high if sign > 0.0 else low)
    order = prepare_order(members.size, np.concatenate(lower), np.concatenate(upper))
    assert order is not None  # without margins there is always a potential
    w, _, gap, _ = on_graph(order.graph, order.runs, v, None)
    return w, gap


def forget_blocks() -> None:
    """What tasks of this process have kept."""
    _kept.clear()
