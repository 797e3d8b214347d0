"""Vertices of a lattice joined along its axes where a point does not rise, without a graph."""

from __future__ import annotations

from lighttouch.kernels.compiler.compiled import lean_kernel
from lighttouch.kernels.orders.graph import find


@lean_kernel
def join_along_axes(w, strides, lengths, signs, tolerance, root):
    """Join both ends of every edge that is level or rises by `tolerance` or less; afterwards
    root[i] is the vertex that stands for i's group.
    """
    for k in range(strides.size):
        stride = strides[k]
        jump = stride * lengths[k]
        for first in range(0, w.size, jump):
            for low in range(first, first + jump - stride):
                rise = signs[k] * (w[low + stride] - w[low])
                if rise == 0.0 or rise <= tolerance:
                    i = find(root, low)
                    j = find(root, low + stride)
                    if i != j:
                        root[max(i, j)] = min(i, j)
    for i in range(w.size):
        root[i] = find(root, i)
