"""Cut a feasible set into blocks of constraints, each on a part of the parameters.

Blocks of one *layer* have no parameter in common, so that projecting them is projecting onto the
layer. A lattice has two layers. The first holds boxes of vertices with all orders inside them, the
second the orders between these boxes. Rows have as many as their blocks need colours.

A cut also knows what the end needs (`settling.py`): which parameters a point ties together, and
what binds the parameters of such a group.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from lighttouch.arrays import EPSILON, Booleans, Floats, Indices, Matrix, Vector
from lighttouch.constraints import LinearConstraints
from lighttouch.constraints.base import LatticeAxes, RecordConstraints
from lighttouch.domains import Box, Domain, Everywhere
from lighttouch.kernels.orders.graph import join_along_axes
from lighttouch.lattice.orders import LatticeMonotonicity
from lighttouch.projections.costs import COSTS, TINY
from lighttouch.projections.orders import between_envelopes, on_graph, prepare_order

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments, but for the last one: the numbers of a part of the parameters."""


@dataclass(frozen=True)
class Block:
    """Constraints on the parameters at `place` of `Cut.view`; equal keys mean equal constraints."""

    place: Any
    constraints: RecordConstraints
    domain: Domain
    key: str


Layers = tuple[tuple[Block, ...], ...]


class Cut(Protocol):
    """A feasible set in blocks."""

    @property
    def layers(self) -> Layers:
        """Blocks without common parameters, layer by layer."""

    @property
    def most_tied(self) -> int:
        """Parameters that one task may settle: as many as the largest block has."""

    def view(self, w: Vector) -> Any:
        """The same numbers in the shape that the places of blocks refer to."""

    def tied(self, w: Vector, tolerance: float) -> Indices:
        """Groups of parameters, joined by every constraint that is tight at w or leaves `tolerance`
        or less. Each parameter has the number of the first of its group.
        """

    def unsettled(self, w: Vector, groups: Indices) -> Booleans:
        """Which parameters are in groups with a broken constraint inside."""

    def task_of(self, members: Indices, groups: Indices) -> Task:
        """What settles these parameters, sorted, whose groups are given: all constraints inside of
        single groups.
        """

    def alone(self, v: Vector) -> Vector:
        """Every parameter where it belongs if no constraint but its bounds held it; the bounds of a
        lattice come last.
        """

    def uncovered(self) -> Booleans:
        """Which parameters are in no block."""

    def last(self, w: Vector) -> Vector:
        """The nearest point, from that without the bounds that were left to the end."""

    def repaired(self, w: Vector, v: Vector, tolerance: float) -> list[Vector]:
        """Points near w that obey all constraints, where that is easy; else w within its bounds. w
        may be wrong by the tolerance about the projection of v.
        """

    def excess(self, w: Vector) -> float:
        """By how much w breaks the worst constraint, in lengths of its row."""

    def rounding(self, v: Vector) -> float:
        """The excess that counts as none in a projection of v."""


# -- lattices --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LatticeCut:
    """Orders along the axes of a lattice, in one interval; no row of them is stored."""

    family: RecordConstraints
    axes: LatticeAxes
    lower: float
    upper: float
    layers: Layers

    @cached_property
    def most_tied(self) -> int:
        return max(int(np.prod(_shape(block.place))) for block in self.layers[0])

    def view(self, w: Vector) -> Any:
        return w.reshape(self.axes.sizes)

    def tied(self, w: Vector, tolerance: float) -> Indices:
        root = np.arange(w.size)
        lengths = np.array([self.axes.sizes[f] for f in self.axes.features], dtype=np.int64)
        join_along_axes(w, self.axes.strides, lengths, self.axes.signs, tolerance, root)
        return root

    def unsettled(self, w: Vector, groups: Indices) -> Booleans:
        uneven = np.zeros(w.size, dtype=bool)  # level groups have only level orders inside
        uneven[groups[w != w[groups]]] = True
        return uneven[groups]

    def task_of(self, members: Indices, groups: Indices) -> Task:
        return nearest_tied_vertices, (self.axes, members, groups)

    def alone(self, v: Vector) -> Vector:
        return v

    def uncovered(self) -> Booleans:
        return np.zeros(self.axes.dimension, dtype=bool)

    def last(self, w: Vector) -> Vector:
        return np.clip(w, self.lower, self.upper)

    def repaired(self, w: Vector, v: Vector, tolerance: float) -> list[Vector]:
        groups = self.tied(w, tolerance)
        sums, counts = np.bincount(groups, weights=v), np.maximum(np.bincount(groups), 1)
        return [between_envelopes(self.axes, each) for each in (w, (sums / counts)[groups])]

    def excess(self, w: Vector) -> float:
        return max(0.0, self.family.largest_relative(w))

    def rounding(self, v: Vector) -> float:
        return 0.0


def cut_lattice(
    family: RecordConstraints, axes: LatticeAxes, lower: float, upper: float, count: int
) -> LatticeCut:
    """At least `count` boxes of vertices where the sizes allow it, with the fewest orders cut.

    Axes without orders are cut first: nothing is between their parts. Then a long axis into slabs,
    or short ones into single layers.
    """
    sizes, features = axes.sizes, axes.features
    parts = _cut_axes([f for f in range(len(sizes)) if f not in features], sizes, count)
    open_count = math.ceil(count / math.prod(map(len, parts.values())))
    longest = max(features, key=lambda f: sizes[f])
    between: list[dict[int, list[slice]]] = []
    cut_features: list[int] = []
    if open_count > 1 and sizes[longest] >= 2 * open_count:
        parts[longest] = _slabs(sizes[longest], open_count)
        cut_features = [longest]
        pairs = [slice(part.start - 1, part.start + 1) for part in parts[longest][1:]]
        between = [parts | {longest: pairs}]
    elif open_count > 1:
        for feature in sorted(features, key=lambda f: sizes[f]):
            if math.prod(sizes[f] for f in cut_features) >= open_count:
                break
            cut_features.append(feature)
        rest = [f for f in range(len(sizes)) if f not in cut_features]
        own = math.prod(sizes[f] for f in cut_features)
        between = [_cut_axes(rest, sizes, own * math.prod(map(len, parts.values())))]
        parts |= {f: _slabs(sizes[f], sizes[f]) for f in cut_features}
    inside = _boxes(axes, parts, features)
    layers = [inside, *(_boxes(axes, each, cut_features) for each in between)]
    return LatticeCut(family, axes, lower, upper, tuple(layer for layer in layers if layer))


def _cut_axes(which: Sequence[int], sizes: Sequence[int], count: int) -> dict[int, list[slice]]:
    """Axes cut one after the other, long ones first, until there are `count` parts."""
    parts: dict[int, list[slice]] = {}
    for f in sorted(which, key=lambda f: -sizes[f]):
        if count <= 1:
            break
        parts[f] = _slabs(sizes[f], count)
        count = math.ceil(count / len(parts[f]))
    return parts


def _slabs(size: int, count: int) -> list[slice]:
    """At most `count` slices of one length, the last may be shorter."""
    length = math.ceil(size / count)
    return [slice(first, min(first + length, size)) for first in range(0, size, length)]


def _boxes(
    axes: LatticeAxes, parts: dict[int, list[slice]], features: Sequence[int]
) -> tuple[Block, ...]:
    """One block for every combination of parts, with the orders along these features."""
    choices = [parts.get(f, [slice(0, size)]) for f, size in enumerate(axes.sizes)]
    signs = dict(zip(axes.features, axes.signs, strict=True))
    made: dict[tuple[int, ...], LatticeMonotonicity] = {}
    blocks = []
    for place in itertools.product(*choices):
        shape = _shape(place)
        if shape not in made:
            own = [f for f in features if shape[f] > 1]
            made[shape] = LatticeMonotonicity(shape, own, [float(signs[f]) for f in own])
        rules = made[shape]
        if rules.count:
            blocks.append(Block(place, rules, Everywhere(), f"{shape}{rules.features}{signs}"))
    return tuple(blocks)


def _shape(place: Sequence[slice]) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in place)


# -- rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowsCut:
    """Any rows A w <= b that are stored, and bounds."""

    matrix: Any  # CSR
    right: Vector
    lower: Floats
    upper: Floats
    layers: Layers

    @cached_property
    def most_tied(self) -> int:
        return max((block.place.size for layer in self.layers for block in layer), default=0)

    @cached_property
    def _lengths(self) -> Floats:
        squares = np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()
        return np.asarray(np.maximum(np.sqrt(squares), TINY))

    def view(self, w: Vector) -> Any:
        return w

    def _slack(self, w: Vector) -> Floats:
        return np.asarray((self.right - self.matrix @ w) / self._lengths)

    def tied(self, w: Vector, tolerance: float) -> Indices:
        slack = self._slack(w)
        tight = (np.abs(slack) <= self.rounding(w)) | (slack <= tolerance)
        rows = self.matrix[np.flatnonzero(tight & (np.diff(self.matrix.indptr) > 0))]
        firsts = np.repeat(rows.indices[rows.indptr[:-1]], np.diff(rows.indptr))
        links = sparse.coo_matrix(
            (np.ones(firsts.size, np.int8), (firsts, rows.indices)), shape=(w.size, w.size)
        )
        _, group = csgraph.connected_components(links, directed=False)
        _, first = np.unique(group, return_index=True)
        return np.asarray(first[group])

    def unsettled(self, w: Vector, groups: Indices) -> Booleans:
        broken = self.matrix[np.flatnonzero(self._slack(w) < -self.rounding(w))]
        uneven = np.zeros(w.size, dtype=bool)
        uneven[groups[broken.indices]] = True
        return uneven[groups]

    def task_of(self, members: Indices, groups: Indices) -> Task:
        columns = self.matrix[:, members].tocsr()
        whole = np.diff(columns.indptr) == np.diff(self.matrix.indptr)
        several = whole & (np.diff(columns.indptr) > 0)
        first = np.zeros(whole.size, dtype=np.int64)
        last = first.copy()
        starts = columns.indptr[:-1][several]
        if starts.size:
            of_entries = groups[columns.indices]
            first[several] = np.minimum.reduceat(of_entries, starts)
            last[several] = np.maximum.reduceat(of_entries, starts)
        inside = np.flatnonzero(several & (first == last))
        rules = LinearConstraints(columns[inside], self.right[inside])
        return nearest_in_block, ("", (rules, _box(self.lower[members], self.upper[members])))

    def alone(self, v: Vector) -> Vector:
        return np.asarray(np.clip(v, self.lower, self.upper))

    def uncovered(self) -> Booleans:
        free = np.ones(self.lower.size, dtype=bool)
        free[self.matrix.indices] = False
        return free

    def last(self, w: Vector) -> Vector:
        return w

    def repaired(self, w: Vector, v: Vector, tolerance: float) -> list[Vector]:
        return [self.alone(w)]

    def excess(self, w: Vector) -> float:
        return float(np.max(-self._slack(w), initial=0.0))

    def rounding(self, v: Vector) -> float:
        return COSTS.rounding_errors * EPSILON * max(1.0, float(np.abs(v).max(initial=0.0)))


def cut_rows(matrix: Matrix, right: Vector, lower: Floats, upper: Floats, count: int) -> RowsCut:
    """Rows with neighbouring parameters in `count` blocks of about as many entries, and the blocks
    in layers by greedy colouring.
    """
    rows = sparse.csr_matrix(matrix)
    rows.sort_indices()
    entries = np.diff(rows.indptr)
    filled = np.flatnonzero(entries > 0)
    by_place = filled[np.argsort(rows.indices[rows.indptr[filled]], kind="stable")]
    share = np.cumsum(entries[by_place]) / max(1, entries.sum())
    cuts = np.searchsorted(share, np.arange(1, count) / count)
    layers: list[list[Block]] = []
    taken: list[Any] = []
    for mine in np.split(by_place, cuts):
        if not mine.size:
            continue
        part = rows[mine]
        columns = np.unique(part.indices)
        rules = LinearConstraints(part[:, columns], right[mine])
        domain = _box(lower[columns], upper[columns])
        key = hashlib.sha256(mine.tobytes() + part.data.tobytes() + part.indices.tobytes()
                             + right[mine].tobytes() + lower[columns].tobytes()
                             + upper[columns].tobytes()).hexdigest()  # fmt: skip
        place = next((k for k, used in enumerate(taken) if not used[columns].any()), len(taken))
        if place == len(taken):
            taken.append(np.zeros(rows.shape[1], dtype=bool))
            layers.append([])
        taken[place][columns] = True
        layers[place].append(Block(columns, rules, domain, key))
    return RowsCut(rows, right, lower, upper, tuple(map(tuple, layers)))


def _box(lower: Floats, upper: Floats) -> Domain:
    if np.all(np.isneginf(lower)) and np.all(np.isposinf(upper)):
        return Everywhere()
    return Box(lower, upper)


# -------------------------------------------------------------------------------------------------
# What workers do: project a part onto its own constraints. Deterministic in the arguments.


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
