"""The order graph of an increasing lattice, written down from its sizes: edges by stride, short
ones first, then by their lower end.
"""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel


@lean_kernel
def lattice_edges(nodes, strides, lengths, first, lower, upper):
    """The ends of every edge; the edges of axis a begin at first[a]."""
    for axis in range(strides.size):
        stride = strides[axis]
        span = stride * (lengths[axis] - 1)
        jump = stride * lengths[axis]
        e = first[axis]
        for base in range(0, nodes, jump):
            for i in range(base, base + span):
                lower[e] = i
                upper[e] = i + stride
                e += 1


@lean_kernel
def lattice_arcs(nodes, strides, lengths, first, start, neighbour, edge, upward):
    """Both directions of every edge, node by node."""
    arc = 0
    for i in range(nodes):
        start[i] = arc
        for axis in range(strides.size):
            stride = strides[axis]
            jump = stride * lengths[axis]
            place = i % jump
            number = first[axis] + i // jump * (jump - stride) + place
            if place >= stride:
                neighbour[arc] = i - stride
                edge[arc] = number - stride
                upward[arc] = 0
                arc += 1
            if place < jump - stride:
                neighbour[arc] = i + stride
                edge[arc] = number
                upward[arc] = 1
                arc += 1
    start[nodes] = arc
