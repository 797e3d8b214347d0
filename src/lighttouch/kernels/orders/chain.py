"""The exact projection onto chains of orders: pool adjacent violators (Ayer et al. 1955)."""

from __future__ import annotations

import numpy as np

from lighttouch.kernels.compiler.compiled import kernel


@kernel
def pool_adjacent_violators(v, nodes, start, w):
    """The w nearest to v with w[nodes[k]] <= w[nodes[k + 1]] inside each chain nodes[start[c] :
    start[c + 1]].
    """
    total = np.empty(v.size)
    count = np.empty(v.size, np.int64)
    for c in range(start.size - 1):
        pools = 0
        for k in range(start[c], start[c + 1]):
            total[pools] = v[nodes[k]]
            count[pools] = 1
            pools += 1
            while (
                pools > 1
                and total[pools - 2] / count[pools - 2] >= total[pools - 1] / count[pools - 1]
            ):
                total[pools - 2] += total[pools - 1]
                count[pools - 2] += count[pools - 1]
                pools -= 1
        k = start[c]
        for p in range(pools):
            mean = v[nodes[k]] if count[p] == 1 else total[p] / count[p]
            for _ in range(count[p]):
                w[nodes[k]] = mean
                k += 1
