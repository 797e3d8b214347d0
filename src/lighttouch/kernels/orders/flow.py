"""Exact isotonic regression on any order graph: divide and conquer (Maxwell and Muckstadt 1985) by
maximum flow, found by push-relabel (Goldberg and Tarjan 1988).

Inside a block with mean mu, excess v - mu flows along edges from lower to upper nodes (and back
over used edges) to nodes with a deficit. Where all of it arrives the block is final at mu;
otherwise the nodes that cannot reach a deficit lie above mu, the others below, and each part is a
block of its own. The flow is the multiplier of the edge, so a good guess of it is a warm start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel, lean_kernel


class Flow(NamedTuple):
    """Working arrays of the divide and conquer, one entry per node (first group) or per
    block (second).
    """

    supply: np.ndarray  # v after the flow so far has left and arrived
    block: np.ndarray
    height: np.ndarray
    arc: np.ndarray  # the arc at which a node goes on pushing
    waiting: np.ndarray
    queue: np.ndarray
    frontier: np.ndarray
    live: np.ndarray  # nodes of blocks that are not final
    mean: np.ndarray
    total: np.ndarray
    members: np.ndarray
    state: np.ndarray
    # the number of a block's lower part (its upper part follows), or the node that stands for it
    child: np.ndarray


@kernel
def new_flow(nodes):
    blocks = 3 * nodes + 4
    return Flow(
        np.zeros(nodes),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.uint8),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(blocks),
        np.zeros(blocks),
        np.zeros(blocks, np.int32),
        np.zeros(blocks, np.uint8),
        np.zeros(blocks, np.int32),
    )


@lean_kernel
def load_flow(graph, flow, v, multiplier, blocks):
    """Let the multipliers flow; those between blocks are dropped."""
    for i in range(v.size):
        flow.supply[i] = v[i]
    for e in range(graph.lower.size):
        if multiplier[e] > 0.0:
            i = graph.lower[e]
            j = graph.upper[e]
            if blocks.root[i] != blocks.root[j]:
                multiplier[e] = 0.0
            else:
                flow.supply[i] -= multiplier[e]
                flow.supply[j] += multiplier[e]


@lean_kernel
def relabel_all(graph, flow, multiplier, live_count, tolerance):
    """Heights as exact distances to the nearest deficit (1 at a deficit), by a search backwards;
    unreachable nodes get the top height.
    """
    top = graph.start.size + 4
    head = 0
    tail = 0
    for t in range(live_count):
        i = flow.live[t]
        if flow.supply[i] - flow.mean[flow.block[i]] < -tolerance:
            flow.height[i] = 1
            flow.frontier[tail] = i
            tail += 1
        else:
            flow.height[i] = top
    while head < tail:
        i = flow.frontier[head]
        head += 1
        for arc in range(graph.start[i], graph.start[i + 1]):
            j = graph.neighbour[arc]
            if flow.height[j] == top and flow.block[j] == flow.block[i]:
                if graph.upward[arc] == 0 or multiplier[graph.edge[arc]] > 0.0:
                    flow.height[j] = flow.height[i] + 1
                    flow.frontier[tail] = j
                    tail += 1


@lean_kernel
def queue_excess(graph, flow, live_count, tolerance):
    """Queue every live node with excess that can reach a deficit; returns how many."""
    top = graph.start.size + 4
    size = 0
    for t in range(live_count):
        i = flow.live[t]
        flow.waiting[i] = 0
        flow.arc[i] = graph.start[i]
        if flow.height[i] < top and flow.supply[i] - flow.mean[flow.block[i]] > tolerance:
            flow.queue[size] = i
            size += 1
            flow.waiting[i] = 1
    return size


@lean_kernel
def raised_height(graph, flow, multiplier, i):
    """One more than the lowest neighbour that node i can still push to."""
    nodes = graph.start.size - 1
    best = nodes
    for arc in range(graph.start[i], graph.start[i + 1]):
        j = graph.neighbour[arc]
        if flow.height[j] + 1 < best and flow.block[j] == flow.block[i]:
            if graph.upward[arc] == 1 or multiplier[graph.edge[arc]] > 0.0:
                best = flow.height[j] + 1
    return best if best < nodes else nodes + 5


@lean_kernel
def discharge(graph, flow, multiplier, i, tail, size, tolerance):
    """Push the excess of node i downhill until none is left or no deficit can be reached; returns
    (relabels, tail, size).
    """
    nodes = graph.start.size - 1
    top = nodes + 5
    mean = flow.mean[flow.block[i]]
    excess = flow.supply[i] - mean
    height = flow.height[i]
    arc = flow.arc[i]
    stop = graph.start[i + 1]
    relabels = 0
    while excess > tolerance and height < top:
        if arc == stop:
            relabels += 1
            height = raised_height(graph, flow, multiplier, i)
            arc = graph.start[i]
            continue
        j = graph.neighbour[arc]
        if flow.height[j] + 1 != height or flow.block[j] != flow.block[i]:
            arc += 1
            continue
        e = graph.edge[arc]
        pushed = excess
        if graph.upward[arc] == 1:
            multiplier[e] += pushed
        else:
            pushed = min(excess, multiplier[e])
            if pushed <= 0.0:
                arc += 1
                continue
            multiplier[e] = 0.0 if pushed == multiplier[e] else multiplier[e] - pushed
        excess -= pushed
        flow.supply[j] += pushed
        if flow.waiting[j] == 0 and flow.supply[j] - mean > tolerance:
            flow.waiting[j] = 1
            flow.queue[tail] = j
            tail = tail + 1 if tail + 1 < nodes else 0
            size += 1
        if excess > tolerance:
            arc += 1
    flow.supply[i] = mean + excess
    flow.height[i] = height
    flow.arc[i] = arc
    return relabels, tail, size


@lean_kernel
def keep_busy_blocks(graph, flow, size, busy_count):
    """Blocks with nothing queued have their maximum flow: move their nodes behind those of the
    others; returns how many stay in front.
    """
    for t in range(busy_count):
        flow.state[flow.block[flow.live[t]]] = 0
    for q in range(size):
        flow.state[flow.block[flow.queue[q]]] = 1
    front = 0
    for t in range(busy_count):
        i = flow.live[t]
        if flow.state[flow.block[i]] == 1:
            flow.live[t] = flow.live[front]
            flow.live[front] = i
            front += 1
    return front


@lean_kernel
def push_everything(graph, flow, multiplier, live_count, tolerance):
    """Maximum flow in all live blocks at once: first in, first out, with exact heights renewed
    after as many relabels as nodes.
    """
    nodes = graph.start.size - 1
    busy_count = live_count
    while True:
        relabel_all(graph, flow, multiplier, busy_count, tolerance)
        size = queue_excess(graph, flow, busy_count, tolerance)
        if size == 0:
            return
        busy_count = keep_busy_blocks(graph, flow, size, busy_count)
        head = 0
        tail = size if size < nodes else 0
        relabels = 0
        while size > 0 and relabels <= busy_count:
            i = flow.queue[head]
            head = head + 1 if head + 1 < nodes else 0
            size -= 1
            flow.waiting[i] = 0
            more, tail, size = discharge(graph, flow, multiplier, i, tail, size, tolerance)
            relabels += more


@lean_kernel
def mark_splits(graph, flow, live_count, tolerance):
    """Mark with 3 the blocks that hold both stranded excess and an unmet deficit: only they split
    (rounding must split none).
    """
    top = graph.start.size + 4
    for t in range(live_count):
        k = flow.block[flow.live[t]]
        flow.state[k] = 0
        flow.child[k] = -1
    for t in range(live_count):
        i = flow.live[t]
        k = flow.block[i]
        if flow.height[i] < top:
            flow.state[k] |= 2
        elif flow.supply[i] - flow.mean[k] > tolerance:
            flow.state[k] |= 1


@lean_kernel
def split_blocks(graph, flow, v, w, live_count, numbers):
    """Write final blocks to w and give the two parts of every other one new numbers; returns (live
    nodes, numbers used so far).
    """
    top = graph.start.size + 4
    kept = 0
    first_new = numbers
    for t in range(live_count):
        i = flow.live[t]
        k = flow.block[i]
        if flow.state[k] != 3:
            w[i] = flow.mean[k]
            continue
        if flow.child[k] == -1:
            flow.child[k] = numbers
            flow.total[numbers : numbers + 2] = 0.0
            flow.members[numbers : numbers + 2] = 0
            numbers += 2
        part = flow.child[k] + (1 if flow.height[i] == top else 0)
        flow.block[i] = part
        flow.total[part] += v[i]
        flow.members[part] += 1
        flow.live[kept] = i
        kept += 1
    for k in range(first_new, numbers):
        flow.mean[k] = flow.total[k] / flow.members[k]
    return kept, numbers


@lean_kernel
def settle_single_nodes(flow, v, w, live_count):
    """A block of one node is final; returns the live nodes left."""
    kept = 0
    for t in range(live_count):
        i = flow.live[t]
        if flow.members[flow.block[i]] == 1:
            w[i] = v[i]
        else:
            flow.live[kept] = i
            kept += 1
    return kept


@lean_kernel
def open_unsettled(flow, blocks):
    """Number the blocks by the nodes that stand for them; the nodes of unsettled ones are live.
    Returns how many those are.
    """
    live_count = 0
    for i in range(blocks.root.size):
        top = blocks.root[i]
        flow.block[i] = top
        if blocks.unsettled[top] == 1:
            flow.live[live_count] = i
            live_count += 1
            flow.mean[top] = blocks.total[top] / blocks.members[top]
            flow.members[top] = blocks.members[top]
    return live_count


@lean_kernel
def close_settled(flow, blocks):
    """Write the partition reached so far back to the blocks, all of them settled."""
    for i in range(blocks.root.size):
        flow.child[flow.block[i]] = -1
    for i in range(blocks.root.size):
        k = flow.block[i]
        if k == blocks.root[i] and blocks.unsettled[k] == 0:
            continue
        if flow.child[k] == -1:
            flow.child[k] = i
    for i in range(blocks.root.size):
        if flow.child[flow.block[i]] >= 0:
            blocks.root[i] = flow.child[flow.block[i]]


@lean_kernel
def divide_and_conquer(graph, flow, v, multiplier, blocks, w, tolerance):
    """The exact solution inside every unsettled block, written to w; flow.supply must hold v after
    the multipliers have flowed.
    """
    live_count = open_unsettled(flow, blocks)
    numbers = v.size
    while live_count > 0:
        push_everything(graph, flow, multiplier, live_count, tolerance)
        mark_splits(graph, flow, live_count, tolerance)
        live_count, numbers = split_blocks(graph, flow, v, w, live_count, numbers)
        live_count = settle_single_nodes(flow, v, w, live_count)
    return numbers > v.size
